//! What is remembered, over HTTP: whose it is, who finds it, and what strangers try.

use chancery_testkit::postgres::TestDatabase;
use serde_json::{Value, json};

use crate::harness::{Answer, Caller, Server};

/// The same on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($case:ident)*) => {
        mod sqlite { $(
            #[tokio::test]
            async fn $case() {
                let server = super::Server::start().await;
                super::$case(&server).await;
                server.running.stop().await;
            }
        )* }
        mod postgres { $(
            #[tokio::test]
            async fn $case() {
                let database = super::TestDatabase::create().await;
                let url = database.url();
                let server = super::Server::with(|config| config.database = Some(url)).await;
                super::$case(&server).await;
                server.running.stop().await;
            }
        )* }
    };
}

on_both! {
    a_memory_is_kept_read_found_listed_and_forgotten
    preferences_come_first_for_their_own_person
    a_preference_is_written_for_oneself_alone
    a_groups_blackboard_comes_first_for_the_group
    another_users_memory_is_not_there
    what_is_forgotten_by_the_wrong_person_stays
    a_correction_supersedes_and_does_not_overwrite
    an_export_has_a_line_for_every_memory
    bad_input_is_refused_and_keeps_nothing
}

async fn keep(caller: &Caller, body: Value) -> Value {
    let made = caller.post("/api/memories", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.json()
}

async fn found(caller: &Caller, query: &str) -> Vec<Value> {
    let found = caller.get(&format!("/api/memories/search?{query}")).await;
    assert_eq!(found.status, 200, "{found:?}");
    found.json()["items"].as_array().unwrap().clone()
}

fn contents(items: &[Value]) -> Vec<&str> {
    items.iter().map(|it| it["content"].as_str().unwrap()).collect()
}

async fn delete(caller: &Caller, path: &str) -> Answer {
    crate::harness::answer(caller.request(reqwest::Method::DELETE, path)).await
}

async fn a_memory_is_kept_read_found_listed_and_forgotten(server: &Server) {
    let lin = server.human("lin").await;
    let body = json!({
        "content": "the invoices are due on the third of May 2024", "type": "archival",
        "scope": {"project": "shop"}, "metadata": {"category": "money"},
    });
    let kept = keep(&lin, body.clone()).await;
    assert!(kept["id"].as_str().unwrap().starts_with("mem_"));
    assert_eq!(kept["scope"], json!({"project": "shop"}));
    assert_eq!((&kept["type"], &kept["created_by"]), (&json!("archival"), &json!("lin")));
    let again = lin.post("/api/memories", &body).await;
    assert_eq!((again.status, &again.json()["id"]), (200, &kept["id"]));
    let path = format!("/api/memories/{}", kept["id"].as_str().unwrap());
    assert_eq!(lin.get(&path).await.json(), kept);
    let items = found(&lin, "q=when%20are%20invoices%20due").await;
    assert_eq!(items.len(), 1);
    let it = &items[0];
    assert_eq!((&it["tier"], &it["metadata"]), (&json!(1), &json!({"category": "money"})));
    assert_eq!(it["scope"], json!({"project": "shop"}));
    assert!(it["score"].as_f64().unwrap() > 0.0);
    assert_eq!(it["why"], "matches `due`, `invoic`");
    assert_eq!(found(&lin, "q=5%E6%9C%883%E5%8F%B7").await.len(), 1, "5月3号");
    assert_eq!(found(&lin, "q=invoices&type=core").await.len(), 0);
    assert_eq!(found(&lin, "q=invoices&project=bank").await.len(), 0);
    assert_eq!(lin.get("/api/memories?type=archival").await.json()["items"], json!([kept]));
    let forgotten = delete(&lin, &path).await;
    assert_eq!((forgotten.status, forgotten.json()), (200, kept));
    lin.get(&path).await.problem(404, "not_found");
    delete(&lin, &path).await.problem(404, "not_found");
    assert_eq!(found(&lin, "q=invoices").await.len(), 0);
    let audit = server.operator().get("/api/audit?kind=memory.forgotten").await.json();
    assert_eq!(audit["items"].as_array().unwrap().len(), 1);
}

async fn preferences_come_first_for_their_own_person(server: &Server) {
    let (lin, operator) = (server.human("lin").await, server.operator());
    let scope = json!({"user": "lin", "agent": "pa"});
    let preferred = json!({"pa_preference": true});
    for n in 0..5 {
        let text = |what: &str| format!("{what} number {n} about a report");
        let body = json!({"content": text("preference"), "type": "core", "scope": scope, "metadata": preferred});
        keep(&lin, body).await;
        keep(&operator, json!({"content": text("knowledge"), "type": "archival", "scope": {}}))
            .await;
        let scope = json!({"user": "lin", "project": "shop"});
        keep(&operator, json!({"content": text("history"), "type": "episodic", "scope": scope}))
            .await;
        let scope = json!({"group": "grp_delivery", "project": "shop"});
        keep(&lin, json!({"content": text("blackboard"), "type": "episodic", "scope": scope}))
            .await;
    }
    let query = "q=report&mode=personal&agent=pa&project=shop&limit=10";
    let items = found(&lin, query).await;
    let tiers: Vec<u64> = items.iter().map(|it| it["tier"].as_u64().unwrap()).collect();
    assert_eq!(tiers, [1, 1, 1, 2, 2, 2, 2, 3, 3, 3]);
    assert!(items[0]["content"].as_str().unwrap().starts_with("preference"));
    assert_eq!(items[0]["metadata"]["pa_preference"], true);
    assert!(!contents(&items).iter().any(|it| it.starts_with("blackboard")));
    assert_eq!(found(&operator, &format!("{query}&user=lin")).await, items);
    // A part of the scope that is not named is none, not any.
    let without = found(&lin, "q=report&mode=personal&limit=50").await;
    assert!(without.iter().all(|it| it["tier"] == 2), "{without:?}");
}

async fn a_preference_is_written_for_oneself_alone(server: &Server) {
    let lin = server.human("lin").await;
    let body = |user: Option<&str>, kind: &str| {
        let scope = json!({"user": user, "agent": "pa"});
        json!({"content": "short answers", "type": kind, "scope": scope,
            "metadata": {"pa_preference": true}})
    };
    lin.post("/api/memories", &body(Some("bo"), "core")).await.problem(403, "forbidden");
    lin.post("/api/memories", &body(None, "core")).await.problem(422, "not_here");
    lin.post("/api/memories", &body(Some("lin"), "episodic")).await.problem(422, "not_here");
    keep(&lin, body(Some("lin"), "core")).await;
    keep(&server.operator(), body(Some("bo"), "core")).await;
    let agent = server.holder(json!({"kind": "agent", "name": "pa"})).await;
    agent.post("/api/memories", &body(Some("lin"), "core")).await.problem(403, "forbidden");
    agent.get("/api/memories").await.problem(403, "forbidden");
    agent.get("/api/memories/search?q=short").await.problem(403, "forbidden");
}

async fn a_groups_blackboard_comes_first_for_the_group(server: &Server) {
    let lin = server.human("lin").await;
    for n in 0..6 {
        for (scope, kind, what) in [
            (json!({"project": "shop", "group": "grp_delivery"}), "episodic", "board"),
            (json!({"project": "shop"}), "archival", "project"),
            (json!({}), "archival", "company"),
            (json!({"project": "shop", "group": "grp_other"}), "episodic", "other"),
        ] {
            let content = format!("{what} {n} release");
            keep(&lin, json!({"content": content, "type": kind, "scope": scope})).await;
        }
    }
    let query = "q=release&mode=group&group=grp_delivery&project=shop";
    let items = found(&lin, query).await;
    let tiers: Vec<&str> = items.iter().map(|it| it["tier_name"].as_str().unwrap()).collect();
    let (board, project) = (["blackboard"; 5], ["project"; 3]);
    assert_eq!(tiers, [&board[..], &project[..], &["enterprise"; 2][..]].concat());
    lin.get("/api/memories/search?q=release&mode=group").await.problem(400, "bad_request");
    // What the group knows whatever it works on is on its board in every project.
    let scope = json!({"group": "grp_delivery"});
    keep(&lin, json!({"content": "anywhere canary", "type": "core", "scope": scope})).await;
    for project in ["", "&project=shop", "&project=other"] {
        let query = format!("q=canary&mode=group&group=grp_delivery{project}");
        let items = found(&lin, &query).await;
        assert_eq!(contents(&items), ["anywhere canary"], "{project}");
        assert_eq!(items[0]["tier_name"], "blackboard");
    }
}

async fn another_users_memory_is_not_there(server: &Server) {
    let (lin, bo) = (server.human("lin").await, server.human("bo").await);
    let scope = json!({"user": "lin"});
    let content = "the vault code is under the piano";
    let secret = keep(&lin, json!({"content": content, "type": "episodic", "scope": scope})).await;
    let secret = secret["id"].as_str().unwrap();
    let missing = format!("mem_{}", "0".repeat(32));
    for mode in ["flat", "personal", "group&group=g"] {
        assert_eq!(found(&bo, &format!("q=vault%20code%20piano&mode={mode}")).await, [0; 0]);
    }
    assert_eq!(bo.get("/api/memories").await.json()["items"], json!([]));
    let page = bo.get(&format!("/api/memories?cursor={secret}")).await;
    assert_eq!(page.json(), bo.get(&format!("/api/memories?cursor={missing}")).await.json());
    assert_eq!(bo.get("/api/memories/export").await.text, "");
    bo.get("/api/memories/search?q=vault&user=lin").await.problem(403, "forbidden");
    bo.get("/api/memories?user=lin").await.problem(403, "forbidden");
    // Word for word as for an id that nobody has.
    let said = |answer: Answer, id: &str| answer.problem(404, "not_found").replace(id, "ID");
    for (id, other) in [(secret, &*missing)] {
        let path = |id: &str| format!("/api/memories/{id}");
        let (theirs, nobodys) = (bo.get(&path(id)).await, bo.get(&path(other)).await);
        assert_eq!(said(theirs, id), said(nobodys, other));
        let (theirs, nobodys) = (delete(&bo, &path(id)).await, delete(&bo, &path(other)).await);
        assert_eq!(said(theirs, id), said(nobodys, other));
        let correct = |id: &str| json!({"content": "x", "type": "episodic", "scope": {"user": "bo"}, "supersedes": id});
        let theirs = bo.post("/api/memories", &correct(id)).await;
        let nobodys = bo.post("/api/memories", &correct(other)).await;
        assert_eq!(said(theirs, id), said(nobodys, other));
    }
    let operator = server.operator();
    operator.get(&format!("/api/memories/{secret}")).await.problem(404, "not_found");
    let named = operator.get(&format!("/api/memories/{secret}?user=lin")).await;
    assert_eq!(named.json()["content"], content);
    server.nobody().get("/api/memories").await.problem(401, "unauthenticated");
}

async fn what_is_forgotten_by_the_wrong_person_stays(server: &Server) {
    let (lin, bo) = (server.human("lin").await, server.human("bo").await);
    let shared = keep(&lin, json!({"content": "the door code is 12", "type": "archival"})).await;
    let path = format!("/api/memories/{}", shared["id"].as_str().unwrap());
    assert_eq!(bo.get(&path).await.status, 200, "it is everybody's to read");
    delete(&bo, &path).await.problem(403, "forbidden");
    assert_eq!(delete(&lin, &path).await.status, 200);
    let shared = keep(&lin, json!({"content": "the door code is 13", "type": "archival"})).await;
    let path = format!("/api/memories/{}", shared["id"].as_str().unwrap());
    assert_eq!(delete(&server.operator(), &path).await.status, 200);
}

async fn a_correction_supersedes_and_does_not_overwrite(server: &Server) {
    let lin = server.human("lin").await;
    let body = |content: &str, supersedes: Option<&str>| {
        let scope = json!({"user": "lin"});
        json!({"content": content, "type": "episodic", "scope": scope, "supersedes": supersedes})
    };
    let old = keep(&lin, body("Lin lives in Paris", None)).await;
    let id = old["id"].as_str().unwrap();
    let new = keep(&lin, body("Lin lives in Berlin", Some(id))).await;
    assert_eq!(
        contents(&found(&lin, "q=where%20does%20Lin%20live").await),
        ["Lin lives in Berlin"]
    );
    let kept = lin.get(&format!("/api/memories/{id}")).await.json();
    assert_eq!((&kept["content"], &kept["superseded_by"]), (&old["content"], &new["id"]));
    let twice = lin.post("/api/memories", &body("Lin lives in Rome", Some(id))).await;
    twice.problem(404, "not_found");
}

async fn an_export_has_a_line_for_every_memory(server: &Server) {
    let lin = server.human("lin").await;
    for n in 0..70 {
        keep(&lin, json!({"content": format!("note {n}\nwith a line break"), "type": "archival"}))
            .await;
    }
    let export = lin.get("/api/memories/export").await;
    assert_eq!(export.header("content-type"), "application/x-ndjson");
    let lines: Vec<Value> =
        export.text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(lines.len(), 70);
    let page = lin.get("/api/memories?limit=50").await.json();
    assert_eq!(page["items"].as_array().unwrap()[..], lines[..50]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = lin.get(&format!("/api/memories?limit=50&cursor={cursor}")).await.json();
    assert_eq!(rest["items"].as_array().unwrap()[..], lines[50..]);
    assert_eq!(rest["next_cursor"], json!(null));
}

async fn bad_input_is_refused_and_keeps_nothing(server: &Server) {
    let operator = server.operator();
    let with = |field: &str, value: Value| {
        let mut body = json!({"content": "x", "type": "core", "scope": {}, "metadata": {}});
        body[field] = value;
        body
    };
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    for body in [
        with("content", json!("")),
        with("content", json!(" \n")),
        with("content", json!("a\u{0}b")),
        with("content", json!("x".repeat(16_001))),
        with("content", json!(7)),
        with("type", json!("semantic")),
        with("type", json!(null)),
        with("scope", json!({"org": "other"})),
        with("scope", json!({"user": ""})),
        with("scope", json!({"project": "a\u{0}"})),
        with("scope", json!({"group": "x".repeat(257)})),
        with("scope", json!(["lin"])),
        with("metadata", json!([1])),
        with("metadata", json!({"deep": deep})),
        with("metadata", json!({"large": "x".repeat(9_000)})),
        with("metadata", json!({"pa_preference": "yes"})),
        with("metadata", json!({"source_run_id": "run_1"})),
        with("metadata", json!({"source": "group_run"})),
        with("supersedes", json!("mem_1")),
        with("at", json!("yesterday")),
        with("partition", json!(1)),
    ] {
        let refused = operator.post("/api/memories", &body).await;
        refused.problem(400, "bad_request");
    }
    for query in [
        "",
        "q=",
        "q=%00",
        "q=x&mode=deep",
        "q=x&type=semantic",
        "q=x&org=other",
        "q=x&partition=1",
        "q=x&limit=-1",
        "q=x&user=%00",
    ] {
        let refused = operator.get(&format!("/api/memories/search?{query}")).await;
        refused.problem(400, "bad_request");
    }
    operator.get("/api/memories?cursor=mem_1").await.problem(400, "bad_request");
    operator.get("/api/memories/mem_1").await.problem(404, "not_found");
    assert_eq!(operator.get("/api/memories").await.json()["items"], json!([]));
}
