//! A typed client of a running server.

mod authority;
mod mail;
mod mcp;
mod memory;
mod webhook;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::audit::{Anchor, Entry, Verified};
use crate::org::{Changed, MailImpact, NewOrg, Org, Tool, Version, VersionFiles};
use crate::problem::Problem;
use crate::run::{CreateRun, Event, Fork, ForkRun, Run, Signal, Signalled, Speak, Tree};
use crate::token::{MadeToken, NewToken, Token};
use crate::{Health, Page};

/// A server that does not take a connection in this time is not there.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);

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
        let mut http = reqwest::Client::builder().connect_timeout(CONNECT);
        if is_here(base) {
            // What is said to this machine, a token with it, is not for a proxy.
            http = http.no_proxy();
        }
        Client {
            base: base.trim_end_matches('/').to_owned(),
            token: token.to_owned(),
            http: http.build().unwrap_or_default(),
        }
    }

    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get("/healthz").await
    }

    pub async fn create_run(&self, run: &CreateRun) -> Result<Run, ClientError> {
        self.post("/api/runs", run).await
    }

    pub async fn run(&self, id: &str) -> Result<Run, ClientError> {
        self.get(&Client::of_run(id, "")).await
    }

    pub async fn runs(&self, query: &[(&str, String)]) -> Result<Page<Run>, ClientError> {
        self.list("/api/runs", query).await
    }

    pub async fn events(&self, id: &str, after: u64) -> Result<Page<Event>, ClientError> {
        self.get(&Client::of_run(id, &format!("/events?after={after}"))).await
    }

    pub async fn tree(&self, id: &str) -> Result<Tree, ClientError> {
        self.get(&Client::of_run(id, "/tree")).await
    }

    pub async fn signal(&self, id: &str, signal: &Signal) -> Result<Signalled, ClientError> {
        self.post(&Client::of_run(id, "/signal"), signal).await
    }

    pub async fn speak(&self, id: &str, speak: &Speak) -> Result<Run, ClientError> {
        self.post(&Client::of_run(id, "/messages"), speak).await
    }

    pub async fn fork(&self, id: &str, fork: &ForkRun) -> Result<Fork, ClientError> {
        self.post(&Client::of_run(id, "/fork"), fork).await
    }

    pub async fn cancel(&self, id: &str) -> Result<Run, ClientError> {
        self.post(&Client::of_run(id, "/cancel"), &serde_json::json!({})).await
    }

    pub async fn resume(&self, id: &str) -> Result<Run, ClientError> {
        self.post(&Client::of_run(id, "/resume"), &serde_json::json!({})).await
    }

    pub async fn pause(&self, id: &str) -> Result<Run, ClientError> {
        self.post(&Client::of_run(id, "/pause"), &serde_json::json!({})).await
    }

    pub async fn wrapup(&self, id: &str) -> Result<Run, ClientError> {
        self.post(&Client::of_run(id, "/wrapup"), &serde_json::json!({})).await
    }

    pub async fn new_token(&self, token: &NewToken) -> Result<MadeToken, ClientError> {
        self.post("/api/tokens", token).await
    }

    pub async fn tokens(&self) -> Result<Page<Token>, ClientError> {
        self.get("/api/tokens").await
    }

    pub async fn revoke_token(&self, id: &str) -> Result<Token, ClientError> {
        self.post(&format!("/api/tokens/{}/revoke", segment(id)), &serde_json::json!({})).await
    }

    pub async fn audit(&self, query: &[(&str, String)]) -> Result<Page<Entry>, ClientError> {
        let url = format!("{}/api/audit", self.base);
        self.send(self.http.get(url).query(query)).await
    }

    pub async fn audit_entry(&self, id: &str) -> Result<Entry, ClientError> {
        self.get(&format!("/api/audit/{}", segment(id))).await
    }

    /// The lines of an export as they are sent.
    pub async fn audit_export(
        &self,
        query: &[(&str, String)],
    ) -> Result<reqwest::Response, ClientError> {
        let url = format!("{}/api/audit/export", self.base);
        self.answer(self.http.get(url).query(query)).await
    }

    /// The anchor is `SEQ:HASH`.
    pub async fn audit_verify(&self, anchor: Option<&str>) -> Result<Verified, ClientError> {
        let url = format!("{}/api/audit/verify", self.base);
        let query: Vec<_> = anchor.iter().map(|it| ("anchor", *it)).collect();
        self.send(self.http.get(url).query(&query)).await
    }

    pub async fn audit_anchor(&self) -> Result<Anchor, ClientError> {
        self.get("/api/audit/anchor").await
    }

    pub async fn org(&self) -> Result<Org, ClientError> {
        self.get("/api/org").await
    }

    /// The tools that can be called now.
    pub async fn tools(&self) -> Result<Page<Tool>, ClientError> {
        self.get("/api/tools").await
    }

    pub async fn org_versions(
        &self,
        query: &[(&str, String)],
    ) -> Result<Page<Version>, ClientError> {
        let url = format!("{}/api/org/versions", self.base);
        self.send(self.http.get(url).query(query)).await
    }

    pub async fn org_version(&self, number: u64) -> Result<VersionFiles, ClientError> {
        self.get(&format!("/api/org/versions/{number}")).await
    }

    /// With `only_check` it is only said what would be.
    pub async fn change_org(&self, org: &NewOrg, only_check: bool) -> Result<Changed, ClientError> {
        let url = format!("{}/api/org?check={only_check}", self.base);
        self.send(self.http.put(url).json(org)).await
    }

    /// What these files would have meant for the mail since then: a time, or how long ago.
    pub async fn org_impact(&self, org: &NewOrg, since: &str) -> Result<MailImpact, ClientError> {
        let request = self.http.post(format!("{}/api/org/impact", self.base));
        self.send(request.query(&[("since", since)]).json(org)).await
    }

    /// The live events of a run as they are sent, from after a place in the log.
    pub async fn follow(&self, id: &str, after: u64) -> Result<reqwest::Response, ClientError> {
        let request = self
            .http
            .get(format!("{}{}", self.base, Client::of_run(id, "/events")))
            .header("Accept", "text/event-stream")
            .header("Last-Event-ID", after.to_string());
        self.answer(request).await
    }

    /// A path with an id in it, whatever the id is: a `/` in it leads nowhere else.
    fn of_run(id: &str, rest: &str) -> String {
        format!("/api/runs/{}{rest}", segment(id))
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(self.http.get(format!("{}{path}", self.base))).await
    }

    async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<Page<T>, ClientError> {
        self.send(self.http.get(format!("{}{path}", self.base)).query(query)).await
    }

    async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.send(self.http.delete(format!("{}{path}", self.base))).await
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

/// One segment of a path: everything that is no letter, digit or underscore is escaped.
fn segment(id: &str) -> String {
    let mut escaped = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'-' => escaped.push(byte.into()),
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// Whether a URL is of this machine.
fn is_here(base: &str) -> bool {
    let url = reqwest::Url::parse(base).ok();
    let host = url.as_ref().and_then(|it| it.host_str()).unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|it| it.is_loopback())
}

/// The innermost cause: what a person can do something about.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_leave_its_place_in_a_path() {
        assert_eq!(Client::of_run("run_1", "/tree"), "/api/runs/run_1/tree");
        assert_eq!(Client::of_run("../tokens?x#é", ""), "/api/runs/%2E%2E%2Ftokens%3Fx%23%C3%A9");
    }

    #[test]
    fn what_is_on_this_machine_is_told_apart() {
        for here in ["http://127.0.0.1:7717", "http://[::1]:1/", "http://localhost:7717"] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in ["https://example.org", "http://127.0.0.1.example.org", "nonsense"] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }
}
