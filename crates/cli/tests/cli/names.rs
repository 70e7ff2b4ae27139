//! The names of commands and flags, which scripts depend on; and the commands that write files.

use serde_json::json;

use crate::bank::Bank;
use crate::harness::{Place, went};

/// Every command with its verbs.
const COMMANDS: &[(&str, &[&str])] = &[
    ("run", &["ls", "show", "trace", "cancel", "pause", "resume", "fork", "export"]),
    ("approval", &["ls", "show", "approve", "deny", "edit", "ask", "extend", "watch"]),
    ("rule", &["ls", "show", "narrow", "revoke"]),
    ("org", &["show", "init", "check", "diff", "apply", "export", "history", "revert"]),
    ("policy", &["explain", "matrix", "test", "diff"]),
    ("mail", &["ls", "show", "send", "rejections"]),
    ("contract", &["ls", "show", "new", "close"]),
    ("memory", &["ls", "search", "show", "forget"]),
    ("audit", &["ls", "export", "verify"]),
    ("model", &["ls", "add", "test"]),
    ("tool", &["ls", "try"]),
    ("mcp", &["ls", "add", "serve"]),
    ("user", &["add", "ls", "reset"]),
    ("token", &["new", "ls", "revoke"]),
    ("webhook", &["ls", "test", "log"]),
    ("config", &["show", "check", "init"]),
];

const FLAGS: &[(&[&str], &[&str])] = &[
    (&["serve"], &["--listen", "--data", "--database", "--org", "--config", "--workers"]),
    (&["demo"], &["--headless", "--fresh", "--lang", "--no-open"]),
    (&["chat"], &["--to", "-m"]),
    (&["run", "trace"], &["--follow"]),
    (&["run", "ls"], &["--limit", "--since"]),
    (&["approval", "ls"], &["--limit", "--since"]),
    (&["approval", "deny"], &["-r"]),
    (&["rule", "ls"], &["--limit", "--since"]),
    (&["mail", "ls"], &["--agent", "--limit", "--since"]),
    (&["mail", "rejections"], &["--limit", "--since"]),
    (&["contract", "ls"], &["--limit", "--since"]),
    (&["memory", "ls"], &["--limit", "--since"]),
    (&["memory", "search"], &["--as"]),
    (&["audit", "ls"], &["--limit", "--since"]),
    (&["token", "ls"], &["--limit", "--since"]),
    (&["user", "ls"], &["--limit", "--since"]),
    (&["run", "fork"], &["--at", "--input", "--wait"]),
    (&["token", "new"], &["--kind", "--user", "--name", "--agent", "--permission"]),
    (&["org", "show"], &["--chart", "--tools", "--mail"]),
    (&["org", "history"], &["--limit", "--since"]),
    (&["can-i"], &["--as"]),
    (&["can-mail"], &["--type", "--contract"]),
    (&["policy", "explain"], &["--agent", "--tool", "--args", "--run"]),
    (&["config", "show"], &["--origin"]),
];

#[test]
fn every_command_and_flag_has_its_name() {
    let place = Place::new();
    for (command, verbs) in COMMANDS {
        let help = place.chancery(&[command, "--help"]);
        for verb in *verbs {
            let line = |it: &&str| it.split_whitespace().next() == Some(verb);
            assert!(help.done().lines().any(|it| line(&it)), "{command} {verb}: {}", help.out);
        }
    }
    for (command, flags) in FLAGS {
        let help = place.chancery(&[*command, &["--help"]].concat());
        let words: Vec<&str> = help.done().split([' ', ',', '\n', '[', ']']).collect();
        for flag in *flags {
            assert!(words.contains(flag), "{command:?} {flag}: {}", help.out);
        }
    }
}

#[test]
fn a_model_and_a_server_of_tools_are_written_where_they_are_read() {
    let place = Place::new();
    let openai = ["model", "add", "fast", "--provider", "openai", "--model", "small"];
    let written = place.chancery(&[&openai[..], &["--base-url", "http://127.0.0.1:1/v1"]].concat());
    assert!(written.done().contains("chancery model test fast"), "{written:?}");
    place.write("scenario.yaml", "fallback: ready\n");
    let scripted = ["model", "add", "default", "--provider", "scripted", "--scenario"];
    place.chancery(&[&scripted[..], &["scenario.yaml"]].concat()).done();
    let listed = place.chancery(&["model", "ls", "--json"]).json();
    let names: Vec<_> = listed["items"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["default", "fast"]);
    assert_eq!(listed["items"][1]["model"], "small");
    assert_eq!(place.chancery(&["model", "test", "default", "--json"]).json()["text"], "ready");
    // One that is there is not written over, and what cannot be read is not left behind.
    place.chancery(&openai).failed(2);
    place.chancery(&["model", "add", "a.b", "--provider", "openai"]).failed(2);
    let before = std::fs::read_to_string(place.path("chancery.toml")).unwrap();
    place.write("chancery.toml", "data = 'x'\n[tiers]\nfast = 'nobody'\n");
    place.chancery(&openai).failed(1);
    place.write("chancery.toml", &before);

    place.chancery(&["mcp", "add", "files", "--url", "http://127.0.0.1:1/"]).failed(2);
    place.chancery(&["org", "init", "org"]).done();
    let command = ["mcp", "add", "files", "--org", "org", "--", "npx", "-y", "server-files", "."];
    place.chancery(&command).done();
    place
        .chancery(&["mcp", "add", "far", "--org", "org", "--url", "https://example.org/mcp"])
        .done();
    let tools = std::fs::read_to_string(place.path("org/tools.yaml")).unwrap();
    for entry in [
        "\n  files: {\"command\":[\"npx\",\"-y\",\"server-files\",\".\"]}\n",
        "\n  far: {\"url\":\"https://example.org/mcp\"}\n",
    ] {
        assert!(tools.contains(entry), "{tools}");
    }
    assert_eq!(place.chancery(&["org", "check", "org"]).code, 0);
    // The same name twice is a mistake, and leaves the file as it was.
    assert_eq!(place.chancery(&command).code, 1);
    assert_eq!(std::fs::read_to_string(place.path("org/tools.yaml")).unwrap(), tools);
}

#[test]
fn a_server_elsewhere_is_kept_with_its_token_and_forgotten() {
    let bank = Bank::open();
    let url = std::fs::read_to_string(bank.place.path("chancery-data/server")).unwrap();
    let token = bank.chancery(&["token", "new", "--kind", "human", "--user", "mei"]);
    let token = token.done().trim().to_owned();
    let far = Place::new();
    far.chancery(&["run", "ls"]).failed(1);
    assert_eq!(far.told(&["login", &url], "made up\n").code, 4);
    far.chancery(&["login", "example.org"]).failed(2);
    let kept = far.told(&["login", &url], &format!("{token}\n"));
    assert_eq!(kept.code, 0, "{kept:?}");
    assert!(!kept.out.contains(&token) && !kept.err.contains(&token), "{kept:?}");
    let file = far.path(".config/chancery/login.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    far.chancery(&["run", "ls"]).done();
    let started = far.chancery(&["run", "start", "hello", "--wait", "--json"]).json();
    assert_eq!(started["user"], "mei");
    // What is said beats what is kept; its token is for that server alone.
    far.chancery(&["run", "ls", "--token", "x"]).failed(4);
    let other = far.chancery(&["run", "ls", "--url", "http://127.0.0.1:1"]);
    assert!(other.failed(1).starts_with("no token was given"), "{other:?}");
    let mut command = far.command(&["run", "ls"]);
    command.env("CHANCERY_TOKEN", "x");
    assert_eq!(went(command).code, 4);
    far.chancery(&["logout"]).done();
    assert!(!file.exists());
    far.chancery(&["run", "ls"]).failed(1);
}

#[test]
fn a_run_is_gone_on_from_and_the_agent_is_told_something() {
    let bank = Bank::open();
    let run = bank.asks("pay");
    let request = bank.open_requests().remove(0);
    let told = bank.chancery(&["approval", "ask", &request[..30], "for whom is it?"]);
    assert!(told.done().starts_with("pa says, in its own words:\n  | done:"), "{told:?}");
    let card = bank.chancery(&["approval", "show", &request]);
    assert!(card.done().contains("for whom is it?"), "{card:?}");
    bank.chancery(&["approval", "ask", &run, "x"]).failed(2);
    assert_eq!(bank.open_requests(), [request]);
    let forked = bank.chancery(&["run", "fork", &run, "--wait", "--json"]);
    assert_eq!((forked.code, &forked.json()["input"]), (8, &json!("pay")), "{forked:?}");
    let forked = forked.json();
    assert_ne!(forked["id"], json!(run));
    // The batch is as a whole behind the place: what was allowed in it, too.
    let tools: Vec<_> =
        forked["dropped"].as_array().unwrap().iter().map(|it| &it["tool"]).collect();
    assert_eq!(tools, ["read_file", "pay"]);
    assert_eq!(forked["carried"], json!([]));
    assert_eq!(bank.open_requests().len(), 2);
    let words = bank.chancery(&["run", "fork", &run, "--at", "1", "--input", "stroll"]);
    for said in [
        &*format!("forked from {run} at 1"),
        "left behind, to be made and asked about anew: read_file, pay (was asked about there)",
    ] {
        assert!(words.out.contains(said), "{said}: {words:?}");
    }
    let made = words.out.split_whitespace().next().unwrap().to_owned();
    let from = format!("forked from {run} at 1");
    assert!(bank.chancery(&["run", "show", &made]).out.contains(&from));
    assert!(bank.chancery(&["run", "trace", &made, "--follow"]).out.contains("run.created"));
    assert!(bank.chancery(&["run", "trace", &made]).out.contains(&from));
    bank.chancery(&["run", "fork", &run, "--at", "99"]).failed(1);
    bank.chancery(&["run", "fork", &run, "--at", "0"]).failed(1);
    assert_eq!(bank.paid(), [""; 0]);
}

#[test]
fn a_demo_starts_over_where_one_was_in_either_language() {
    let place = Place::new();
    let demo = ["demo", "--headless", "--data", "here"];
    let zh = place.chancery(&[&demo[..], &["--lang", "zh"]].concat());
    assert!(zh.done().lines().any(|it| it.starts_with("7. ") && it.contains("已发布")), "{zh:?}");
    place.write("here/mine.txt", "mine");
    let again = place.chancery(&demo);
    assert!(again.code == 1 && again.err.contains("`--fresh` starts over"), "{again:?}");
    let fresh = place.chancery(&[&demo[..], &["--fresh"]].concat());
    assert!(fresh.done().lines().any(|it| it.starts_with("7. ") && it.contains("Shipped")));
    assert!(place.path("here/mine.txt").exists());
}
