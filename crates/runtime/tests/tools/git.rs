//! A real repository, with what an attacker would leave in it.

use std::path::Path;

use chancery_runtime::tool::settings::GitSettings;
use serde_json::{Value, json};

use super::{House, code, json as read, put};

/// Runs git as the operator would.
#[expect(clippy::disallowed_methods, reason = "what is there before the tools are asked")]
fn git(dir: &Path, args: &[&str]) -> String {
    let done = std::process::Command::new("git")
        .args([
            "-c",
            "user.name=op",
            "-c",
            "user.email=op@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// With a bare repository beside the workspace to push to.
async fn house() -> House {
    let house = House::with("", |place| {
        let remote = place.programs.join("remote.git");
        git(&place.programs, &["init", "--bare", "remote.git"]);
        let remote = Some(remote.to_string_lossy().into_owned());
        place.settings.git = GitSettings { remote, ..GitSettings::default() };
    })
    .await;
    git(&house.at(""), &["init"]);
    house.put("src/billing/a.rs", "// a\n");
    house.put("src/main.rs", "fn main() {}\n");
    git(&house.at(""), &["add", "."]);
    git(&house.at(""), &["commit", "-m", "first"]);
    house
}

async fn worker(house: &House, tool: &str, given: Value) -> chancery_domain::event::CallResult {
    house.call("backend_worker", tool, given).await
}

#[tokio::test]
async fn a_worker_branches_commits_and_pushes_on_the_contracts_branch() {
    let house = house().await;
    let made = worker(&house, "git_branch", json!({})).await;
    assert!(made.text.starts_with("branch `feature/billing` begins at "), "{}", made.text);
    house.put("src/billing/a.rs", "// b\n");
    house.put("src/billing/new/c.rs", "// c\n");
    house.put("tests/t.rs", "// t\n");
    house.put("src/main.rs", "fn main() { changed() }\n");
    let given = json!({"message": "Bills\n\nare paid", "paths": ["src/billing/", "tests/t.rs"]});
    let done = worker(&house, "git_commit", given.clone()).await;
    assert!(done.text.contains("3 files, 0 deleted"), "{}", done.text);
    let at = house.at("");
    let changed = git(&at, &["diff", "--name-status", "main", "feature/billing"]);
    assert_eq!(changed, "M\tsrc/billing/a.rs\nA\tsrc/billing/new/c.rs\nA\ttests/t.rs");
    let log = git(&at, &["log", "-1", "--format=%an <%ae> %s", "feature/billing"]);
    assert_eq!(log, "backend_worker <backend_worker@agents.invalid> Bills");
    // Nobody's files, index or HEAD moved, and what is not the worker's was not taken.
    assert_eq!(git(&at, &["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(git(&at, &["show", "feature/billing:src/main.rs"]), "fn main() {}");
    let again = worker(&house, "git_commit", given).await;
    assert!(again.text.starts_with("nothing to commit"), "{}", again.text);

    let gone = json!({"message": "Less", "delete": ["src/billing/a.rs"]});
    assert!(worker(&house, "git_commit", gone).await.text.contains("0 files, 1 deleted"));
    let pushed = worker(&house, "git_push", json!({})).await;
    assert!(pushed.text.starts_with("pushed `feature/billing`"), "{}", pushed.text);
    let remote = house.dir.path().join("remote.git");
    let tip = git(&at, &["rev-parse", "feature/billing"]);
    assert_eq!(git(&remote, &["rev-parse", "feature/billing"]), tip);
    assert_eq!(
        git(&remote, &["for-each-ref", "--format=%(refname)"]),
        "refs/heads/feature/billing"
    );
    let left: Vec<_> = std::fs::read_dir(house.at(".git"))
        .unwrap()
        .filter_map(Result::ok)
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .filter(|it| it.starts_with("chancery-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test]
async fn no_other_branch_and_no_other_path_is_written() {
    let house = house().await;
    worker(&house, "git_branch", json!({})).await;
    let at = house.at("");
    let before = git(&at, &["for-each-ref"]);
    for (tool, given) in [
        ("git_branch", json!({"branch": "main"})),
        ("git_branch", json!({"branch": "feature/other"})),
        ("git_branch", json!({"branch": "-D"})),
        ("git_branch", json!({"branch": "feature/billing:refs/heads/main"})),
        ("git_push", json!({"branch": "main"})),
        ("git_push", json!({"branch": "--mirror"})),
        ("git_push", json!({"branch": "+feature/billing"})),
        ("git_commit", json!({"message": "m", "branch": "master", "paths": ["tests"]})),
        ("git_commit", json!({"message": "m", "paths": ["src/main.rs"]})),
        ("git_commit", json!({"message": "m", "paths": ["src"]})),
        ("git_commit", json!({"message": "m", "paths": ["."]})),
        ("git_commit", json!({"message": "m", "paths": ["src/billing/../main.rs"]})),
        ("git_commit", json!({"message": "m", "delete": ["src/main.rs"]})),
    ] {
        let gate = worker(&house, tool, given.clone()).await;
        assert_eq!(code(&gate), "DENIED_AT_THE_GATE", "{tool} {given}: {}", gate.text);
        // And should the gate have let it through, the tool does not.
        let own = house.past_the_gate("backend_worker", tool, given.clone(), "k").await;
        assert_ne!(code(&own), "OK", "{tool} {given}: {}", own.text);
    }
    assert_eq!(git(&at, &["for-each-ref"]), before);
    let nobody = House { warrant: Default::default(), ..house };
    let none = nobody.past_the_gate("backend_worker", "git_branch", json!({}), "k").await;
    assert_eq!(code(&none), "NO_BRANCH");
    // A role without rules on branches writes to all but the protected ones.
    nobody.put("x.txt", "x");
    let own = json!({"branch": "topic"});
    assert_eq!(code(&nobody.call("pa", "git_branch", own).await), "OK");
    let main = json!({"branch": "main", "message": "m", "paths": ["x.txt"]});
    assert_eq!(code(&nobody.call("pa", "git_commit", main).await), "DENIED_AT_THE_GATE");
}

#[tokio::test]
async fn nothing_that_a_repository_says_runs_anything() {
    let house = house().await;
    let at = house.at("");
    worker(&house, "git_branch", json!({})).await;
    let bait = house.dir.path().join("ran");
    let script = house.dir.path().join("bait.sh");
    put(&script, &format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexec cat\n", bait.display()));
    git(&at, &["update-index", "--chmod=+x", "src/billing/a.rs"]);
    let run = script.to_string_lossy().into_owned();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "prepare-commit-msg",
        "commit-msg",
        "update",
        "pre-auto-gc",
    ] {
        std::fs::copy(&script, house.at(".git/hooks").join(hook)).unwrap();
    }
    for (key, value) in [
        ("core.hooksPath", house.at(".git/hooks").to_string_lossy().into_owned()),
        ("core.fsmonitor", run.clone()),
        ("core.editor", run.clone()),
        ("core.pager", run.clone()),
        ("core.sshCommand", run.clone()),
        ("core.askPass", run.clone()),
        ("core.gitProxy", run.clone()),
        ("core.alternateRefsCommand", run.clone()),
        ("credential.helper", format!("!{run}")),
        ("diff.external", run.clone()),
        ("diff.bait.command", run.clone()),
        ("diff.bait.textconv", run.clone()),
        ("filter.bait.clean", run.clone()),
        ("filter.bait.smudge", run.clone()),
        ("filter.bait.process", run.clone()),
        ("filter.bait.required", "true".to_owned()),
        ("gpg.program", run.clone()),
        ("commit.gpgSign", "true".to_owned()),
        ("alias.push", format!("!{run}")),
        ("alias.update-ref", format!("!{run}")),
        ("sequence.editor", run.clone()),
        ("remote.origin.url", format!("ext::{run}")),
        ("url.ext::bait.insteadOf", house.dir.path().to_string_lossy().into_owned()),
        ("push.gpgSign", "true".to_owned()),
        ("uploadpack.packObjectsHook", run.clone()),
        ("include.path", "bait.config".to_owned()),
    ] {
        git(&at, &["config", key, &value]);
    }
    house.put(".gitattributes", "* filter=bait diff=bait\n");
    house.put(".git/info/attributes", "* filter=bait diff=bait\n");
    house.put("src/billing/.gitattributes", "* filter=bait diff=bait -text\n");
    house.put("src/billing/b.rs", "// b\n");
    let given = json!({"message": "m", "paths": ["src/billing"]});
    let done = worker(&house, "git_commit", given).await;
    assert_eq!(code(&done), "OK", "{}", done.text);
    let pushed = worker(&house, "git_push", json!({})).await;
    assert_eq!(code(&pushed), "OK", "{}", pushed.text);
    let shown = house.call("it_manager", "review_pr", json!({"branch": "feature/billing"})).await;
    assert!(read(&shown)["diff"].as_str().unwrap().contains("+// b"), "{}", shown.text);
    assert!(!bait.exists(), "{}", std::fs::read_to_string(&bait).unwrap());
    let remote = house.dir.path().join("remote.git");
    assert_eq!(git(&remote, &["show", "feature/billing:src/billing/b.rs"]), "// b");
}

#[tokio::test]
async fn links_and_secrets_are_not_committed() {
    use std::os::unix::fs::symlink;
    let house = house().await;
    worker(&house, "git_branch", json!({})).await;
    house.put("src/billing/.env", "SECRET=1");
    house.put("src/billing/ok.rs", "ok");
    symlink("../main.rs", house.at("src/billing/over.rs")).unwrap();
    symlink("/etc/passwd", house.at("src/billing/passwd")).unwrap();
    let folder = json!({"message": "m", "paths": ["src/billing"]});
    assert_eq!(code(&worker(&house, "git_commit", folder).await), "OK");
    let names =
        git(&house.at(""), &["ls-tree", "-r", "--name-only", "feature/billing", "src/billing"]);
    assert_eq!(names, "src/billing/a.rs\nsrc/billing/ok.rs");
    for (path, expected) in [
        ("src/billing/.env", "DENIED_AT_THE_GATE"),
        ("src/billing/over.rs", "PERMISSION_DENIED"),
        ("src/billing/passwd", "OUTSIDE_WORKSPACE"),
        ("src/billing/none.rs", "NOT_FOUND"),
    ] {
        let done = worker(&house, "git_commit", json!({"message": "m", "paths": [path]})).await;
        assert_eq!(code(&done), expected, "{path}: {}", done.text);
    }
    // A branch that is another's by another name is moved itself, and not what it stands for.
    std::fs::write(house.at(".git/refs/heads/feature/billing"), "ref: refs/heads/main\n").unwrap();
    let main = git(&house.at(""), &["rev-parse", "main"]);
    house.put("src/billing/more.rs", "more");
    worker(&house, "git_commit", json!({"message": "m", "paths": ["src/billing/more.rs"]})).await;
    assert_eq!(git(&house.at(""), &["rev-parse", "main"]), main);
}

#[tokio::test]
async fn a_review_is_of_what_was_shown_and_is_kept() {
    let house = house().await;
    worker(&house, "git_branch", json!({})).await;
    house.put("src/billing/a.rs", "// better\n");
    worker(&house, "git_commit", json!({"message": "Better", "paths": ["src/billing/a.rs"]})).await;
    let it = |given| house.call("it_manager", "review_pr", given);
    let shown = read(&it(json!({"branch": "feature/billing", "base": "main"})).await);
    assert!(shown["diff"].as_str().unwrap().contains("-// a\n+// better"), "{shown}");
    assert_eq!(shown["files"], json!(["src/billing/a.rs"]));
    assert!(shown["commits"][0].as_str().unwrap().ends_with("backend_worker: Better"), "{shown}");
    let review = json!({"branch": "feature/billing", "base": "main", "commit": shown["commit"],
                        "verdict": "approve", "review": "Good."});
    let kept = it(review).await;
    assert_eq!(code(&kept), "OK", "{}", kept.text);
    let path = kept.text.split('`').nth(1).unwrap().to_owned();
    let text = house.text(&path);
    assert!(path.starts_with("reports/tech/reviews/"), "{path}");
    assert!(
        text.contains(shown["commit"].as_str().unwrap()) && text.contains("\"approve\""),
        "{text}"
    );
    assert!(house.text("reports/tech/reviews/INDEX.md").contains("feature/billing"));
    for (given, expected) in [
        (json!({"branch": "feature/billing", "commit": "0000000", "review": "x"}), "CONFLICT"),
        (json!({"branch": "none"}), "NOT_FOUND"),
        (json!({"branch": "--output=x"}), "INVALID_ARGUMENTS"),
        (json!({"branch": "main", "base": "-x"}), "INVALID_ARGUMENTS"),
    ] {
        assert_eq!(code(&it(given.clone()).await), expected, "{given}");
    }
    let other = json!({"branch": "feature/billing", "review": "mine is best"});
    assert_eq!(code(&worker(&house, "review_pr", other).await), "DENIED_AT_THE_GATE");
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let house = House::new().await;
    let none = worker(&house, "git_branch", json!({})).await;
    assert_eq!(code(&none), "NOT_CONFIGURED");
    assert!(none.text.contains("[tools.git] repository"), "{}", none.text);
    git(&house.at(""), &["init"]);
    house.put("tests/t", "t");
    assert_eq!(code(&worker(&house, "git_branch", json!({})).await), "NOT_FOUND");
    // A repository with nothing in it begins with the first commit.
    let first = worker(&house, "git_commit", json!({"message": "m", "paths": ["tests"]})).await;
    assert_eq!(code(&first), "OK", "{}", first.text);
    let pushed = worker(&house, "git_push", json!({})).await;
    assert_eq!(code(&pushed), "NOT_CONFIGURED");
    assert!(pushed.text.contains("[tools.git] remote"), "{}", pushed.text);
}
