//! Recorded tasks, as they are exported from AgentDojo: what a person asks for and the calls that
//! it takes, and the calls that somebody else wants instead.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub struct Traces {
    pub suites: BTreeMap<String, Suite>,
}

#[derive(Debug, Deserialize)]
pub struct Suite {
    pub tools: BTreeMap<String, Described>,
    pub user_tasks: BTreeMap<String, UserTask>,
    pub injection_tasks: BTreeMap<String, Injection>,
}

#[derive(Debug, Deserialize)]
pub struct Described {
    #[serde(default)]
    pub description: String,
    /// A JSON Schema.
    pub parameters: Value,
}

#[derive(Debug, Deserialize)]
pub struct UserTask {
    pub prompt: String,
    pub calls: Vec<Recorded>,
    /// The places that its calls read and that somebody else can write to.
    #[serde(default)]
    pub vectors: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Injection {
    pub calls: Vec<Recorded>,
}

#[derive(Debug, PartialEq, Deserialize)]
pub struct Recorded {
    pub tool: String,
    pub args: Value,
}
