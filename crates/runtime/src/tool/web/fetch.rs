//! Gets a page. Every address is looked at before it is connected to: names are resolved here,
//! and the connection is made to what was looked at, so that a name cannot mean something else a
//! moment later. The same after every redirect.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use super::address::{Networks, is_public};
use super::page;

const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
const REDIRECTS_MAX: usize = 5;
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Of one request; there are as many as redirects.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct Fetcher {
    pub allowed: Networks,
    pub resolver: Arc<dyn Resolver>,
}

/// Where names are looked up.
#[async_trait]
pub(super) trait Resolver: fmt::Debug + Send + Sync {
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>>;
}

#[derive(Debug)]
pub(super) struct SystemResolver;

#[derive(Debug)]
pub(super) struct Fetched {
    pub url: String,
    pub status: u16,
    pub cut: bool,
    kind: String,
    bytes: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error(
        "`{0}` is not the address of a page: only http and https are read, without a name or a password in them"
    )]
    Url(String),
    #[error(
        "`{0}` leads to an address that is not public; the operator may open it in `[tools.web] allow_private`"
    )]
    Private(String),
    #[error("`{0}` is not known")]
    Unknown(String),
    #[error("it was redirected more than {REDIRECTS_MAX} times")]
    Redirects,
    #[error("`{0}` is not text")]
    NotText(String),
    #[error("it answers with status {0}")]
    Status(u16),
    #[error("it cannot be read: {0}")]
    Failed(String),
}

impl FetchError {
    pub fn code(&self) -> &'static str {
        match self {
            FetchError::Url(_) => "INVALID_ARGUMENTS",
            FetchError::Private(_) => "PRIVATE_ADDRESS",
            FetchError::NotText(_) => "NOT_TEXT",
            _ => "FETCH_FAILED",
        }
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

impl Fetcher {
    pub async fn get(&self, url: &str) -> Result<Fetched, FetchError> {
        let wrong = || FetchError::Url(url.chars().take(200).collect());
        let mut at = Url::parse(url).map_err(|_| wrong())?;
        for _ in 0..=REDIRECTS_MAX {
            let response = self.ask(&at).await?;
            let next =
                response.headers().get(LOCATION).filter(|_| response.status().is_redirection());
            let Some(next) = next else { return read(response, &at).await };
            let next = next.to_str().ok().and_then(|it| at.join(it).ok());
            at = next.ok_or_else(|| FetchError::Failed("it redirects to nowhere".to_owned()))?;
        }
        Err(FetchError::Redirects)
    }

    async fn ask(&self, url: &Url) -> Result<Response, FetchError> {
        let addresses = self.addresses(url).await?;
        let client = client().dns_resolver(Arc::new(Pinned(addresses))).build();
        let client = client.map_err(|it| failed(&it))?;
        let response = client.get(url.clone()).send().await.map_err(|it| failed(&it))?;
        // Whatever was connected to in the end.
        match response.remote_addr() {
            Some(it) if self.may_reach(it.ip()) => Ok(response),
            _ => Err(FetchError::Private(shown(url))),
        }
    }

    /// Where a page may be: all that its name stands for, or nothing. One closed address among
    /// open ones is a name that plays with us.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, FetchError> {
        let plain = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none();
        let (Some(host), Some(port), true) = (url.host_str(), url.port_or_known_default(), plain)
        else {
            return Err(FetchError::Url(shown(url)));
        };
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let addresses = match literal {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => {
                let found = self.resolver.resolve(host, port);
                let found = tokio::time::timeout(RESOLVE_TIMEOUT, found).await;
                let found = found.ok().and_then(Result::ok).unwrap_or_default();
                if found.is_empty() {
                    return Err(FetchError::Unknown(host.to_owned()));
                }
                found
            }
        };
        if addresses.iter().all(|it| self.may_reach(it.ip())) {
            Ok(addresses)
        } else {
            Err(FetchError::Private(shown(url)))
        }
    }

    fn may_reach(&self, address: IpAddr) -> bool {
        is_public(address) || self.allowed.cover(address)
    }
}

/// Answers what was looked at, whatever it is asked for.
struct Pinned(Vec<SocketAddr>);

impl reqwest::dns::Resolve for Pinned {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let addresses: reqwest::dns::Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

fn client() -> reqwest::ClientBuilder {
    Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .user_agent("chancery")
}

/// Asks the operator's own search, wherever it is.
pub(super) async fn ask(url: Url) -> Result<String, FetchError> {
    let client = client().build().map_err(|it| failed(&it))?;
    let response = client.get(url.clone()).send().await.map_err(|it| failed(&it))?;
    if !response.status().is_success() {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    let fetched = read(response, &url).await?;
    Ok(String::from_utf8_lossy(&fetched.bytes).into_owned())
}

async fn read(mut response: Response, url: &Url) -> Result<Fetched, FetchError> {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.unwrap_or("text/plain").to_ascii_lowercase();
    if !page::is_text(&kind) {
        return Err(FetchError::NotText(kind.chars().take(100).collect()));
    }
    let status = response.status().as_u16();
    let (mut bytes, mut cut) = (Vec::new(), false);
    while let Some(chunk) = response.chunk().await.map_err(|it| failed(&it))? {
        let room = BODY_BYTES_MAX - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    Ok(Fetched { url: shown(url), status, cut, kind, bytes })
}

impl Fetched {
    /// The title, where there is one, and the text.
    pub fn text(&self) -> (Option<String>, String) {
        page::text(&self.kind, &self.bytes)
    }
}

fn shown(url: &Url) -> String {
    url.as_str().chars().take(500).collect()
}

fn failed(error: &reqwest::Error) -> FetchError {
    // The innermost says what happened; the URL is known.
    let mut source: &dyn std::error::Error = error;
    while let Some(inner) = source.source() {
        source = inner;
    }
    FetchError::Failed(source.to_string())
}
