//! Small batches, in every state that they can come to, under every event.

use std::sync::Arc;

use chancery_domain::batch::{Batch, BatchError, Clearance, Gate, Refusal, Settled, Turn};
use chancery_domain::event::{
    Actor, Answer, Call, CallResult, Decision, PermissionDecided, Proposal, Remember, Request,
    RequestKind, RuleScope,
};
use chancery_domain::id::{CallId, PermissionId, RuleId, RunId};
use chancery_domain::policy::Ruling;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::digest;
use crate::model::Model;
use crate::samples::{MESSAGE, ada, agent, request, service};

/// A state with the way to it, or an event in the state that was named last.
#[derive(Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Row {
    State { proposals: Vec<Proposed>, past: Vec<Event>, is: String },
    Event { event: Event, is: String },
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proposed {
    call: u8,
    arguments: u8,
    ruling: Ruling,
    answer: Option<Answered>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Answered {
    Rule(u64),
    Question(Question),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    id: u64,
    shown: u8,
    definition: Option<u8>,
    recovers: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Event {
    Decide {
        decide: u8,
        permission: u64,
        decision: String,
        by: String,
        edited: Option<u8>,
        remember: bool,
    },
    Escalate {
        escalate: u8,
    },
    Start {
        start: u8,
    },
    End {
        end: u8,
    },
    Refuse {
        refuse: u8,
    },
    Retry {
        retry: u8,
    },
    Reopen {
        reopen: u8,
        ruling: Ruling,
        request: Question,
    },
    Send {
        send: u8,
        child: u64,
    },
    Back {
        back: u8,
        child: u64,
    },
}

#[test]
fn the_latch_is_what_was_proved_in_every_state_of_small_batches() {
    let model = Model::build();
    let (mut proposals, mut past) = (vec![], vec![]);
    let (mut states, mut events) = (0, 0);
    model.table("latch", |line| {
        let (said, is) = match serde_json::from_str(line).unwrap() {
            Row::State { proposals: of, past: by, is } => {
                (proposals, past) = (of, by);
                states += 1;
                (seen(gate(&proposals, &past)), is)
            }
            Row::Event { event, is } => {
                events += 1;
                let after = gate(&proposals, &past).and_then(|it| step(it, &event));
                (seen(after), is)
            }
        };
        assert_eq!(said, is, "{proposals:?} after {past:?}: {line}");
    });
    // A table that broke off would prove anything.
    assert_eq!((states, events), (5013, 246_135));
}

/// Batches cannot be copied, so each is led to its state anew.
fn gate(proposals: &[Proposed], past: &[Event]) -> Result<Gate, BatchError> {
    let proposals: Vec<Proposal> = proposals.iter().map(Proposed::proposal).collect();
    past.iter().try_fold(Gate::new(MESSAGE, &proposals)?, step)
}

/// What the types leave no way to do.
const WRONG_STATE: BatchError = BatchError::Empty;

fn step(gate: Gate, event: &Event) -> Result<Gate, BatchError> {
    let settled = Gate::Settled;
    match (gate, event) {
        (Gate::Open(batch), Event::Decide { .. }) => batch.decide(&event.decided()),
        (Gate::Open(batch), Event::Escalate { escalate }) => {
            batch.escalated(&call(*escalate), Timestamp::MAX)
        }
        (Gate::Settled(batch), Event::Start { start }) => {
            let (batch, permit) = batch.start(&call(*start))?;
            assert_eq!(permit.call().id, call(*start));
            Ok(Gate::Settled(batch))
        }
        (Gate::Settled(batch), Event::End { end }) => batch.ended(&call(*end)).map(settled),
        (Gate::Settled(batch), Event::Refuse { refuse }) => {
            batch.refused(&call(*refuse)).map(settled)
        }
        (Gate::Settled(batch), Event::Retry { retry }) => batch.retried(&call(*retry)).map(settled),
        (Gate::Settled(batch), Event::Reopen { reopen, ruling, request }) => {
            batch.reopened(&call(*reopen), *ruling, request.request())
        }
        (Gate::Settled(batch), Event::Send { send, child }) => {
            batch.sent(&call(*send), run(*child)).map(settled)
        }
        (Gate::Settled(batch), Event::Back { back, child }) => {
            batch.back(&call(*back), run(*child)).map(settled)
        }
        _ => Err(WRONG_STATE),
    }
}

/// What can be seen of a batch, in the model's words.
fn seen(gate: Result<Gate, BatchError>) -> String {
    match gate {
        Ok(Gate::Open(batch)) => {
            let asked = batch.asked().map(|(call, it)| {
                let (id, n) = (it.id.0.as_u128(), &call.arguments["n"]);
                format!("{}/{id}/{n}/{}", call.id, it.escalates)
            });
            format!("open {}", joined(asked))
        }
        Ok(Gate::Settled(batch)) => settled(&batch),
        Err(error) => format!("error: {}", word(&error)),
    }
}

fn settled(batch: &Batch<Settled>) -> String {
    let turn = match batch.next() {
        None => "none".to_owned(),
        Some(Turn::Execute { call, clearance }) => {
            format!("execute {} by {}", call.id, by(clearance))
        }
        Some(Turn::Unknown(call)) => format!("unknown {}", call.id),
        Some(Turn::Refuse { call, refusal }) => {
            let why = match refusal {
                Refusal::Policy(_) => "policy",
                Refusal::Person => "person",
                Refusal::Expired => "expired",
                Refusal::Unknown => "unknown",
            };
            format!("refuse {} by {why}", call.id)
        }
    };
    let calls: Vec<&Arc<Call>> = (0..3).filter_map(|it| batch.call(&call(it))).collect();
    let cleared = joined(calls.iter().filter_map(|it| {
        let clearance = batch.clearance(&it.id)?;
        Some(format!("{}/{}/{}", it.id, it.arguments["n"], by(clearance)))
    }));
    let granted = joined(calls.iter().filter_map(|it| {
        let digest = u8::from_str_radix(batch.granted_as(&it.id)?, 16).unwrap();
        Some(format!("{}/{digest}", it.id))
    }));
    let begun = joined(batch.begun().map(|it| it.id.to_string()));
    let away = joined(batch.away().map(|(it, child)| format!("{}/{}", it.id, child.0.as_u128())));
    let denied = batch.has_denied();
    format!(
        "settled {turn}; cleared {cleared}; granted as {granted}; begun {begun}; away {away}; \
         denied {denied}"
    )
}

fn joined(of: impl Iterator<Item = String>) -> String {
    of.collect::<Vec<_>>().join(",")
}

fn by(clearance: Clearance) -> String {
    match clearance {
        Clearance::Ruled => "ruled".to_owned(),
        Clearance::Granted { human: true } => "person".to_owned(),
        Clearance::Granted { human: false } => "service".to_owned(),
        Clearance::Rule(rule) => format!("rule {}", rule.0.as_u128()),
    }
}

fn word(error: &BatchError) -> &'static str {
    match error {
        BatchError::Empty => "wrong state",
        BatchError::Twice(_) => "twice",
        BatchError::NoSuchCall(_) => "no such call",
        BatchError::NotAsked(_) => "not asked",
        BatchError::NotNext(_) => "not next",
        BatchError::HumanRequired(_) => "human required",
        BatchError::NotADecider => "not a decider",
        BatchError::NoSuchAnswer(_) => "no such answer",
        BatchError::NobodyAsked(_) => "nobody asked",
        BatchError::Standing(_) => "standing",
    }
}

impl Proposed {
    fn proposal(&self) -> Proposal {
        let answer = self.answer.map(|it| match it {
            Answered::Rule(rule) => Answer::Rule(RuleId(Uuid::from_u128(rule.into()))),
            Answered::Question(it) => Answer::Request(it.request()),
        });
        let arguments = json!({ "n": self.arguments });
        let call = Call { id: call(self.call), tool: "act".to_owned(), arguments };
        Proposal { call: Arc::new(call), ruling: self.ruling, reasons: vec![], answer }
    }
}

impl Question {
    fn request(self) -> Arc<Request> {
        let kind = if self.recovers { RequestKind::Recover } else { RequestKind::All };
        Arc::new(Request {
            id: PermissionId(Uuid::from_u128(self.id.into())),
            arguments_sha256: digest(self.shown),
            definition_sha256: self.definition.map(digest),
            ..(*request("", kind)).clone()
        })
    }
}

impl Event {
    fn decided(&self) -> PermissionDecided {
        let Event::Decide { decide, permission, decision, by, edited, remember } = self else {
            panic!("{self:?} is no decision")
        };
        let remember = remember.then(|| Remember {
            rule: RuleId(Uuid::from_u128(4)),
            scope: RuleScope::Run,
            tool: "act".to_owned(),
            signature: "act".to_owned(),
            expires_at: Timestamp::MAX,
        });
        PermissionDecided {
            call: call(*decide),
            permission: PermissionId(Uuid::from_u128((*permission).into())),
            decision: match &**decision {
                "granted" => Decision::Granted,
                "denied" => Decision::Denied,
                "expired" => Decision::Expired,
                _ => Decision::Supplied(CallResult::ok("found")),
            },
            by: match &**by {
                "person" => ada(),
                "service" => service(),
                "agent" => agent(),
                _ => Actor::System,
            },
            comment: None,
            arguments: edited.map(|it| json!({ "n": it })),
            remember,
        }
    }
}

fn call(number: u8) -> CallId {
    CallId(number.to_string())
}

fn run(number: u64) -> RunId {
    RunId(Uuid::from_u128(number.into()))
}
