//! The audit on the wire.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::permission::{Looked, Reason, Way};

/// One entry: who did or was refused what, and by which rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Entry {
    /// Its place in the chain.
    pub seq: u64,
    /// What `chancery why` is asked for.
    pub id: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// A dotted word: `ruling`, `permission.decided`, `run.cancelled`, `token.made`, …
    pub kind: String,
    pub actor: Actor,
    #[schema(required = true)]
    pub org: Option<String>,
    #[schema(required = true)]
    pub user: Option<String>,
    #[schema(required = true)]
    pub agent: Option<String>,
    #[schema(required = true)]
    pub role: Option<String>,
    #[schema(required = true)]
    pub tool: Option<String>,
    /// `allow`, `require_approval`, `require_human` or `deny`
    #[schema(required = true)]
    pub ruling: Option<String>,
    #[schema(required = true)]
    pub run_id: Option<String>,
    /// The id of what it is about: a permission request, a rule, a token.
    #[schema(required = true)]
    pub reference: Option<String>,
    pub reasons: Vec<Reason>,
    /// Whatever else belongs to this kind of entry.
    #[schema(value_type = Option<Object>, required = true)]
    pub detail: Value,
    /// The hash of the entry before, in hexadecimal; `null` where that entry is gone.
    #[schema(required = true)]
    pub prev: Option<String>,
    pub hash: String,
    /// Every layer as it was then, or every step of a mail; only on a single one, of a ruling.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Looked>,
    /// What the rules in force say of the same; only on a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<RuledNow>,
    /// What would let it through now; only on a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<Way>,
}

/// What the rules in force say of something that was ruled on before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RuledNow {
    /// `allow`, `require_approval`, `require_human` or `deny`
    pub ruling: String,
    /// Of the organisation.
    pub version: u64,
    pub layers: Vec<Looked>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// `user`, `service`, `agent` or `system`
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// `GET /api/audit/verify`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Verified {
    pub ok: bool,
    /// How many entries hold, from the first on.
    pub entries: u64,
    /// The hash that the store says the chain ends with.
    pub head: String,
    /// The times of the first and the last entry that hold.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub from: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub to: Option<Timestamp>,
    /// The place where the chain first breaks, and why.
    #[schema(required = true)]
    pub first_bad: Option<i64>,
    #[schema(required = true)]
    pub why: Option<String>,
}

/// `GET /api/audit/anchor`: where the chain ends, to be kept elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Anchor {
    pub seq: u64,
    pub hash: String,
    /// When the last entry was written; `null`: there is none.
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub at: Option<Timestamp>,
}
