//! Webhooks: what happened to a run is told, also to one who was away.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use chancery_server::config::{WebhookConfig, WebhookFormat};
use serde_json::{Value, json};

use crate::harness::{Server, id};

type Heard = Arc<Mutex<Vec<(String, Value)>>>;

/// Turns the first `busy` away, then listens.
async fn subscriber(busy: usize) -> (String, Heard) {
    let heard = Heard::default();
    let (ears, turned_away) = (heard.clone(), Arc::new(Mutex::new(0)));
    let hook = async move |headers: HeaderMap, body: String| {
        let mut turned_away = turned_away.lock().unwrap();
        if *turned_away < busy {
            *turned_away += 1;
            return StatusCode::SERVICE_UNAVAILABLE;
        }
        let delivery = headers["x-chancery-delivery"].to_str().unwrap().to_owned();
        ears.lock().unwrap().push((delivery, serde_json::from_str(&body).unwrap()));
        StatusCode::NO_CONTENT
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let router = Router::new().route("/hook", post(hook));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, heard)
}

#[tokio::test]
async fn what_happens_to_a_run_is_told_and_no_word_of_an_agent() {
    let (url, heard) = subscriber(1).await;
    let events = ["run.created", "run.completed"].map(str::to_owned).to_vec();
    let hook = WebhookConfig { url, events, secret_env: None, format: WebhookFormat::Generic };
    let server = Server::with(|config| {
        config.webhooks.insert("ops".to_owned(), hook);
    })
    .await;
    let operator = server.operator();
    let run = id(&operator.run("a secret of the user").await);
    operator.until(&run, "completed").await;
    let told = loop {
        let told = heard.lock().unwrap().clone();
        if told.len() == 2 {
            break told;
        }
        // The runner of the tests ends one that never comes to it.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let mut kinds: Vec<_> = told.iter().map(|(_, it)| it["type"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["run.completed", "run.created"]);
    for (delivery, body) in &told {
        assert!(delivery.parse::<u64>().is_ok(), "{delivery}");
        assert_eq!(body["run_id"], json!(run));
        assert!(!body.to_string().contains("secret"), "{body}");
    }
    server.running.stop().await;
}
