//! Settings end to end, and what the doctor finds.

use std::net::TcpListener;

use serde_json::json;

use crate::harness::{Place, went};

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let place = Place::new();
    place.write("chancery.toml", "workers = 3\ndata = \"of-file\"\n[limits]\nattempts = 9\n");
    let mut command = place.command(&["config", "show", "--origin", "--json", "--data", "of-flag"]);
    command.env("CHANCERY_DATA", "of-environment").env("CHANCERY_WORKERS", "4");
    let shown = went(command).json();
    let of = |key: &str| {
        let found = shown.as_array().unwrap().iter().find(|it| it["setting"] == key);
        let found = found.unwrap_or_else(|| panic!("{key}: {shown}"));
        (found["value"].clone(), found["from"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("data"), (json!("of-flag"), "flag".to_owned()));
    assert_eq!(of("workers"), (json!(4), "$CHANCERY_WORKERS".to_owned()));
    assert_eq!(of("limits.attempts"), (json!(9), "chancery.toml".to_owned()));
    assert_eq!(of("limits.lease_seconds").1, "default");
    let table = place.chancery(&["config", "show", "--origin"]);
    let first = table.done().lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(first, ["SETTING", "VALUE", "FROM"]);
    let plain = place.chancery(&["config", "show"]);
    assert!(plain.done().contains("workers = 3"), "{plain:?}");
    assert_eq!(place.chancery(&["config", "show", "--json"]).json()["workers"], 3);
}

#[test]
fn what_init_writes_is_what_check_takes() {
    let place = Place::new();
    let written = place.chancery(&["config", "init"]);
    place.write("chancery.toml", written.done());
    assert_eq!(place.chancery(&["config", "check"]).done(), "ok (chancery.toml)\n");
    let checked = place.chancery(&["config", "check", "--json"]).json();
    assert_eq!(checked, json!({"ok": true, "file": "chancery.toml"}));
    let empty = Place::new();
    assert_eq!(empty.chancery(&["config", "check"]).done(), "ok (no file)\n");
}

#[test]
fn a_broken_file_is_one_line_and_exit_code_1_everywhere() {
    for (text, said) in [
        ("workers = = 1", "`chancery.toml` is not TOML: line 1: "),
        ("a = 1\n\n[x", "`chancery.toml` is not TOML: line 3: "),
        ("wokers = 1", "did you mean `workers`?"),
        ("workers = \"many\"", "setting `workers` (chancery.toml): "),
        ("database = \"mysql://x\"", "postgres://"),
    ] {
        let place = Place::new();
        place.write("chancery.toml", text);
        for arguments in [&["config", "check"][..], &["serve"], &["run", "ls"]] {
            let failed = place.chancery(arguments);
            assert!(failed.failed(1).contains(said), "{failed:?}");
        }
        let doctor = place.chancery(&["doctor"]);
        assert!(doctor.out.starts_with("FAIL  settings") && doctor.code == 1, "{doctor:?}");
        assert_eq!(doctor.out.lines().count(), 1);
    }
    let place = Place::new();
    let absent = place.chancery(&["config", "check", "--config", "nowhere.toml"]);
    assert!(absent.failed(1).starts_with("`nowhere.toml` cannot be read: "), "{absent:?}");
}

#[test]
fn a_password_is_not_shown() {
    let place = Place::new();
    place.write("chancery.toml", "database = \"postgres://lin:s3cr@et@db/x?password=s3cret2\"\n");
    for arguments in [
        &["config", "show"][..],
        &["config", "show", "--origin"],
        &["config", "show", "--json"],
        &["config", "show", "--json", "--origin"],
    ] {
        let shown = place.chancery(arguments);
        assert!(!shown.done().contains("s3cr") && shown.out.contains("lin:…@db"), "{shown:?}");
    }
}

#[test]
fn the_doctor_finds_what_stands_in_the_way() {
    let place = Place::configured("");
    let well = place.chancery(&["doctor"]);
    assert_eq!(well.code, 0, "{well:?}");
    assert!(!place.path("chancery-data").exists(), "a look leaves nothing behind");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = place.command(&["doctor", "--json"]);
    command.env("CHANCERY_LISTEN", &address);
    let sick = went(command);
    assert_eq!(sick.code, 1, "{sick:?}");
    let found = sick.json();
    let of =
        |check: &str| found.as_array().unwrap().iter().find(|it| it["check"] == check).cloned();
    assert_eq!(of("port").unwrap()["ok"], false);
    assert!(of("port").unwrap()["detail"].as_str().unwrap().starts_with(&address), "{found}");
    assert_eq!(of("settings").unwrap()["ok"], true);
    place.write(
        "chancery.toml",
        "[models.m]\nprovider = \"openai\"\napi_key_env = \"NOT_SET\"\n[limits]\n",
    );
    let mut command = place.command(&["doctor"]);
    command.env("CHANCERY_LISTEN", "127.0.0.1:0");
    let keyless = went(command);
    assert_eq!(keyless.code, 1);
    let line = keyless.out.lines().find(|it| it.contains("models")).unwrap();
    assert!(line.starts_with("FAIL") && line.contains("`NOT_SET` is not set"), "{keyless:?}");
    place.write("chancery.toml", "org = \"nowhere\"\nlisten = \"127.0.0.1:0\"\n");
    let lost = place.chancery(&["doctor"]);
    let line = lost.out.lines().find(|it| it.contains("organisation")).unwrap();
    assert!(line.starts_with("FAIL") && lost.code == 1, "{lost:?}");
}
