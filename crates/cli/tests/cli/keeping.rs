//! `backup`, `restore`, `test`, `model`, `tool`, `user`: what an operator keeps things with.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::harness::Place;

#[test]
fn what_was_backed_up_from_a_running_server_is_restored_beside_it() {
    let place = Place::configured("");
    let server = place.serve(&[]);
    let made = place.chancery(&["run", "start", "hello", "--json"]).json();
    let run = made["id"].as_str().unwrap();
    let written = place.chancery(&["backup", "copy.jsonl", "--json"]).json();
    assert!(written["rows"].as_u64().unwrap() > 3, "{written}");
    let mode = place.path("copy.jsonl").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = place.chancery(&["backup", "copy.jsonl"]);
    assert!(again.failed(1).contains("is there already"), "{again:?}");
    assert_eq!(place.chancery(&["backup", "copy.jsonl", "--force"]).code, 0);
    let piped = place.chancery(&["backup", "-"]);
    assert!(piped.out.starts_with("{\"chancery_backup\":1,"), "{piped:?}");

    // The server has its directory to itself.
    let taken = place.chancery(&["restore", "copy.jsonl"]);
    assert!(taken.failed(1).starts_with("another server uses the data directory"), "{taken:?}");
    server.stop();
    let used = place.chancery(&["restore", "copy.jsonl"]);
    assert!(used.failed(1).contains("the store is not empty"), "{used:?}");
    let restored = place.chancery(&["restore", "copy.jsonl", "--data", "other", "--json"]);
    assert!(restored.json()["rows"].is_u64(), "{restored:?}");
    std::fs::rename(place.path("chancery-data"), place.path("old")).unwrap();
    std::fs::rename(place.path("other"), place.path("chancery-data")).unwrap();
    let server = place.serve(&[]);
    assert_eq!(place.chancery(&["run", "show", run, "--json"]).json()["input"], "hello");
    let verified = place.chancery(&["audit", "verify", "--json"]).json();
    assert_eq!(verified["ok"], true, "{verified}");
    server.stop();
    let none = place.chancery(&["backup", "x", "--data", "nowhere"]);
    assert!(none.err.contains("there is no store in `nowhere`"), "{none:?}");
    assert!(!place.path("x").exists() && !place.path("x.part").exists());
}

#[test]
fn a_scenario_fails_on_an_unexpected_allow_and_on_an_unexpected_deny() {
    let place = Place::new();
    let scenario = |lines: &str| {
        place.write("scenario.yaml", &format!("agents:\n  backend_worker:\n{lines}"));
        place.chancery(&["test", "scenario.yaml"])
    };
    let mail = |to: &str, expect: &str| {
        format!(
            "    - calls: [{{tool: send_mail, args: {{to: {to}, type: escalation, subject: s, body: b}}}}]\n{expect}"
        )
    };
    let well = [
        mail("ceo", "      expect: {denied: C-03}\n"),
        mail("frontend_worker", "      expect: deny\n"),
        "    - call: {tool: docker_deploy, args: {env: production}}\n      expect: {denied: role}\n"
            .to_owned(),
        "    - say: nothing is called here\n".to_owned(),
    ];
    let passed = scenario(&well.concat());
    assert_eq!(passed.done(), "3 calls, 0 not as expected\n");

    let denied = scenario(&mail("ceo", ""));
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.out.contains("expected that it is not denied, and it is deny"), "{denied:?}");
    let allowed = scenario(&mail("it_manager", "      expect: deny\n"));
    assert_eq!(allowed.code, 1, "{allowed:?}");
    assert!(allowed.out.contains("expected deny, and it is allow"), "{allowed:?}");
    let otherwise = scenario(&mail("ceo", "      expect: {denied: C-07}\n"));
    assert!(otherwise.out.contains("expected deny by C-07"), "{otherwise:?}");
    let misspelt = scenario(&mail("ceo", "      expect: {denide: C-07}\n"));
    assert_eq!(misspelt.code, 2, "{misspelt:?}");
    assert!(misspelt.err.contains("denide"), "{misspelt:?}");
    let empty = scenario("    - say: hello\n");
    assert!(empty.failed(2).contains("call nothing"), "{empty:?}");
}

#[test]
fn models_tools_and_people_are_listed() {
    let place = Place::configured("");
    let models = place.chancery(&["model", "ls", "--json"]).json();
    assert_eq!(models["items"][0]["provider"], "scripted");
    let tried = place.chancery(&["model", "test", "default", "--json"]).json();
    assert_eq!(tried["text"], "heard: Answer with the one word: ready");
    assert!(place.chancery(&["model", "test", "other"]).failed(2).contains("`other`"));

    let server = place.serve(&[]);
    let tools = place.chancery(&["tool", "ls"]);
    assert!(tools.done().lines().any(|it| it.trim_start().starts_with("write_file")), "{tools:?}");
    let tried = place.chancery(&["tool", "try", "ceo", "docker_deploy", "env=production"]);
    assert_eq!(tried.code, 6, "{tried:?}");

    let token = place.chancery(&["user", "add", "lin"]);
    let old = token.done().trim().to_owned();
    assert!(place.chancery(&["user", "add", "lin"]).failed(2).contains("user reset"));
    let people = place.chancery(&["user", "ls", "--since", "1h", "--json"]).json();
    let lin = people["items"].as_array().unwrap().iter().find(|it| it["name"] == "lin").unwrap();
    assert_eq!((&lin["operator"], &lin["tokens"]), (&json!(false), &json!(1)), "{people}");
    let since = lin["since"].as_str().unwrap();
    let newer = place.chancery(&["user", "ls", "--since", "2999-01-01T00:00:00Z", "--json"]).json();
    assert_eq!((newer, since.is_empty()), (json!({"items": [], "next_cursor": null}), false));
    let new = place.chancery(&["user", "reset", "lin"]).done().trim().to_owned();
    assert_eq!(place.chancery(&["run", "ls", "--token", &new]).code, 0);
    assert_eq!(place.chancery(&["run", "ls", "--token", &old]).code, 4);
    assert_eq!(place.chancery(&["user", "reset", "mei"]).code, 2);
    server.stop();
}
