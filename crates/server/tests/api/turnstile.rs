//! How often somebody may come to the door, and what they are told when it is too often.

use reqwest::Method;
use serde_json::json;

use crate::console::Browser;
use crate::harness::{Answer, Server, answer};

async fn narrow(requests: u32, strangers: u32) -> Server {
    Server::with(|config| {
        config.limits.requests_per_minute = requests;
        config.limits.strangers_per_minute = strangers;
        config.limits.trusted_proxies = vec!["127.0.0.1".to_owned()];
    })
    .await
}

/// Whether it says to wait, and for how long.
fn is_told_to_wait(told: &Answer) -> bool {
    if told.status != 429 {
        return false;
    }
    let detail = told.problem(429, "too_many_requests");
    let seconds: u64 = told.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds) && detail.contains(&format!("in {seconds} s")), "{told:?}");
    true
}

#[tokio::test]
async fn a_token_has_a_share_of_its_own() {
    // Three at once, and one more every five seconds.
    let server = narrow(12, 600).await;
    let (lin, max) = (server.human("lin").await, server.human("max").await);
    let mut fine = 0;
    loop {
        let told = lin.get("/api/runs").await;
        if is_told_to_wait(&told) {
            break;
        }
        assert_eq!(told.status, 200);
        fine += 1;
        assert!(fine <= 5, "a quarter of a minute's at once, and what comes back meanwhile");
    }
    assert!(fine >= 3);
    // The other doors say it in their own form.
    let openai = lin.get("/v1/models").await;
    assert_eq!(openai.status, 429);
    assert!(openai.json()["error"]["message"].as_str().unwrap().contains("too many"));
    assert!(!openai.header("retry-after").is_empty());
    assert_eq!(max.get("/api/runs").await.status, 200);
    // Nobody's health depends on it.
    for _ in 0..50 {
        assert_eq!(server.nobody().get("/healthz").await.status, 200);
    }
    server.running.stop().await;
}

#[tokio::test]
async fn who_guesses_tokens_is_turned_away_and_nobody_else() {
    let server = narrow(60_000, 5).await;
    let lin = server.human("lin").await;
    assert_eq!(lin.get("/api/runs").await.status, 200);
    let guess = |n: usize, from: &'static str| {
        let caller = server.caller(Some(&format!("chy_guess{n}")));
        let request = caller.request(Method::GET, "/api/runs");
        answer(request.header("x-forwarded-for", from))
    };
    for n in 0..5 {
        guess(n, "198.51.100.1").await.problem(401, "unauthenticated");
    }
    assert!(is_told_to_wait(&guess(9, "198.51.100.1").await));
    // Who asks without a token guesses nothing.
    server.nobody().get("/api/runs").await.problem(401, "unauthenticated");
    guess(9, "198.51.100.2").await.problem(401, "unauthenticated");
    // What stands before the proxy's own word is what the guesser made up.
    assert!(is_told_to_wait(&guess(9, "203.0.113.1, 198.51.100.1").await));
    // Beside them, who is known goes on.
    let beside = lin.request(Method::GET, "/api/runs").header("x-forwarded-for", "198.51.100.1");
    assert_eq!(answer(beside).await.status, 200);
    server.running.stop().await;
}

#[tokio::test]
async fn whoever_tries_the_doors_too_often_waits() {
    let server = narrow(60_000, 6).await;
    let browser = Browser::at(&server);
    for path in ["/signin", "/setup"] {
        let form = [("token", "chy_guess"), ("key", "guess"), ("name", "eve")];
        let from = if path == "/signin" { "198.51.100.3" } else { "198.51.100.4" };
        let post = || {
            let request = browser.request(Method::POST, path).header("x-forwarded-for", from);
            answer(crate::console::filled(request, &form))
        };
        for _ in 0..6 {
            assert!([401, 410].contains(&post().await.status));
        }
        let told = post().await;
        assert_eq!((told.status, told.header("retry-after").is_empty()), (429, false), "{told:?}");
        assert!(told.text.contains("data-problem"), "{}", told.text);
    }
    // To see the page is free.
    for _ in 0..20 {
        assert_eq!(browser.get("/signin").await.status, 200);
    }
    server.running.stop().await;
}

#[tokio::test]
async fn a_visit_has_a_share_too() {
    let server = narrow(12, 600).await;
    let lin = Browser::of(&server, "lin").await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(lin.get("/rules").await.status);
    }
    assert!(statuses.starts_with(&[200, 200, 200]) && statuses.contains(&429), "{statuses:?}");
    server.running.stop().await;
}

#[tokio::test]
async fn the_document_says_that_one_may_be_told_to_wait() {
    let server = Server::start().await;
    let document = server.nobody().get("/openapi.json").await.json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let told = &operation["responses"]["429"];
            if ["/healthz", "/readyz"].contains(&&**path) {
                assert!(told.is_null(), "{method} {path}");
                continue;
            }
            assert_eq!(told["headers"]["Retry-After"]["schema"], json!({"type": "integer"}));
            let problem = &told["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(problem, "#/components/schemas/Problem", "{method} {path}");
        }
    }
    server.running.stop().await;
}
