//! `run`: start, look, speak, signal, cancel.

use serde_json::{Value, json};

use crate::harness::{Place, Went};

fn id(went: &Went) -> String {
    went.json()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_is_started_and_looked_at() {
    let place = Place::configured("");
    let _server = place.serve(&[]);
    let done = place.chancery(&["run", "start", "hello", "--wait", "--project", "p", "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    let run = id(&done);
    assert_eq!(done.json()["output"], "heard: hello");
    assert_eq!(done.json()["project"], "p");
    let plain = place.chancery(&["run", "start", "hello", "--wait"]);
    assert!(plain.done().contains("  output  heard: hello"), "{plain:?}");
    let shown = place.chancery(&["run", "show", &run]);
    assert_eq!(shown.done().lines().next().unwrap(), format!("{run}  completed"));
    assert_eq!(place.chancery(&["run", "show", &run, "--json"]).json(), done.json());
    // A beginning that only it has is enough.
    assert_eq!(id(&place.chancery(&["run", "show", &run[..34], "--json"])), run);
    let listed = place.chancery(&["run", "ls", "--limit", "1", "--status", "completed", "--json"]);
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 1);
    let table = place.chancery(&["run", "ls"]);
    assert_eq!(table.done().lines().count(), 3, "{table:?}");
    let empty = place.chancery(&["run", "ls", "--agent", "nobody"]);
    assert_eq!((empty.code, empty.out.lines().count()), (0, 1), "{empty:?}");
    let trace = place.chancery(&["run", "trace", &run, "--follow", "--json"]);
    let events: Vec<Value> =
        trace.done().lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let kinds: Vec<&Value> = events.iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, [&json!("run.created"), &json!("run.started"), &json!("run.completed")]);
    assert_eq!(place.chancery(&["run", "trace", &run, "--events"]).done().lines().count(), 3);
    let story = place.chancery(&["run", "trace", &run]);
    assert!(
        story.done().starts_with(&format!("{run} pa \"hello\"  completed\n  → \"")),
        "{story:?}"
    );
    let tree = place.chancery(&["run", "tree", &run]);
    assert_eq!(tree.done(), format!("{run}  pa  completed  hello\n"));
    assert_eq!(place.chancery(&["run", "tree", &run, "--json"]).json()["children"], json!([]));
    let exported = place.chancery(&["run", "export", &run]).json();
    assert_eq!(exported["run"]["id"], json!(run));
    assert_eq!(exported["events"][&run].as_array().unwrap().len(), 3, "{exported}");
    place.chancery(&["run", "show", "run_00"]).failed(1);
    place.chancery(&["run", "show", "../tokens"]).failed(1);
    place.chancery(&["run", "start", "hello", "--agent", "stranger"]).failed(1);
    place.chancery(&["run", "ls", "--status", "odd"]).failed(1);
}

#[test]
fn who_waits_for_a_run_that_waits_gets_exit_code_8_and_nobody_else() {
    let place = Place::configured("");
    let _server = place.serve(&[]);
    let waiting = place.chancery(&["run", "start", "wait", "--wait", "--json"]);
    assert_eq!(waiting.code, 8, "{waiting:?}");
    let run = id(&waiting);
    let shown = place.chancery(&["run", "show", &run]);
    assert_eq!(shown.code, 0);
    // A key is a stranger's text: for the shell it is one word.
    let next = format!("  next    chancery run signal {run} 'go; rm x'");
    assert!(shown.out.lines().any(|it| it == next), "{shown:?}");
    assert_eq!(place.chancery(&["run", "trace", &run]).code, 0);
    assert_eq!(place.chancery(&["run", "say", &run, "one more thing"]).code, 0);
    place.chancery(&["run", "signal", &run, "other"]).failed(1);
    place.chancery(&["run", "signal", &run, "go; rm x", "--payload", "{"]).failed(2);
    let payload = r#"{"note": "care"}"#;
    for _ in 0..2 {
        let sent = place.chancery(&["run", "signal", &run, "go; rm x", "--payload", payload]);
        assert_eq!(sent.code, 0, "{sent:?}");
    }
    let ended = place.chancery(&["run", "trace", &run, "--follow"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let shown = place.chancery(&["run", "show", &run, "--json"]).json();
    assert_eq!(shown["output"], "went on with care");
    assert!(place.chancery(&["run", "say", &run, "x"]).failed(7).contains("completed"));
    place.chancery(&["run", "cancel", &run]).failed(7);
    let conflict = place.chancery(&["run", "resume", &run, "--json"]);
    let error: Value = serde_json::from_str(&conflict.err).unwrap();
    assert_eq!((conflict.code, &error["error"]["code"]), (7, &json!("not_resumable")));
}

#[test]
fn to_cancel_a_run_is_no_failure_and_to_wait_for_it_is() {
    let place = Place::configured("");
    let _server = place.serve(&[]);
    let run = id(&place.chancery(&["run", "start", "wait", "--wait", "--json"]));
    for _ in 0..2 {
        let cancelled = place.chancery(&["run", "cancel", &run]);
        assert_eq!((cancelled.code, &*cancelled.err), (0, ""), "{cancelled:?}");
        assert!(cancelled.out.starts_with(&format!("{run}  cancelled")), "{cancelled:?}");
    }
    assert_eq!(place.chancery(&["run", "show", &run, "--yes"]).code, 0);
    assert_eq!(place.chancery(&["run", "trace", &run, "--follow"]).code, 5);
}

#[test]
fn what_agents_say_does_not_reach_the_terminal_as_it_is() {
    let place = Place::configured("");
    let _server = place.serve(&[]);
    let input = "escape \u{1b}]0;title\u{7} \u{202e}evil\u{9b}2J";
    let ended = place.chancery(&["run", "start", input, "--wait"]);
    let run = ended.done().split_whitespace().next().unwrap().to_owned();
    let commands = [
        &["run", "show", &*run][..],
        &["run", "ls"],
        &["run", "trace", &run],
        &["run", "tree", &run],
        &["chat", "-m", "escape"],
    ];
    for arguments in commands {
        let went = place.chancery(arguments);
        let odd = |it: char| it.is_control() && it != '\n' || it == '\u{202e}';
        assert!(!went.done().contains(odd), "{arguments:?}: {:?}", went.out);
    }
    assert!(ended.out.contains(r"\u{1b}[2Jred\u{202e}\u{d}"), "{ended:?}");
    let refused = place.chancery(&["run", "show", "run_\u{1b}[2J"]);
    assert!(!refused.failed(1).contains('\u{1b}'), "{refused:?}");
}
