//! The organisation on the wire.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::run::DelegatedPermissions;

/// Something that is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Mistake {
    pub file: String,
    pub line: u32,
    pub column: u32,
    /// `error`: the files cannot be used; `warning`: hardly as they were meant.
    pub severity: String,
    /// `E…` or `W…`; a number keeps its meaning.
    pub code: String,
    pub detail: String,
    #[schema(required = true)]
    pub hint: Option<String>,
}

/// `GET /api/org`: which version is in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Org {
    pub version: u64,
    /// Of the files: the same organisation has the same.
    pub digest: String,
    /// `built-in`, `files` or `api`
    pub source: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    pub by: String,
    pub counts: Counts,
    /// Warnings about what is in force.
    pub mistakes: Vec<Mistake>,
    /// What keeps the files in the server's directory from being in force.
    pub pending_mistakes: Vec<Mistake>,
    /// The files, as `PUT /api/org` takes them; for operators. What is not among them is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    pub roles: usize,
    pub agents: usize,
    pub users: usize,
    pub groups: usize,
    pub tools: usize,
}

/// A version that was in force at some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    pub version: u64,
    pub digest: String,
    /// `built-in`, `files` or `api`
    pub source: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    pub by: String,
}

/// A version with its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VersionFiles {
    #[serde(flatten)]
    pub version: Version,
    /// By name. What is absent was built in.
    pub files: BTreeMap<String, String>,
}

/// `PUT /api/org`: another version, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewOrg {
    /// By name: `roles.yaml`, `groups.yaml`, `policy.yaml`, `tools.yaml`, `mail.yaml`, and rules
    /// (`….cedar`). What is absent is built in.
    pub files: BTreeMap<String, String>,
}

/// What became of it, or would.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Changed {
    /// `null`: it was only checked.
    #[schema(required = true)]
    pub version: Option<u64>,
    pub digest: String,
    /// Warnings.
    pub mistakes: Vec<Mistake>,
    /// What is different in meaning from the version before.
    pub differences: Vec<Difference>,
}

/// What another version would have meant for the mail of a time, if it had been in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MailImpact {
    /// How many were looked at, delivered or not.
    pub mails: u64,
    /// There were more: these are the newest.
    pub cut_off: bool,
    /// Blocked ones that would be delivered.
    pub passed: u64,
    /// Delivered ones that would be blocked.
    pub blocked: u64,
    pub changes: Vec<MailChange>,
}

/// Mails of one type between the same two that would come to something else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MailChange {
    pub from: String,
    pub to: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// `allow` or `deny`
    pub before: String,
    pub after: String,
    /// Why they were blocked, or would be.
    pub because: String,
    pub times: u64,
    /// The newest run that sent one, where a run did.
    #[schema(required = true)]
    pub run_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// `role qa_worker`, `agent pa`, `policy`, …
    pub subject: String,
    pub detail: String,
    /// `wider`, `narrower` or `changed`
    pub effect: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Role {
    pub id: String,
    pub display_name: String,
    pub level: u8,
    #[schema(required = true)]
    pub department: Option<String>,
    pub reports_to: Vec<String>,
    pub model_tier: String,
    pub prompt: String,
    /// `null`: no limit.
    #[schema(required = true)]
    pub tools: Option<Vec<String>>,
    pub deny_tools: Vec<String>,
    #[schema(required = true)]
    pub expose: Option<Vec<String>>,
    #[schema(required = true)]
    pub delegates: Option<DelegatedPermissions>,
    pub contacts: BTreeMap<String, Contact>,
    #[schema(required = true)]
    pub file_scope: Option<FileScope>,
    #[schema(required = true)]
    pub git: Option<Git>,
    /// The agents that act under it.
    pub agents: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Contact {
    /// `null`: every type that the role may send.
    #[schema(required = true)]
    pub types: Option<Vec<String>>,
    /// `active_contract`, or nothing
    #[schema(required = true)]
    pub needs: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FileScope {
    pub read: Vec<String>,
    pub write: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Git {
    pub branches: Vec<String>,
    pub protected: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Agent {
    pub id: String,
    pub role: String,
    /// `personal`: people talk to it.
    #[schema(required = true)]
    pub kind: Option<String>,
    pub active: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    pub id: String,
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub members: Vec<String>,
    #[schema(required = true)]
    pub lead: Option<String>,
    pub rounds: u32,
}

/// A tool that can be called now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tool {
    pub name: String,
    pub description: String,
    /// `low`, `medium` or `high`
    pub risk: String,
    pub capabilities: Vec<String>,
    /// `built-in`, `command` or `mcp`
    pub kind: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// May be run again when its outcome is unknown.
    pub idempotent: bool,
    /// May overlap with its neighbours in a batch.
    pub supports_parallel: bool,
}

/// `GET /api/mcp/servers`: a server that tools come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct McpServer {
    pub name: String,
    /// `connected`, or `unreachable`: it is tried again, and why is in the log.
    pub state: String,
    pub tools: Vec<String>,
}
