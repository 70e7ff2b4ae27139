//! The heartbeat: how the others know that this worker lives, and how it knows them dead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chancery_store::Store;
use tokio::time::Instant;

use super::Shared;

/// A heartbeat that failed is tried again soon: the lease runs.
const BEAT_AGAIN: Duration = Duration::from_millis(200);

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

pub(super) async fn beat(shared: Arc<Shared>) {
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

pub(super) async fn rescue(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
        }
        match shared.parts.store.rescue().await {
            Ok(0) => {}
            Ok(rescued) => tracing::warn!(rescued, "Took over {rescued} abandoned runs"),
            Err(error) => tracing::debug!(%error, "No rescue this time: {error}"),
        }
    }
}
