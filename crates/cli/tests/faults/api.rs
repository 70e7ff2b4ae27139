//! The server's door as these tests use it: an answer is awaited for as long as it takes, because
//! the server on the other side may be dead just now.

use std::time::Duration;

use serde_json::{Value, json};

use crate::until;

/// The operator's; the same for every server.
pub const TOKEN: &str = "chy_the-operator-of-these-tests";

/// Longer than any outage that a test makes.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug, Clone)]
pub struct Api {
    http: reqwest::Client,
    url: String,
}

/// What a wait is for, and what would end it.
#[derive(Debug, Clone)]
pub struct Waiting {
    pub run: String,
    pub why: String,
}

impl Api {
    pub fn at(url: &str) -> Api {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(40)).build().unwrap();
        Api { http, url: url.to_owned() }
    }

    pub async fn ready(&self) -> bool {
        let asked = self.http.get(format!("{}/readyz", self.url)).send().await;
        asked.is_ok_and(|it| it.status().is_success())
    }

    /// One try: status and body, or nothing if nobody answered.
    pub async fn try_get(&self, path: &str) -> Option<(u16, Value)> {
        let request = self.http.get(format!("{}{path}", self.url)).bearer_auth(TOKEN);
        let response = request.send().await.ok()?;
        Some((response.status().as_u16(), response.json().await.ok()?))
    }

    pub async fn try_post(&self, path: &str, key: &str, body: &Value) -> Option<(u16, Value)> {
        let request = self.http.post(format!("{}{path}", self.url)).bearer_auth(TOKEN).json(body);
        let response = request.header("idempotency-key", key).send().await.ok()?;
        Some((response.status().as_u16(), response.json().await.ok()?))
    }

    /// One try to make a run with that plan; the same `key` makes the same run.
    pub async fn try_create(&self, key: &str, plan: &str) -> Option<String> {
        let body = json!({"agent": "pa", "input": plan});
        match self.try_post("/api/runs", key, &body).await? {
            (201, run) => Some(run["id"].as_str().unwrap().to_owned()),
            (503, _) => None,
            other => panic!("a run was not made: {other:?}"),
        }
    }

    pub async fn create(&self, key: &str, plan: &str) -> String {
        until("no run could be made", PATIENCE, async || self.try_create(key, plan).await).await
    }

    pub async fn get(&self, path: &str) -> Value {
        until(path, PATIENCE, async || match self.try_get(path).await {
            Some((200, body)) => Some(body),
            None | Some((503, _)) => None,
            other => panic!("{path}: {other:?}"),
        })
        .await
    }

    pub async fn run(&self, id: &str) -> Value {
        self.get(&format!("/api/runs/{id}")).await
    }

    /// The whole log.
    pub async fn events(&self, id: &str) -> Vec<Value> {
        let page = self.get(&format!("/api/runs/{id}/events")).await;
        assert_eq!(page["next_cursor"], Value::Null, "{id} has a longer log than a test needs");
        page["items"].as_array().unwrap().clone()
    }

    /// Signals once; answers with the status.
    pub async fn signal(&self, id: &str, key: &str, payload: &Value) -> Option<u16> {
        let body = json!({"correlation_key": key, "payload": payload});
        let path = format!("/api/runs/{id}/signal");
        self.try_post(&path, "-", &body).await.map(|(status, _)| status)
    }

    /// The run's live events, from the first.
    pub async fn follow(&self, id: &str) -> reqwest::Response {
        let request = self.http.get(format!("{}/api/runs/{id}/events", self.url));
        let request = request.bearer_auth(TOKEN).header("accept", "text/event-stream");
        request.send().await.unwrap()
    }

    pub async fn metrics(&self) -> String {
        let request = self.http.get(format!("{}/metrics", self.url)).bearer_auth(TOKEN);
        request.send().await.unwrap().text().await.unwrap()
    }

    /// Waits until the run has this status.
    pub async fn reaches(&self, id: &str, status: &str, patience: Duration) -> Value {
        let what = format!("{id} is not {status}");
        until(&what, patience, async || {
            let run = self.run(id).await;
            let ended = ["completed", "failed", "cancelled"].iter().any(|it| run["status"] == *it);
            assert!(!ended || run["status"] == *status, "{id} should be {status}: {run}");
            (run["status"] == *status).then_some(run)
        })
        .await
    }

    /// The runs that wait just now; none if nobody answers.
    pub async fn waiting(&self) -> Vec<Waiting> {
        let Some((200, page)) = self.try_get("/api/runs?status=waiting&limit=200").await else {
            return Vec::new();
        };
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let runs = page["items"].as_array().cloned().unwrap_or_default();
        runs.iter()
            .map(|it| Waiting { run: text(&it["id"]), why: text(&it["waiting_for"]) })
            .collect()
    }
}
