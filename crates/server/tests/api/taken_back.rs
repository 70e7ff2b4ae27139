//! A token that is taken back ends what it opened: live events, talks of OpenAI's clients, calls
//! of agents outside. What they looked at goes on.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Caller, Server, answer, id};
use crate::house::{House, On, on_both};
use crate::mcp::Client;

on_both! {
    live_events_end_with_their_token;
    a_talk_ends_with_its_token;
    a_call_from_outside_ends_with_its_token;
}

/// A token, and what takes it back.
async fn holder(server: &Server, token: Value) -> (Caller, String) {
    let made = server.operator().post("/api/tokens", &token).await.json();
    let path = format!("/api/tokens/{}/revoke", made["id"].as_str().unwrap());
    (server.caller(made["token"].as_str()), path)
}

async fn take_back(server: &Server, path: &str) {
    assert_eq!(server.operator().post(path, &json!({})).await.status, 200);
}

/// The rest of a stream, which must come to an end.
async fn rest(response: reqwest::Response) -> String {
    let text = tokio::time::timeout(Duration::from_secs(20), response.text());
    text.await.expect("the stream goes on").unwrap()
}

async fn live_events_end_with_their_token(on: On) {
    let house = House::open(on).await;
    let (lin, revoke) = holder(&house.server, json!({"kind": "human", "name": "lin"})).await;
    let (run, _) = lin.asking("pa", json!([[["pay", {"to": "a"}]]])).await;
    let path = format!("/api/runs/{run}/events");
    let live = lin.request(Method::GET, &path).header("accept", "text/event-stream");
    let live = live.send().await.unwrap();
    take_back(&house.server, &revoke).await;
    let heard = rest(live).await;
    assert!(heard.contains("event: batch.proposed") && !heard.contains("run.completed"), "{heard}");
    lin.get(&path).await.problem(401, "unauthenticated");
    let still = house.server.operator().get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(still["status"], "waiting");
    house.close().await;
}

async fn a_talk_ends_with_its_token(on: On) {
    // Held for longer than anybody here waits.
    let house = House::with(on, |config| config.openai.pause_hold_seconds = 600).await;
    let operator = house.server.operator();
    let batch = json!([[["pay", {"to": "a"}]]]).to_string();
    for streams in [true, false] {
        let wanted = json!({"kind": "human", "name": "lin"});
        let chat = json!({"model": "agent/pa", "stream": streams,
            "messages": [{"role": "user", "content": batch}]});
        let response = json!({"model": "agent/pa", "stream": streams, "input": batch});
        for (path, body) in [("/v1/chat/completions", chat), ("/v1/responses", response)] {
            let (lin, revoke) = holder(&house.server, wanted.clone()).await;
            let before = operator.get("/api/runs").await.json()["items"][0]["id"].clone();
            let talk = lin.request(Method::POST, path).json(&body).send();
            let talk = tokio::spawn(talk);
            let run = loop {
                let newest = operator.get("/api/runs").await.json()["items"][0].clone();
                if newest["id"] != before && newest["status"] == "waiting" {
                    break id(&newest);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            };
            take_back(&house.server, &revoke).await;
            let answered = talk.await.unwrap().unwrap();
            let status = answered.status().as_u16();
            assert_eq!(status, if streams { 200 } else { 401 }, "{path}");
            let heard = rest(answered).await;
            assert!(heard.contains("token") && !heard.contains("[DONE]"), "{path}: {heard}");
            let still = operator.get(&format!("/api/runs/{run}")).await.json();
            assert_eq!(still["status"], "waiting");
        }
    }
    house.close().await;
}

async fn a_call_from_outside_ends_with_its_token(on: On) {
    let house = House::open(on).await;
    let (agent, revoke) = holder(&house.server, json!({"kind": "agent", "name": "pa"})).await;
    let params = json!({"name": "pay", "arguments": {"to": "a"}});
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let call = tokio::spawn(answer(Client(agent).request(&body)));
    let operator = house.server.operator();
    let asked = loop {
        let asked = operator.get("/api/permissions?status=pending").await.json();
        if asked["items"][0].is_object() {
            break asked["items"][0].clone();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    take_back(&house.server, &revoke).await;
    let told = tokio::time::timeout(Duration::from_secs(20), call);
    let told = told.await.expect("the call is waited for").unwrap();
    assert!(told.text.contains("\"error\"") && told.text.contains("token"), "{told:?}");
    // The call itself stands, and is its people's to answer.
    assert_eq!(operator.grant(&asked).await.status, 200);
    let run = asked["run_id"].as_str().unwrap();
    operator.until(run, "completed").await;
    assert_eq!(house.ledger(), ["pay a"]);
    house.close().await;
}
