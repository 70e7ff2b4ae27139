//! `escalate_to_group`, `list_available_groups` and `conclude`: how an agent hands a goal to a
//! group, finds one, and ends one.
//!
//! They do nothing themselves: they say what the run is to do, and the runner does it.

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::escalation::is_above;
use chancery_domain::event::CallResult;
use chancery_domain::id::GroupId;
use chancery_domain::policy::{Bounds, Risk};
use serde::Deserialize;
use serde_json::{Value, json};

use super::spec::{object, spec};
use super::{CallContext, Done, Effect, Tool, ToolSpec};

/// The longest goal or context, in characters: what is longer belongs in a file.
const TEXT_MAX: usize = 100_000;

/// A goal for a group, as an agent put it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Goal {
    /// Absent: one is chosen.
    #[serde(default)]
    pub group_id: Option<GroupId>,
    pub goal: String,
    #[serde(default)]
    pub context: Option<String>,
    /// What the group is to get at most. It never gets more than the run has itself.
    #[serde(default)]
    pub delegated_permissions: Option<Bounds>,
}

#[derive(Debug)]
pub struct EscalateToGroup {
    spec: ToolSpec,
}

#[derive(Debug)]
pub struct ListAvailableGroups {
    spec: ToolSpec,
}

#[derive(Debug)]
pub struct Conclude {
    spec: ToolSpec,
}

impl EscalateToGroup {
    pub const NAME: &str = "escalate_to_group";

    pub fn spec() -> ToolSpec {
        let tools = json!({"type": "array", "items": {"type": "string"}, "maxItems": 1000});
        let description = "Escalate a complex task to a specialized group of agents. Use this when \
                          the task requires expertise or capabilities beyond your own.";
        let properties = json!({
            "group_id": {
                "type": "string",
                "minLength": 1,
                "description": "The ID of the group to escalate to (e.g., grp_abc123). If \
                                not provided, a suitable group will be selected \
                                automatically.",
            },
            "goal": {
                "type": "string",
                "minLength": 1,
                "maxLength": TEXT_MAX,
                "description": "Clear description of what the group should accomplish",
            },
            "context": {
                "type": "string",
                "maxLength": TEXT_MAX,
                "description": "Relevant context from the current conversation that the \
                                group needs to know",
            },
            "delegated_permissions": {
                "type": "object",
                "properties": {"allowed_tools": tools, "denied_tools": tools},
                "additionalProperties": false,
                "description": "What the group may call at most; never more than you may \
                                pass on",
            },
        });
        let parameters = object(properties, &["goal"]);
        ToolSpec {
            effect: Effect::Child,
            idempotent: false,
            ..spec(Self::NAME, Risk::Medium, description, parameters)
        }
    }

    pub fn new(spec: ToolSpec) -> EscalateToGroup {
        EscalateToGroup { spec }
    }
}

#[async_trait]
impl Tool for EscalateToGroup {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, _: &CallContext) -> Done {
        match Goal::deserialize(&permit.call().arguments) {
            Ok(goal) if goal.goal.trim().is_empty() => {
                Done::Result(CallResult::error("INVALID_ARGUMENTS", "`goal` says nothing"))
            }
            Ok(goal) => Done::Escalate(Box::new(goal)),
            Err(error) => Done::Result(CallResult::error("INVALID_ARGUMENTS", error.to_string())),
        }
    }
}

impl ListAvailableGroups {
    pub const NAME: &str = "list_available_groups";

    pub fn spec() -> ToolSpec {
        let description = "Lists the groups of agents that a goal can be handed to, with what each \
                          is for.";
        let parameters = object(json!({}), &[]);
        ToolSpec { effect: Effect::Log, ..spec(Self::NAME, Risk::Low, description, parameters) }
    }

    pub fn new(spec: ToolSpec) -> ListAvailableGroups {
        ListAvailableGroups { spec }
    }
}

#[async_trait]
impl Tool for ListAvailableGroups {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Permit, context: &CallContext) -> Done {
        Done::Result(CallResult::ok(listed(context).to_string()))
    }
}

/// The groups that a run may hand a goal to.
fn listed(context: &CallContext) -> Value {
    let groups = context.org.groups_at_work();
    let groups = groups.filter(|(id, _)| !is_above(&context.created, id));
    let groups: Vec<Value> = groups
        .map(|(id, group)| {
            json!({
                "group_id": id,
                "name": group.name,
                "description": group.description,
                "tags": group.tags,
                "members": group.members,
            })
        })
        .collect();
    json!({ "groups": groups })
}

impl Conclude {
    pub const NAME: &str = "conclude";

    pub fn spec() -> ToolSpec {
        let description = "Ends the group's work with this answer, before every member has had \
                          its turns. For the lead of a group.";
        let properties = json!({
            "answer": {
                "type": "string",
                "minLength": 1,
                "maxLength": TEXT_MAX,
                "description": "What the group hands back",
            },
        });
        let parameters = object(properties, &["answer"]);
        ToolSpec { effect: Effect::Log, ..spec(Self::NAME, Risk::Low, description, parameters) }
    }

    pub fn new(spec: ToolSpec) -> Conclude {
        Conclude { spec }
    }
}

#[async_trait]
impl Tool for Conclude {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let leads = context.created.room.as_ref().is_some_and(|it| it.is_led_by(&context.speaker));
        if !leads {
            let text = "only the lead of a group ends its work, and this is not the lead";
            return Done::Result(CallResult::error("NOT_THE_LEAD", text));
        }
        let answer = permit.call().arguments["answer"].as_str().unwrap_or_default();
        Done::Conclude(answer.to_owned())
    }
}
