//! The engine as a library: workers with one agent that may do everything, a model of the load's
//! own, and three tools that cost nothing, so that what is measured is the record and the runner.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_domain::batch::Permit;
use chancery_domain::event::CallResult;
use chancery_domain::id::{AgentId, WaitKey};
use chancery_domain::org::{Agent, Org, Role};
use chancery_domain::policy::Risk;
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::gate::Terms;
use chancery_runtime::model::{Model, Models, RawCall};
use chancery_runtime::tool::{CallContext, Done, Effect, Tool, ToolSpec, Tools};
use chancery_runtime::worker::Workers;
use chancery_runtime::{Limits, Parts};
use chancery_store::Store;
use serde_json::{Value, json};

/// Whoever works in a load, and under which role.
pub const BENCH: &str = "bench";
/// The tool that answers at once.
const STEP: &str = "step";
/// The same, which may be called several times at once.
const LOOK: &str = "look";
/// The tool that waits for the signal `key`.
const WAIT: &str = "wait";

/// Starts workers whose tool answers with so many bytes.
pub async fn start(
    store: Store,
    model: Arc<dyn Model>,
    answer_bytes: usize,
    concurrency: usize,
) -> anyhow::Result<Workers> {
    let mut tools = Tools::default();
    for (name, effect) in [(STEP, Effect::Outside), (LOOK, Effect::Outside), (WAIT, Effect::Log)] {
        tools.register(Arc::new(Cheap { spec: spec(name, effect), answer_bytes }))?;
    }
    let agents = [(AgentId::from(BENCH), Agent::of(BENCH))];
    let org = Org::new([Role::unlimited(BENCH)], agents).unwrap_or_default();
    let parts = Parts {
        store,
        authority: InForce::new(Authority::new(Arc::new(org), Arc::new(tools))),
        models: Arc::new(Models::new(model, BTreeMap::new())),
        limits: Limits { concurrency, ..Limits::default() },
        terms: Terms::default(),
        escalation: Default::default(),
        embeddings: None,
    };
    Ok(Workers::start(parts).await?)
}

/// A model's call of the tool that answers at once, the `n`-th of its run.
pub fn step(argument: &str, n: usize) -> RawCall {
    call(STEP, &json!({ "q": argument }), n)
}

/// The same of the one that may be called several times at once.
pub fn look(argument: &str, n: usize) -> RawCall {
    call(LOOK, &json!({ "q": argument }), n)
}

/// A model's call of the tool that waits.
pub fn wait(key: &str, n: usize) -> RawCall {
    call(WAIT, &json!({ "key": key }), n)
}

fn call(tool: &str, arguments: &Value, n: usize) -> RawCall {
    RawCall { id: format!("call_{n}"), tool: tool.to_owned(), arguments: arguments.to_string() }
}

#[derive(Debug)]
struct Cheap {
    spec: ToolSpec,
    answer_bytes: usize,
}

fn spec(name: &str, effect: Effect) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "costs nothing".to_owned(),
        parameters: json!({ "type": "object" }),
        risk: Risk::Low,
        capabilities: vec![],
        effect,
        idempotent: false,
        supports_parallel: name == LOOK,
    }
}

#[async_trait::async_trait]
impl Tool for Cheap {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, _: &CallContext) -> Done {
        match permit.call().arguments.get("key").and_then(Value::as_str) {
            Some(key) => Done::Wait { key: WaitKey::from(key), timeout: None },
            None => Done::Result(CallResult::ok("y".repeat(self.answer_bytes))),
        }
    }
}
