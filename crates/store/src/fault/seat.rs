//! A seat: a simulated process at a record that many share, all of them on one thread. What
//! differs from a real one is here: its clock is set from outside, its bell is rung by whoever
//! plays the network, its store is slow or away when it is told to be, and every change is shown
//! to a witness at the moment that it is made.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chancery_domain::history::Change;
use chancery_domain::id::WorkerId;

use super::Guise;
use crate::bell::{Bell, Changed};
use crate::sql::Param;
use crate::{Database, Inner, OpenError, Store, StoreError};

/// Sees all that is done to the record, as it is done.
pub trait Witness: std::fmt::Debug + Send + Sync {
    /// A change was appended: by the lease of this attempt, or from outside (0).
    fn appended(&self, worker: WorkerId, attempt: u64, change: &Change);
    /// The queue was touched by something that is no append.
    fn touched(&self, worker: WorkerId, how: Touch);
}

/// How the queue was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    Claim,
    /// Its own leases were given back.
    Release,
    /// Those of workers that were taken for dead were freed.
    Rescue,
    /// It said that it lives, until then by the database's clock.
    Beat {
        until: i64,
    },
}

impl Touch {
    /// What a statement does to the queue, if anything.
    pub(crate) fn of(sql: &str, params: &[Param]) -> Option<Touch> {
        match params {
            [_, Param::Int(until)] if sql.starts_with("INSERT INTO workers") => {
                Some(Touch::Beat { until: *until })
            }
            _ if !sql.starts_with("UPDATE queue") => None,
            _ if sql.contains("AS dead") => Some(Touch::Rescue),
            _ => Some(Touch::Release),
        }
    }
}

/// How the record is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// As on SQLite: one process, and every other owner is dead.
    Alone,
    /// As on PostgreSQL: several, and who is not heard of is dead when its lease is over.
    Shared,
}

/// A mistake that is made on purpose: whoever watches must find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// Whoever held a lease once may append.
    NoFence,
    /// A rescue takes the living for dead.
    RescuesTheLiving,
    /// Who is not woken does not look.
    NoPolling,
    /// A run that waits keeps its place in the queue.
    WaitsInTheQueue,
    /// A child ends, and its parent is not told.
    ParentNotTold,
    /// What was ruled is not in the audit.
    NoAudit,
}

/// What a simulated process stands in.
#[derive(Debug, Clone)]
pub struct Seat {
    inner: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    regime: Regime,
    plant: Option<Plant>,
    bell: Bell,
    witness: Arc<dyn Witness>,
    /// What it has told the others and nobody has delivered yet: that there is work, or news.
    told: Mutex<Told>,
    passed: AtomicU64,
    away: AtomicU64,
    slow_ms: AtomicU64,
    /// Whether it was woken since it looked last.
    woken: AtomicU64,
}

/// What a process has to tell the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    pub news: bool,
    pub work: bool,
}

impl Seat {
    pub fn new(regime: Regime, plant: Option<Plant>, witness: Arc<dyn Witness>) -> Seat {
        let (passed, away) = (AtomicU64::new(0), AtomicU64::new(0));
        let (slow_ms, woken) = (AtomicU64::new(0), AtomicU64::new(1));
        let (bell, told) = (Bell::default(), Mutex::default());
        let place = Place { regime, plant, bell, witness, told, passed, away, slow_ms, woken };
        Seat { inner: Arc::new(place) }
    }

    /// How often it has come to a place where it could be stopped.
    pub fn passed(&self) -> u64 {
        self.inner.passed.load(Ordering::Relaxed)
    }

    /// The store answers nothing, so many times.
    pub fn go_away(&self, times: u64) {
        self.inner.away.store(times, Ordering::Relaxed);
    }

    /// The store takes so long for each answer.
    pub fn slow_down(&self, by: Duration) {
        self.inner.slow_ms.store(by.as_millis() as u64, Ordering::Relaxed);
    }

    /// Takes what there is to be told to the others.
    pub fn take_told(&self) -> Told {
        std::mem::take(&mut *self.inner.told.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another process has told something.
    pub fn hear(&self, told: Told) {
        if told.work {
            self.inner.woken.store(1, Ordering::Relaxed);
            self.inner.bell.ring_work();
        }
        if told.news {
            self.inner.bell.ring_changed(Changed::Something);
        }
    }

    /// A place where a process can be stopped, and where another may come first.
    pub async fn point(&self) {
        self.inner.passed.fetch_add(1, Ordering::Relaxed);
        match self.inner.slow_ms.load(Ordering::Relaxed) {
            0 => tokio::task::yield_now().await,
            slow => tokio::time::sleep(Duration::from_millis(slow)).await,
        }
    }

    async fn ask(&self) -> Result<(), StoreError> {
        self.point().await;
        let one_less = |left: u64| left.checked_sub(1);
        match self.inner.away.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Err(StoreError::Unreachable("on purpose".to_owned())),
            Err(_) => Ok(()),
        }
    }
}

impl Store {
    /// A record in memory, worked on by whoever asks, on the spot: for simulations.
    pub fn in_memory(worker: WorkerId) -> Result<Store, OpenError> {
        let database = Database::Sqlite(crate::sqlite::Sqlite::in_memory()?);
        let inner =
            Inner { database, bell: Bell::default(), worker, subscriptions: Default::default() };
        Ok(Store { inner: Arc::new(inner), guise: Guise::default() })
    }

    /// The same record in the hands of a simulated process.
    pub fn seated(&self, worker: WorkerId, seat: &Seat) -> Store {
        let guise = Guise { worker: Some(worker), fuse: None, seat: Some(seat.clone()) };
        Store { inner: self.inner.clone(), guise }
    }

    /// A place in a simulation where the store may be slow or away. Elsewhere it is none.
    pub(crate) async fn passage(&self) -> Result<(), StoreError> {
        match &self.guise.seat {
            Some(seat) => seat.ask().await,
            None => Ok(()),
        }
    }

    pub(crate) fn regime(&self) -> Option<Regime> {
        self.guise.seat.as_ref().map(|it| it.inner.regime)
    }

    pub(crate) fn has_plant(&self, plant: Plant) -> bool {
        self.guise.seat.as_ref().is_some_and(|it| it.inner.plant == Some(plant))
    }

    pub(crate) fn own_bell(&self) -> Option<&Bell> {
        self.guise.seat.as_ref().map(|it| &it.inner.bell)
    }

    pub(crate) fn witnessed(&self, attempt: i64, change: &Change) {
        if let Some(seat) = &self.guise.seat {
            seat.inner.witness.appended(self.worker(), attempt as u64, change);
        }
    }

    pub(crate) fn touched(&self, how: Touch) {
        if let Some(seat) = &self.guise.seat {
            seat.inner.witness.touched(self.worker(), how);
        }
    }

    /// Whether somebody who does not poll would look now.
    pub(crate) fn was_woken(&self) -> bool {
        self.guise.seat.as_ref().is_none_or(|it| it.inner.woken.swap(0, Ordering::Relaxed) > 0)
    }

    pub(crate) fn tell_company(&self, work: bool) {
        if let Some(seat) = &self.guise.seat {
            let mut told = seat.inner.told.lock().unwrap_or_else(PoisonError::into_inner);
            (told.news, told.work) = (true, told.work | work);
            if work {
                seat.inner.woken.store(1, Ordering::Relaxed);
            }
        }
    }
}

impl Store {
    /// Makes the mistake that is planted, if it is one about rows.
    pub(crate) fn spoil(&self, prepared: &mut crate::projection::Prepared) {
        if self.has_plant(Plant::WaitsInTheQueue)
            && prepared.moved.as_ref().is_some_and(|it| it.waiting_for.is_some())
        {
            prepared.queue = crate::projection::QueueMove::Stay;
        }
        if self.has_plant(Plant::NoAudit) {
            prepared.audit.clear();
        }
    }
}
