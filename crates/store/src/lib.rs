//! The record. The only crate with SQL.
//!
//! [`Store`] is one type with SQLite or PostgreSQL inside. [`log`] is the only write path of
//! runs, [`queue`] says which runs want a worker and who has one, [`read`] answers questions,
//! [`audit`] keeps what was ruled, decided and changed, in a chain, [`memory`] what is remembered.
//! What the two databases do differently is in `sqlite` and `postgres`; everything else is
//! written once, and one conformance suite holds both.

pub mod archive;
pub mod audit;
mod bell;
pub mod delivery;
mod error;
#[cfg(feature = "faults")]
pub mod fault;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod log;
pub mod mail;
mod mark;
pub mod memory;
mod migrate;
pub mod org;
pub mod outbox;
pub mod permission;
mod postgres;
mod projection;
pub mod queue;
mod rate;
pub mod raw;
pub mod read;
pub mod rule;
mod sql;
mod sqlite;
pub mod timer;
pub mod token;
pub mod visit;
pub mod vouched;

use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use chancery_domain::id::WorkerId;

pub use bell::{Bell, Changed};
pub use error::{OpenError, StoreError};
pub use log::{AppendError, Fence};
pub use mark::Mark;
pub use queue::{Claimed, Lease};

/// Where the record is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory of ours; one process at a time.
    Sqlite(PathBuf),
    /// A `postgres://` URL; any number of processes.
    Postgres(String),
}

/// The record. Cheap to clone; all clones are one store.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
    #[cfg(feature = "faults")]
    guise: fault::Guise,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    bell: Bell,
    /// Who claims in this process.
    worker: WorkerId,
    /// For whom appends write notices.
    subscriptions: RwLock<Vec<outbox::Subscription>>,
}

#[derive(Debug)]
enum Database {
    Sqlite(sqlite::Sqlite),
    Postgres(postgres::Postgres),
}

impl Store {
    /// Opens the store, bringing its schema up to date. `worker` is new with every start of a
    /// process: leases of an earlier life are recognised by it.
    pub async fn open(location: &Location, worker: WorkerId) -> Result<Store, OpenError> {
        let bell = Bell::default();
        let database = match location {
            Location::Sqlite(dir) => Database::Sqlite(sqlite::Sqlite::open(dir).await?),
            Location::Postgres(url) => {
                Database::Postgres(postgres::Postgres::open(url, bell.clone()).await?)
            }
        };
        Ok(Store {
            inner: Arc::new(Inner { database, bell, worker, subscriptions: RwLock::default() }),
            #[cfg(feature = "faults")]
            guise: fault::Guise::default(),
        })
    }

    /// Rings when something may have changed. A hint: it carries no data and may be missed.
    pub fn bell(&self) -> &Bell {
        #[cfg(feature = "faults")]
        if let Some(bell) = self.own_bell() {
            return bell;
        }
        &self.inner.bell
    }

    pub fn worker(&self) -> WorkerId {
        #[cfg(feature = "faults")]
        if let Some(worker) = self.guise.worker {
            return worker;
        }
        self.inner.worker
    }

    /// Whether other processes may share this store.
    pub fn is_shared(&self) -> bool {
        #[cfg(feature = "faults")]
        if let Some(regime) = self.regime() {
            return regime == fault::Regime::Shared;
        }
        matches!(self.inner.database, Database::Postgres(_))
    }

    /// Ends the store's threads and tasks and lets go of its files. What was answered for is
    /// durable whether or not this is called.
    pub async fn close(&self) {
        match &self.inner.database {
            Database::Sqlite(sqlite) => sqlite.close().await,
            Database::Postgres(postgres) => postgres.close(),
        }
    }
}
