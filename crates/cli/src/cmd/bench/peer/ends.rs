//! When a run has durably ended: not when its model has said its last word.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use chancery_domain::id::RunId;
use chancery_store::{Changed, Store};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};

/// Who waits for which run.
#[derive(Debug, Clone, Default)]
pub struct Ends(Arc<Mutex<HashMap<RunId, oneshot::Sender<()>>>>);

impl Ends {
    /// Before the run is made, or its end could be missed.
    pub fn of(&self, run: RunId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run, sender);
        receiver
    }

    /// Watches the log's bell. Only runs whose model was asked for the `last` time are looked up:
    /// once or twice each, however many steps they had.
    pub async fn watch(self, store: Store, mut last: mpsc::UnboundedReceiver<RunId>) {
        let mut changes = store.bell().changes();
        let mut ending: HashSet<RunId> = HashSet::new();
        loop {
            let changed = changes.recv().await;
            while let Ok(run) = last.try_recv() {
                ending.insert(run);
            }
            let candidates: Vec<RunId> = match changed {
                Ok(Changed::Driven(run) | Changed::Outside(run)) => {
                    ending.get(&run).copied().into_iter().collect()
                }
                Ok(Changed::Something) | Err(RecvError::Lagged(_)) => {
                    ending.iter().copied().collect()
                }
                Err(RecvError::Closed) => return,
            };
            // What cannot be looked up now is looked up at the next change.
            for run in store.ended_among(&candidates).await.unwrap_or_default() {
                ending.remove(&run);
                let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
                if let Some(waiting) = waiting {
                    let _ = waiting.send(());
                }
            }
        }
    }
}
