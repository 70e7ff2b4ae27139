//! What a tool is, the registry, and [`Tools::call`]: the only door to one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::{Call, CallResult};
use chancery_domain::id::{AgentId, RunId, UserId, WaitKey};
use chancery_domain::policy::Fitness;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::model::ToolOffer;

/// Something that acts. No permit, no call.
#[async_trait]
pub trait Tool: Send + Sync + std::fmt::Debug {
    fn spec(&self) -> &ToolSpec;

    /// Carries out the call that the permit is for. Bad arguments and failures are results that
    /// the model reads, not errors of ours.
    async fn call(&self, permit: Permit, context: &CallContext) -> Done;
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    pub effect: Effect,
    /// May be run again with the same key when its outcome is unknown.
    pub idempotent: bool,
    /// May overlap with its neighbours in a batch that say the same.
    pub supports_parallel: bool,
}

/// Where a tool's effect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// In the world: its start is durable before it runs.
    Outside,
    /// In the log alone: start and effect are one append, so its outcome is never unknown.
    Log,
}

/// What a tool is told beside the arguments.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub run: RunId,
    pub agent: AgentId,
    pub user: UserId,
    /// For the far side, to recognise a call that it has seen before.
    pub idempotency_key: String,
    /// Fires when the run is cancelled or its lease is lost.
    pub cancelled: CancellationToken,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    Result(CallResult),
    /// Only from tools whose effect is in the log.
    Wait {
        key: WaitKey,
        timeout: Option<Duration>,
    },
}

/// The tools that there are, each with its compiled schema.
#[derive(Debug, Default)]
pub struct Tools {
    by_name: BTreeMap<String, Registered>,
}

#[derive(Debug)]
struct Registered {
    tool: Arc<dyn Tool>,
    arguments: jsonschema::Validator,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    #[error("two tools are named `{0}`")]
    Twice(String),
    #[error("the schema of tool `{tool}` is not a usable JSON Schema: {detail}")]
    Schema { tool: String, detail: String },
}

impl Tools {
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let name = tool.spec().name.clone();
        if self.by_name.contains_key(&name) {
            return Err(RegisterError::Twice(name));
        }
        let arguments = jsonschema::validator_for(&tool.spec().parameters)
            .map_err(|it| RegisterError::Schema { tool: name.clone(), detail: it.to_string() })?;
        self.by_name.insert(name, Registered { tool, arguments });
        Ok(())
    }

    pub fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.by_name.get(name).map(|it| it.tool.spec())
    }

    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.by_name.values().map(|it| it.tool.spec())
    }

    pub fn offers(&self, shown: impl Fn(&str) -> bool) -> Vec<ToolOffer> {
        self.specs()
            .filter(|spec| shown(&spec.name))
            .map(|spec| ToolOffer {
                name: spec.name.clone(),
                description: spec.description.clone(),
                parameters: spec.parameters.clone(),
            })
            .collect()
    }

    /// Whether a call names a tool that exists, with arguments that it takes.
    pub fn fitness(&self, call: &Call) -> Fitness {
        let Some(registered) = self.by_name.get(&call.tool) else {
            return Fitness::UnknownTool;
        };
        match registered.arguments.iter_errors(&call.arguments).next() {
            None => Fitness::Fits,
            Some(error) => {
                let at = error.instance_path().to_string();
                let at = if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") };
                Fitness::BadArguments(format!("{at}: {error}"))
            }
        }
    }

    /// The only door to a tool. The caller has made the start durable.
    pub async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        match self.by_name.get(&permit.call().tool) {
            Some(registered) => registered.tool.call(permit, context).await,
            // It was there when the gate ruled, and is gone since.
            None => Done::Result(CallResult::error(
                "UNKNOWN_TOOL",
                format!("there is no tool `{}` any more", permit.call().tool),
            )),
        }
    }
}
