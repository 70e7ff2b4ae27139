//! The work of every peer: five questions to a model and five calls, each a durable step, with
//! payloads of 80 and 200 bytes; or a wait for a signal and one more question. Ours asks once more
//! than is counted, because a run here ends with an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chancery_domain::event::Usage;
use chancery_domain::id::RunId;
use chancery_runtime::clock;
use chancery_runtime::model::{Message, Model, ModelError, Reply, Request};
use chancery_runtime::worker::Workers;
use chancery_store::Store;
use tokio::sync::{mpsc, oneshot};

use super::ends::Ends;
use crate::cmd::bench::engine::{self, BENCH};
use crate::cmd::bench::load;

const CALLS: usize = 5;
/// The bytes of a tool's answer.
const ANSWER: usize = 200;
const WAIT: &str = "wait for ";

#[derive(Debug)]
pub struct Work {
    pub store: Store,
    workers: Workers,
    ends: Ends,
    asked_again: Arc<AskedAgain>,
}

/// Who waits for a run's model to be asked after a signal.
type AskedAgain = Mutex<HashMap<RunId, oneshot::Sender<Instant>>>;

impl Work {
    pub async fn start(store: Store) -> anyhow::Result<Work> {
        let (last, asked_last) = mpsc::unbounded_channel();
        let (ends, asked_again) = (Ends::default(), Arc::<AskedAgain>::default());
        let model = PeerModel { last, asked_again: asked_again.clone() };
        let workers = engine::start(store.clone(), Arc::new(model), ANSWER, 64).await?;
        tokio::spawn(ends.clone().watch(store.clone(), asked_last));
        Ok(Work { store, workers, ends, asked_again })
    }

    /// One run of ten steps, until its end is durable.
    pub async fn run_once(&self) -> anyhow::Result<()> {
        let run = clock::new_run_id();
        let ended = self.ends.of(run);
        load::create_as(&self.store, run, "work").await?;
        Ok(ended.await?)
    }

    /// A run that waits for a signal, and the moment at which its model is asked after that.
    pub async fn wait_for(&self, key: &str) -> anyhow::Result<(RunId, oneshot::Receiver<Instant>)> {
        let run = clock::new_run_id();
        let (sender, receiver) = oneshot::channel();
        self.asked_again.lock().unwrap_or_else(PoisonError::into_inner).insert(run, sender);
        load::create_as(&self.store, run, &format!("{WAIT}{key}")).await?;
        Ok((run, receiver))
    }

    pub async fn stop(self) {
        self.workers.stop(Duration::from_secs(10)).await;
        self.store.close().await;
    }
}

/// Answers at once, from the transcript alone.
#[derive(Debug)]
struct PeerModel {
    /// Runs that are about to end.
    last: mpsc::UnboundedSender<RunId>,
    asked_again: Arc<AskedAgain>,
}

#[async_trait::async_trait]
impl Model for PeerModel {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        let asked = Instant::now();
        let done = request.messages.iter().filter(|it| matches!(it, Message::Tool { .. })).count();
        let key = match request.messages.first() {
            Some(Message::User { text }) => text.strip_prefix(WAIT),
            _ => None,
        };
        let call = match (key, done) {
            (Some(key), 0) => Some(engine::wait(key, done)),
            (None, 0..CALLS) => Some(engine::step(&"x".repeat(70), done)),
            _ => None,
        };
        if let (None, Some(run)) = (&call, request.run) {
            let waiting =
                self.asked_again.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
            match waiting {
                Some(waiting) => drop(waiting.send(asked)),
                None => drop(self.last.send(run)),
            }
        }
        let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
        let calls = call.into_iter().collect();
        Ok(Reply { text: String::new(), calls, usage, model: BENCH.to_owned() })
    }
}
