//! Waking: a hint that something changed. Everything works by polling too.

use std::sync::Arc;

use chancery_domain::id::RunId;
use tokio::sync::{Notify, broadcast};

/// How many changes a slow listener may be behind before it is told that it missed some.
const CHANGES_HELD: usize = 1024;

#[derive(Debug, Clone)]
pub struct Bell {
    work: Arc<Notify>,
    changes: broadcast::Sender<Changed>,
}

/// Which log grew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// By the worker that drives it.
    Driven(RunId),
    /// By someone else: a person, a timer.
    Outside(RunId),
    /// Another process said that something changed, not what.
    Something,
}

impl Default for Bell {
    fn default() -> Bell {
        Bell { work: Arc::new(Notify::new()), changes: broadcast::channel(CHANGES_HELD).0 }
    }
}

impl Bell {
    /// Returns when a run may want a worker.
    pub async fn work(&self) {
        self.work.notified().await;
    }

    pub fn changes(&self) -> broadcast::Receiver<Changed> {
        self.changes.subscribe()
    }

    /// A slot is free, or the queue has grown.
    pub fn ring_work(&self) {
        self.work.notify_one();
    }

    pub(crate) fn ring_changed(&self, changed: Changed) {
        // Nobody listening is not a failure.
        let _ = self.changes.send(changed);
    }
}
