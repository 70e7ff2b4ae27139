//! Workers: claim (`dispatch`), drive, release. With them go the heartbeat and the rescue of
//! abandoned leases (`pulse`), the deadlines, and the watch for runs that were ended by another
//! hand.

mod dispatch;
mod pulse;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chancery_domain::id::RunId;
use chancery_store::queue::{Claimed, Lease, Release};
use chancery_store::{AppendError, Changed};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::pulse::Pulse;
use crate::journal::JournalError;
use crate::runner::{self, Driven, Reins};
use crate::{Parts, timer};

/// The running workers of this process.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    parts: Parts,
    slots: Arc<Semaphore>,
    drives: TaskTracker,
    /// The runs under way here.
    active: Mutex<BTreeMap<RunId, Active>>,
    stop: CancellationToken,
    pulse: Arc<Pulse>,
    /// The last claim found as much as it asked for: there may be more.
    backlog: AtomicBool,
}

/// A run under way: which claim of it, and what halts it.
#[derive(Debug)]
struct Active {
    attempt: u64,
    halt: CancellationToken,
}

impl Workers {
    /// Starts them. Where no other process can be, whatever an earlier life left is free at once.
    pub async fn start(parts: Parts) -> Result<Workers, chancery_store::StoreError> {
        let store = parts.store.clone();
        store.beat(parts.limits.lease).await?;
        store.rescue().await?;
        let pulse = Arc::new(Pulse::new(parts.limits.lease, &store));
        let shared = Arc::new(Shared {
            slots: Arc::new(Semaphore::new(parts.limits.concurrency)),
            drives: TaskTracker::new(),
            active: Mutex::default(),
            stop: CancellationToken::new(),
            backlog: AtomicBool::new(false),
            pulse,
            parts,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(dispatch::dispatch(shared.clone()));
        if store.is_shared() {
            tasks.spawn(pulse::beat(shared.clone()));
            tasks.spawn(pulse::rescue(shared.clone()));
        }
        tasks.spawn(watch(shared.clone()));
        tasks.spawn(timer::fire(store, shared.parts.escalation, shared.stop.clone()));
        Ok(Workers { shared, tasks })
    }

    /// Ends in good order: steps in flight end, leases are given back. What has not ended when
    /// the grace is over is left for others to rescue.
    pub async fn stop(mut self, grace: Duration) {
        self.shared.stop.cancel();
        self.shared.drives.close();
        if tokio::time::timeout(grace, self.shared.drives.wait()).await.is_err() {
            tracing::warn!("Steps in flight did not end within {grace:?}");
        }
        self.tasks.shutdown().await;
        if let Err(error) = self.shared.parts.store.resign().await {
            tracing::warn!(%error, "Leases could not be given back: {error}");
        }
    }
}

/// Drives a run in a task of its own, in one of the places that only the dispatcher takes.
fn spawn_drive(shared: &Arc<Shared>, claimed: Claimed, aside: CancellationToken) {
    let place = shared.slots.clone().try_acquire_owned();
    let (run, attempt) = (claimed.lease.run(), claimed.lease.attempt());
    let halt = CancellationToken::new();
    shared.active().insert(run, Active { attempt, halt: halt.clone() });
    let (stop, pulse) = (shared.stop.clone(), shared.pulse.clone());
    let reins = Reins { halt, stop, aside, pulse };
    let shared = shared.clone();
    shared.clone().drives.spawn(async move {
        drive_one(&shared, claimed, reins).await;
        shared.forget(run, attempt);
        drop(place);
        if shared.backlog.load(Ordering::Relaxed) {
            shared.parts.store.bell().ring_work();
        }
    });
}

async fn drive_one(shared: &Arc<Shared>, claimed: Claimed, reins: Reins) {
    let Claimed { lease, log } = claimed;
    let (run, attempt) = (lease.run(), lease.attempt());
    let log = match log {
        Ok(log) => log,
        Err(error) => {
            tracing::error!(run.id = %run, %error, "The log of {run} cannot be read: {error}");
            give_back(shared, lease, Release::Failure { pause: Duration::from_secs(60) }).await;
            return;
        }
    };
    // A task of its own, so that a panic ends this drive and nothing else.
    let driving = {
        let shared = shared.clone();
        tokio::spawn(async move {
            let driven = runner::drive(&shared.parts, &lease, &log, &reins).await;
            (driven, lease)
        })
    };
    match driving.await {
        Ok((Ok(Driven::Parked), _)) => {}
        Ok((Ok(Driven::Handover), lease)) => give_back(shared, lease, Release::Handover).await,
        Ok((Err(JournalError::Append(AppendError::LeaseLost(_))), lease)) => {
            tracing::warn!(run.id = %run, "The lease on {run} is lost; this worker lets go of it");
            // If nobody has taken it over, nobody would: to the others its owner lives.
            give_back(shared, lease, Release::Handover).await;
        }
        Ok((Err(error), lease)) => {
            tracing::error!(run.id = %run, %error, "Run {run} could not be driven on: {error}");
            let pause = backoff(lease.failures());
            let how = match is_away(&error) {
                true => Release::Later { pause },
                false => Release::Failure { pause },
            };
            give_back(shared, lease, how).await;
        }
        // The lease went down with the task: it is rescued by name.
        Err(panic) => {
            tracing::error!(run.id = %run, %panic, "Driving {run} panicked: {panic}");
            rescue_own(shared, run, attempt, Release::Failure { pause: backoff(0) }).await;
        }
    }
}

/// Whether it is the store that is to blame, and not the run.
fn is_away(error: &JournalError) -> bool {
    match error {
        JournalError::Append(AppendError::Store(error)) | JournalError::Store(error) => {
            error.may_pass()
        }
        _ => false,
    }
}

async fn give_back(shared: &Shared, lease: Lease, how: Release) {
    let (run, attempt) = (lease.run(), lease.attempt());
    if let Err(error) = shared.parts.store.release(lease, how).await {
        tracing::warn!(run.id = %run, %error, "The lease on {run} could not be given back: {error}");
        rescue_own(shared, run, attempt, how).await;
    }
}

/// Frees a run that this process owns but no longer drives, for as long as that takes.
async fn rescue_own(shared: &Shared, run: RunId, attempt: u64, how: Release) {
    let mut failures = 0;
    while let Err(error) = shared.parts.store.disown(run, attempt, how).await {
        tracing::warn!(run.id = %run, %error, "{run} could not be freed yet: {error}");
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(backoff(failures)) => {}
        }
        failures += 1;
    }
}

fn backoff(failures: u32) -> Duration {
    Duration::from_millis(250 << failures.min(8))
}

/// Halts the runs that were ended by another hand while they are driven here.
async fn watch(shared: Arc<Shared>) {
    let mut changes = shared.parts.store.bell().changes();
    loop {
        let suspects: Vec<RunId> = match changes.recv().await {
            Ok(Changed::Driven(_)) => continue,
            Ok(Changed::Outside(run)) => {
                shared.active().contains_key(&run).then_some(run).into_iter().collect()
            }
            Ok(Changed::Something) | Err(broadcast::error::RecvError::Lagged(_)) => {
                // Others write often: what they say is taken together.
                tokio::time::sleep(Duration::from_millis(200)).await;
                changes = changes.resubscribe();
                shared.active().keys().copied().collect()
            }
            Err(broadcast::error::RecvError::Closed) => return,
        };
        match shared.parts.store.ended_among(&suspects).await {
            Ok(ended) => {
                let active = shared.active();
                for run in ended {
                    if let Some(active) = active.get(&run) {
                        active.halt.cancel();
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "No watch this time: {error}"),
        }
    }
}

impl Shared {
    fn active(&self) -> std::sync::MutexGuard<'_, BTreeMap<RunId, Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This claim is no longer driven. A later claim of the same run may be.
    fn forget(&self, run: RunId, attempt: u64) {
        let mut active = self.active();
        if active.get(&run).is_some_and(|it| it.attempt == attempt) {
            active.remove(&run);
        }
    }
}
