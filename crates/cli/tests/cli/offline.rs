//! What needs no server: help, version, completions, the demo, the first token.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::harness::{Place, went};

#[test]
fn version_and_help_are_there() {
    let place = Place::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(place.chancery(&["version"]).done(), format!("chancery {version}\n"));
    assert_eq!(place.chancery(&["--version"]).done(), format!("chancery {version}\n"));
    let json = place.chancery(&["version", "--json"]).json();
    assert_eq!(json, serde_json::json!({"version": version}));
    let help = place.chancery(&["--help"]);
    assert!(help.done().contains("Exit codes: 0 done, 1 failed, 2 usage"), "{help:?}");
    for command in [
        "serve",
        "demo",
        "login",
        "run",
        "chat",
        "token",
        "org",
        "audit",
        "config",
        "doctor",
        "bench",
        "completions",
    ] {
        assert_eq!(place.chancery(&[command, "--help"]).code, 0, "{command}");
    }
}

#[test]
fn exit_codes_are_explained() {
    let place = Place::new();
    for arguments in [&["help", "exit-codes"][..], &["exit-codes"]] {
        let said = place.chancery(arguments);
        for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "130"] {
            let line = |it: &&str| it.split_whitespace().next() == Some(code);
            assert_eq!(said.done().lines().filter(line).count(), 1, "{code}: {said:?}");
        }
    }
    let json = place.chancery(&["approval", "nonsense", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!((json.code, &*json.out, &error["error"]["code"]), (2, "", &"usage".into()));
    assert!(error["error"]["next"].is_null() && error["error"]["decision_id"].is_null());
}

#[test]
fn what_is_no_command_is_exit_code_2() {
    let place = Place::new();
    for arguments in [
        &["nonsense"][..],
        &[],
        &["run"],
        &["run", "show"],
        &["token", "new"],
        &["token", "new", "--kind", "robot"],
        &["serve", "--workers", "many"],
        &["completions", "tcsh-not"],
    ] {
        let went = place.chancery(arguments);
        assert_eq!((went.code, &*went.out), (2, ""), "{arguments:?}: {went:?}");
    }
    for arguments in [
        &["token", "new", "--kind", "human"][..],
        &["token", "new", "--kind", "human", "--name", "x"],
        &["token", "new", "--kind", "service", "--user", "x"],
        &["token", "new", "--kind", "agent", "--agent", "pa", "--operator"],
        &["token", "new", "--kind", "human", "--user", "x", "--permission", "approve"],
    ] {
        place.chancery(arguments).failed(2);
    }
    assert!(!place.path("chancery-data").exists());
}

#[test]
fn completions_are_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = place.chancery(&["completions", shell]);
        assert!(script.done().contains("chancery"), "{shell}");
        assert!(script.out.contains("completions"), "{shell}");
    }
}

#[test]
fn a_reader_who_has_read_enough_is_no_error() {
    let place = Place::new();
    for arguments in [&["completions", "bash"][..], &["config", "init"], &["--help"]] {
        let mut child = place.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(!err.contains("panic") && !err.contains("error"), "{arguments:?}: {err}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        // Nor is one who has never begun to.
        let mut child = place.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(!err.contains("panic") && !err.contains("error"), "{arguments:?}: {err}");
    }
}

#[test]
fn a_token_is_made_without_a_server() {
    let place = Place::new();
    let made = place.chancery(&["token", "new", "--kind", "human", "--user", "lin", "--json"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.json()["token"].as_str().unwrap().starts_with("chy_"), "{made:?}");
    for arguments in [
        &["token", "new", "--kind", "service", "--name", "ci", "--permission", "approve"][..],
        &["token", "new", "--kind", "agent", "--agent", "pa"],
        &["token", "new", "--kind", "human", "--user", "op", "--operator"],
    ] {
        let made = place.chancery(arguments);
        assert!(made.done().starts_with("chy_") && made.out.lines().count() == 1, "{made:?}");
    }
    let stranger = place.chancery(&["token", "new", "--kind", "agent", "--agent", "stranger"]);
    assert_eq!(stranger.failed(1), "there is no agent `stranger`");
    place.chancery(&["token", "new", "--kind", "human", "--user", "a\nb"]).failed(1);
}

#[test]
fn without_a_server_the_others_say_so() {
    let place = Place::new();
    for arguments in [&["run", "ls"][..], &["token", "ls"], &["chat", "-m", "x"]] {
        let said = place.chancery(arguments).failed(1).to_owned();
        assert!(said.starts_with("no server was named with `--url`, and none runs on"), "{said}");
    }
    let json = place.chancery(&["run", "ls", "--json"]);
    assert_eq!((json.code, &*json.out), (1, ""));
    let error: serde_json::Value = serde_json::from_str(&json.err).unwrap();
    assert_eq!(error["error"]["code"], "failed");
    assert!(error["error"]["message"].as_str().unwrap().starts_with("no server"), "{error}");
    let away = ["run", "ls", "--url", "http://127.0.0.1:1", "--token", "x"];
    let said = place.chancery(&away).failed(1).to_owned();
    assert!(said.starts_with("no server answers at http://127.0.0.1:1: "), "{said}");
    // The operator's own token is not for strangers.
    let stranger = place.chancery(&["run", "ls", "--url", "http://127.0.0.1:1"]);
    assert!(stranger.failed(1).starts_with("no token was given"), "{stranger:?}");
}

#[test]
fn the_demo_tells_its_story_and_leaves_nothing_behind() {
    let place = Place::new();
    let temporary = place.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = place.command(&["demo", "--headless"]);
    command.env("TMPDIR", &temporary);
    let told = went(command);
    let out = told.done();
    for step in ["1. ", "2. ", "3. ", "4. ", "5. ", "6. ", "7. ", "8. "] {
        assert!(out.lines().any(|it| it.starts_with(step)), "{step}\n{out}");
    }
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    let left: Vec<_> =
        std::fs::read_dir(place.dir.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["tmp"]);
}
