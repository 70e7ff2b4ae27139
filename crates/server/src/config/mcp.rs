//! `[mcp]`: on which terms agents outside call tools.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Config;
use crate::mcp::Terms;

/// A client is long gone by then; the call is not.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpConfig {
    /// Whether a call that a person must answer for is waited for, or answered as pending at
    /// once: `wait` or `pending`.
    pub on_ask: OnAsk,
    /// How long a call is waited for before it is answered as pending.
    pub wait_seconds: u64,
    /// By which names it is called, beside its address, the machine's own and `public_url`.
    pub hosts: Vec<String>,
    /// Of which origins pages in a browser may call. None, unless some are named.
    pub origins: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnAsk {
    #[default]
    Wait,
    Pending,
}

impl Default for McpConfig {
    fn default() -> McpConfig {
        McpConfig { on_ask: OnAsk::Wait, wait_seconds: 300, hosts: Vec::new(), origins: Vec::new() }
    }
}

impl Config {
    /// `here` is where this server is reached, unless the settings say otherwise.
    pub(crate) fn mcp_terms(&self, address: SocketAddr, here: String) -> Terms {
        let url = self.public_url.clone().unwrap_or(here);
        let mut hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        hosts.push(address.ip().to_string());
        hosts.extend(host_of(&url));
        hosts.extend(self.mcp.hosts.iter().cloned());
        Terms {
            on_ask: self.mcp.on_ask,
            wait: Duration::from_secs(self.mcp.wait_seconds).min(WAIT_MAX),
            url: url.trim_end_matches('/').to_owned(),
            hosts,
            origins: self.mcp.origins.clone(),
        }
    }
}

/// The host of a URL, without its port.
fn host_of(url: &str) -> Option<String> {
    let uri: axum::http::Uri = url.parse().ok()?;
    Some(uri.host()?.trim_matches(['[', ']']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_address_its_public_name_and_what_else_it_is_called() {
        let mut config =
            Config { public_url: Some("https://x.example/c".into()), ..Config::default() };
        config.mcp.hosts = vec!["inner".to_owned()];
        let terms = config.mcp_terms(([10, 0, 0, 7], 80).into(), "http://10.0.0.7".to_owned());
        let hosts = ["localhost", "127.0.0.1", "::1", "10.0.0.7", "x.example", "inner"];
        assert_eq!(
            (terms.hosts, &*terms.url),
            (hosts.map(str::to_owned).to_vec(), "https://x.example/c")
        );
    }
}
