//! What the simulated runs act on: a model that follows a script, and tools that count.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::{BatchClosed, Call, CallResult, Event, Usage};
use chancery_domain::id::{AgentId, RunId, WaitKey};
use chancery_domain::org::{Agent, Org, Role};
use chancery_domain::policy::{Risk, Ruling};
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::context::Context;
use chancery_runtime::gate::{OnExpiry, Terms};
use chancery_runtime::model::{Message, Model, ModelError, Models, RawCall, Reply, Request};
use chancery_runtime::tool::{CallContext, Description, Done, Effect, Tool, ToolSpec, Tools};
use chancery_runtime::{Limits, Parts, clock};
use chancery_store::Store;
use chancery_store::fault::Fuse;
use serde_json::{Value, json};

use super::Scenario;
use super::people::{Law, Says};

/// What a call of a script does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// One at a time, and not to be repeated.
    Write,
    /// May overlap with its like; not to be repeated.
    Look,
    /// May be repeated.
    Safe,
    /// The role may not.
    Denied,
    /// There is no such tool.
    Nonsense,
    /// Waits for a signal; its effect is in the log.
    Wait,
    /// Somebody must approve it.
    Ask,
    /// A person must approve it.
    AskHuman,
}

impl Act {
    pub const ALL: [Act; 8] = [
        Act::Write,
        Act::Look,
        Act::Safe,
        Act::Denied,
        Act::Nonsense,
        Act::Wait,
        Act::Ask,
        Act::AskHuman,
    ];

    pub fn tool(self) -> &'static str {
        match self {
            Act::Write => "write",
            Act::Look => "look",
            Act::Safe => "safe",
            Act::Denied => "denied",
            Act::Nonsense => "nonsense",
            Act::Wait => "wait",
            Act::Ask => "ask",
            Act::AskHuman => "ask_human",
        }
    }

    pub fn named(tool: &str) -> Option<Act> {
        Act::ALL.into_iter().find(|it| it.tool() == tool)
    }
}

/// What the far side of the runs has seen.
#[derive(Debug, Default)]
pub struct World {
    /// By idempotency key.
    effects: Mutex<BTreeMap<String, u32>>,
    /// What a tool was last called with, by idempotency key.
    arguments: Mutex<BTreeMap<String, Value>>,
    pub model_calls: AtomicU64,
    violations: Mutex<Vec<String>>,
    law: Mutex<Laws>,
    /// Of the life that is lived now.
    in_force: Mutex<Option<(InForce, Fuse)>>,
}

/// The rules, and where each log was when they changed; a run that is not in here began later.
#[derive(Debug, Clone, Default)]
struct Laws {
    law: Law,
    enacted_at: BTreeMap<RunId, u64>,
    revoked_at: BTreeMap<RunId, u64>,
}

/// The rules, and where a run's log was when they changed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Enacted {
    pub law: Law,
    pub at: u64,
    /// When what was remembered was taken back.
    pub revoked_at: Option<u64>,
}

impl World {
    pub fn effects(&self) -> BTreeMap<String, u32> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// By idempotency key, which begins with the run's id.
    pub fn effects_of(&self, run: RunId) -> BTreeMap<String, u32> {
        let (from, to) = (format!("{run}:"), format!("{run};"));
        let effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        effects.range(from..to).map(|(key, count)| (key.clone(), *count)).collect()
    }

    /// A tool was called. Answers how often it was with this key.
    pub fn takes_effect(&self, key: &str, arguments: &Value) -> u32 {
        let mut given = self.arguments.lock().unwrap_or_else(PoisonError::into_inner);
        given.insert(key.to_owned(), arguments.clone());
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        let count = effects.entry(key.to_owned()).or_default();
        *count += 1;
        *count
    }

    pub fn arguments(&self, key: &str) -> Option<Value> {
        self.arguments.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub fn enacted(&self, run: RunId) -> Enacted {
        let laws = self.law.lock().unwrap_or_else(PoisonError::into_inner);
        let at = laws.enacted_at.get(&run).copied().unwrap_or(0);
        Enacted { law: laws.law, at, revoked_at: laws.revoked_at.get(&run).copied() }
    }

    /// Changes the rules, the first time that it is asked to. The logs of the runs that there are
    /// have come so far.
    pub fn enact(self: &Arc<World>, law: Law, places: impl IntoIterator<Item = (RunId, u64)>) {
        {
            let mut laws = self.law.lock().unwrap_or_else(PoisonError::into_inner);
            if laws.law == law {
                return;
            }
            laws.law = law;
            laws.enacted_at.extend(places);
        }
        let in_force = self.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((in_force, fuse)) = &*in_force {
            in_force.replace(authority(self, fuse));
        }
    }

    /// Who drives a run knew the new rules only from here on.
    pub fn knew_late(&self, run: RunId, at: u64) {
        let mut laws = self.law.lock().unwrap_or_else(PoisonError::into_inner);
        laws.enacted_at.insert(run, at);
    }

    pub fn law(&self) -> Law {
        self.law.lock().unwrap_or_else(PoisonError::into_inner).law
    }

    pub fn revoked(&self, run: RunId, at: u64) {
        let mut laws = self.law.lock().unwrap_or_else(PoisonError::into_inner);
        laws.revoked_at.entry(run).or_insert(at);
    }

    pub fn violated(&self, what: impl Into<String>) {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What one life of a worker works with: all that it does passes through its fuse.
pub fn parts(world: &Arc<World>, store: &Store, fuse: &Fuse, scenario: &Scenario) -> Parts {
    let in_force = InForce::new(authority(world, fuse));
    let current = Some((in_force.clone(), fuse.clone()));
    *world.in_force.lock().unwrap_or_else(PoisonError::into_inner) = current;
    let model = Scripted {
        world: world.clone(),
        script: scenario.script.clone(),
        store: store.clone(),
        fuse: fuse.clone(),
    };
    Parts {
        store: store.clone(),
        authority: in_force,
        models: Arc::new(Models::new(Arc::new(model), BTreeMap::new())),
        limits: Limits {
            attempts: scenario.attempts,
            on_unknown_outcome: scenario.on_unknown,
            ..Limits::default()
        },
        terms: Terms {
            on_expiry: match scenario.people.says {
                Says::NothingTwice => OnExpiry::Escalate,
                _ => OnExpiry::Deny,
            },
            ..Terms::default()
        },
        escalation: Default::default(),
        embeddings: None,
    }
}

/// The rules as they are, and the tools that there are under them.
fn authority(world: &Arc<World>, fuse: &Fuse) -> Authority {
    let law = world.law();
    let agent = (AgentId::from("clerk"), Agent::of("worker"));
    let mut tools = Tools::default();
    for act in Act::ALL {
        if act == Act::Nonsense || act == Act::Ask && law == Law::Gone {
            continue;
        }
        let tool = Counting { spec: spec(act), world: world.clone(), fuse: fuse.clone() };
        if let Err(error) = tools.register(Arc::new(tool)) {
            world.violated(error.to_string());
        }
    }
    Authority::new(Arc::new(org(law, [agent])), Arc::new(tools))
}

/// An organisation of agents of one role, under a law.
pub fn org(law: Law, agents: impl IntoIterator<Item = (AgentId, Agent)>) -> Org {
    let deny_tools = vec!["denied".to_owned().into()];
    let role = Role { deny_tools, ..Role::unlimited("worker") };
    let agents = agents.into_iter().map(|(id, agent)| {
        let dismissed = law == Law::Dismissed && id.as_str() == "clerk";
        (id, Agent { active: !dismissed, ..agent })
    });
    let mut org = Org::new([role], agents).unwrap_or_default();
    org.policy.capabilities.insert("payment".to_owned(), Ruling::RequireHuman.into());
    let stricter = match law {
        Law::Human => Some(Ruling::RequireHuman),
        Law::Denied => Some(Ruling::Deny),
        Law::Usual | Law::Gone | Law::Dismissed => None,
    };
    org.policy.tools.extend(stricter.map(|it| ("ask".to_owned(), it.into())));
    org
}

pub fn spec(act: Act) -> ToolSpec {
    ToolSpec {
        name: act.tool().to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        risk: if act == Act::Ask { Risk::High } else { Risk::Low },
        capabilities: if act == Act::AskHuman { vec!["payment".to_owned()] } else { vec![] },
        effect: if act == Act::Wait { Effect::Log } else { Effect::Outside },
        idempotent: act == Act::Safe,
        supports_parallel: act == Act::Look,
    }
}

#[derive(Debug)]
struct Counting {
    spec: ToolSpec,
    world: Arc<World>,
    fuse: Fuse,
}

#[async_trait]
impl Tool for Counting {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        self.fuse.point().await;
        if self.spec.effect == Effect::Log {
            let key = permit.call().arguments["key"].as_str().unwrap_or_default();
            return Done::Wait { key: WaitKey::from(key), timeout: None };
        }
        self.world.takes_effect(&context.idempotency_key, &permit.call().arguments);
        self.fuse.point().await;
        Done::Result(CallResult::ok(context.idempotency_key.clone()))
    }

    async fn describe(&self, _: &Call) -> Description {
        Description { signature: Some(self.spec.name.clone()), ..Description::default() }
    }
}

/// Says the next line of its script, which it finds by what it has said before. Its answer is
/// everything that it was told.
#[derive(Debug)]
struct Scripted {
    world: Arc<World>,
    script: Vec<Vec<Act>>,
    store: Store,
    fuse: Fuse,
}

#[async_trait]
impl Model for Scripted {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        self.world.model_calls.fetch_add(1, Ordering::SeqCst);
        self.fuse.point().await;
        if let Err(wrong) = judge(&self.store, &request).await {
            self.world.violated(wrong);
        }
        let batches = request
            .messages
            .iter()
            .filter(|it| matches!(it, Message::Assistant { calls, .. } if !calls.is_empty()));
        let place = batches.count();
        let calls: Vec<RawCall> = self.script.get(place).map_or_else(Vec::new, |acts| {
            acts.iter()
                .enumerate()
                .map(|(n, act)| RawCall {
                    // The same names in every batch: they are unique within one alone.
                    id: format!("c{n}"),
                    tool: act.tool().to_owned(),
                    arguments: json!({"key": format!("key-{place}-{n}")}).to_string(),
                })
                .collect()
        });
        let heard: Vec<&str> = request
            .messages
            .iter()
            .filter_map(|it| match it {
                Message::User { text } => Some(&**text),
                _ => None,
            })
            .collect();
        let text = if calls.is_empty() { heard.join("|") } else { String::new() };
        self.fuse.point().await;
        Ok(Reply { text, calls, usage: Usage::default(), model: "scripted".to_owned() })
    }
}

/// A model is shown what the log says and nothing else, with every result of every batch.
pub async fn judge(store: &Store, request: &Request<'_>) -> Result<(), String> {
    let mut messages = request.messages.iter();
    while let Some(message) = messages.next() {
        let Message::Assistant { calls, .. } = message else { continue };
        for call in calls {
            match messages.next() {
                Some(Message::Tool { call: of, .. }) if *of == call.id => {}
                other => return Err(format!("{other:?} where the result of {call:?} is due")),
            }
        }
    }
    let run = request.run.ok_or("a run's model is asked for no run")?;
    let log = store.events(run, 0, u32::MAX).await.map_err(|it| it.to_string())?;
    let Some(Event::Created(created)) = log.first().map(|it| it.event.clone()) else {
        return Err("the log does not begin".to_owned());
    };
    let mut context = Context::new(created, Vec::new());
    // Others may have gone on meanwhile, and in a group another member may have the floor.
    let read_then = log.iter().any(|it| {
        context.follow(&it.event);
        context.messages() == request.messages
    });
    // That a batch is closed is no word, and may not be written yet; it puts results in order.
    context.follow(&Event::BatchClosed(BatchClosed { message: clock::new_message_id() }));
    if read_then || context.messages().starts_with(request.messages) {
        Ok(())
    } else {
        Err(format!("read {:?}, logged {:?}", request.messages, context.messages()))
    }
}
