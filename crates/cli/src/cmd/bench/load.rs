//! The load: runs of a fixed number of steps, with a model and a tool that cost nothing, so that
//! what is measured is the record and the runner. The model may take its time, as real ones do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chancery_domain::batch::Permit;
use chancery_domain::event::{Actor, CallResult, Created, Usage};
use chancery_domain::history::History;
use chancery_domain::id::{AgentId, RoleId, RunId, UserId, WaitKey};
use chancery_domain::org::{Agent, Org, Role};
use chancery_domain::policy::Risk;
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::gate::Terms;
use chancery_runtime::model::{Message, Model, ModelError, Models, RawCall, Reply, Request};
use chancery_runtime::tool::{CallContext, Done, Effect, Tool, ToolSpec, Tools};
use chancery_runtime::worker::Workers;
use chancery_runtime::{Limits, Parts, clock};
use chancery_store::Store;
use serde_json::json;
use tokio::sync::Semaphore;

/// What the runs of a load look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub steps: usize,
    pub calls_per_message: usize,
    /// Waits for a signal first, named as the run's input.
    pub waits: bool,
    /// How long the model takes to answer.
    pub thinks: Duration,
}

impl Shape {
    /// Runs of so many steps, with a model that answers at once.
    pub const fn of(steps: usize, calls_per_message: usize) -> Shape {
        Shape { steps, calls_per_message, waits: false, thinks: Duration::ZERO }
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
        let mut tools = Tools::default();
        tools.register(Arc::new(CheapTool::new("step", Effect::Outside)))?;
        tools.register(Arc::new(CheapTool::new("wait", Effect::Log)))?;
        let role = Role::unlimited("bench");
        let org = Org::new([role], [(AgentId::from("bench"), Agent::of("bench"))]);
        let authority = Authority::new(Arc::new(org.unwrap_or_default()), Arc::new(tools));
        let models = Models::new(model.clone(), BTreeMap::new());
        let parts = Parts {
            store: store.clone(),
            authority: InForce::new(authority),
            models: Arc::new(models),
            limits: Limits { concurrency, ..Limits::default() },
            terms: Terms::default(),
            escalation: Default::default(),
            embeddings: None,
        };
        let workers = Workers::start(parts).await?;
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
        agent: AgentId::from("bench"),
        role: RoleId::from("bench"),
        user: UserId::from("bench"),
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
        let Shape { steps, calls_per_message, waits, thinks } = self.shape;
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
            vec![call("wait", json!({ "key": key }).to_string(), 0)]
        } else if done >= steps {
            if waits {
                *self.last_asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
            }
            self.finished.add_permits(1);
            Vec::new()
        } else {
            let arguments = r#"{"q":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}"#;
            (0..calls_per_message).map(|n| call("step", arguments.to_owned(), done + n)).collect()
        };
        let usage = Usage { input_tokens: 100, output_tokens: 10 };
        Ok(Reply { text: String::new(), calls, usage, model: "bench".to_owned() })
    }
}

fn call(tool: &str, arguments: String, n: usize) -> RawCall {
    RawCall { id: format!("call_{n}"), tool: tool.to_owned(), arguments }
}

#[derive(Debug)]
struct CheapTool {
    spec: ToolSpec,
}

impl CheapTool {
    fn new(name: &str, effect: Effect) -> CheapTool {
        CheapTool {
            spec: ToolSpec {
                name: name.to_owned(),
                description: "costs nothing".to_owned(),
                parameters: json!({ "type": "object" }),
                risk: Risk::Low,
                capabilities: vec![],
                effect,
                idempotent: false,
                supports_parallel: false,
            },
        }
    }
}

#[async_trait::async_trait]
impl Tool for CheapTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, _: &CallContext) -> Done {
        match permit.call().arguments.get("key").and_then(|it| it.as_str()) {
            Some(key) => Done::Wait { key: WaitKey::from(key), timeout: None },
            None => Done::Result(CallResult::ok("y".repeat(80))),
        }
    }
}
