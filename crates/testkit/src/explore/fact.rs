//! What can be in a log that is explored: a few small facts, each of which stands for an event.

use std::sync::Arc;

use chancery_domain::event::*;
use chancery_domain::id::*;
use chancery_domain::policy::Ruling;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Plan;
use crate::conformance::{ada, created};

pub const RUN: RunId = RunId(Uuid::from_u128(7));
const MESSAGE: MessageId = MessageId(Uuid::from_u128(9));
/// How long a question stands.
const STANDS: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fact {
    Created,
    Started,
    Proposed,
    Spoke,
    Decided { question: Question, how: How },
    Escalated { question: Question },
    Begun { call: u8 },
    Ended { call: u8 },
    Refused { call: u8 },
    Asked { question: Question },
    Closed,
    Completed,
    Cancelled,
}

/// What somebody is asked about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Question {
    pub call: u8,
    pub human: bool,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// With its batch.
    Proposed,
    /// It was not asked about, and must be after all; or the answer does not cover it any more.
    Stricter { at: u8, again: bool },
    /// Its outcome is unknown.
    Unknown { at: u8 },
}

/// How a question was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum How {
    GrantedByPerson,
    GrantedByService,
    /// By a person, with other arguments.
    Edited,
    Denied,
    /// A person found out what it did.
    Supplied,
    Expired,
}

impl How {
    pub const ALL: [How; 6] = [
        How::GrantedByPerson,
        How::GrantedByService,
        How::Edited,
        How::Denied,
        How::Supplied,
        How::Expired,
    ];

    pub fn grants(self) -> bool {
        matches!(self, How::GrantedByPerson | How::GrantedByService | How::Edited)
    }

    pub fn by(self) -> Actor {
        match self {
            How::GrantedByService => Actor::Service("watchdog".to_owned()),
            How::Expired => Actor::System,
            _ => ada(),
        }
    }

    pub fn decision(self) -> Decision {
        match self {
            How::GrantedByPerson | How::GrantedByService | How::Edited => Decision::Granted,
            How::Denied => Decision::Denied,
            How::Supplied => Decision::Supplied(CallResult::ok("found")),
            How::Expired => Decision::Expired,
        }
    }

    pub fn arguments(self) -> Option<Value> {
        (self == How::Edited).then(edited)
    }
}

pub fn edited() -> Value {
    json!({"n": "edited"})
}

pub fn asked_for() -> Value {
    json!({"n": "asked for"})
}

pub fn call_id(call: u8) -> CallId {
    CallId(format!("c{call}"))
}

impl Question {
    pub fn permission(self) -> PermissionId {
        let at = match self.why {
            Why::Proposed => 0,
            Why::Stricter { at, .. } | Why::Unknown { at } => u128::from(at),
        };
        PermissionId(Uuid::from_u128(1000 * (u128::from(self.call) + 1) + at))
    }

    pub fn key(self) -> WaitKey {
        let call = call_id(self.call);
        match self.why {
            Why::Proposed | Why::Stricter { again: false, .. } => {
                permission_key(RUN, MESSAGE, &call)
            }
            Why::Stricter { at, again: true } => again_key(RUN, MESSAGE, &call, u64::from(at)),
            Why::Unknown { at } => recover_key(RUN, MESSAGE, &call, u64::from(at)),
        }
    }

    pub fn recovers(self) -> bool {
        matches!(self.why, Why::Unknown { .. })
    }

    pub fn ruling(self) -> Ruling {
        if self.human { Ruling::RequireHuman } else { Ruling::RequireApproval }
    }

    fn request(self, plan: &Plan) -> Arc<Request> {
        let stands = !self.recovers();
        Arc::new(Request {
            id: self.permission(),
            correlation_key: self.key(),
            kind: if self.recovers() { RequestKind::Recover } else { RequestKind::All },
            payload: Default::default(),
            risk: None,
            capabilities: vec![],
            arguments_sha256: String::new(),
            definition_sha256: None,
            signature: None,
            asked_at: Timestamp::UNIX_EPOCH,
            expires_at: stands.then(|| time(1)),
            escalates: stands && plan.escalates,
        })
    }
}

/// The time when questions expire for the nth time.
pub fn time(nth: i32) -> Timestamp {
    Timestamp::UNIX_EPOCH.checked_add(STANDS * nth).unwrap_or(Timestamp::MAX)
}

impl Fact {
    pub fn event(self, plan: &Plan) -> Event {
        match self {
            Fact::Created => created("goal").into(),
            Fact::Started => Started {}.into(),
            Fact::Proposed => proposed(plan),
            Fact::Spoke => {
                UserSpoke { message: MESSAGE, text: "wait".to_owned(), by: ada(), to: None }.into()
            }
            Fact::Decided { question, how } => PermissionDecided {
                call: call_id(question.call),
                permission: question.permission(),
                decision: how.decision(),
                by: how.by(),
                comment: None,
                arguments: how.arguments(),
                remember: None,
            }
            .into(),
            Fact::Escalated { question } => PermissionEscalated {
                call: call_id(question.call),
                permission: question.permission(),
                expires_at: time(2),
            }
            .into(),
            Fact::Begun { call } => {
                let call = call_id(call);
                CallStarted { idempotency_key: idempotency_key(RUN, MESSAGE, &call), call }.into()
            }
            Fact::Ended { call } => {
                CallEnded { call: call_id(call), result: CallResult::ok("done") }.into()
            }
            Fact::Refused { call } => {
                CallRefused { call: call_id(call), result: CallResult::error("DENIED", "no") }
                    .into()
            }
            Fact::Asked { question } => PermissionRequested {
                message: MESSAGE,
                call: call_id(question.call),
                tool: "act".to_owned(),
                arguments: asked_for(),
                ruling: question.ruling(),
                reasons: vec![],
                request: question.request(plan),
            }
            .into(),
            Fact::Closed => BatchClosed { message: MESSAGE }.into(),
            Fact::Completed => Completed {
                message: MESSAGE,
                output: "done".to_owned(),
                model: "explored".to_owned(),
                usage: Usage::default(),
            }
            .into(),
            Fact::Cancelled => Cancelled { by: ada() }.into(),
        }
    }
}

fn proposed(plan: &Plan) -> Event {
    let calls = (0u8..).zip(&plan.rulings).map(|(call, ruling)| {
        let human = *ruling == Ruling::RequireHuman;
        let question = Question { call, human, why: Why::Proposed };
        let id = call_id(call);
        Proposal {
            call: Arc::new(Call { id, tool: "act".to_owned(), arguments: asked_for() }),
            ruling: *ruling,
            reasons: vec![],
            answer: ruling.asks().then(|| Answer::Request(question.request(plan))),
        }
    });
    BatchProposed {
        message: MESSAGE,
        text: String::new(),
        calls: calls.collect(),
        model: "explored".to_owned(),
        usage: Usage::default(),
    }
    .into()
}
