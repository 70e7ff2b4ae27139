//! Tools of MCP servers, as `mcp__<server>__<tool>`.
//!
//! The only module that knows `rmcp`. Whatever a server says is untrusted: names, descriptions,
//! schemas and results are bounded and cleaned (but for what a call is held to), its hints grant
//! nothing, and it is never answered when it asks for something. A call that may have reached it
//! is never sent a second time.
//!
//! A server's tools are those of its first answer: one that changes them later changes nothing
//! here before the next start, so that what was looked at is what is called.

mod call;
mod catalog;
mod endpoint;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::config::Overrides;
use super::{Later, Tool};
use call::McpTool;
use endpoint::Link;

pub(super) use endpoint::resolve;
pub use endpoint::{ConnectError, Endpoint};

/// A configured server, reachable or not.
#[derive(Debug)]
pub struct Server {
    name: String,
    endpoint: Result<Endpoint, ConnectError>,
    timeout: Duration,
    link: tokio::sync::Mutex<Attempts>,
    status: Mutex<Status>,
}

/// How a server stands: for `doctor` and for the operator's eyes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub state: State,
    /// What it offered and is not there, with the reason.
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Connected {
        tools: usize,
    },
    /// Tried again, more and more rarely.
    Unreachable {
        why: String,
    },
    /// Not tried again: the configuration has to change.
    Misconfigured {
        why: String,
    },
}

#[derive(Debug, Default)]
struct Attempts {
    link: Option<Arc<Link>>,
    failures: u32,
    last_failure: Option<Instant>,
}

/// The first call of `npx -y` may have to fetch a package.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// A server that stays away is asked for about once a minute.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A call waits no longer than this for its turn to reconnect.
const CALL_BACKOFF_MAX: Duration = Duration::from_secs(5);

/// The start of the name of every tool of a server.
pub(super) fn prefix(server: &str) -> String {
    format!("mcp__{server}__")
}

impl Server {
    pub fn new(
        name: &str,
        endpoint: Result<Endpoint, ConnectError>,
        timeout: Duration,
    ) -> Arc<Server> {
        let state = match &endpoint {
            Ok(_) => State::Unreachable { why: "not tried yet".to_owned() },
            Err(error) => State::Misconfigured { why: error.to_string() },
        };
        Arc::new(Server {
            name: name.to_owned(),
            endpoint,
            timeout,
            link: tokio::sync::Mutex::default(),
            status: Mutex::new(Status { state, left_out: Vec::new() }),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, as it was configured and without what is secret in that.
    fn definition(&self) -> Value {
        self.endpoint.as_ref().map_or(Value::Null, Endpoint::definition)
    }

    pub fn prefix(&self) -> String {
        prefix(&self.name)
    }

    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_status(&self, status: Status) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    /// Connects and registers the server's tools. When that fails, a task goes on trying for as
    /// long as the registry is there.
    pub async fn start(self: &Arc<Server>, place: Later, overrides: Overrides) {
        if self.arrive(&place, &overrides).await {
            return;
        }
        if self.endpoint.is_err() {
            return;
        }
        let server = self.clone();
        tokio::spawn(async move {
            let mut pause = Duration::from_secs(1);
            while place.wanted() {
                tokio::time::sleep(pause).await;
                if !place.wanted() || server.arrive(&place, &overrides).await {
                    return;
                }
                pause = (pause * 2).min(RETRY_MAX);
            }
        });
    }

    /// Whether the tools are in their place now.
    async fn arrive(self: &Arc<Server>, place: &Later, overrides: &Overrides) -> bool {
        let listed = async {
            let link = self.link().await?;
            tokio::time::timeout(CONNECT_MAX, catalog::list(&link, &self.prefix()))
                .await
                .map_err(|_| ConnectError::Slow(CONNECT_MAX))?
        };
        let (offered, mut left_out) = match listed.await {
            Ok(listed) => listed,
            Err(error) => {
                let why = error.to_string();
                tracing::warn!(server = self.name, why, "MCP server `{}`: {why}", self.name);
                let state = match self.endpoint {
                    Ok(_) => State::Unreachable { why },
                    Err(_) => State::Misconfigured { why },
                };
                self.set_status(Status { state, left_out: Vec::new() });
                return false;
            }
        };
        let all = offered.len();
        let tools = offered.into_iter().map(|mut it| {
            overrides.apply(&mut it.spec);
            let server = self.clone();
            let (far_name, annotations) = (it.far_name, it.annotations);
            let tool = McpTool { server, far_name, spec: it.spec, annotations };
            Arc::new(tool) as Arc<dyn Tool>
        });
        let refused = place.arrive(tools.collect());
        let there = all - refused.len();
        left_out.extend(refused.iter().map(ToString::to_string));
        for why in &left_out {
            tracing::warn!(server = self.name, why, "MCP server `{}`: {why}", self.name);
        }
        self.set_status(Status { state: State::Connected { tools: there }, left_out });
        true
    }

    /// The connection, made anew if there is none: one attempt, after a pause that grows with
    /// the failures before it. Calls that wait behind others for a server that is away give up
    /// when those have had their time.
    async fn link(&self) -> Result<Arc<Link>, ConnectError> {
        let longest = CONNECT_MAX + CALL_BACKOFF_MAX;
        tokio::time::timeout(longest, self.connect())
            .await
            .unwrap_or(Err(ConnectError::Slow(longest)))
    }

    async fn connect(&self) -> Result<Arc<Link>, ConnectError> {
        let endpoint = self.endpoint.as_ref().map_err(Clone::clone)?;
        let mut attempts = self.link.lock().await;
        if let Some(link) = attempts.link.as_ref().filter(|it| it.is_open()) {
            return Ok(link.clone());
        }
        attempts.link = None;
        if let Some(last) = attempts.last_failure {
            let pause = Duration::from_millis(250) * 2u32.saturating_pow(attempts.failures.min(8));
            tokio::time::sleep_until(last + pause.min(CALL_BACKOFF_MAX)).await;
        }
        match tokio::time::timeout(CONNECT_MAX, endpoint.connect())
            .await
            .unwrap_or(Err(ConnectError::Slow(CONNECT_MAX)))
        {
            Ok(link) => {
                let link = Arc::new(link);
                *attempts = Attempts { link: Some(link.clone()), ..Attempts::default() };
                Ok(link)
            }
            Err(error) => {
                attempts.failures = attempts.failures.saturating_add(1);
                attempts.last_failure = Some(Instant::now());
                Err(error)
            }
        }
    }
    /// Lets go of a connection that did not serve; calls that still use it keep it.
    async fn forget(&self, link: &Arc<Link>) {
        let mut attempts = self.link.lock().await;
        if attempts.link.as_ref().is_some_and(|it| Arc::ptr_eq(it, link)) {
            attempts.link = None;
        }
    }
}
