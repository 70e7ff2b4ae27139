//! Every fact that can be recorded about a run. With [`crate::id`] and [`crate::policy`], the
//! only serialised types of this crate: what is written here stays readable for ever, so fields
//! are added with a default and never renamed.

mod child;
mod created;
mod forked;
mod inquiry;
mod recall;
mod room;

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, CallId, MessageId, PermissionId, RuleId, UserId, WaitKey};
use crate::policy::{Reason, Risk, Ruling};

pub use child::{Ancestor, ChildEnded, ChildSpawned, Spoken};
pub use created::Created;
pub use forked::{Carried, Forked};
pub use inquiry::{PermissionExplained, PermissionInquired};
pub use recall::{MemoryRecalled, Recalled};
pub use room::{
    Concluded, Member, PauseAsked, Paused, Room, TurnBegan, TurnEnded, Unpaused, WrapUpAsked,
};

/// An event in its place in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The first event of a run has 1.
    pub seq: u64,
    pub at: Timestamp,
    pub event: Event,
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $kind:literal;)*) => {
        /// A fact, in the past tense. The kind is its name on the wire and in the store.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($(#[$doc])* $name($name),)*
        }

        impl Event {
            pub const KINDS: &'static [&'static str] = &[$($kind,)*];

            pub fn kind(&self) -> &'static str {
                match self {
                    $(Event::$name(_) => $kind,)*
                }
            }

            /// The body as JSON text; the kind is kept beside it.
            pub fn encode(&self) -> Result<String, serde_json::Error> {
                match self {
                    $(Event::$name(body) => serde_json::to_string(body),)*
                }
            }

            pub fn decode(kind: &str, body: &str) -> Result<Event, DecodeError> {
                let event = match kind {
                    $($kind => serde_json::from_str(body).map(Event::$name),)*
                    _ => return Err(DecodeError::Kind(kind.to_owned())),
                };
                event.map_err(|source| DecodeError::Body { kind: kind.to_owned(), source })
            }
        }

        $(impl From<$name> for Event {
            fn from(body: $name) -> Event {
                Event::$name(body)
            }
        })*
    };
}

events! {
    /// Someone asked for this run.
    Created = "run.created";
    /// A worker picked it up for the first time.
    Started = "run.started";
    /// What was remembered as it began, for the model to read.
    MemoryRecalled = "memory.recalled";
    /// A person said something into it.
    UserSpoke = "message.user";
    /// The model asked for calls, and the gate ruled on every one of them.
    BatchProposed = "batch.proposed";
    /// A person (or a service that may) answered one permission request.
    PermissionDecided = "permission.updated";
    /// A call that may not run got its refusal as its result.
    CallRefused = "tool.refused";
    /// Durable before the tool is called.
    CallStarted = "tool.started";
    CallEnded = "tool.finished";
    /// A call of unknown outcome may run again, as its tool says or the operator.
    CallRetried = "tool.retried";
    /// A call that was cleared or has started needs a person's word after all.
    PermissionRequested = "permission.requested";
    /// Nobody answered in time: others are told, and have as long again.
    PermissionEscalated = "permission.escalated";
    /// Somebody who may answer it has given a question more time.
    PermissionExtended = "permission.extended";
    /// Somebody who looks at a question wants to know something of the agent first.
    PermissionInquired = "permission.inquired";
    /// What the agent said to that. It decides nothing.
    PermissionExplained = "permission.explained";
    /// Every call of the batch has its result.
    BatchClosed = "batch.closed";
    WaitBegan = "wait.began";
    Signalled = "signal.received";
    WaitExpired = "wait.expired";
    /// A goal was handed to a group: the child run was made in the same append.
    ChildSpawned = "child.spawned";
    /// The child run has ended, or is not waited for any longer.
    ChildEnded = "child.ended";
    /// A member of the group has the floor.
    TurnBegan = "turn.began";
    /// It has said what it had to say, and the next one follows.
    TurnEnded = "turn.ended";
    /// The lead has the answer: nobody else speaks.
    Concluded = "group.concluded";
    /// A person wants it to come to an end with what there is.
    WrapUpAsked = "wrapup.requested";
    /// A person wants it to rest at the next boundary between two steps.
    PauseAsked = "pause.requested";
    /// It rests.
    Paused = "run.paused";
    /// It may go on.
    Unpaused = "run.unpaused";
    Completed = "run.completed";
    Failed = "run.failed";
    Cancelled = "run.cancelled";
    /// A run that failed at the model goes on.
    Resumed = "run.resumed";
}

#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("unknown event kind `{0}`: was it written by a newer version?")]
    Kind(String),
    #[error("the body of a `{kind}` event cannot be read")]
    Body { kind: String, source: serde_json::Error },
}

/// Who caused something. Set by the system, never by a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum Actor {
    User(UserId),
    Service(String),
    Agent(AgentId),
    System,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserSpoke {
    pub message: MessageId,
    pub text: String,
    pub by: Actor,
    /// For one member of the group alone; absent: for whoever speaks next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentId>,
}

/// One tool invocation asked for by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub id: CallId,
    pub tool: String,
    pub arguments: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub call: Arc<Call>,
    pub ruling: Ruling,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
}

/// What became of a ruling that asks, when the batch was proposed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A person is asked.
    Request(Arc<Request>),
    /// It was granted beforehand, by a rule that somebody made.
    Rule(RuleId),
}

/// One call's need for a decision, and what a person is shown of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub id: PermissionId,
    pub correlation_key: WaitKey,
    pub kind: RequestKind,
    /// By kind: command and signature, paths and diff, server and annotations.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub payload: serde_json::Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Of the canonical form: what is granted is this call, not one like it.
    pub arguments_sha256: String,
    /// Of its tool as it was when this was asked: what is granted is a call of that tool, not of
    /// one that has taken its name since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition_sha256: Option<String>,
    /// What a remembered answer would cover. Absent: it cannot be remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    pub asked_at: Timestamp,
    /// Absent: it waits for as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether others are told before it expires.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub escalates: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    Read,
    Write,
    All,
    Command,
    /// It started in an earlier life and its outcome is unknown.
    Recover,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// In millionths of the operator's money, at the prices of the moment: what is charged later
    /// does not change what was charged. None: there was no price.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub cost_micros: u64,
}

fn is_nothing(it: &u64) -> bool {
    *it == 0
}

impl Usage {
    /// The cost as money, for who reads it; nothing where nothing was charged. Sums are made of
    /// the millionths: a float has each of them only up to nine thousand million.
    pub fn cost(&self) -> Option<f64> {
        (self.cost_micros > 0).then(|| self.cost_micros as f64 / 1e6)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Usage) {
        // What a far side says it used may be anything.
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cost_micros = self.cost_micros.saturating_add(more.cost_micros);
    }
}

impl Event {
    /// The tokens that an event accounts for, and their cost. What a child used is charged to its
    /// parent when it has ended, and so in the end to the run that a person started.
    pub fn usage(&self) -> Usage {
        match self {
            Event::BatchProposed(it) => it.usage,
            Event::TurnEnded(it) => it.usage,
            Event::Completed(it) => it.usage,
            Event::ChildEnded(it) => it.usage,
            Event::PermissionExplained(it) => it.usage,
            _ => Usage::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchProposed {
    pub message: MessageId,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    pub calls: Vec<Proposal>,
    pub model: String,
    pub usage: Usage,
}

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Granted,
    Denied,
    /// Only for a call whose outcome is unknown: what it did, as a person found out.
    Supplied(CallResult),
    /// Nobody answered in time: the system's act, and no one else's.
    Expired,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionDecided {
    pub call: CallId,
    pub permission: PermissionId,
    pub decision: Decision,
    pub by: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// What was granted instead of what was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
}

/// A decision that is to hold for later calls too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remember {
    pub rule: RuleId,
    pub scope: RuleScope,
    pub tool: String,
    /// What it covers: a command's signature, or the very arguments.
    pub signature: String,
    pub expires_at: Timestamp,
}

/// For which calls of the same person a remembered decision holds. The wider, the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    Run,
    Agent,
    Always,
}

/// What the model reads as the outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// For errors: a word that programs can match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    pub text: String,
}

impl RequestKind {
    pub fn as_str(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::All => "all",
            RequestKind::Command => "command",
            RequestKind::Recover => "recover",
        }
    }
}

impl RuleScope {
    pub fn as_str(self) -> &'static str {
        match self {
            RuleScope::Run => "run",
            RuleScope::Agent => "agent",
            RuleScope::Always => "always",
        }
    }
}

impl Decision {
    /// As a permission's status has it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Decision::Granted | Decision::Supplied(_) => "granted",
            Decision::Denied => "denied",
            Decision::Expired => "expired",
        }
    }
}

impl CallResult {
    pub fn ok(text: impl Into<String>) -> CallResult {
        CallResult { is_error: false, code: None, text: text.into() }
    }

    pub fn error(code: &str, text: impl Into<String>) -> CallResult {
        CallResult { is_error: true, code: Some(code.to_owned()), text: text.into() }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRefused {
    pub call: CallId,
    pub result: CallResult,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    pub call: CallId,
    pub idempotency_key: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallEnded {
    pub call: CallId,
    pub result: CallResult,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRetried {
    pub call: CallId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionRequested {
    pub message: MessageId,
    pub call: CallId,
    pub tool: String,
    /// As they stand: they may have been edited since they were proposed.
    pub arguments: Value,
    pub ruling: Ruling,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    pub request: Arc<Request>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionEscalated {
    pub call: CallId,
    pub permission: PermissionId,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionExtended {
    pub call: CallId,
    pub permission: PermissionId,
    pub expires_at: Timestamp,
    pub by: Actor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchClosed {
    pub message: MessageId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitBegan {
    pub call: CallId,
    pub correlation_key: WaitKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signalled {
    pub correlation_key: WaitKey,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub payload: Value,
    pub by: Actor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitExpired {
    pub correlation_key: WaitKey,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completed {
    pub message: MessageId,
    pub output: String,
    pub model: String,
    pub usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failed {
    pub error: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cancelled {
    pub by: Actor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    pub by: Actor,
}
