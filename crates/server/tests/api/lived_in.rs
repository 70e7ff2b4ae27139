//! A house with something in every room, and the pages on which it is looked at: for the tests
//! that go through all of them.

use chancery_server::config::{WebhookConfig, WebhookFormat};
use serde_json::{Value, json};

use crate::harness::{Caller, id};
use crate::house::{House, On};

/// What only operators see.
pub const OPERATORS: &[&str] = &[
    "/welcome",
    "/org/draft",
    "/org/history",
    "/org/history/compare?from=1&to=1",
    "/org/history/compare?from=1&to=2",
    "/audit/verify",
    "/settings",
];

/// The house, and what a person of it may look at.
pub async fn lived_in() -> (House, Vec<String>) {
    let house = House::with(On::Sqlite, |config| {
        // Nobody is there: what is told is not taken.
        let away = WebhookConfig {
            url: "http://127.0.0.1:9/hook".to_owned(),
            events: vec!["run.completed".to_owned(), "permission.requested".to_owned()],
            secret_env: None,
            format: WebhookFormat::Generic,
        };
        config.webhooks.insert("ops".to_owned(), away);
    })
    .await;
    let lin = house.lin().await;
    // There is something to warn of: no such tool, and nobody who approves.
    let users = "users:\n  lin: {denied_tools: [wire, gti_push]}\n";
    house.change(users, "tools: {note: require_approval}\n").await;
    let mut pages = mail(&house, &lin).await;
    pages.extend(runs(&lin).await);
    remembered(&lin).await;
    pages.extend(
        [
            "/inbox",
            "/inbox?show=decided",
            "/inbox?show=escalated",
            "/inbox?show=expired",
            "/jump?q=pay",
            "/help",
            "/chat",
            "/chat/talk",
            "/runs",
            "/org",
            "/org?agent=pa&tool=pay",
            "/org?agent=qa_worker&tool=git_push",
            "/org?from=backend_worker&to=ceo",
            "/org?from=board&to=ceo",
            "/memory",
            "/memory?q=short",
            "/audit",
            "/rules",
            "/settings",
            "/nowhere",
            "/signin",
            "/setup?key=0",
        ]
        .map(str::to_owned),
    );
    let audit = lin.get("/api/audit").await.json();
    let mut kinds = std::collections::BTreeSet::new();
    for it in audit["items"].as_array().unwrap() {
        // One of each kind, and of each ruling.
        if kinds.insert((it["kind"].to_string(), it["ruling"].to_string())) {
            pages.push(format!("/audit/{}", it["id"].as_str().unwrap()));
        }
    }
    (house, pages)
}

/// A talk that waits, one that was answered, one that failed, and a group's room.
async fn runs(lin: &Caller) -> Vec<String> {
    let batch =
        json!([[["note", {"to": "a\u{202e}b"}], ["pay", {"to": "b"}], ["burn", {"to": "c"}]]]);
    let body = json!({"agent": "pa", "input": batch.to_string(), "session_key": "talk"});
    let run = id(&lin.post("/api/runs", &body).await.json());
    lin.until(&run, "waiting").await;
    let (done, decided) = lin.asking("pa", json!([[["note", {"to": "x"}]]])).await;
    let answer = json!({"decision": "grant", "comment": "yes", "remember": "agent"});
    assert_eq!(lin.decide(&decided[0], answer).await.status, 200);
    lin.until(&done, "completed").await;
    // Two that are alike: they may be answered together.
    for to in ["y", "z"] {
        lin.asking("payer", json!([[["note", {"to": to}]]])).await;
    }
    // One call is refused, and the next one waits for somebody.
    let lines = json!({"payer": {"calls": [[["deploy", {"to": "d"}]], [["note", {"to": "c"}]]]}});
    let goal = json!({"group_id": "grp_pay", "goal": lines.to_string()});
    let room = json!([[["escalate_to_group", goal]]]).to_string();
    let body = json!({"agent": "pa", "input": room, "session_key": "room"});
    let room = id(&lin.post("/api/runs", &body).await.json());
    lin.until(&room, "waiting").await;
    let failing = json!({"group": "grp_deep", "input": json!({"pa": {"fails": true}}).to_string(),
        "session_key": "failing"});
    let failed = id(&lin.post("/api/runs", &failing).await.json());
    lin.until(&failed, "failed").await;
    let forked = lin.post(&format!("/api/runs/{done}/fork"), &json!({})).await.json();
    let forked = id(&forked);
    lin.until(&forked, "completed").await;
    let unfit = lin.script("pa", json!([[["note", {"too": 1}], ["read_file", {"path": "no"}]]]));
    let unfit = unfit.await;
    lin.until(&unfit, "completed").await;
    let asked = |it: &Value| format!("/inbox/{}", it["id"].as_str().unwrap());
    let mut pages = vec![asked(&decided[0]), "/chat/room".to_owned(), "/chat/failing".to_owned()];
    pages.extend([&run, &done, &room, &failed, &forked, &unfit].map(|it| format!("/runs/{it}")));
    pages.push(format!("/runs/{done}?only=trouble"));
    pages.push(format!("/inbox/{}", first(&lin.asked(&run).await)));
    pages.push(format!("/jump?q={run}"));
    pages
}

fn first(asked: &[Value]) -> &str {
    asked[0]["id"].as_str().unwrap()
}

/// Mail that was sent and mail that was not, and a contract.
async fn mail(house: &House, lin: &Caller) -> Vec<String> {
    let sent = lin.write(json!({"to": "ceo", "type": "info", "subject": "Prices", "body": "Up."}));
    let sent = sent.await.json();
    let contract = lin.issue("ceo", json!({})).await.json();
    assert_eq!(lin.mail("it_manager", "info").await.status, 403);
    let ceo = house.server.holder(json!({"kind": "agent", "name": "ceo"})).await;
    assert_eq!(ceo.mail("backend_worker", "info").await.status, 403);
    let id = |it: &Value| it["id"].as_str().unwrap().to_owned();
    let shown = ["/mail", "/mail?show=sent", "/mail?show=rejections", "/mail?show=contracts"];
    let mut pages = shown.map(str::to_owned).to_vec();
    pages.push("/mail?show=write".to_owned());
    pages.push(format!("/mail/{}", id(&sent)));
    pages.push(format!("/contracts/{}", id(&contract)));
    pages
}

async fn remembered(lin: &Caller) {
    for it in [
        json!({"content": "Lin wants it short.", "type": "core", "scope": {"user": "lin"}}),
        json!({"content": "It was short.", "type": "archival",
            "scope": {"user": "lin", "project": "shop"}}),
    ] {
        assert_eq!(lin.post("/api/memories", &it).await.status, 201);
    }
}
