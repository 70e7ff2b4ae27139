//! The same on PostgreSQL, where several servers share what they know.

use std::time::{Duration, Instant};

use chancery_testkit::postgres::{PrivatePostgres, TestDatabase};
use reqwest::Method;
use serde_json::json;

use crate::harness::{Server, answer, id};
use crate::house::{House, On};

async fn on(url: String) -> Server {
    Server::with(|config| config.database = Some(url)).await
}

#[tokio::test]
async fn two_servers_are_one() {
    let database = TestDatabase::create().await;
    let (one, other) = (on(database.url()).await, on(database.url()).await);
    let lin = one.human("lin").await;
    let run = lin.waiting().await;
    // What one is told, the other knows: a token of one, too.
    let operator = one.caller(Some(&other.running.local_token));
    assert_eq!(operator.get(&format!("/api/runs/{run}")).await.json()["user"], "lin");
    let signal = json!({"correlation_key": "go", "payload": {"note": "company"}});
    let path = format!("/api/jobs/{run}/signal");
    assert_eq!(other.operator().post(&path, &signal).await.status, 200);
    assert_eq!(lin.until(&run, "completed").await["output"], "went on with company");
    assert_eq!(one.operator().post(&path, &signal).await.status, 200);
    one.running.stop().await;
    other.running.stop().await;
}

#[tokio::test]
async fn an_organisation_that_one_is_given_is_that_of_the_other() {
    let database = TestDatabase::create().await;
    let (one, other) = (on(database.url()).await, on(database.url()).await);
    assert_eq!(other.operator().get("/api/org").await.json()["version"], 1);
    let roles = "extends: builtin\nagents: {second: {role: personal_agent}}\n";
    let body = json!({"files": {"roles.yaml": roles}});
    let put = one.operator().request(Method::PUT, "/api/org").json(&body);
    assert_eq!(answer(put).await.json()["version"], 2);
    let began = Instant::now();
    while other.operator().get("/api/org").await.json()["version"] != 2 {
        assert!(began.elapsed() < Duration::from_secs(20), "it never hears of it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let run = json!({"agent": "second", "input": "hello"});
    assert_eq!(other.operator().post("/api/runs", &run).await.status, 201);
    one.running.stop().await;
    other.running.stop().await;
}

#[tokio::test]
async fn odd_values_are_refused_here_as_they_are_on_sqlite() {
    let database = TestDatabase::create().await;
    let server = on(database.url()).await;
    let operator = server.operator();
    for body in [
        json!({"agent": "pa", "input": "a\u{0}b"}),
        json!({"agent": "pa", "input": "x", "user": "a\u{0}"}),
        json!({"agent": "pa", "input": "x", "project": "a\u{0}"}),
        json!({"agent": "pa", "input": "x", "session_key": "a\u{0}"}),
    ] {
        operator.post("/api/runs", &body).await.problem(400, "bad_request");
    }
    operator.get("/api/runs?agent=%00").await.problem(400, "bad_request");
    for limit in ["0", "4294967295"] {
        assert_eq!(operator.get(&format!("/api/runs?limit={limit}")).await.status, 200);
    }
    let run = operator.waiting().await;
    let path = format!("/api/runs/{run}/events?after=9223372036854775807&limit=4294967295");
    assert_eq!(operator.get(&path).await.json(), json!({"items": [], "next_cursor": null}));
    // A payload is kept as it is: NUL characters and all.
    let signal = json!({"correlation_key": "go", "payload": {"other": "a\u{0}b"}});
    let signalled = operator.post(&format!("/api/runs/{run}/signal"), &signal).await;
    assert_eq!(signalled.status, 200, "{signalled:?}");
    let ended = operator.until(&run, "completed").await;
    assert_eq!(ended["error"], json!(null));
    server.running.stop().await;
}

#[tokio::test]
async fn two_at_once_with_one_key_make_one_run_on_two_servers() {
    let database = TestDatabase::create().await;
    let (one, other) = (on(database.url()).await, on(database.url()).await);
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..12 {
        let caller = if n % 2 == 0 { one.operator() } else { other.operator() };
        asked.spawn(async move {
            let body = json!({"agent": "pa", "input": "once"});
            let request = caller.request(Method::POST, "/api/runs").header("Idempotency-Key", "k");
            answer(request.json(&body)).await
        });
    }
    let answered = asked.join_all().await;
    assert!(answered.iter().all(|it| it.status == 201), "{answered:?}");
    let first = id(&answered[0].json());
    assert!(answered.iter().all(|it| id(&it.json()) == first), "{answered:?}");
    one.running.stop().await;
    other.running.stop().await;
}

/// Two people at two servers, through both doors, at the same instant.
#[tokio::test]
async fn two_servers_that_are_told_at_once_resume_a_batch_once_and_ask_nothing_again() {
    let house = House::open(On::Postgres).await;
    let data = tempfile::TempDir::new().unwrap();
    let mut config = house.server.config.clone();
    config.workspace = Some(config.workspace());
    config.data = data.path().join("data");
    let running = chancery_server::start(&config, []).await.unwrap();
    let other = Server { running, data, config };
    let lin = house.lin().await;
    for round in 1..=5 {
        let batch = json!([[["pay", {"to": "a"}], ["note", {"to": "b"}], ["pay", {"to": "c"}]]]);
        let (run, asked) = lin.asking("pa", batch).await;
        let mut clicks = tokio::task::JoinSet::new();
        for n in 0..16 {
            let who = if n % 2 == 0 { house.server.operator() } else { other.operator() };
            let (run, permission) = (run.clone(), asked[n / 2 % 2].clone());
            clicks.spawn(async move {
                if n % 8 < 4 {
                    return who.grant(&permission).await.status;
                }
                let body = json!({"correlation_key": permission["correlation_key"]});
                who.post(&format!("/api/jobs/{run}/signal"), &body).await.status
            });
        }
        let statuses = clicks.join_all().await;
        assert!(statuses.iter().all(|it| *it == 200), "{statuses:?}");
        assert_eq!(lin.until(&run, "completed").await["attempt"], 2);
        let kinds = lin.kinds(&run).await;
        let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
        let counted = (count("permission.updated"), count("tool.started"), count("batch.proposed"));
        assert_eq!(counted, (2, 3, 1), "{kinds:?}");
        let all = other.operator().get(&format!("/api/permissions?run={run}")).await.json();
        assert_eq!(all["items"].as_array().unwrap().len(), 2, "{all}");
        assert_eq!(house.ledger().len(), 3 * round);
    }
    other.running.stop().await;
    house.close().await;
}

#[tokio::test]
async fn readiness_follows_the_store() {
    let mut postgres = PrivatePostgres::start().await;
    let server = on(postgres.url()).await;
    let run = server.operator().waiting().await;
    assert_eq!(server.nobody().get("/readyz").await.status, 200);
    postgres.stop().await;
    let away = server.nobody().get("/readyz").await;
    let detail = away.problem(503, "unavailable");
    assert_eq!(detail, "the store is not available just now");
    assert_eq!(server.nobody().get("/healthz").await.status, 200);
    server.operator().get("/api/runs").await.problem(503, "unavailable");
    server.operator().get("/metrics").await.problem(503, "unavailable");
    postgres.start_again().await;
    let began = Instant::now();
    while server.nobody().get("/readyz").await.status != 200 {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.operator().until(&run, "waiting").await["attempt"], 1);
    server.running.stop().await;
}
