//! `review_pr`: what a branch changes, and a review of it that is kept with the commit that was
//! seen. Files that hold secrets by their names are not shown.

use chancery_domain::event::CallResult;
use chancery_domain::policy::is_branch_name;
use chancery_domain::text::visible;
use serde_json::{Value, json};

use super::super::CallContext;
use super::super::desk::wrong;
use super::super::files::{Reach, is_protected, text};
use super::super::shelf::{Document, Shelf};
use super::REVIEWS;
use super::repository::{Bench, Git};
use crate::clock;

const DIFF_BYTES_MAX: usize = 200 * 1024;
const COMMITS_MAX: &str = "50";

type Answer = Result<CallResult, CallResult>;

struct Seen {
    branch: String,
    base: String,
    tip: String,
    /// Where the branch left the base.
    from: String,
}

pub(super) async fn review(
    git: &Git,
    given: &Value,
    context: &CallContext,
    reach: Reach,
) -> Answer {
    let bench = git.bench(context)?;
    let seen = seen(&bench, given).await?;
    if !given["review"].is_string() {
        return show(&bench, &seen).await;
    }
    if let Some(commit) = given["commit"].as_str()
        && !seen.tip.starts_with(commit)
    {
        let detail = format!("`{}` is at {} by now: look at it again", seen.branch, seen.tip);
        return Err(CallResult::error("CONFLICT", detail));
    }
    let stat =
        bench.run(&["diff-tree", "--no-commit-id", "--shortstat", &seen.from, &seen.tip]).await?;
    let (given, context) = (given.clone(), context.clone());
    let kept = tokio::task::spawn_blocking(move || keep(&given, &context, &reach, &seen, &stat));
    kept.await.map_err(|_| CallResult::error("OUTCOME_UNKNOWN", "the review was cut off"))?
}

async fn seen(bench: &Bench<'_>, given: &Value) -> Result<Seen, CallResult> {
    let branch = text(given, "branch");
    let missing = |it: &str| CallResult::error("NOT_FOUND", format!("there is no branch `{it}`"));
    if !is_branch_name(&branch) {
        return Err(wrong(format!("`{branch}` is not the name of a branch")));
    }
    let (base, at) = match given["base"].as_str() {
        Some(base) if !is_branch_name(base) => {
            return Err(wrong(format!("`{base}` is not the name of a branch")));
        }
        Some(base) => (base.to_owned(), bench.tip(base).await?.ok_or_else(|| missing(base))?),
        None => {
            let head = bench.head().await?;
            ("HEAD".to_owned(), head.ok_or_else(|| missing("HEAD"))?)
        }
    };
    let tip = bench.tip(&branch).await?.ok_or_else(|| missing(&branch))?;
    let from = bench.run(&["merge-base", &at, &tip]).await.map_err(|_| {
        CallResult::error("CONFLICT", format!("`{branch}` and `{base}` have nothing in common"))
    })?;
    Ok(Seen { branch, base, tip, from: from.trim().to_owned() })
}

async fn show(bench: &Bench<'_>, seen: &Seen) -> Answer {
    let (from, tip) = (seen.from.as_str(), seen.tip.as_str());
    let range = format!("{from}..{tip}");
    let log = ["log", "--no-show-signature", "--format=%h %an: %s", "-n", COMMITS_MAX, &range];
    let commits = bench.run(&log).await?;
    let names =
        bench.run(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", from, tip]).await?;
    let names: Vec<&str> = names.split('\0').filter(|it| !it.is_empty()).collect();
    let (held_back, open): (Vec<&str>, Vec<&str>) = names.iter().partition(|it| is_protected(it));
    let mut diff = String::new();
    // Of text whatever the repository says: nothing is passed off as bytes that nobody reads.
    let plain = [
        "diff-tree",
        "-r",
        "-p",
        "--text",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        "--no-color",
    ];
    for batch in open.chunks(100) {
        let mut args = plain.to_vec();
        args.extend([from, tip, "--"]);
        args.extend(batch);
        diff.push_str(&visible(&bench.run(&args).await?));
        if diff.len() > DIFF_BYTES_MAX {
            break;
        }
    }
    let cut = diff.len() > DIFF_BYTES_MAX;
    let end = (0..=DIFF_BYTES_MAX.min(diff.len())).rev().find(|it| diff.is_char_boundary(*it));
    diff.truncate(end.unwrap_or(0));
    let shown = json!({
        "branch": seen.branch,
        "base": seen.base,
        "commit": tip,
        "commits": visible(&commits).lines().collect::<Vec<_>>(),
        "files": names.iter().map(|it| visible(it)).collect::<Vec<_>>(),
        "held_back": held_back,
        "diff": diff,
        "diff_cut_off": cut,
    });
    Ok(CallResult::ok(shown.to_string()))
}

fn keep(given: &Value, context: &CallContext, reach: &Reach, seen: &Seen, stat: &str) -> Answer {
    let columns = &["date", "branch", "verdict", "commit", "author"];
    let shelf = Shelf { reach, folder: REVIEWS, title: "Reviews", columns };
    let now = clock::now();
    let (date, title) = (now.to_string(), format!("Review of {}", seen.branch));
    let head = [
        ("title", &*title),
        ("type", "review"),
        ("author", reach.agent()),
        ("date", &date),
        ("branch", &seen.branch),
        ("base", &seen.base),
        ("commit", &seen.tip),
        ("changes", stat.trim()),
        ("verdict", given["verdict"].as_str().unwrap_or("comment")),
    ];
    let document = Document::new(&head, &text(given, "review"));
    let path = shelf.add(&document, &title, &context.idempotency_key, now)?;
    Ok(CallResult::ok(format!("kept the review of {} as `{path}`", seen.tip)))
}
