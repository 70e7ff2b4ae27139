//! Who may do what: tokens of three kinds, and nobody.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Server, answer, id};

/// Every operation of the document, with ids that name nothing.
fn operations(document: &serde_json::Value) -> Vec<(Method, String)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            found.push((method, path.replace("{id}", "run_00000000000000000000000000000000")));
        }
    }
    found
}

#[tokio::test]
async fn everything_but_health_needs_a_valid_token() {
    let server = Server::start().await;
    let revoked = server.human("gone").await;
    let tokens = server.operator().get("/api/tokens").await.json();
    let gone = tokens["items"].as_array().unwrap().iter().find(|it| it["name"] == "gone");
    let gone = gone.unwrap()["id"].as_str().unwrap();
    let path = format!("/api/tokens/{gone}/revoke");
    assert_eq!(server.operator().post(&path, &json!({})).await.status, 200);
    // Revoking again changes nothing.
    assert_eq!(server.operator().post(&path, &json!({})).await.status, 200);

    let document = server.nobody().get("/openapi.json").await.json();
    let oversized = "x".repeat(10_000);
    let callers = [
        server.nobody(),
        revoked,
        server.caller(Some("wrong")),
        server.caller(Some(&oversized)),
        server.caller(Some(&format!("{}x", server.running.local_token))),
    ];
    let operations = operations(&document);
    assert!(operations.len() >= 17);
    for (method, path) in operations {
        for caller in &callers {
            let request = caller.request(method.clone(), &path).body("{}");
            let answered = answer(request).await;
            if ["/healthz", "/readyz"].contains(&&*path) {
                assert_eq!(answered.status, 200, "{method} {path}");
            } else {
                answered.problem(401, "unauthenticated");
                assert_eq!(answered.header("www-authenticate"), "Bearer");
            }
        }
    }
    server.running.stop().await;
}

#[tokio::test]
async fn a_token_is_taken_only_as_a_bearer_token() {
    let server = Server::start().await;
    let token = &server.running.local_token;
    let with = async |value: &str| {
        let request = server.nobody().request(Method::GET, "/api/runs");
        answer(request.header("Authorization", value)).await.status
    };
    assert_eq!(with(&format!("Bearer {token}")).await, 200);
    assert_eq!(with(&format!("bearer  {token} ")).await, 200);
    for bad in [format!("Basic {token}"), token.clone(), format!("Bearer{token}"), "Bearer ".into()]
    {
        assert_eq!(with(&bad).await, 401, "{bad}");
    }
    let in_query = format!("/api/runs?access_token={token}");
    server.nobody().get(&in_query).await.problem(401, "unauthenticated");
    server.running.stop().await;
}

#[tokio::test]
async fn an_agents_token_is_not_for_runs_and_only_operators_make_tokens() {
    let server = Server::start().await;
    let agent = server.holder(json!({"kind": "agent", "name": "pa"})).await;
    let run = id(&server.operator().run("hello").await);
    let new = json!({"agent": "pa", "input": "x"});
    agent.get("/api/runs").await.problem(403, "forbidden");
    agent.post("/api/runs", &new).await.problem(403, "forbidden");
    for path in ["", "/events", "/tree"] {
        agent.get(&format!("/api/runs/{run}{path}")).await.problem(403, "forbidden");
    }
    for path in ["cancel", "resume"] {
        let path = format!("/api/runs/{run}/{path}");
        agent.post(&path, &json!({})).await.problem(403, "forbidden");
    }
    let human = server.human("lin").await;
    let service = server.holder(json!({"kind": "service", "name": "ci", "approve": true})).await;
    for caller in [agent, human, service] {
        caller.get("/api/tokens").await.problem(403, "forbidden");
        let token = json!({"kind": "human", "name": "eve", "operator": true});
        caller.post("/api/tokens", &token).await.problem(403, "forbidden");
        let id = "tok_00000000000000000000000000000000";
        let revoke = format!("/api/tokens/{id}/revoke");
        caller.post(&revoke, &json!({})).await.problem(403, "forbidden");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn the_run_of_another_user_is_not_there() {
    let server = Server::start().await;
    let (lin, max) = (server.human("lin").await, server.human("max").await);
    let of_max = max.waiting().await;
    let mut absent = of_max.clone();
    let last = if absent.pop() == Some('0') { '1' } else { '0' };
    absent.push(last);
    let signal = json!({"correlation_key": "go"});
    let message = json!({"text": "hello"});
    let nothing = json!({});
    for (path, body) in [
        ("", None),
        ("/events", None),
        ("/tree", None),
        ("/cancel", Some(&nothing)),
        ("/resume", Some(&nothing)),
        ("/messages", Some(&message)),
        ("/signal", Some(&signal)),
    ] {
        let ask = async |run: &str| {
            let path = format!("/api/runs/{run}{path}");
            let answered = match body {
                Some(body) => lin.post(&path, body).await,
                None => lin.get(&path).await,
            };
            answered.problem(404, "not_found").replace(run, "ID")
        };
        assert_eq!(ask(&of_max).await, ask(&absent).await, "{path}");
    }
    for path in ["signal", "message"] {
        let path = format!("/api/jobs/{of_max}/{path}");
        let body = if path.ends_with("signal") { &signal } else { &message };
        lin.post(&path, body).await.problem(404, "not_found");
    }
    let of_lin = id(&lin.run("mine").await);
    let listed = lin.get("/api/runs").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    assert_eq!(listed["items"][0]["id"], of_lin);
    assert_eq!(max.until(&of_max, "waiting").await["user"], "max");
    server.running.stop().await;
}

#[tokio::test]
async fn only_an_operator_acts_for_a_user_whom_they_name() {
    let server = Server::start().await;
    let lin = server.human("lin").await;
    let service = server.holder(json!({"kind": "service", "name": "ci"})).await;
    let new = |user: &str| json!({"agent": "pa", "input": "x", "user": user});
    let made = server.operator().post("/api/runs", &new("lin")).await;
    assert_eq!((made.status, &made.json()["user"]), (201, &json!("lin")));
    let of_lin = format!("/api/runs/{}", id(&made.json()));
    assert_eq!(lin.get(&of_lin).await.status, 200);
    // A service is no person: it has runs of its own, and sees no other.
    service.post("/api/runs", &new("lin")).await.problem(403, "forbidden");
    service.get(&of_lin).await.problem(404, "not_found");
    assert_eq!(service.run("x").await["user"], "service:ci");
    assert_eq!(lin.post("/api/runs", &new("lin")).await.status, 201);
    lin.post("/api/runs", &new("max")).await.problem(403, "forbidden");
    assert_eq!(server.operator().run("x").await["user"], "operator");
    server.running.stop().await;
}

#[tokio::test]
async fn a_token_that_could_not_hold_what_is_asked_is_not_made() {
    let server = Server::start().await;
    for token in [
        json!({"kind": "robot", "name": "x"}),
        json!({"kind": "agent", "name": "stranger"}),
        json!({"kind": "agent", "name": "pa", "operator": true}),
        json!({"kind": "agent", "name": "pa", "approve": true}),
        json!({"kind": "service", "name": "ci", "operator": true}),
        json!({"kind": "human", "name": ""}),
        json!({"kind": "human", "name": " lin"}),
        json!({"kind": "human", "name": "a\nb"}),
        json!({"kind": "human", "name": "a\u{0}b"}),
        json!({"kind": "human", "name": "x".repeat(257)}),
        json!({"kind": "human", "name": "system"}),
        json!({"kind": "human", "name": "agent:pa"}),
        json!({"kind": "human", "name": "service:ci"}),
        json!({"kind": "human", "name": "li\u{200b}n"}),
        json!({"kind": "human"}),
        json!({"kind": "human", "name": "x", "admin": true}),
    ] {
        server.operator().post("/api/tokens", &token).await.problem(400, "bad_request");
    }
    for id in ["tok_00000000000000000000000000000000", "tok_1", "x"] {
        let path = format!("/api/tokens/{id}/revoke");
        server.operator().post(&path, &json!({})).await.problem(404, "not_found");
    }
    let made = json!({"kind": "service", "name": "ci", "approve": true});
    let made = server.operator().post("/api/tokens", &made).await;
    assert_eq!(made.header("cache-control"), "no-store");
    let (secret, id) = (made.json()["token"].clone(), made.json()["id"].clone());
    let listed = server.operator().get("/api/tokens").await;
    assert!(!listed.text.contains(secret.as_str().unwrap()), "{}", listed.text);
    let item = listed.json()["items"].as_array().unwrap().iter().find(|it| it["id"] == id).cloned();
    let mut item = item.unwrap();
    item["created_at"] = json!("then");
    assert_eq!(
        item,
        json!({"id": id, "kind": "service", "name": "ci", "operator": false, "approve": true,
               "created_at": "then", "revoked_at": null})
    );
    server.running.stop().await;
}

#[tokio::test]
async fn a_service_answers_for_people_only_with_the_permission() {
    let server = Server::start().await;
    let plain = server.holder(json!({"kind": "service", "name": "ci"})).await;
    let run = plain.waiting().await;
    let approver = server.holder(json!({"kind": "service", "name": "ok", "approve": true})).await;
    let path = format!("/api/runs/{run}/signal");
    let key = json!({"correlation_key": format!("cap-approval-{run}:msg:call")});
    plain.post(&path, &key).await.problem(404, "not_found");
    approver.post(&path, &key).await.problem(404, "not_found");
    server.operator().post(&path, &key).await.problem(404, "not_found");
    // Other waits are not permissions.
    let go = plain.post(&path, &json!({"correlation_key": "go"})).await;
    assert_eq!(go.status, 200, "{go:?}");
    server.running.stop().await;
}
