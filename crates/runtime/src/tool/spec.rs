//! What a tool says of itself before anybody calls it. An operator's file may say otherwise.

use chancery_domain::policy::Risk;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    pub risk: Risk,
    /// Labels of the power that it exercises.
    pub capabilities: Vec<String>,
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
    /// In another run: start, child and wait are one append. Neighbours of this kind in a batch
    /// are at work side by side.
    Child,
}

/// Of a tool of ours, made so that the same call twice leaves what one of them would have left.
/// Where that does not hold, its own file says so.
pub(super) fn spec(name: &str, risk: Risk, description: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
        risk,
        capabilities: vec![],
        effect: Effect::Outside,
        idempotent: true,
        supports_parallel: false,
    }
}

/// A schema that takes these properties and no others.
pub(super) fn object(properties: Value, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
