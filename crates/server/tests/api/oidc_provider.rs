//! A certified OpenID provider, as published, vouches for somebody.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use chancery_server::config::OidcConfig;
use chancery_testkit::mcp_servers;

use crate::harness::Server;
use crate::oidc::Surfer;

/// Where the provider sends people back to, whatever port the server has got.
const PUBLIC: &str = "http://127.0.0.1:9";

struct Provider {
    process: Child,
    url: String,
    /// Kept open: it says more later, and would die of a pipe that nobody reads.
    _said: BufReader<ChildStdout>,
}

impl Provider {
    fn start() -> Provider {
        let modules = mcp_servers::oidc_provider().unwrap();
        let script = chancery_testkit::package().join("tests/api/clients/issuer.mjs");
        let mut node = node();
        node.arg(script).arg(modules).arg(format!("{PUBLIC}/signin/oidc/callback"));
        let mut process = node.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let mut url = String::new();
        said.read_line(&mut url).unwrap();
        Provider { process, url: url.trim().to_owned(), _said: said }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certified_provider_vouches_for_somebody() {
    let provider = Provider::start();
    let mut oidc = OidcConfig::new(&provider.url, "chancery");
    oidc.client_secret_env = Some("OIDC_SECRET".to_owned());
    oidc.allow = vec!["staff".to_owned()];
    let settle = |config: &mut chancery_server::config::Config| {
        config.oidc = Some(oidc);
        config.public_url = Some(PUBLIC.to_owned());
    };
    let server = Server::with_environment(settle, &[("OIDC_SECRET", "secret/+")]).await;
    let mut lin = Surfer::at(&server);
    let mut next = "/signin/oidc?next=/runs".to_owned();
    let mut said = Vec::new();
    for _ in 0..10 {
        let answer = lin.get(&next).await;
        said.push(format!("{next}: {}", answer.status));
        if answer.status == 200 {
            break;
        }
        next = answer.header("location").to_owned();
        if next.starts_with('/') {
            next = format!("{}{next}", provider.url);
        }
        next = next.replace(PUBLIC, &server.running.url());
    }
    assert!(lin.is_in(), "{said:#?}");
    assert!(lin.get("/runs").await.text.contains("data-person=\"lin\""));
    server.running.stop().await;
}

#[expect(clippy::disallowed_methods, reason = "a program of the test's, not of an agent's")]
fn node() -> Command {
    Command::new("node")
}
