//! What a tool is, the registry, and [`Tools::call`]: the only door to one.
//!
//! Never decides whether a call may be made: that is the gate's, and a [`Permit`] is its word.

pub mod config;

pub mod contract;
pub mod files;
pub mod group;
pub mod mail;
pub mod memory;
pub mod staff;
pub mod wait_for_signal;

pub mod command;
pub mod mcp;

pub mod desk;
pub mod docker;
pub mod git;
pub mod program;
pub mod settings;
pub mod web;

mod backlog;
mod ci;
mod code;
mod document;
mod equipment;
mod logs;
mod objection;
mod reports;
mod shelf;

mod duration;
pub(crate) mod process;
mod spec;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::contract::Warrant;
use chancery_domain::event::{Call, CallResult, Created, Member, RequestKind};
use chancery_domain::id::{RunId, WaitKey};
use chancery_domain::org::{Org, Role};
use chancery_domain::policy::{Access, Fitness, Reason, rule_on_protected};
use chancery_store::StoreError;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::objection::{Objection, Prospect};
pub use self::spec::{Effect, ToolSpec};
use crate::digest;
use crate::model::ToolOffer;

/// Something that acts. No permit, no call.
#[async_trait]
pub trait Tool: Send + Sync + std::fmt::Debug {
    fn spec(&self) -> &ToolSpec;

    /// Carries out the call that the permit is for. Bad arguments and failures are results that
    /// the model reads, not errors of ours.
    async fn call(&self, permit: Permit, context: &CallContext) -> Done;

    /// What a call touches, by its own arguments and by who makes it: the gate rules on each.
    fn touches(&self, _: &Call, _: Caller<'_>) -> Vec<Touched> {
        Vec::new()
    }

    /// What the record has against a call that its arguments do not show.
    async fn objects(&self, _: &Call, _: &Prospect<'_>) -> Result<Option<Objection>, StoreError> {
        Ok(None)
    }

    /// What a call does, beside what the description and the schema say of it. Where any of them
    /// changes, what somebody granted was a call of another tool.
    fn definition(&self) -> Value {
        Value::Null
    }

    /// What a person who is asked about a call is to see of it, beside its arguments.
    async fn describe(&self, _: &Call) -> Description {
        Description::default()
    }
}

/// A call as a person is to see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    pub kind: RequestKind,
    pub payload: serde_json::Map<String, Value>,
    /// What a remembered answer would cover; absent: these very arguments.
    pub signature: Option<String>,
}

impl Default for Description {
    fn default() -> Description {
        Description { kind: RequestKind::All, payload: Default::default(), signature: None }
    }
}

/// What a role's own rules speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// Beneath the workspace; a folder stands for all that is in it.
    Path(Access, String),
    /// Written to.
    Branch(String),
}

/// Who makes a call, as far as what it touches depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'c> {
    pub agent: &'c str,
    pub role: &'c Role,
    pub org: &'c Org,
    pub warrant: &'c Warrant,
}

impl Touched {
    /// What the caller's role says against it.
    pub fn rule(&self, caller: Caller<'_>) -> Option<Reason> {
        match self {
            Touched::Path(access, path) => rule_on_protected(path)
                .or_else(|| caller.role.rule_on_path(*access, path, caller.warrant)),
            Touched::Branch(branch) => caller.role.rule_on_branch(branch, caller.warrant),
        }
    }
}

/// What a tool is told beside the arguments.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub run: RunId,
    /// What the run was made with.
    pub created: Arc<Created>,
    /// The agent that calls.
    pub speaker: Member,
    pub org: Arc<Org>,
    /// What its contracts let it reach.
    pub warrant: Arc<Warrant>,
    /// For the far side, to recognise a call that it has seen before.
    pub idempotency_key: String,
    /// Fires when the run is cancelled or its lease is lost.
    pub cancelled: CancellationToken,
}

impl CallContext {
    /// Who calls. `None`: the organisation has no such agent any more.
    pub fn caller(&self) -> Option<Caller<'_>> {
        let role = self.org.role_of(&self.speaker.agent)?;
        let agent = self.speaker.agent.as_str();
        Some(Caller { agent, role, org: &self.org, warrant: &self.warrant })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    Result(CallResult),
    /// Only from tools whose effect is in the log.
    Wait {
        key: WaitKey,
        timeout: Option<Duration>,
    },
    /// Only from tools whose effect is another run.
    Escalate(Box<group::Goal>),
    /// The group's work ends with this answer.
    Conclude(String),
}

/// The tools that there are, each with its compiled schema.
///
/// Append-only: a tool, once there, stays as it is, so that what a person approved is what runs.
#[derive(Debug, Default)]
pub struct Tools {
    by_name: BTreeMap<String, Registered>,
    /// Filled at most once each, by sources that were not there at the start; with what the
    /// names of their tools begin with.
    later: Vec<(String, Place)>,
}

type Place = Arc<OnceLock<BTreeMap<String, Registered>>>;

/// A place in a registry for tools that arrive after it was built.
#[derive(Debug)]
pub struct Later {
    place: Weak<OnceLock<BTreeMap<String, Registered>>>,
    prefix: String,
}

#[derive(Debug)]
struct Registered {
    tool: Arc<dyn Tool>,
    offer: ToolOffer,
    arguments: jsonschema::Validator,
    definition_sha256: String,
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
        if self.get(&name).is_some() {
            return Err(RegisterError::Twice(name));
        }
        self.by_name.insert(name, Registered::new(tool)?);
        Ok(())
    }

    /// Keeps a place for tools whose names will begin with `prefix`.
    pub fn later(&mut self, prefix: &str) -> Later {
        let place = Arc::new(OnceLock::new());
        self.later.push((prefix.to_owned(), place.clone()));
        Later { place: Arc::downgrade(&place), prefix: prefix.to_owned() }
    }

    pub fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.get(name).map(|it| it.tool.spec())
    }

    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.all().map(|it| it.tool.spec())
    }

    /// The digest of what a tool is: of its description, its schema and what a call of it does.
    pub fn definition_sha256(&self, name: &str) -> Option<&str> {
        self.get(name).map(|it| &*it.definition_sha256)
    }

    /// How many of the sources that come later have come.
    pub fn arrived(&self) -> usize {
        self.later.iter().filter(|it| it.1.get().is_some()).count()
    }

    pub fn touches(&self, call: &Call, caller: Caller<'_>) -> Vec<Touched> {
        self.get(&call.tool).map(|it| it.tool.touches(call, caller)).unwrap_or_default()
    }

    /// What the record has against a call that is to be made.
    pub async fn denied(
        &self,
        call: &Call,
        who: &Prospect<'_>,
    ) -> Result<Option<Reason>, StoreError> {
        Ok(match self.objects(call, who).await? {
            Some(Objection::Denied(reason)) => Some(reason),
            Some(Objection::Told(_)) | None => None,
        })
    }

    /// What the record has against a call that somebody asks about.
    pub async fn foreseen(
        &self,
        call: &Call,
        who: &Prospect<'_>,
    ) -> Result<Option<Reason>, StoreError> {
        Ok(self.objects(call, who).await?.map(|it| match it {
            Objection::Denied(reason) | Objection::Told(reason) => reason,
        }))
    }

    async fn objects(
        &self,
        call: &Call,
        who: &Prospect<'_>,
    ) -> Result<Option<Objection>, StoreError> {
        match self.get(&call.tool) {
            Some(it) => it.tool.objects(call, who).await,
            None => Ok(None),
        }
    }

    /// What the names of tools begin with that have not come yet.
    pub fn awaited(&self) -> Vec<&str> {
        self.later.iter().filter(|it| it.1.get().is_none()).map(|it| &*it.0).collect()
    }

    /// A call as a person is to see it.
    pub async fn describe(&self, call: &Call) -> Description {
        match self.get(&call.tool) {
            Some(registered) => registered.tool.describe(call).await,
            None => Description::default(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Registered> {
        let later = self.later.iter().filter_map(|it| it.1.get());
        std::iter::once(&self.by_name).chain(later).flat_map(|tools| tools.values())
    }

    fn get(&self, name: &str) -> Option<&Registered> {
        self.by_name.get(name).or_else(|| self.later.iter().find_map(|it| it.1.get()?.get(name)))
    }

    pub fn offers(&self, shown: impl Fn(&str) -> bool) -> Vec<&ToolOffer> {
        self.all().map(|it| &it.offer).filter(|offer| shown(&offer.name)).collect()
    }

    /// Whether a call names a tool that exists, with arguments that it takes.
    pub fn fitness(&self, call: &Call) -> Fitness {
        let Some(registered) = self.get(&call.tool) else {
            return Fitness::UnknownTool;
        };
        fitness(&registered.arguments, &call.arguments)
    }

    /// The only door to a tool. The caller has made the start durable.
    pub async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        match self.get(&permit.call().tool) {
            Some(registered) => registered.tool.call(permit, context).await,
            // It was there when the gate ruled, and is gone since.
            None => Done::Result(CallResult::error(
                "UNKNOWN_TOOL",
                format!("there is no tool `{}` any more", permit.call().tool),
            )),
        }
    }
}

fn fitness(schema: &jsonschema::Validator, arguments: &Value) -> Fitness {
    match schema.iter_errors(arguments).next() {
        None => Fitness::Fits,
        Some(error) => {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") };
            Fitness::BadArguments(format!("{at}: {error}"))
        }
    }
}

/// Whether arguments fit a tool's schema, for a tool that is not there to be asked.
pub fn fits(parameters: &Value, arguments: &Value) -> Fitness {
    match jsonschema::validator_for(parameters) {
        Ok(schema) => fitness(&schema, arguments),
        Err(error) => Fitness::BadArguments(error.to_string()),
    }
}

impl Later {
    /// Puts the tools in their place, and says which of them cannot be there. Once only: a
    /// second arrival changes nothing.
    pub fn arrive(&self, tools: Vec<Arc<dyn Tool>>) -> Vec<RegisterError> {
        let mut refused = Vec::new();
        let mut arrived = BTreeMap::new();
        for tool in tools {
            let name = tool.spec().name.clone();
            if !name.starts_with(&self.prefix) || arrived.contains_key(&name) {
                refused.push(RegisterError::Twice(name));
                continue;
            }
            match Registered::new(tool) {
                Ok(registered) => {
                    arrived.insert(name, registered);
                }
                Err(error) => refused.push(error),
            }
        }
        if let Some(place) = self.place.upgrade() {
            let _ = place.set(arrived);
        }
        refused
    }

    /// Whether the registry is still there.
    pub fn wanted(&self) -> bool {
        self.place.strong_count() > 0
    }
}

impl Registered {
    fn new(tool: Arc<dyn Tool>) -> Result<Registered, RegisterError> {
        let spec = tool.spec();
        let arguments = jsonschema::validator_for(&spec.parameters).map_err(|it| {
            RegisterError::Schema { tool: spec.name.clone(), detail: it.to_string() }
        })?;
        let offer = ToolOffer {
            name: spec.name.clone(),
            description: spec.description.clone(),
            parameters: spec.parameters.clone(),
        };
        let definition_sha256 = digest::sha256(&serde_json::json!({
            "description": spec.description,
            "parameters": spec.parameters,
            "definition": tool.definition(),
        }));
        Ok(Registered { tool, offer, arguments, definition_sha256 })
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of the tools share.

    use super::*;
    use uuid::Uuid;

    pub(crate) fn context() -> CallContext {
        CallContext {
            run: RunId(Uuid::from_u128(1)),
            created: Arc::new(chancery_testkit::created("pa", "lin")),
            speaker: Member { agent: "pa".into(), role: "personal_agent".into() },
            org: Arc::new(
                Org::new(
                    [Role::unlimited("personal_agent")],
                    [("pa".into(), chancery_domain::org::Agent::of("personal_agent"))],
                )
                .unwrap(),
            ),
            warrant: Arc::default(),
            idempotency_key: "run_1:msg_1:call_1".to_owned(),
            cancelled: CancellationToken::new(),
        }
    }

    pub(crate) async fn call(tool: &dyn Tool, arguments: Value) -> CallResult {
        let permit = chancery_testkit::permit(&tool.spec().name, arguments);
        match tool.call(permit, &context()).await {
            Done::Result(result) => result,
            other => panic!("{other:?} where a result was due"),
        }
    }

    pub(crate) fn code(result: &CallResult) -> &str {
        result.code.as_deref().unwrap_or("OK")
    }
}

#[cfg(test)]
mod tests {
    use chancery_domain::policy::Risk;
    use serde_json::json;

    use super::testing::context;
    use super::*;

    #[derive(Debug)]
    struct Named(ToolSpec);

    #[async_trait]
    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        async fn call(&self, _: Permit, _: &CallContext) -> Done {
            Done::Result(CallResult::ok(self.0.description.clone()))
        }
    }

    fn named(name: &str, description: &str, parameters: Value) -> Arc<dyn Tool> {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters,
            risk: Risk::Low,
            capabilities: vec![],
            effect: Effect::Outside,
            idempotent: false,
            supports_parallel: false,
        };
        Arc::new(Named(spec))
    }

    #[tokio::test]
    async fn tools_that_come_later_are_tools_like_the_others_and_come_once() {
        let mut tools = Tools::default();
        let later = tools.later("far_");
        tools.register(named("near", "near", json!({}))).unwrap();
        assert_eq!(tools.fitness(&call("far_a")), Fitness::UnknownTool);

        let refused = later.arrive(vec![
            named("far_a", "first", json!({})),
            named("far_a", "second", json!({})),
            named("near", "an impostor", json!({})),
            named("far_b", "", json!({"$ref": "https://example.com/schema.json"})),
        ]);
        assert_eq!(refused.len(), 3, "{refused:?}");
        later.arrive(vec![named("far_a", "changed", json!({}))]);

        let names: Vec<_> = tools.specs().map(|it| &*it.name).collect();
        assert_eq!(names, ["near", "far_a"]);
        assert_eq!(tools.fitness(&call("far_a")), Fitness::Fits);
        for (tool, said) in [("far_a", "first"), ("near", "near")] {
            let permit = chancery_testkit::permit(tool, json!({}));
            let done = tools.call(permit, &context()).await;
            assert_eq!(done, Done::Result(CallResult::ok(said)));
        }
        drop(tools);
        assert!(!later.wanted());
    }

    fn call(tool: &str) -> Call {
        Call { id: "call_1".into(), tool: tool.to_owned(), arguments: json!({}) }
    }
}
