//! `approve` and `deny`.

use chancery_api::client::{Client, ClientError};
use chancery_api::permission::{Decide, Permission, Remember, RememberFor};
use chancery_runtime::clock;
use serde_json::{Value, json};

use super::card;
use super::find::{meant, of_run};
use super::list::is_high;
use crate::Global;
use crate::matches;
use crate::outcome::{Misused, Outcome, Stopped};
use crate::output::{self, one_line, quoted};

#[derive(Debug, clap::Args)]
pub struct Approve {
    /// Requests, or runs: everything that they ask
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Why; a HIGH one needs it
    #[arg(short, long, visible_short_alias = 'r', visible_alias = "reason", value_name = "TEXT")]
    comment: Option<String>,
    /// For later calls of its kind too, until it expires
    #[arg(long, value_enum, value_name = "SCOPE")]
    remember: Option<Scope>,
    /// How long it is remembered: `30m`, `8h`, `7d`
    #[arg(long = "for", value_name = "TIME", requires = "remember")]
    remember_for: Option<String>,
    /// Says what would have been matched, with the questions, and decides nothing
    #[arg(long, requires = "remember")]
    preview: bool,
    /// Where the outcome of a call is unknown: what it did; it is not run again
    #[arg(long, value_name = "TEXT", conflicts_with = "remember")]
    result: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct Deny {
    /// Requests, or runs: everything that they ask
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Why
    #[arg(short, long, visible_short_alias = 'c', visible_alias = "comment", value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Scope {
    /// In this run
    Run,
    /// For this agent, in every run
    Agent,
    /// For every agent of this person
    Always,
}

pub async fn approve(global: &Global, client: &Client, args: Approve) -> anyhow::Result<Outcome> {
    let meant = meant(client, &args.ids).await?;
    let comment = args.comment.filter(|it| !it.trim().is_empty());
    if args.preview {
        return preview(global, client, &meant, args.remember).await;
    }
    check_high(&meant, comment.as_deref())?;
    if let Some(scope) = args.remember.filter(|_| matches::is_watched(global)) {
        for it in &meant {
            matches::say(&card::name(it), &client.matches(&it.id, scope.name()).await?);
        }
    }
    let decide = Decide {
        comment,
        remember: args.remember.map(|it| remember(it, args.remember_for)),
        result: args.result.map(Value::from),
        ..answer("grant")
    };
    each(global, client, meant, &decide).await
}

pub async fn deny(global: &Global, client: &Client, args: Deny) -> anyhow::Result<Outcome> {
    if args.reason.trim().is_empty() {
        return Err(Misused("`--reason` says why, and is empty".to_owned()).into());
    }
    let meant = meant(client, &args.ids).await?;
    let decide = Decide { comment: Some(args.reason), ..answer("deny") };
    each(global, client, meant, &decide).await
}

pub fn answer(decision: &str) -> Decide {
    let decision = decision.to_owned();
    Decide { decision, comment: None, arguments: None, remember: None, result: None }
}

/// What is HIGH is nobody's by-catch, and nobody approves it without a word.
pub fn check_high(meant: &[Permission], comment: Option<&str>) -> Result<(), Stopped> {
    let Some(high) = meant.iter().find(|it| is_high(it)) else { return Ok(()) };
    let name = format!("`{}` ({}) is HIGH", one_line(&high.tool), high.id);
    let next = format!("chancery approval show {}", high.id);
    let how = match (meant.len(), comment) {
        (1, Some(_)) => return Ok(()),
        (1, None) => "say why, with `-c`",
        _ => "approve it alone, with a reason",
    };
    Err(Stopped::new(Outcome::Usage, "high_risk", format!("{name}: {how}"))
        .next(next)
        .about(&high.id))
}

/// What an answer would have matched, had it been remembered before.
async fn preview(
    global: &Global,
    client: &Client,
    meant: &[Permission],
    scope: Option<Scope>,
) -> anyhow::Result<Outcome> {
    let scope = scope.map(Scope::name).unwrap_or_default();
    let mut all = Vec::new();
    for it in meant {
        let found = client.matches(&it.id, scope).await?;
        if !global.json {
            output::line(format_args!("{} {}", card::name(it), matches::told(&found)))?;
            matches::list(&found)?;
        }
        all.push(found);
    }
    if global.json {
        output::json(&json!({ "items": all }))?;
    }
    Ok(Outcome::Done)
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Scope::Run => "run",
            Scope::Agent => "agent",
            Scope::Always => "always",
        }
    }
}

fn remember(scope: Scope, expires_after: Option<String>) -> Remember {
    Remember::For(RememberFor { scope: scope.name().to_owned(), expires_after })
}

/// One after the other. What was decided stays decided and is said, whatever comes after it.
async fn each(
    global: &Global,
    client: &Client,
    meant: Vec<Permission>,
    decide: &Decide,
) -> anyhow::Result<Outcome> {
    let mut done = Vec::new();
    let mut failed = None;
    for before in meant {
        match send(client, &before, decide).await {
            Ok(after) => {
                if !global.json {
                    output::line(format_args!("{}", said(client, &before, &after).await?))?;
                }
                done.push(after);
            }
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    if global.json && !(done.is_empty() && failed.is_some()) {
        output::json(&json!({ "items": done }))?;
    }
    failed.map_or(Ok(Outcome::Done), Err)
}

/// Answers one request. That somebody else was faster is said with who and when.
pub async fn send(
    client: &Client,
    before: &Permission,
    decide: &Decide,
) -> anyhow::Result<Permission> {
    match client.decide(&before.id, decide).await {
        Err(ClientError::Problem(problem)) if problem.status == 409 => {
            let now = client.permission(&before.id).await?;
            let said = format!("{} is {}", before.id, card::decided(&now, clock::now()));
            let next = format!("chancery approval show {}", before.id);
            Err(Stopped::new(Outcome::Conflict, &problem.code, said)
                .next(next)
                .about(&before.id)
                .into())
        }
        other => Ok(other?),
    }
}

/// What was done, and whether the batch goes on.
pub async fn said(
    client: &Client,
    before: &Permission,
    after: &Permission,
) -> anyhow::Result<String> {
    let verb = match &*after.status {
        "granted" => "approved",
        other => other,
    };
    let name = card::name(after);
    if before.status != "pending" {
        return Ok(format!("{name} was {} already", card::decided(after, clock::now())));
    }
    let edited = if after.decided_arguments.is_some() { ", edited" } else { "" };
    let open = of_run(client, &after.run_id, Some("pending")).await?.len();
    let run = quoted(&after.run_id);
    Ok(match open {
        0 => format!("{verb} {name}{edited}   batch complete, {run} goes on"),
        _ => format!("{verb} {name}{edited}   {open} still open: chancery approval show {run}"),
    })
}
