//! Sweeping the queue. Its rows come and go with every run, and what is gone lies in the way of
//! every claim until it is swept: the database's own sweeper comes once a minute at best.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::Notify;

/// So many rows that are gone are worth a sweep.
const WORTH: u64 = 2_000;
/// However much goes, it is swept this often at the most.
const PAUSE: Duration = Duration::from_secs(1);
/// Another server may be at it: then it is done. Indices are what claims read.
const SWEEP: &str = "VACUUM (SKIP_LOCKED, INDEX_CLEANUP ON) queue";

#[derive(Debug, Default)]
pub(crate) struct Gone {
    rows: AtomicU64,
    enough: Notify,
}

impl Gone {
    /// One more run has left the queue.
    pub(crate) fn one(&self) {
        if self.rows.fetch_add(1, Ordering::Relaxed) + 1 == WORTH {
            self.enough.notify_one();
        }
    }
}

pub(crate) async fn sweep(pool: Pool, gone: Arc<Gone>) {
    loop {
        gone.enough.notified().await;
        gone.rows.store(0, Ordering::Relaxed);
        if let Ok(client) = pool.get().await
            && let Err(error) = client.batch_execute(SWEEP).await
        {
            // Claims are slower without it, and nothing else.
            tracing::debug!(%error, "The queue is not swept this time: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
