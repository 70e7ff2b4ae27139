//! Puts a server together: store, organisation, tools, models, workers, and the door.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::serve::ListenerExt as _;
use chancery_runtime::tool::config::{Place, Report, build};
use chancery_runtime::worker::Workers;
use chancery_runtime::{Parts, clock};
use chancery_store::token::TokenKind;
use chancery_store::{OpenError, Store, StoreError};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigError, build_models};
use crate::metrics::Metrics;
use crate::organisation;
use crate::router::{App, router};
use crate::tokens;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("the organisation cannot be used: {0}")]
    Org(String),
    #[error("cannot listen on {address}: {detail}")]
    Listen { address: SocketAddr, detail: String },
    #[error("the data directory `{}` cannot be used: {detail}", .dir.display())]
    Data { dir: PathBuf, detail: String },
}

/// A server at work.
#[derive(Debug)]
pub struct Running {
    pub address: SocketAddr,
    /// A token of the operator, for programs on this machine.
    pub local_token: String,
    pub tools: Report,
    store: Store,
    workers: Workers,
    door: JoinHandle<std::io::Result<()>>,
    stop: CancellationToken,
    grace: Duration,
    local: LocalFiles,
}

/// Starts everything; answers when requests are answered.
pub async fn start(
    config: &Config,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Running, StartError> {
    let environment = environment.into_iter().collect();
    let models = build_models(config, &environment)?;
    let (org, tools_config) = organisation::load(config.org.as_deref())?;
    let store = Store::open(&config.location(), clock::new_worker_id()).await?;
    let workspace = config.workspace();
    make_private(&config.data)?;
    make_private(&workspace)?;
    let programs = config.org.clone().unwrap_or_else(|| config.data.clone());
    let place = Place { workspace, programs, environment: environment.clone() };
    let built = build(&tools_config, &place).await;
    let (tools, report) = built.map_err(|it| StartError::Org(it.to_string()))?;
    let org = Arc::new(org);

    if let Some(secret) = environment.get("CHANCERY_BOOTSTRAP_TOKEN").filter(|it| !it.is_empty()) {
        tokens::bootstrap(&store, secret).await?;
    }
    let (local_token, _) = tokens::make(&store, TokenKind::Human, "operator", true, true).await?;

    let listener = TcpListener::bind(config.listen).await;
    let (listener, address) = listener
        .and_then(|it| it.local_addr().map(|address| (it, address)))
        .map_err(|it| StartError::Listen { address: config.listen, detail: it.to_string() })?;
    let local = LocalFiles::write(&config.data, address, &local_token)?;

    let parts = Parts {
        store: store.clone(),
        org: org.clone(),
        tools: Arc::new(tools),
        models: Arc::new(models),
        limits: config.run_limits(),
    };
    let workers = Workers::start(parts).await?;
    let stop = CancellationToken::new();
    let app = App {
        store: store.clone(),
        org,
        metrics: Metrics::install(),
        stop: stop.clone(),
        body_bytes: config.limits.body_bytes,
    };
    // An event of a live stream is not held back for the next one.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let serving =
        axum::serve(listener, router(app)).with_graceful_shutdown(stop.clone().cancelled_owned());
    let door = tokio::spawn(async move { serving.await });
    let grace = Duration::from_secs(config.limits.grace_seconds);
    Ok(Running { address, local_token, tools: report, store, workers, door, stop, grace, local })
}

impl Running {
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends in good order: no new requests, steps in flight end, leases are given back.
    pub async fn stop(self) {
        self.stop.cancel();
        // Requests under way have their time; a client that never ends has not.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.door).await;
        self.workers.stop(self.grace).await;
        let digest = tokens::digest(&self.local_token);
        if let Ok(Some(token)) = self.store.token_by_digest(digest).await {
            let _ = self.store.revoke_token(token.id, clock::now()).await;
        }
        self.local.remove();
        self.store.close().await;
    }
}

/// What the command line on this machine finds the server by.
#[derive(Debug)]
struct LocalFiles {
    address: PathBuf,
    token: PathBuf,
}

impl LocalFiles {
    fn write(data: &Path, address: SocketAddr, token: &str) -> Result<LocalFiles, StartError> {
        let files = LocalFiles { address: data.join("server"), token: data.join("token") };
        let failed =
            |it: std::io::Error| StartError::Data { dir: data.to_owned(), detail: it.to_string() };
        write_private(&files.token, token).map_err(failed)?;
        write_private(&files.address, &format!("http://{address}")).map_err(failed)?;
        Ok(files)
    }

    fn remove(&self) {
        // They name a server that is gone; leaving them behind harms nobody.
        let _ = std::fs::remove_file(&self.address);
        let _ = std::fs::remove_file(&self.token);
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let _ = std::fs::remove_file(path);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

fn make_private(dir: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|it| StartError::Data { dir: dir.to_owned(), detail: it.to_string() })
}
