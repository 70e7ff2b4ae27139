//! A copy of everything, put back into a store of the other kind.

use std::collections::BTreeSet;

use chancery_server::start;
use chancery_store::Location;
use chancery_store::archive::{ArchiveError, back_up, restore};
use chancery_testkit::conformance::Home;
use serde_json::{Value, json};

use crate::harness::Caller;
use crate::house::{House, On, on_both};
use crate::prices::priced;

on_both! {
    a_copy_that_is_put_back_goes_on_where_it_was_taken;
    what_is_not_a_whole_copy_changes_nothing;
}

async fn copy(location: &Location) -> Vec<u8> {
    back_up(location, Vec::new()).await.unwrap().1
}

/// The rows of each table, whatever their order; who drives which run is forgotten.
fn rows(copy: &[u8]) -> BTreeSet<(String, String)> {
    let mut table = String::new();
    let mut rows = BTreeSet::new();
    for line in std::str::from_utf8(copy).unwrap().lines() {
        let said: Value = serde_json::from_str(line).unwrap();
        match (said["table"].as_str(), &said) {
            (Some(name), _) => table = name.to_owned(),
            (None, Value::Array(_)) if table != "queue" => {
                rows.insert((table.clone(), line.to_owned()));
            }
            _ => {}
        }
    }
    rows
}

fn other(on: On) -> On {
    match on {
        On::Sqlite => On::Postgres,
        On::Postgres => On::Sqlite,
    }
}

async fn home(on: On) -> Home {
    match on {
        On::Sqlite => Home::sqlite().await,
        On::Postgres => Home::postgres().await,
    }
}

async fn remembered(lin: &Caller) -> Value {
    lin.get("/api/memories/search?q=tabs&mode=flat").await.json()["items"][0]["content"].clone()
}

async fn a_copy_that_is_put_back_goes_on_where_it_was_taken(on: On) {
    let mut house = House::with(on, |config| priced(config, 3.0, 15.0)).await;
    let lin = house.lin().await;
    let ended = lin.script("pa", json!([[["note", {"to": "tab\there \\N \u{202e}"}]]])).await;
    lin.until(&ended, "completed").await;
    let (run, asked) = lin.asking("pa", json!([[["pay", {"to": "mei"}]]])).await;
    let wish = json!({"content": "prefers tabs", "type": "core", "scope": {"user": "lin"}});
    assert_eq!(lin.post("/api/memories", &wish).await.status, 201);

    // The server is at work.
    let taken = copy(&house.server.config.location()).await;
    house.server.running.stop().await;
    let new = home(other(on)).await;
    let copied = restore(&new.location(), std::io::Cursor::new(taken.clone())).await.unwrap();
    assert!(copied.rows > 20, "{copied:?}");
    assert_eq!(rows(&copy(&new.location()).await), rows(&taken));

    let mut config = house.server.config.clone();
    match new.location() {
        Location::Sqlite(dir) => {
            (config.workspace, config.database) = (Some(config.workspace()), None);
            config.data = dir;
        }
        Location::Postgres(url) => config.database = Some(url),
    }
    house.server.running = start(&config, []).await.unwrap();
    // Who they were they are: their tokens are in the copy.
    let lin = house.server.elsewhere(&lin);
    let ended = lin.get(&format!("/api/runs/{ended}")).await.json();
    assert_eq!(
        (&ended["status"], &ended["usage"]["cost"]),
        (&json!("completed"), &json!(0.000282))
    );
    assert_eq!(remembered(&lin).await, "prefers tabs");
    assert_eq!(lin.grant(&asked[0]).await.status, 200);
    lin.until(&run, "completed").await;
    assert_eq!(house.ledger().iter().filter(|it| *it == "pay mei").count(), 1);
    let verified = house.server.operator().get("/api/audit/verify").await.json();
    assert_eq!(verified["ok"], true, "{verified}");
    // Numbers that the database gives out go on after those of the copy.
    let wish = json!({"content": "prefers tea", "type": "core", "scope": {"user": "lin"}});
    assert_eq!(lin.post("/api/memories", &wish).await.status, 201);

    let again = restore(&new.location(), std::io::Cursor::new(taken)).await;
    match (new.location(), again) {
        // One process at a time.
        (Location::Sqlite(_), Err(ArchiveError::Open(_))) => {}
        (Location::Postgres(_), Err(ArchiveError::NotEmpty)) => {}
        (_, other) => panic!("{other:?}"),
    }
    house.close().await;
}

async fn what_is_not_a_whole_copy_changes_nothing(on: On) {
    let house = House::open(on).await;
    let lin = house.lin().await;
    let run = lin.script("pa", json!([[["note", {"to": "mei"}]]])).await;
    lin.until(&run, "completed").await;
    let taken = copy(&house.server.config.location()).await;
    house.close().await;
    let new = home(on).await;
    let empty = copy_of_new(&new).await;
    let text = String::from_utf8(taken.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| lines.join("\n") + "\n";
    let wrong = [
        joined(&lines[..lines.len() - 1]),
        text.replacen("completed", "cancelled", 1),
        text.replacen("\"table\":\"heads\"", "\"table\":\"pg_authid\"", 1),
        text.replacen("\"run_id\",\"seq\"", "\"run_id\",\"seq) VALUES (1); --\"", 1),
        text.replacen("\"migration\":", "\"migration\":9", 1),
        "{}\n".to_owned(),
        String::new(),
    ];
    for text in wrong {
        let refused = restore(&new.location(), std::io::Cursor::new(text.clone())).await;
        assert!(refused.is_err(), "{}", text.chars().take(200).collect::<String>());
        assert_eq!(copy_of_new(&new).await, empty);
    }
    restore(&new.location(), std::io::Cursor::new(taken.clone())).await.unwrap();
    let again = restore(&new.location(), std::io::Cursor::new(taken)).await;
    assert!(matches!(again, Err(ArchiveError::NotEmpty)), "{again:?}");
}

async fn copy_of_new(home: &Home) -> BTreeSet<(String, String)> {
    // A store is made by opening it.
    home.open().await.close().await;
    rows(&copy(&home.location()).await)
}
