//! Where a server is and how a connection to it is made. Never calls a tool.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ErrorCode, Implementation,
    ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RequestContext, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::super::process::{Group, Program, converse};

/// How a server is reached.
#[derive(Clone)]
pub struct Endpoint(Way);

#[derive(Clone)]
enum Way {
    Stdio(Program),
    Http { url: String, headers: HashMap<HeaderName, HeaderValue> },
}

/// An open connection. The server's process, where it is ours, ends with it.
#[derive(Debug)]
pub(super) struct Link {
    service: RunningService<RoleClient, Silent>,
    group: Option<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    #[error("{what} names the environment variable `{variable}`, which is not set")]
    Variable { what: String, variable: String },
    #[error("header `{0}` is not one that can be sent")]
    Header(String),
    #[error("`{0}` is not an address: it begins with `http://` or `https://`")]
    Url(String),
    #[error("a server has either a `command` or a `url`")]
    Way,
    #[error("`{program}` cannot be started: {why}")]
    Start { program: String, why: String },
    #[error("the handshake failed: {why}{last_words}")]
    Handshake { why: String, last_words: LastWords },
    #[error("it did not answer within {} seconds", .0.as_secs())]
    Slow(Duration),
    #[error("its tools cannot be listed: {0}")]
    List(String),
}

/// What a process said on its error output before it went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastWords(String);

/// One message of a server may have this many bytes; what is longer is dropped unread.
const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How much of an error output is remembered.
const LAST_WORDS_MAX: usize = 500;

impl Endpoint {
    pub(in super::super) fn stdio(program: Program) -> Endpoint {
        Endpoint(Way::Stdio(program))
    }

    /// `headers` with their values as they are sent.
    pub fn http(
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Endpoint, ConnectError> {
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(ConnectError::Url(url.to_owned()));
        }
        let headers = headers.into_iter().map(|(name, value)| {
            let bad = || ConnectError::Header(name.clone());
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
            value.set_sensitive(true);
            Ok((key, value))
        });
        let headers = headers.collect::<Result<_, ConnectError>>()?;
        Ok(Endpoint(Way::Http { url: url.to_owned(), headers }))
    }

    pub(super) fn definition(&self) -> Value {
        match &self.0 {
            Way::Stdio(program) => json!(program.argv),
            Way::Http { url, .. } => json!(without_secrets(url)),
        }
    }

    pub(super) async fn connect(&self) -> Result<Link, ConnectError> {
        match &self.0 {
            Way::Stdio(program) => spawn(program).await,
            Way::Http { url, headers } => open(url, headers.clone()).await,
        }
    }
}

async fn spawn(program: &Program) -> Result<Link, ConnectError> {
    let (group, stdin, stdout, stderr) = converse(program).map_err(|it| ConnectError::Start {
        program: program.argv.first().cloned().unwrap_or_default(),
        why: it.to_string(),
    })?;
    let said = Arc::new(Mutex::new(String::new()));
    let listening = tokio::spawn(listen(stderr, said.clone()));
    let transport = AsyncRwTransport::<RoleClient, _, _>::new(stdout, stdin)
        .with_max_line_length(MESSAGE_BYTES_MAX);
    match serve_client_with_lifecycle(Silent, transport, lifecycle()).await {
        Ok(service) => Ok(Link { service, group: Some(group) }),
        Err(error) => {
            // Its last words come with its end.
            drop(group);
            let _ = tokio::time::timeout(Duration::from_millis(500), listening).await;
            let said = said.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Err(ConnectError::Handshake { why: reason(&error), last_words: LastWords(said) })
        }
    }
}

async fn open(url: &str, headers: HashMap<HeaderName, HeaderValue>) -> Result<Link, ConnectError> {
    let failed = |why: String| ConnectError::Handshake { why, last_words: LastWords::default() };
    let http = reqwest::Client::builder()
        // A redirect would carry the call, and the token, to a place that nobody configured.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .build()
        .map_err(|it| failed(it.to_string()))?;
    // A session that the server has forgotten is opened anew by the transport, which then sends
    // the call again: a 404 is the server's word that it did not take it.
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(headers)
        .max_sse_event_size(MESSAGE_BYTES_MAX);
    let transport = StreamableHttpClientTransport::with_client(http, config);
    serve_client_with_lifecycle(Silent, transport, lifecycle())
        .await
        .map(|service| Link { service, group: None })
        .map_err(|it| failed(reason(&it).replace(url, without_secrets(url))))
}

/// Our side of a connection. It has nothing that a server could ask for: no sampling, no
/// elicitation, no roots.
#[derive(Debug)]
struct Silent;

impl ClientHandler for Silent {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("chancery", env!("CARGO_PKG_VERSION")),
        )
    }

    // By default this declines, which is an answer in a person's name.
    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "nobody is here to be asked", None))
    }
}

/// The newest protocol where the server has it, the handshake of the older ones elsewhere.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn reason(error: &ClientInitializeError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    super::catalog::clean(&text, LAST_WORDS_MAX)
}

/// Reads on for as long as the process lives: one whose pipe is full stands still. Remembers the
/// end of what it said.
async fn listen(mut stderr: Receiver, said: Arc<Mutex<String>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(read) = stderr.read(&mut buffer).await {
        if read == 0 {
            return;
        }
        let text = super::catalog::clean(&String::from_utf8_lossy(&buffer[..read]), buffer.len());
        tracing::debug!(text, "an MCP server wrote to its error output");
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_str(&text);
        let excess = said.len().saturating_sub(LAST_WORDS_MAX);
        let cut = (excess..).find(|at| said.is_char_boundary(*at)).unwrap_or_default();
        said.drain(..cut);
    }
}

impl Link {
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    pub(super) fn is_open(&self) -> bool {
        !self.service.peer().is_transport_closed()
    }

    /// Whether the other side may be gone without this side being told: true of sessions over
    /// HTTP, not of pipes.
    pub(super) fn can_go_stale(&self) -> bool {
        self.group.is_none()
    }
}

impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.trim() {
            "" => Ok(()),
            said => write!(f, " (it said: {said})"),
        }
    }
}

/// An address as it may be shown: some carry their token behind the `?`.
fn without_secrets(url: &str) -> &str {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    // A name and password before an `@` leave nothing that can be shown.
    if url[..end].contains('@') { "…" } else { &url[..end] }
}

// Without the values: headers and environments hold secrets.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Way::Stdio(program) => f.debug_tuple("Stdio").field(&program.argv).finish(),
            Way::Http { url, .. } => f.debug_tuple("Http").field(&without_secrets(url)).finish(),
        }
    }
}

/// A configured value, in which `env:NAME` (alone, or after a word such as `Bearer`) stands for
/// an environment variable.
pub(in super::super) fn resolve(
    what: &str,
    value: &str,
    environment: &BTreeMap<String, String>,
) -> Result<String, ConnectError> {
    let (before, variable) = match value.rsplit_once("env:") {
        Some((before, variable)) if before.is_empty() || before.ends_with(' ') => {
            (before, variable)
        }
        _ => return Ok(value.to_owned()),
    };
    match environment.get(variable) {
        Some(found) => Ok(format!("{before}{found}")),
        None => {
            Err(ConnectError::Variable { what: what.to_owned(), variable: variable.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_an_address_holds_is_not_shown() {
        for url in ["http://127.0.0.1:9/mcp?key=s3cret", "http://lin:s3cret@127.0.0.1:9/mcp"] {
            let endpoint = Endpoint::http(url, []).unwrap();
            let error = endpoint.connect().await.unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
            assert!(!format!("{endpoint:?}").contains("s3cret"), "{endpoint:?}");
        }
    }

    #[test]
    fn values_come_from_the_environment() {
        let environment = BTreeMap::from([("TOKEN".to_owned(), "t0ken".to_owned())]);
        let resolved = |value: &str| resolve("header `A`", value, &environment);
        assert_eq!(resolved("env:TOKEN"), Ok("t0ken".to_owned()));
        assert_eq!(resolved("Bearer env:TOKEN"), Ok("Bearer t0ken".to_owned()));
        assert_eq!(resolved("plain"), Ok("plain".to_owned()));
        assert_eq!(resolved("notenv:TOKEN"), Ok("notenv:TOKEN".to_owned()));
        assert_eq!(
            resolved("env:MISSING").unwrap_err().to_string(),
            "header `A` names the environment variable `MISSING`, which is not set"
        );
    }
}
