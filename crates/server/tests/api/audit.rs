//! The audit over HTTP: what is in it, who may read it, and that a stranger can check it.

use chancery_testkit::postgres::TestDatabase;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::{Caller, Server, id};
use crate::house::{House, On, on_both};

async fn items(caller: &Caller, query: &str) -> Vec<Value> {
    let answer = caller.get(&format!("/api/audit{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["items"].as_array().unwrap().clone()
}

fn kinds(items: &[Value]) -> Vec<&str> {
    items.iter().map(|it| it["kind"].as_str().unwrap()).collect()
}

async fn cancelled(caller: &Caller) -> String {
    let run = caller.waiting().await;
    let answer = caller.post(&format!("/api/runs/{run}/cancel"), &json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    run
}

/// As `docs/audit.md` says, and with nothing of ours: answers how many entries there are and the
/// last hash, or what is wrong.
fn check_export(text: &str) -> Result<(usize, String), String> {
    let mut before = "0".repeat(64);
    let mut count = 0;
    for line in text.lines() {
        count += 1;
        let parsed: Value = serde_json::from_str(line).map_err(|it| it.to_string())?;
        let (_, rest) = line.split_once("\"entry\":").ok_or("no entry")?;
        let entry = rest.strip_suffix('}').ok_or("no end")?;
        let prev = parsed["prev"].as_str().ok_or("no prev")?;
        let bytes: Vec<u8> = (0..32)
            .map(|n| u8::from_str_radix(&prev[2 * n..2 * n + 2], 16).unwrap())
            .chain(entry.bytes())
            .collect();
        let hash: String = Sha256::digest(&bytes).iter().map(|it| format!("{it:02x}")).collect();
        if prev != before || parsed["hash"] != hash {
            return Err(format!("line {count} does not follow"));
        }
        if parsed["seq"] != count || parsed["entry"]["seq"] != count {
            return Err(format!("line {count} is out of place"));
        }
        before = hash;
    }
    Ok((count, before))
}

async fn a_stranger_checks_an_export(server: &Server) {
    let operator = server.operator();
    for _ in 0..70 {
        // Enough for more than one page of an export.
        server.human("lin").await;
    }
    cancelled(&operator).await;
    let export = operator.get("/api/audit/export").await;
    assert_eq!((export.status, export.header("content-type")), (200, "application/x-ndjson"));
    let anchor = operator.get("/api/audit/anchor").await.json();
    let (entries, head) = check_export(&export.text).unwrap();
    assert!(entries > 70, "{entries}");
    assert_eq!((json!(entries), json!(head)), (anchor["seq"].clone(), anchor["hash"].clone()));
    let verified = operator.get(&format!("/api/audit/verify?anchor={entries}:{head}")).await.json();
    assert_eq!(verified["ok"], true, "{verified}");
    assert_eq!((&verified["entries"], &verified["head"]), (&json!(entries), &json!(head)));
    assert_eq!((&verified["first_bad"], &verified["why"]), (&json!(null), &json!(null)));
    // What the check is worth: one word, one line, one number.
    let lines: Vec<&str> = export.text.lines().collect();
    let without: Vec<&str> = lines.iter().copied().filter(|it| *it != lines[40]).collect();
    assert!(check_export(&without.join("\n")).is_err());
    assert!(check_export(&export.text.replacen("\"lin\"", "\"eve\"", 1)).is_err());
    assert!(check_export(&lines[1..].join("\n")).is_err());
    // With a filter there are gaps, and the lines are the same.
    let few = operator.get("/api/audit/export?kind=run.cancelled").await.text;
    assert_eq!(few.lines().count(), 1);
    assert!(export.text.contains(&few));
}

#[tokio::test]
async fn a_stranger_checks_an_export_without_us() {
    let server = Server::start().await;
    a_stranger_checks_an_export(&server).await;
    server.running.stop().await;
}

#[tokio::test]
async fn a_stranger_checks_an_export_from_postgres() {
    let database = TestDatabase::create().await;
    let url = database.url();
    let server = Server::with(|config| config.database = Some(url)).await;
    a_stranger_checks_an_export(&server).await;
    server.running.stop().await;
}

#[tokio::test]
async fn what_was_done_is_found_by_filter_and_page() {
    let server = Server::start().await;
    let (operator, lin) = (server.operator(), server.human("lin").await);
    let run = cancelled(&lin).await;
    let entry = &items(&operator, "?kind=run.cancelled").await[0];
    assert_eq!(entry["actor"], json!({"kind": "user", "id": "lin"}));
    let said = [&entry["user"], &entry["agent"], &entry["run_id"], &entry["ruling"]];
    assert_eq!(said, [&json!("lin"), &json!("pa"), &json!(run), &json!(null)]);
    assert!(entry["id"].as_str().unwrap().starts_with("aud_"), "{entry}");

    // The organisation, the operator's own token, lin's token, and the run.
    let all = items(&operator, "").await;
    assert_eq!(kinds(&all), ["run.cancelled", "token.made", "token.made", "org.changed"]);
    assert_eq!(all[1]["actor"], json!({"kind": "user", "id": "operator"}));
    assert_eq!(all[2]["actor"], json!({"kind": "system"}));
    assert!(!format!("{all:?}").contains("chy_"), "no secret is in the audit");
    for (query, count) in [
        ("?agent=pa", 1),
        ("?agent=other", 0),
        ("?tool=git_push", 0),
        ("?ruling=deny", 0),
        ("?user=lin", 2),
        ("?since=1h", 4),
        ("?since=2099-01-01T00:00:00Z", 0),
        ("?until=1h", 0),
        ("?until=2099-01-01T00:00:00Z&kind=token.made", 2),
        ("?agent=&tool=&ruling=&since=&until=&kind=&user=&run=", 4),
        (&*format!("?run={run}"), 1),
    ] {
        assert_eq!(items(&operator, query).await.len(), count, "{query}");
    }
    let page = operator.get("/api/audit?limit=3").await.json();
    let next = page["next_cursor"].as_str().unwrap();
    let last = operator.get(&format!("/api/audit?limit=3&cursor={next}")).await.json();
    assert_eq!((&last["items"][0], &last["next_cursor"]), (&all[3], &json!(null)));
    for bad in ["ruling=maybe", "since=yesterday", "run=x", "cursor=-1", "nonsense=1", "agent=%00"]
    {
        operator.get(&format!("/api/audit?{bad}")).await.problem(400, "bad_request");
        operator.get(&format!("/api/audit/export?{bad}")).await.problem(400, "bad_request");
    }
    operator.get("/api/audit/export?limit=1").await.problem(400, "bad_request");
    for bad in ["x", "1:2", "9223372036854775808:00"] {
        let path = format!("/api/audit/verify?anchor={bad}");
        operator.get(&path).await.problem(400, "bad_request");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn people_read_what_concerns_them_and_others_nothing() {
    let server = Server::start().await;
    let (lin, max) = (server.human("lin").await, server.human("max").await);
    cancelled(&lin).await;
    cancelled(&max).await;
    assert_eq!(kinds(&items(&lin, "").await), ["run.cancelled", "token.made"]);
    assert_eq!(items(&lin, "?user=lin").await.len(), 2);
    let export = lin.get("/api/audit/export").await.text;
    assert_eq!(export.lines().count(), 2);
    assert!(!export.contains("max"), "{export}");
    for path in ["/api/audit?user=max", "/api/audit/export?user=max"] {
        lin.get(path).await.problem(403, "forbidden");
    }
    let agent = server.holder(json!({"kind": "agent", "name": "pa"})).await;
    let service = server.holder(json!({"kind": "service", "name": "ci", "approve": true})).await;
    for caller in [&agent, &service] {
        for path in ["/api/audit", "/api/audit/export"] {
            caller.get(path).await.problem(403, "forbidden");
        }
    }
    for caller in [&agent, &service, &lin] {
        for path in ["/api/audit/verify", "/api/audit/anchor"] {
            caller.get(path).await.problem(403, "forbidden");
        }
    }
    server.running.stop().await;
}

#[tokio::test]
async fn a_chain_that_was_cut_is_found_against_the_anchor() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = id(&operator.run("hello").await);
    operator.until(&run, "completed").await;
    let anchor = operator.get("/api/audit/anchor").await.json();
    let later = anchor["seq"].as_u64().unwrap() + 5;
    let path = format!("/api/audit/verify?anchor={later}:{}", anchor["hash"].as_str().unwrap());
    let verified = operator.get(&path).await.json();
    assert_eq!((&verified["ok"], &verified["first_bad"]), (&json!(false), &json!(later)));
    let why = format!("the anchor was taken of entry {later}, which is gone");
    assert_eq!(verified["why"], why);
    server.running.stop().await;
}

on_both! {
    what_is_allowed_is_counted_and_kept_in_full_where_the_operator_says_so;
}

async fn what_is_allowed_is_counted_and_kept_in_full_where_the_operator_says_so(on: On) {
    use chancery_server::config::Allows;
    for allows in [Allows::Count, Allows::Record] {
        let house = House::with(on, |config| config.audit.allows = allows).await;
        let (lin, operator) = (house.lin().await, house.server.operator());
        let counted = async || -> u64 {
            let text = operator.get("/metrics").await.text;
            let line = text.lines().find(|it| it.starts_with("chancery_rulings_allowed_total "));
            line.map_or(0, |it| it.split(' ').nth(1).unwrap().parse().unwrap())
        };
        let before = counted().await;
        let batch = json!([[["note", {"to": "a"}], ["burn", {"to": "b"}], ["note", {"to": "c"}]]]);
        let run = lin.script("pa", batch).await;
        lin.until(&run, "completed").await;
        assert_eq!(counted().await - before, 2);
        let kept = items(&operator, &format!("?run={run}&ruling=allow")).await;
        let denied = items(&operator, &format!("?run={run}&ruling=deny")).await;
        assert_eq!(denied.len(), 1);
        if allows == Allows::Count {
            assert_eq!(kept, [json!(null); 0]);
        } else {
            let said: Vec<&Value> = kept.iter().map(|it| &it["detail"]["arguments"]).collect();
            assert_eq!(said, [&json!({"to": "c"}), &json!({"to": "a"})]);
            let it = &kept[0];
            let facts = (&it["kind"], &it["tool"], &it["agent"], &it["user"]);
            let due = ["ruling", "note", "pa", "lin"].map(Value::from);
            assert_eq!(facts, (&due[0], &due[1], &due[2], &due[3]));
            // Every layer that spoke is there.
            let layers: Vec<&Value> =
                it["reasons"].as_array().unwrap().iter().map(|it| &it["layer"]).collect();
            assert_eq!(layers, ["identity", "tool", "role", "risk"]);
            // A refusal stands between them: they were written together.
            let seqs = [&kept[1]["seq"], &denied[0]["seq"], &kept[0]["seq"]];
            let seqs = seqs.map(|it| it.as_u64().unwrap());
            assert_eq!([seqs[0] + 1, seqs[0] + 2], [seqs[1], seqs[2]]);
        }
        house.close().await;
    }
}
