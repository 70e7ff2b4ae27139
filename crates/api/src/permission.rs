//! Permissions on the wire: what people are asked, and what they answer.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// One layer's word on a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Reason {
    /// `identity`, `tool`, `delegation`, `role`, `risk`, `capability`, `arguments` or `limits`
    pub layer: String,
    /// Which rule, and where it is written.
    pub rule: String,
    /// `allow`, `require_approval`, `require_human` or `deny`
    pub outcome: String,
    pub detail: String,
}

/// Something that would let a call or a mail through that the rules stand against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Way {
    /// `now`: one of these is enough. `later`, `run`, `agent` and `person`: time, another run,
    /// another agent or somebody's approval is needed. `organisation`: it has to be changed, and
    /// all of these are needed together.
    pub kind: String,
    pub text: String,
    /// Follows the text: which list or rule, and where it is written. Empty: the text says it all.
    pub rule: String,
    /// Who may change the organisation so; one of them is enough. Absent for other kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub who: Vec<String>,
}

/// What became of one layer, or of one step of a mail's way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Looked {
    /// A layer, or of mail: `sender`, `recipient`, `contact`, `type`, `contract`, `attachments`
    /// or `fields`.
    pub layer: String,
    /// `pass`, `objects` or `not_looked_at`
    pub said: String,
    /// Of one that objects: `require_approval`, `require_human` or `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    pub rule: String,
    pub detail: String,
    /// Whether it is the one that decided.
    pub decides: bool,
}

/// One call's need for a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Permission {
    pub id: String,
    pub run_id: String,
    pub message_id: String,
    pub tool_call_id: String,
    pub tool: String,
    /// As they were asked for.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// Of their canonical form (RFC 8785).
    pub arguments_sha256: String,
    /// `read`, `write`, `all`, `command` or `recover`
    pub kind: String,
    #[schema(value_type = Object)]
    pub payload: Value,
    pub ruling: String,
    pub reasons: Vec<Reason>,
    /// `low`, `medium` or `high`
    #[schema(required = true)]
    pub risk: Option<String>,
    pub capabilities: Vec<String>,
    /// Who asks and on whose behalf: this run first, then its parents.
    pub chain: Vec<Link>,
    pub agent: String,
    pub role: String,
    pub user: String,
    /// What the model said as it asked for the call: its words, not ours.
    pub words: String,
    /// `pending`, `granted`, `denied`, `expired` or `cancelled`
    pub status: String,
    #[schema(required = true)]
    pub decided_by: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub decided_at: Option<Timestamp>,
    #[schema(required = true)]
    pub comment: Option<String>,
    /// What was granted instead of what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub decided_arguments: Option<Value>,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub expires_at: Option<Timestamp>,
    /// When nobody had answered in time and others were told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub escalated_at: Option<Timestamp>,
    pub correlation_key: String,
    /// What the agent was asked about it, and said to that; only on a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inquiries: Vec<Inquiry>,
}

/// Something that somebody wanted to know of the agent before they decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Inquiry {
    pub by: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    pub text: String,
    /// What the agent said: its words, not ours. `null`: nothing yet, and perhaps never.
    #[schema(required = true)]
    pub explanation: Option<String>,
}

/// `POST /api/permissions/{id}/ask`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Inquire {
    #[schema(
        min_length = 1,
        max_length = 2000,
        pattern = r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$"
    )]
    pub text: String,
}

/// One run of the chain that leads to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    pub run_id: String,
    pub agent: String,
    pub role: String,
    #[schema(required = true)]
    pub group: Option<String>,
    pub user: String,
}

/// `POST /api/permissions/{id}/decision`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    /// `grant` or `deny`
    #[schema(pattern = "^(grant|deny)$")]
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4000)]
    pub comment: Option<String>,
    /// Grants the call with these arguments instead; they are ruled on first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
    /// Only where a call's outcome is unknown: what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
}

/// `POST /api/permissions/{id}/extend`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// How much longer it is to stand: `30m`, `8h`, `7d`. Absent: for as long as it had at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([1-9][0-9]{0,2}[smh]|[1-9][0-9]?d)$")]
    pub by: Option<String>,
}

/// For how much more than this call a grant is to hold: a scope, or a scope with a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Remember {
    /// `once`, `run`, `agent` or `always`
    Scope(String),
    For(RememberFor),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RememberFor {
    /// `once`, `run`, `agent` or `always`
    pub scope: String,
    /// `30m`, `8h`, `7d`; at most what the server is set to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
}

/// A decision that is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StandingRule {
    pub id: String,
    pub user: String,
    pub agent: String,
    pub run_id: String,
    /// `run`, `agent` or `always`
    pub scope: String,
    pub tool: String,
    /// What it covers: a command's signature, or the digest of the very arguments.
    pub signature: String,
    pub permission_id: String,
    pub made_by: String,
    #[schema(value_type = String, format = DateTime)]
    pub made_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub revoked_at: Option<Timestamp>,
    #[schema(required = true)]
    pub revoked_by: Option<String>,
}

/// What a remembered answer would have answered, had there been one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Matches {
    /// `run`, `agent` or `always`
    pub scope: String,
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// How many questions it would have answered, the one that is asked left aside.
    pub asked: u64,
    pub granted: u64,
    pub denied: u64,
    /// Of these, by whoever looks.
    pub granted_by_you: u64,
    pub denied_by_you: u64,
    /// How many questions about the tool were looked at, the newest first.
    pub looked_at: u64,
    /// Whether there were more of them than are looked at.
    pub cut_off: bool,
    /// The newest of those that it would have answered, at most 50.
    pub questions: Vec<Matched>,
}

/// A question that a remembered answer would have answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Matched {
    pub id: String,
    pub run_id: String,
    pub agent: String,
    /// As they were asked for.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// `pending`, `granted`, `denied`, `expired` or `cancelled`
    pub status: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(required = true)]
    pub decided_by: Option<String>,
}

/// `POST /api/rules/{id}/narrow`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Narrow {
    /// `run` or `agent`; absent: as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(run|agent|always)$")]
    pub scope: Option<String>,
    /// From now on: `30m`, `8h`, `7d`; absent: until it would have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^([1-9][0-9]{0,2}[smh]|[1-9][0-9]?d)$")]
    pub expires_after: Option<String>,
}

/// `POST /api/authorize`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Authorize {
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    pub agent: String,
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    pub tool: String,
    /// Absent: the arguments are left aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Value>,
    /// Under this run's delegation and words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    pub user: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Authorized {
    /// `allow`, `require_approval`, `require_human` or `deny`
    pub ruling: String,
    /// By which the audit has it, and `chancery why` explains it.
    pub id: String,
    /// Every layer that spoke, the deciding one first.
    pub reasons: Vec<Reason>,
    /// All layers in their order, those that had nothing to say included.
    pub layers: Vec<Reason>,
    /// What would let it through. For people: an agent is not told.
    #[serde(default)]
    pub ways: Vec<Way>,
}
