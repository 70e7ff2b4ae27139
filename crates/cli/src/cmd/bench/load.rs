//! The load: runs of a fixed number of steps, with a model and a tool that cost nothing, so that
//! what is measured is the record and the runner. The model may take its time, as real ones do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chancery_domain::event::{Actor, Created, Usage};
use chancery_domain::history::History;
use chancery_domain::id::{AgentId, RoleId, RunId, UserId, WaitKey};
use chancery_runtime::clock;
use chancery_runtime::model::{Message, Model, ModelError, Reply, Request};
use chancery_runtime::worker::Workers;
use chancery_store::Store;
use serde_json::json;
use tokio::sync::Semaphore;

use super::engine::{self, BENCH};

/// As large as a small call and its result.
const ARGUMENT: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
const ANSWER: usize = 80;

/// What the runs of a load look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub steps: usize,
    pub calls_per_message: usize,
    /// The calls of a message may overlap, as those that only read do: they begin and end together.
    pub at_once: bool,
    /// Waits for a signal first, named as the run's input.
    pub waits: bool,
    /// How long the model takes to answer.
    pub thinks: Duration,
}

impl Shape {
    /// Runs of so many steps, with a model that answers at once.
    pub const fn of(steps: usize, calls_per_message: usize) -> Shape {
        let thinks = Duration::ZERO;
        Shape { steps, calls_per_message, at_once: false, waits: false, thinks }
    }

    /// A run that waits for a signal, and makes one step after it.
    pub fn waiting() -> Shape {
        Shape { waits: true, ..Shape::of(1, 1) }
    }
}

#[derive(Debug)]
pub struct Load {
    pub store: Store,
    workers: Workers,
    model: Arc<CheapModel>,
}

impl Load {
    pub async fn start(store: Store, shape: Shape, concurrency: usize) -> anyhow::Result<Load> {
        let model = Arc::new(CheapModel {
            shape,
            finished: Semaphore::new(0),
            steps: AtomicU64::new(0),
            last_asked: Mutex::new(None),
        });
        let workers = engine::start(store.clone(), model.clone(), ANSWER, concurrency).await?;
        Ok(Load { store, workers, model })
    }

    /// Keeps `clients` runs going for a while; answers how many steps they made a second.
    pub async fn steps_per_second(&self, clients: usize, time: Duration) -> anyhow::Result<f64> {
        let gone = |from: u64| self.model.steps.load(Ordering::Relaxed) - from;
        for n in 0..clients {
            self.create(&format!("warm {n}")).await?;
        }
        let (mut began, mut from, mut warm) = (Instant::now(), 0, true);
        loop {
            self.model.finished.acquire().await?.forget();
            if warm && began.elapsed() > time / 5 {
                (began, from, warm) =
                    (Instant::now(), self.model.steps.load(Ordering::Relaxed), false);
            }
            if !warm && began.elapsed() > time {
                break;
            }
            let store = self.store.clone();
            tokio::spawn(async move { create(&store, "more").await });
        }
        let rate = gone(from) as f64 / began.elapsed().as_secs_f64();
        // What is still under way ends, so that it does not disturb the next measurement.
        let mut left = clients - 1;
        while left > 0
            && tokio::time::timeout(Duration::from_secs(5), self.model.finished.acquire())
                .await
                .is_ok_and(|it| it.map(|it| it.forget()).is_ok())
        {
            left -= 1;
        }
        Ok(rate)
    }

    pub async fn create(&self, input: &str) -> anyhow::Result<RunId> {
        create(&self.store, input).await
    }

    /// From a signal to the next question to the model.
    pub async fn resume_latency(&self, run: RunId, key: &str) -> anyhow::Result<Duration> {
        let key = WaitKey::from(key);
        let asked = Instant::now();
        let amended = self
            .store
            .amend(run, clock::now(), |history, events| {
                let by = Actor::System;
                chancery_domain::command::signal(history, events, &key, json!({}), by).map(|it| {
                    use chancery_domain::command::Effect;
                    use chancery_store::log::Amendment;
                    match it {
                        Effect::Record(history) => Amendment::Record(history),
                        Effect::Already => Amendment::Nothing(()),
                    }
                })
            })
            .await?;
        amended?;
        self.model.finished.acquire().await?.forget();
        let began = *self.model.last_asked.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(began.map_or(Duration::ZERO, |it| it.saturating_duration_since(asked)))
    }

    pub async fn stop(self) {
        self.workers.stop(Duration::from_secs(10)).await;
        self.store.close().await;
    }
}

/// Creates a run of a load.
pub async fn create(store: &Store, input: &str) -> anyhow::Result<RunId> {
    let id = clock::new_run_id();
    create_as(store, id, input).await?;
    Ok(id)
}

/// A run whose name is known before it can do anything.
pub async fn create_as(store: &Store, id: RunId, input: &str) -> anyhow::Result<()> {
    let created = Created {
        org: "default".to_owned(),
        agent: AgentId::from(BENCH),
        role: RoleId::from(BENCH),
        user: UserId::from(BENCH),
        project: None,
        group: None,
        session_key: None,
        parent: None,
        ancestors: Vec::new(),
        room: None,
        persons_words: Vec::new(),
        delegated: None,
        input: input.to_owned(),
        by: Actor::System,
        org_version: 0,
        contract: None,
        mails: Vec::new(),
        call: None,
        forked: None,
    };
    let mut history = History::create(id, created);
    if let Some(change) = history.change() {
        store.create(&change, None, clock::now()).await?;
    }
    Ok(())
}

/// Answers at once, from the transcript alone.
#[derive(Debug)]
struct CheapModel {
    shape: Shape,
    /// A permit for every run that has ended.
    finished: Semaphore,
    steps: AtomicU64,
    last_asked: Mutex<Option<Instant>>,
}

#[async_trait::async_trait]
impl Model for CheapModel {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        let asked = Instant::now();
        let Shape { steps, calls_per_message, at_once, waits, thinks } = self.shape;
        if !thinks.is_zero() {
            tokio::time::sleep(thinks).await;
        }
        let results = request
            .messages
            .iter()
            .rev()
            .take_while(|it| matches!(it, Message::Tool { .. }))
            .count();
        let done = if waits {
            request.messages.iter().filter(|it| matches!(it, Message::Tool { .. })).count()
        } else {
            // The shape is fixed, so that the length of the transcript says how far it is.
            (request.messages.len() - 1) / (calls_per_message + 1) * calls_per_message
        };
        self.steps.fetch_add(results as u64, Ordering::Relaxed);
        let calls = if waits && done == 0 {
            let key = match request.messages.first() {
                Some(Message::User { text }) => text.as_str(),
                _ => "",
            };
            vec![engine::wait(key, 0)]
        } else if done >= steps {
            if waits {
                *self.last_asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
            }
            self.finished.add_permits(1);
            Vec::new()
        } else {
            let call = if at_once { engine::look } else { engine::step };
            (0..calls_per_message).map(|n| call(ARGUMENT, done + n)).collect()
        };
        let usage = Usage { input_tokens: 100, output_tokens: 10, ..Usage::default() };
        Ok(Reply { text: String::new(), calls, usage, model: BENCH.to_owned() })
    }
}
