//! Runs on the wire.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// `POST /api/runs`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Instead of an agent: a group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[schema(min_length = 1, pattern = r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$")]
    pub input: String,
    /// For operators and services: on whose behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub project: Option<String>,
    /// Runs of one session follow each other: the agent reads what was said before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub session_key: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::object::optional"
    )]
    pub delegated_permissions: Option<DelegatedPermissions>,
}

/// Which tools a run may use. An absent list is no limit; an empty one allows nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegatedPermissions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_tools: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    pub id: String,
    /// `pending`, `running`, `waiting`, `completed`, `failed` or `cancelled`
    pub status: String,
    /// Why a waiting run waits: `permission`, `signal`, `child` or `pause`.
    #[schema(required = true)]
    pub waiting_for: Option<String>,
    /// What would end the wait; only on a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// The run that it goes on from; only on a single run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    pub agent: String,
    pub role: String,
    #[schema(required = true)]
    pub group: Option<String>,
    pub user: String,
    #[schema(required = true)]
    pub project: Option<String>,
    #[schema(required = true)]
    pub session_key: Option<String>,
    #[schema(required = true)]
    pub parent_run_id: Option<String>,
    #[schema(required = true)]
    pub delegated_permissions: Option<DelegatedPermissions>,
    pub input: String,
    #[schema(required = true)]
    pub output: Option<String>,
    #[schema(required = true)]
    pub error: Option<String>,
    pub usage: Usage,
    /// How often a worker has taken it up.
    pub attempt: u64,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub started_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub ended_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Wait {
    /// Each is ended by a signal that names it.
    pub correlation_keys: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In the operator's money, at the prices that held when the models answered. Absent where
    /// nothing was charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub cost: Option<f64>,
}

/// A run with its children, recursively.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(no_recursion)]
pub struct Tree {
    #[serde(flatten)]
    pub run: Run,
    pub children: Vec<Tree>,
}

/// One recorded fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its place in the log; also the id of the server-sent event.
    pub seq: u64,
    #[serde(rename = "type")]
    pub kind: String,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    #[schema(value_type = Object)]
    pub data: Value,
}

/// `POST /api/runs/{id}/signal`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    pub correlation_key: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Option<Object>)]
    pub payload: Value,
}

/// What everyone who may signal a run learns of it; whoever may read it gets the whole [`Run`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Signalled {
    pub id: String,
    pub status: String,
    #[schema(required = true)]
    pub waiting_for: Option<String>,
}

/// `POST /api/runs/{id}/messages`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Speak {
    #[schema(min_length = 1, pattern = r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$")]
    pub text: String,
    /// A member of a group; agents alone have only themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// `POST /api/runs/{id}/fork`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkRun {
    /// The last event that counts; from there back to where no call is under way. Absent: all of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 9223372036854775807i64)]
    pub at: Option<u64>,
    /// Something new to go on with; absent: the goal as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, pattern = r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$")]
    pub input: Option<String>,
}

/// Where a run goes on from another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ForkedFrom {
    pub run_id: String,
    /// The last event of that run that counts here.
    pub at: u64,
}

/// A run that goes on from another one, and what that means for the calls of the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Fork {
    #[serde(flatten)]
    pub run: Run,
    /// Calls that had ended there: their results are read, and they are not made again.
    pub carried: Vec<CarriedCall>,
    /// Calls that came later there: if they are wanted here, they are made and asked about anew.
    pub dropped: Vec<DroppedCall>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CarriedCall {
    pub tool_call_id: String,
    pub tool: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DroppedCall {
    pub tool_call_id: String,
    pub tool: String,
    /// It was begun in the other run, and would run once more.
    pub ran: bool,
    /// Somebody was asked about it, and would be asked again.
    pub asked: bool,
}
