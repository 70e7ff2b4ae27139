//! A typed client of a running server.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::Problem;
use crate::run::{CreateRun, Event, Run, Signal, Speak, Tree};
use crate::token::{MadeToken, NewToken, Token};
use crate::{Health, Page};

#[derive(Clone)]
pub struct Client {
    base: String,
    token: String,
    http: reqwest::Client,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("base", &self.base).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{}", .0.detail)]
    Problem(Box<Problem>),
    #[error("no server answers at {base}: {detail}")]
    Unreachable { base: String, detail: String },
    #[error("the server's answer cannot be read: {0}")]
    Unreadable(String),
}

impl Client {
    pub fn new(base: &str, token: &str) -> Client {
        Client {
            base: base.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
            http: reqwest::Client::new(),
        }
    }

    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get("/healthz").await
    }

    pub async fn create_run(&self, run: &CreateRun) -> Result<Run, ClientError> {
        self.post("/api/runs", run).await
    }

    pub async fn run(&self, id: &str) -> Result<Run, ClientError> {
        self.get(&format!("/api/runs/{id}")).await
    }

    pub async fn runs(&self, query: &[(&str, String)]) -> Result<Page<Run>, ClientError> {
        let url = format!("{}/api/runs", self.base);
        self.send(self.http.get(url).query(query)).await
    }

    pub async fn events(&self, id: &str, after: u64) -> Result<Page<Event>, ClientError> {
        self.get(&format!("/api/runs/{id}/events?after={after}")).await
    }

    pub async fn tree(&self, id: &str) -> Result<Tree, ClientError> {
        self.get(&format!("/api/runs/{id}/tree")).await
    }

    pub async fn signal(&self, id: &str, signal: &Signal) -> Result<Run, ClientError> {
        self.post(&format!("/api/runs/{id}/signal"), signal).await
    }

    pub async fn speak(&self, id: &str, speak: &Speak) -> Result<Run, ClientError> {
        self.post(&format!("/api/runs/{id}/messages"), speak).await
    }

    pub async fn cancel(&self, id: &str) -> Result<Run, ClientError> {
        self.post(&format!("/api/runs/{id}/cancel"), &serde_json::json!({})).await
    }

    pub async fn resume(&self, id: &str) -> Result<Run, ClientError> {
        self.post(&format!("/api/runs/{id}/resume"), &serde_json::json!({})).await
    }

    pub async fn new_token(&self, token: &NewToken) -> Result<MadeToken, ClientError> {
        self.post("/api/tokens", token).await
    }

    pub async fn tokens(&self) -> Result<Page<Token>, ClientError> {
        self.get("/api/tokens").await
    }

    pub async fn revoke_token(&self, id: &str) -> Result<Token, ClientError> {
        self.post(&format!("/api/tokens/{id}/revoke"), &serde_json::json!({})).await
    }

    /// The live events of a run as they are sent, from after a place in the log.
    pub async fn follow(&self, id: &str, after: u64) -> Result<reqwest::Response, ClientError> {
        let request = self
            .http
            .get(format!("{}/api/runs/{id}/events", self.base))
            .header("Accept", "text/event-stream")
            .header("Last-Event-ID", after.to_string());
        self.answer(request).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(self.http.get(format!("{}{path}", self.base))).await
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.send(self.http.post(format!("{}{path}", self.base)).json(body)).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<T, ClientError> {
        let answer = self.answer(request).await?;
        let bytes = answer.bytes().await.map_err(|it| self.unreachable(&it))?;
        serde_json::from_slice(&bytes).map_err(|it| ClientError::Unreadable(it.to_string()))
    }

    async fn answer(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::Response, ClientError> {
        let answer =
            request.bearer_auth(&self.token).send().await.map_err(|it| self.unreachable(&it))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let bytes = answer.bytes().await.map_err(|it| self.unreachable(&it))?;
        match serde_json::from_slice(&bytes) {
            Ok(problem) => Err(ClientError::Problem(Box::new(problem))),
            Err(_) => Err(ClientError::Unreadable(format!("status {status}, and no problem"))),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        ClientError::Unreachable { base: self.base.clone(), detail: innermost(error) }
    }
}

/// The innermost cause: what a person can do something about.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
