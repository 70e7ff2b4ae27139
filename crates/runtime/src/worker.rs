//! Workers: claim, drive, release. With them go the heartbeat, the rescue of abandoned leases,
//! the deadlines, and the watch for runs that were ended by another hand.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chancery_domain::id::RunId;
use chancery_store::queue::{Claimed, Lease, Release};
use chancery_store::{AppendError, Changed, Store};
use tokio::sync::{Semaphore, broadcast};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::journal::JournalError;
use crate::runner::{self, Driven, Reins};
use crate::{Parts, timer};

/// Claims at one time: enough to keep up, few enough to leave some to others.
const CLAIM_MAX: usize = 32;
/// A claim whose answer was lost may have been made, or may be yet for this long.
const DOUBT: Duration = Duration::from_secs(30);
/// A heartbeat that failed is tried again soon: the lease runs.
const BEAT_AGAIN: Duration = Duration::from_millis(200);
/// Waking is a hint; this often we look without one.
const POLL: Duration = Duration::from_secs(1);

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
    active: Mutex<HashMap<RunId, Active>>,
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

/// When the heartbeat was last written, by a clock that runs while a process is stopped.
#[derive(Debug)]
pub struct Pulse {
    started: Instant,
    last_beat_ms: AtomicU64,
    lease: Duration,
    /// Where no other process can be, nobody takes a run from this one.
    alone: bool,
}

impl Pulse {
    /// Of a worker that has just been heard of.
    pub fn new(lease: Duration, store: &Store) -> Pulse {
        Pulse {
            started: Instant::now(),
            last_beat_ms: AtomicU64::new(0),
            lease,
            alone: !store.is_shared(),
        }
    }

    /// Whether the worker was heard of within the length of its lease.
    pub fn is_alive(&self) -> bool {
        if self.alone {
            return true;
        }
        let last = Duration::from_millis(self.last_beat_ms.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(last) < self.lease
    }
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
        tasks.spawn(dispatch(shared.clone()));
        if store.is_shared() {
            tasks.spawn(beat(shared.clone()));
            tasks.spawn(rescue(shared.clone()));
        }
        tasks.spawn(watch(shared.clone()));
        tasks.spawn(timer::fire(store, shared.stop.clone()));
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

async fn dispatch(shared: Arc<Shared>) {
    let store = &shared.parts.store;
    let mut doubtful: Option<Instant> = None;
    loop {
        if doubtful.is_some_and(|since| since.elapsed() > DOUBT) {
            doubtful = None;
        }
        if doubtful.is_some() {
            free_lost_claims(&shared).await;
        }
        let free = shared.slots.available_permits().min(CLAIM_MAX);
        let mut full = false;
        if free > 0 {
            match store.claim(free as u32).await {
                Ok(claimed) => {
                    full = claimed.len() == free;
                    shared.backlog.store(full, Ordering::Relaxed);
                    for claim in claimed {
                        spawn_drive(&shared, claim);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "Runs could not be claimed: {error}");
                    doubtful = Some(Instant::now());
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        } else {
            shared.backlog.store(true, Ordering::Relaxed);
        }
        if full && shared.slots.available_permits() > 0 && !shared.stop.is_cancelled() {
            continue;
        }
        tokio::select! {
            () = store.bell().work() => {}
            () = tokio::time::sleep(POLL) => {}
            () = shared.stop.cancelled() => return,
        }
    }
}

/// Frees the runs that the store says are ours and that nobody here drives: the answer to their
/// claim was lost. Only the dispatcher claims, so whatever was claimed and answered is active.
async fn free_lost_claims(shared: &Shared) {
    let active: HashSet<RunId> = shared.active().keys().copied().collect();
    match shared.parts.store.free_all_but(&active).await {
        Ok(0) => {}
        Ok(freed) => tracing::warn!(freed, "Freed {freed} runs whose claim was not answered"),
        Err(error) => tracing::debug!(%error, "Lost claims are not freed yet: {error}"),
    }
}

fn spawn_drive(shared: &Arc<Shared>, claimed: Claimed) {
    // Only the dispatcher takes places, so there is one.
    let place = shared.slots.clone().try_acquire_owned();
    let (run, attempt) = (claimed.lease.run(), claimed.lease.attempt());
    let halt = CancellationToken::new();
    shared.active().insert(run, Active { attempt, halt: halt.clone() });
    let shared = shared.clone();
    shared.clone().drives.spawn(async move {
        drive_one(&shared, claimed, halt).await;
        shared.forget(run, attempt);
        drop(place);
        if shared.backlog.load(Ordering::Relaxed) {
            shared.parts.store.bell().ring_work();
        }
    });
}

async fn drive_one(shared: &Arc<Shared>, claimed: Claimed, halt: CancellationToken) {
    let Claimed { lease, log } = claimed;
    let run = lease.run();
    let reins = Reins { halt, stop: shared.stop.clone(), pulse: shared.pulse.clone() };
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
            give_back(shared, lease, Release::Failure { pause }).await;
        }
        // The lease went down with the task: it is rescued by name.
        Err(panic) => {
            tracing::error!(run.id = %run, %panic, "Driving {run} panicked: {panic}");
            rescue_own(shared, run).await;
        }
    }
}

async fn give_back(shared: &Shared, lease: Lease, how: Release) {
    let run = lease.run();
    if let Err(error) = shared.parts.store.release(lease, how).await {
        tracing::warn!(run.id = %run, %error, "The lease on {run} could not be given back: {error}");
        rescue_own(shared, run).await;
    }
}

/// Frees a run that this process owns but no longer drives, for as long as that takes.
async fn rescue_own(shared: &Shared, run: RunId) {
    let mut failures = 0;
    while let Err(error) = shared.parts.store.disown(run, backoff(failures)).await {
        tracing::warn!(run.id = %run, %error, "{run} could not be freed yet: {error}");
        tokio::select! {
            () = tokio::time::sleep(backoff(failures)) => {}
            () = shared.stop.cancelled() => return,
        }
        failures += 1;
    }
}

fn backoff(failures: u32) -> Duration {
    Duration::from_millis(250 << failures.min(8))
}

async fn beat(shared: Arc<Shared>) {
    let lease = shared.parts.limits.lease;
    let mut pause = lease / 4;
    // Also while the server stops: steps in flight may outlast a lease, and hold it until they end.
    loop {
        tokio::time::sleep(pause).await;
        let began = shared.pulse.started.elapsed();
        match shared.parts.store.beat(lease).await {
            Ok(()) => {
                pause = lease / 4;
                let was_alive = shared.pulse.is_alive();
                let began = u64::try_from(began.as_millis()).unwrap_or(u64::MAX);
                shared.pulse.last_beat_ms.store(began, Ordering::Relaxed);
                if !was_alive {
                    tracing::warn!("The lease of this server ran out, and is renewed");
                    halt_lost(&shared).await;
                }
            }
            Err(error) => {
                pause = (lease / 4).min(BEAT_AGAIN);
                tracing::warn!(%error, "The heartbeat failed: {error}");
            }
        }
    }
}

/// After a time in which this server was not heard of: halts what others have taken over. What
/// nobody took is still ours; no call of it could start meanwhile, for that needs the store.
async fn halt_lost(shared: &Shared) {
    match shared.parts.store.owned().await {
        Ok(owned) => {
            for (_, active) in shared.active().iter().filter(|(run, _)| !owned.contains(run)) {
                active.halt.cancel();
            }
        }
        // Each of them finds out when it writes.
        Err(error) => tracing::debug!(%error, "What was lost is not known yet: {error}"),
    }
}

async fn rescue(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            () = shared.stop.cancelled() => return,
        }
        match shared.parts.store.rescue().await {
            Ok(0) => {}
            Ok(rescued) => tracing::warn!(rescued, "Took over {rescued} abandoned runs"),
            Err(error) => tracing::debug!(%error, "No rescue this time: {error}"),
        }
    }
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
    fn active(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Active>> {
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
