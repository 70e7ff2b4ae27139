//! Runs are asked for once, and found again: keys, pages, filters, prefixes.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Caller, Server, answer, id};

async fn with_key(caller: &Caller, key: &str, body: &Value) -> Answer {
    let request = caller.request(Method::POST, "/api/runs").header("Idempotency-Key", key);
    answer(request.json(body)).await
}

#[tokio::test]
async fn a_run_is_shown_whole() {
    let server = Server::start().await;
    let body = json!({
        "agent": "pa", "input": "hello", "user": "lin", "project": "p", "session_key": "s",
        "delegated_permissions": {"allowed_tools": ["read_file"], "denied_tools": ["write_file"]},
    });
    let made = server.operator().post("/api/runs", &body).await;
    assert_eq!((made.status, made.header("content-type")), (201, "application/json"));
    let run = id(&made.json());
    let mut shown = server.operator().until(&run, "completed").await;
    for time in ["created_at", "started_at", "ended_at"] {
        let said = shown[time].as_str().unwrap().to_owned();
        assert!(said.ends_with('Z') && said.parse::<jiff::Timestamp>().is_ok(), "{said}");
        shown[time] = json!("then");
    }
    assert!(shown["usage"]["output_tokens"].as_u64().unwrap() > 0, "{shown}");
    shown["usage"] = json!("some");
    assert_eq!(
        shown,
        json!({
            "id": run, "status": "completed", "waiting_for": null, "agent": "pa",
            "role": "personal_agent", "group": null, "user": "lin", "project": "p",
            "session_key": "s", "parent_run_id": null,
            "delegated_permissions":
                {"allowed_tools": ["read_file"], "denied_tools": ["write_file"]},
            "input": "hello", "output": "heard: hello", "error": null, "usage": "some",
            "attempt": 1, "created_at": "then", "started_at": "then", "ended_at": "then",
        })
    );
    let tree = server.operator().get(&format!("/api/runs/{run}/tree")).await.json();
    assert_eq!((&tree["id"], &tree["children"]), (&json!(run), &json!([])));
    server.running.stop().await;
}

#[tokio::test]
async fn the_same_key_and_body_make_the_same_run() {
    let server = Server::start().await;
    let operator = server.operator();
    let body = json!({"agent": "pa", "input": "once"});
    let first = with_key(&operator, "k 1", &body).await;
    let second = with_key(&operator, "k 1", &body).await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(id(&first.json()), id(&second.json()));
    // The same in another order, and with what is absent anyway.
    let same = json!({"input": "once", "user": null, "agent": "pa"});
    assert_eq!(id(&with_key(&operator, "k 1", &same).await.json()), id(&first.json()));
    let other = json!({"agent": "pa", "input": "twice"});
    with_key(&operator, "k 1", &other).await.problem(422, "idempotency_key_reused");
    assert_ne!(id(&with_key(&operator, "k 2", &body).await.json()), id(&first.json()));
    // Another caller's key is another key.
    let lin = server.human("lin").await;
    assert_ne!(id(&with_key(&lin, "k 1", &body).await.json()), id(&first.json()));
    // What was refused has not used its key up.
    let refused = json!({"agent": "stranger", "input": "once"});
    with_key(&operator, "k 3", &refused).await.problem(400, "unknown_agent");
    assert_eq!(with_key(&operator, "k 3", &body).await.status, 201);
    with_key(&operator, &"k".repeat(256), &body).await.problem(400, "bad_request");
    with_key(&operator, "", &body).await.problem(400, "bad_request");
    server.running.stop().await;
}

#[tokio::test]
async fn two_at_once_with_one_key_make_one_run() {
    let server = Server::start().await;
    let body = json!({"agent": "pa", "input": "once"});
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let (caller, body) = (server.operator(), body.clone());
        asked.spawn(async move { with_key(&caller, "at once", &body).await });
    }
    let answered = asked.join_all().await;
    assert!(answered.iter().all(|it| it.status == 201), "{answered:?}");
    let runs: BTreeSet<String> = answered.iter().map(|it| id(&it.json())).collect();
    assert_eq!(runs.len(), 1);
    let listed = server.operator().get("/api/runs").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    server.running.stop().await;
}

#[tokio::test]
async fn pages_show_every_run_once_newest_first() {
    let server = Server::start().await;
    let operator = server.operator();
    let mut made = Vec::new();
    for n in 0..7 {
        made.push(id(&operator.run(&format!("number {n}")).await));
    }
    made.reverse();
    for limit in [1, 2, 3, 7, 8, 200] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/api/runs?limit={limit}&cursor={cursor}");
            let page = operator.get(&path).await.json();
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= limit, "{items:?}");
            seen.extend(items.iter().map(id));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, made, "{limit}");
    }
    for limit in ["0", "4294967295"] {
        let page = operator.get(&format!("/api/runs?limit={limit}")).await;
        assert_eq!(page.status, 200, "{page:?}");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn filters_narrow_and_empty_ones_do_not() {
    let server = Server::start().await;
    let operator = server.operator();
    let waiting = operator.waiting().await;
    let done = id(&operator.run("x").await);
    operator.until(&done, "completed").await;
    let listed = async |query: &str| -> Vec<String> {
        let page = operator.get(&format!("/api/runs?{query}")).await.json();
        page["items"].as_array().unwrap().iter().map(id).collect()
    };
    assert_eq!(listed("status=waiting").await, [&*waiting]);
    assert_eq!(listed("status=completed&agent=pa").await, [&*done]);
    for none in ["status=failed", "agent=other", "group=grp_1", &format!("parent={done}")] {
        assert_eq!(listed(none).await, Vec::<String>::new(), "{none}");
    }
    let all = [done, waiting];
    assert_eq!(listed("").await, all);
    assert_eq!(listed("status=&parent=&agent=&group=&cursor=").await, all);
    server.running.stop().await;
}

#[tokio::test]
async fn a_run_is_found_by_a_beginning_that_only_it_has() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = id(&operator.run("x").await);
    for length in [10, 20, 35, 36] {
        let found = operator.get(&format!("/api/runs/{}", &run[..length])).await;
        assert_eq!((found.status, id(&found.json())), (200, run.clone()), "{length}");
    }
    operator.get(&format!("/api/runs/{}", &run[..9])).await.problem(404, "not_found");
    operator.run("y").await;
    // Ids begin with the time: these two share it.
    operator.get(&format!("/api/runs/{}", &run[..10])).await.problem(404, "not_found");
    server
        .human("lin")
        .await
        .get(&format!("/api/runs/{}", &run[..35]))
        .await
        .problem(404, "not_found");
    server.running.stop().await;
}
