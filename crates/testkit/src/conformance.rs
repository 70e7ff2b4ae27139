//! What every database under the store must do. Each case is a function that is handed a
//! [`Home`], fresh and empty; `crates/store/tests/conformance.rs` runs each on both.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

pub mod audit;
pub mod deposit;
pub mod family;
pub mod log;
pub mod mail;
pub mod mark;
pub mod memory;
pub mod org;
pub mod outbox;
pub mod projection;
pub mod queue;
pub mod rate;
pub mod read;
pub mod recall;
pub mod visit;
pub mod vouched;

use std::sync::Arc;
use std::time::Duration;

use chancery_domain::command;
use chancery_domain::event::*;
use chancery_domain::history::History;
use chancery_domain::id::*;
use chancery_domain::policy::Ruling;
pub use chancery_runtime::clock;
use chancery_store::queue::{Claimed, Lease};
use chancery_store::{AppendError, Fence, Location, Store};
use serde_json::json;
use tempfile::TempDir;

use crate::postgres::TestDatabase;

/// A place for one record, empty at first and gone with this value.
#[derive(Debug)]
pub enum Home {
    Sqlite(TempDir),
    Postgres(TestDatabase),
}

impl Home {
    pub async fn sqlite() -> Home {
        Home::Sqlite(fast_dir())
    }

    pub async fn postgres() -> Home {
        Home::Postgres(TestDatabase::create().await)
    }

    pub fn location(&self) -> Location {
        match self {
            Home::Sqlite(dir) => Location::Sqlite(dir.path().to_owned()),
            Home::Postgres(database) => Location::Postgres(database.url()),
        }
    }

    /// Another place of the same kind.
    pub async fn fresh(&self) -> Home {
        match self {
            Home::Sqlite(_) => Home::sqlite().await,
            Home::Postgres(_) => Home::postgres().await,
        }
    }

    /// A server's store.
    pub async fn open(&self) -> Store {
        Store::open(&self.location(), clock::new_worker_id()).await.unwrap()
    }

    /// What a second server would hold. SQLite has one process to itself, so there it is the
    /// same record in the hands of another worker.
    pub async fn another(&self, store: &Store) -> Store {
        match self {
            Home::Sqlite(_) => store.disguised(clock::new_worker_id(), None),
            Home::Postgres(_) => self.open().await,
        }
    }
}

/// A directory in memory where there is one: a test that commits a thousand times need not wait
/// for a disk as often.
pub fn fast_dir() -> TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let made = match memory.is_dir() {
        true => TempDir::with_prefix_in("chancery-", memory),
        false => TempDir::with_prefix("chancery-"),
    };
    made.unwrap()
}

pub fn ada() -> Actor {
    Actor::User(UserId::from("ada"))
}

pub fn created(input: &str) -> Created {
    Created {
        org: "acme".to_owned(),
        agent: AgentId::from("clerk"),
        role: RoleId::from("worker"),
        user: UserId::from("ada"),
        project: None,
        group: None,
        session_key: None,
        parent: None,
        ancestors: Vec::new(),
        room: None,
        persons_words: Vec::new(),
        delegated: None,
        input: input.to_owned(),
        by: ada(),
        org_version: 0,
        contract: None,
        mails: vec![],
        call: None,
        forked: None,
    }
}

/// Makes a run, which then wants a worker.
pub async fn make(store: &Store, created: Created) -> RunId {
    let run = clock::new_run_id();
    let mut history = History::create(run, created);
    store.create(&history.change().unwrap(), None, clock::now()).await.unwrap();
    run
}

pub async fn history(store: &Store, run: RunId) -> History {
    History::fold(run, &store.events(run, 0, u32::MAX).await.unwrap()).unwrap()
}

/// Records events on the log as it is now, and appends them.
pub async fn append(
    store: &Store,
    run: RunId,
    events: impl IntoIterator<Item = Event>,
    fence: Fence<'_>,
) -> Result<(), AppendError> {
    let mut history = history(store, run).await;
    for event in events {
        history = history.record(event).unwrap();
    }
    store.append(&history.change().unwrap(), fence, clock::now()).await
}

/// Takes the one run that wants a worker.
pub async fn claim_one(store: &Store) -> Lease {
    let mut claimed = claim(store, 10).await;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    claimed.remove(0)
}

pub async fn claim(store: &Store, limit: u32) -> Vec<Lease> {
    store.claim(limit).await.unwrap().into_iter().map(|Claimed { lease, .. }| lease).collect()
}

/// A claim is answered before it is committed where a crash undoes it anyway; a write that is
/// answered for has all that came before it behind it.
pub async fn settled(store: &Store) {
    store.beat(Duration::from_secs(10)).await.unwrap();
}

/// `dead` is not heard of any more, as far as `store` can tell.
pub async fn let_die(dead: &Store) {
    dead.beat(Duration::ZERO).await.unwrap();
}

pub fn started() -> Event {
    Started {}.into()
}

pub fn spoke(text: impl Into<String>) -> Event {
    UserSpoke { message: clock::new_message_id(), text: text.into(), by: ada(), to: None }.into()
}

pub fn proposed(calls: &[(&str, Ruling)], tokens: u64) -> Event {
    let calls = calls.iter().map(|(id, ruling)| {
        let call = Call { id: CallId::from(*id), tool: "act".to_owned(), arguments: json!({}) };
        let answer = ruling.asks().then(|| Answer::Request(request(RequestKind::All)));
        Proposal { call: Arc::new(call), ruling: *ruling, reasons: vec![], answer }
    });
    BatchProposed {
        message: clock::new_message_id(),
        text: String::new(),
        calls: calls.collect(),
        model: "scripted".to_owned(),
        usage: Usage {
            input_tokens: tokens,
            output_tokens: tokens,
            cost_micros: tokens.saturating_mul(3),
        },
    }
    .into()
}

/// A question that nobody has put before.
pub fn request(kind: RequestKind) -> Arc<Request> {
    let id = clock::new_permission_id();
    Arc::new(Request {
        id,
        correlation_key: WaitKey(format!("cap-approval-{id}")),
        kind,
        payload: Default::default(),
        risk: None,
        capabilities: vec![],
        arguments_sha256: String::new(),
        definition_sha256: None,
        signature: Some("act".to_owned()),
        asked_at: clock::now(),
        expires_at: None,
        escalates: false,
    })
}

/// The answer to the question that an event puts about a call.
pub fn decided(asks: &Event, call: &str, decision: Decision) -> Event {
    let asked = command::requests(asks).into_iter().find(|(id, _)| id.as_str() == call);
    PermissionDecided {
        call: CallId::from(call),
        permission: asked.unwrap().1.id,
        decision,
        by: ada(),
        comment: None,
        arguments: None,
        remember: None,
    }
    .into()
}

pub fn call_started(id: &str) -> Event {
    CallStarted { call: CallId::from(id), idempotency_key: id.to_owned() }.into()
}

pub fn call_ended(id: &str) -> Event {
    CallEnded { call: CallId::from(id), result: CallResult::ok("done") }.into()
}

pub fn waits(id: &str, key: &str, until: Option<jiff::Timestamp>) -> Event {
    WaitBegan { call: CallId::from(id), correlation_key: WaitKey::from(key), until }.into()
}

pub fn signalled(key: &str) -> Event {
    Signalled { correlation_key: WaitKey::from(key), payload: json!(null), by: ada() }.into()
}

pub fn completed(output: &str) -> Event {
    Completed {
        message: clock::new_message_id(),
        output: output.to_owned(),
        model: "scripted".to_owned(),
        usage: Usage { input_tokens: 1, output_tokens: 1, cost_micros: 5 },
    }
    .into()
}

pub fn failed() -> Event {
    Failed { error: "the model is away".to_owned() }.into()
}

pub fn cancelled() -> Event {
    Cancelled { by: ada() }.into()
}
