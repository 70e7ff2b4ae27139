//! Faults on purpose. Only for tests (feature `faults`): without it, none of this is compiled.
//!
//! A [`Fuse`] stops a writer at a chosen point for good, as a crash would, or until it is
//! mended, as a paused process would; or it answers that the store is away, as often as it is
//! told to. [`Store::disguised`] is another worker on the same open
//! record, which one process has to itself on SQLite. [`Seat`] is a whole process of a simulation,
//! with [`clock`] for its time. [`brink`] is where a real process dies.

mod brink;
pub mod clock;
mod rows;
mod seat;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chancery_domain::id::WorkerId;
use tokio::sync::watch;

use crate::{Database, Store, StoreError};

pub(crate) use brink::brink;
pub use rows::{Owned, Rows};
pub use seat::{Plant, Regime, Seat, Told, Touch, Witness};

/// Who a handle on the store passes for, and where it stops.
#[derive(Debug, Clone, Default)]
pub(crate) struct Guise {
    pub worker: Option<WorkerId>,
    pub fuse: Option<Fuse>,
    pub seat: Option<Seat>,
}

/// Counts the points that it is led through, and stops the one who comes to the chosen one.
#[derive(Debug, Clone)]
pub struct Fuse {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    at: u64,
    passed: AtomicU64,
    /// How many points answer that the store is away.
    away: AtomicU64,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Whole,
    Blown,
    Mended,
}

impl Fuse {
    /// Blows at the point of this number; the first is 0.
    pub fn at(point: u64) -> Fuse {
        let (passed, away) = (AtomicU64::new(0), AtomicU64::new(0));
        let state = watch::channel(State::Whole).0;
        Fuse { inner: Arc::new(Inner { at: point, passed, away, state }) }
    }

    /// Counts, and never blows.
    pub fn never() -> Fuse {
        Fuse::at(u64::MAX)
    }

    pub fn passed(&self) -> u64 {
        self.inner.passed.load(Ordering::SeqCst)
    }

    /// A point at which a process could be stopped. Once blown, nobody gets past any.
    pub async fn point(&self) {
        let number = self.inner.passed.fetch_add(1, Ordering::SeqCst);
        if number == self.inner.at {
            self.inner.state.send_replace(State::Blown);
        }
        let mut state = self.inner.state.subscribe();
        if state.wait_for(|it| *it != State::Blown).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Returns when the fuse blows.
    pub async fn blown(&self) {
        if self.inner.state.subscribe().wait_for(|it| *it == State::Blown).await.is_err() {
            pending::<()>().await;
        }
    }

    pub fn is_blown(&self) -> bool {
        *self.inner.state.borrow() == State::Blown
    }

    /// The store does not answer at the next points of its own, this many of them.
    pub fn go_away(&self, points: u64) {
        self.inner.away.store(points, Ordering::SeqCst);
    }

    fn is_away(&self) -> bool {
        let one_less = |left: u64| left.checked_sub(1);
        self.inner.away.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
    }

    /// Lets those who were stopped go on.
    pub fn mend(&self) {
        self.inner.state.send_replace(State::Mended);
    }
}

impl Store {
    /// The same record in the hands of another worker, who is stopped by `fuse`.
    pub fn disguised(&self, worker: WorkerId, fuse: Option<Fuse>) -> Store {
        Store { inner: self.inner.clone(), guise: Guise { worker: Some(worker), fuse, seat: None } }
    }

    pub(crate) async fn point(&self) -> Result<(), StoreError> {
        let Some(fuse) = &self.guise.fuse else { return self.passage().await };
        fuse.point().await;
        match fuse.is_away() {
            true => Err(StoreError::Unreachable("on purpose".to_owned())),
            false => Ok(()),
        }
    }

    /// PostgreSQL alone: how long a write waits for a database that is away.
    pub fn wait_at_most(&self, patience: Duration) {
        if let Database::Postgres(postgres) = &self.inner.database {
            postgres.wait_at_most(patience);
        }
    }

    /// SQLite alone: leaves room for this many pages more in the database file. `None`: for all
    /// that fit on the disk.
    pub async fn leave_room(&self, pages: Option<u32>) -> Result<(), StoreError> {
        let Database::Sqlite(sqlite) = &self.inner.database else {
            return Err(StoreError::Failed("only SQLite counts its pages".to_owned()));
        };
        sqlite
            .write(move |connection| {
                let used: u32 =
                    connection.pragma_query_value(None, "page_count", |it| it.get(0))?;
                let most = pages.map_or(u32::MAX - 1, |more| used + more);
                connection.pragma_update_and_check(None, "max_page_count", most, |_| Ok(()))
            })
            .await
    }
}
