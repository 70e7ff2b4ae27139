//! Puts a server together: store, organisation, tools, models, workers, and the door.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chancery_domain::event::Actor;
use chancery_runtime::courier::deliver;
use chancery_runtime::deposit::deposit;
use chancery_runtime::embedding::{Memories, read_on};
use chancery_runtime::mailroom::{Mailroom, attend};
use chancery_runtime::sandbox::Isolation;
use chancery_runtime::tool::config::{Place, Report};
use chancery_runtime::tool::staff::CharterPlace;
use chancery_runtime::worker::Workers;
use chancery_runtime::{Parts, clock};
use chancery_store::token::TokenKind;
use chancery_store::{OpenError, Store, StoreError};
use jiff::SignedDuration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigError, build_models};
use crate::console::About;
use crate::metrics::Metrics;
use crate::organisation::reload::ChangeError;
use crate::organisation::{self, Organisation};
use crate::router::{App, router};
use crate::routes::runs::ORG;
use crate::serve::serve;
use crate::tokens;

/// Long enough to read a terminal, and too short to find it in a log.
const INVITATION: SignedDuration = SignedDuration::from_mins(30);

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
    /// Where the first person is let in, once and for a while. Absent: somebody is signed in.
    pub invitation: Option<String>,
    pub tools: Report,
    pub isolation: Isolation,
    store: Store,
    workers: Workers,
    door: JoinHandle<()>,
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
    let bootstrap = tokens::given(&environment)?;
    let models = build_models(config, &environment)?;
    let embeddings = config.memory.embeddings(&environment)?;
    // What is missing or cannot be used is said before anything is touched.
    config.subscribers("", &environment)?;
    config.vouching("http://localhost", &environment)?;
    config.turnstile()?;
    organisation::of(config)?;
    let store = Store::open(&config.location(), clock::new_worker_id()).await?;
    let bound = TcpListener::bind(config.listen).await;
    let (listener, address) = match bound.and_then(|it| it.local_addr().map(|at| (it, at))) {
        Ok(bound) => bound,
        Err(error) => {
            store.close().await;
            let detail = error.to_string();
            return Err(StartError::Listen { address: config.listen, detail });
        }
    };
    let workspace = config.workspace();
    make_private(&config.data)?;
    make_private(&workspace)?;
    let programs = config.org.clone().unwrap_or_else(|| config.data.clone());
    let memories = Memories { store: store.clone(), embeddings: embeddings.clone() };
    let memory = Some(memories.clone());
    let charter = CharterPlace::default();
    let mailroom = Mailroom::new(store.clone(), config.mail_terms());
    let isolation = config.isolation(&workspace).await;
    let place = Place {
        workspace,
        programs,
        memory,
        mailroom: Some(mailroom.clone()),
        charter: charter.clone(),
        settings: config.tools.settings(),
        environment: environment.clone(),
        isolation: isolation.clone(),
    };
    let started = Organisation::start(&store, config.org.clone(), place).await;
    let (organisation, authority, report) = started.map_err(|error| match error {
        ChangeError::Store(error) => StartError::Store(error),
        mistakes => StartError::Org(mistakes.to_string()),
    })?;

    // Nobody has set it before: it was made here.
    let _ = charter.set(Arc::new(organisation.clone()));
    if let Some(secret) = bootstrap {
        tokens::bootstrap(&store, &secret).await?;
    }
    let local = LocalFiles::in_dir(&config.data);
    if !store.is_shared() {
        // A server that was killed left its token behind; nobody else uses this directory.
        revoke(&store, &local.left_token()).await;
    }
    let (local_token, _) =
        tokens::make(&store, TokenKind::Human, "operator", true, true, Actor::System).await?;
    let local = local.write(address, &local_token)?;

    store.subscribe(config.subscriptions(&environment)?);
    let subscribers = config.subscribers(&url(address), &environment)?;
    let models = Arc::new(models);
    let parts = Parts {
        store: store.clone(),
        authority: authority.clone(),
        models: models.clone(),
        limits: config.run_limits(),
        terms: config.terms(),
        escalation: config.escalation.terms(),
        embeddings: embeddings.clone(),
    };
    let workers = Workers::start(parts).await?;
    let stop = CancellationToken::new();
    tokio::spawn(deliver(store.clone(), subscribers.clone(), stop.clone()));
    let hold = config.run_limits().lease;
    tokio::spawn(deposit(store.clone(), config.memory.retention(), hold, stop.clone()));
    tokio::spawn(attend(mailroom.clone(), authority.clone(), stop.clone()));
    if let Some(embeddings) = embeddings {
        tokio::spawn(read_on(store.clone(), embeddings, ORG.to_owned(), stop.clone()));
    }
    tokio::spawn(organisation.clone().watch(stop.clone()));
    let base = config.public_url.clone().unwrap_or_else(|| url(address));
    let oidc = config.vouching(&base, &environment)?;
    let app = App {
        store: store.clone(),
        memories,
        authority,
        organisation,
        mailroom,
        permissions: config.permissions.clone(),
        models,
        pause_hold: config.openai.pause_hold(),
        public_url: base.clone(),
        subscribers: Arc::new(subscribers),
        mcp: config.mcp_terms(address, url(address)),
        metrics: Metrics::install(),
        turnstile: config.turnstile()?,
        oidc,
        about: Arc::new(About::of(config, &isolation)),
        stop: stop.clone(),
        body_bytes: config.limits.body_bytes,
    };
    let door = tokio::spawn(serve(listener, router(app), stop.clone()));
    let invitation = invite(&store, base.trim_end_matches('/')).await?;
    let grace = Duration::from_secs(config.limits.grace_seconds);
    Ok(Running {
        address,
        local_token,
        invitation,
        tools: report,
        isolation,
        store,
        workers,
        door,
        stop,
        grace,
        local,
    })
}

impl Running {
    pub fn url(&self) -> String {
        url(self.address)
    }

    /// Ends in good order: no new requests, steps in flight end, leases are given back.
    pub async fn stop(self) {
        self.stop.cancel();
        // Requests under way have their time; a client that never ends has not.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.door).await;
        self.workers.stop(self.grace).await;
        revoke(&self.store, &self.local_token).await;
        self.local.remove();
        self.store.close().await;
    }
}

/// Makes a link that lets one person in, unless somebody is in already.
async fn invite(store: &Store, base: &str) -> Result<Option<String>, StoreError> {
    let now = clock::now();
    if store.has_visits(now).await? {
        return Ok(None);
    }
    let key = clock::new_secret();
    store.invite(tokens::digest(&key), now, now + INVITATION).await?;
    Ok(Some(format!("{base}/setup?key={key}")))
}

/// Best effort: a store that is away keeps a token whose secret nobody has any more.
async fn revoke(store: &Store, secret: &str) {
    if let Ok(Some(token)) = store.token_by_digest(tokens::digest(secret)).await {
        let _ = tokens::revoke(store, &token, Actor::System).await;
    }
}

/// What the command line on this machine finds the server by.
#[derive(Debug)]
struct LocalFiles {
    dir: PathBuf,
    /// Each file with what this server wrote into it.
    written: [(PathBuf, String); 2],
}

impl LocalFiles {
    fn in_dir(dir: &Path) -> LocalFiles {
        let written = ["token", "server"].map(|name| (dir.join(name), String::new()));
        LocalFiles { dir: dir.to_owned(), written }
    }

    /// The token of a server that did not come to remove it.
    fn left_token(&self) -> String {
        std::fs::read_to_string(&self.written[0].0).unwrap_or_default()
    }

    fn write(mut self, address: SocketAddr, token: &str) -> Result<LocalFiles, StartError> {
        let texts = [token.to_owned(), url(address)];
        for ((path, written), text) in self.written.iter_mut().zip(texts) {
            write_private(path, &text)
                .map_err(|it| StartError::Data { dir: self.dir.clone(), detail: it.to_string() })?;
            *written = text;
        }
        Ok(self)
    }

    /// Another server on the same PostgreSQL may have put its own in their place: those stay.
    fn remove(&self) {
        for (path, written) in &self.written {
            if std::fs::read_to_string(path).is_ok_and(|it| it == *written) {
                // They name a server that is gone; leaving them behind harms nobody.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// How this machine reaches it: a server that listens everywhere is also here.
pub fn url(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        let here: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        address.set_ip(here);
    }
    format!("http://{address}")
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
