//! Events and logs that the tests of this crate are written in.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::allow_attributes, reason = "an expectation would fail where all is used")]

use std::sync::Arc;

use chancery_domain::event::*;
use chancery_domain::history::History;
use chancery_domain::id::*;
use chancery_domain::policy::{Reason, Ruling};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

pub const RUN: RunId = RunId(Uuid::from_u128(7));
pub const MESSAGE: MessageId = MessageId(Uuid::from_u128(9));

pub fn ada() -> Actor {
    Actor::User(UserId::from("ada"))
}

pub fn service() -> Actor {
    Actor::Service("watchdog".to_owned())
}

pub fn agent() -> Actor {
    Actor::Agent(AgentId::from("clerk"))
}

pub fn created() -> Created {
    Created {
        org: "acme".to_owned(),
        agent: AgentId::from("clerk"),
        role: RoleId::from("worker"),
        user: UserId::from("ada"),
        project: None,
        group: None,
        session_key: None,
        parent: None,
        ancestors: Vec::new(),
        room: None,
        persons_words: Vec::new(),
        delegated: None,
        input: "do it".to_owned(),
        by: ada(),
        org_version: 0,
        contract: None,
        mails: vec![],
        call: None,
        forked: None,
    }
}

pub fn call(id: &str) -> Arc<Call> {
    Arc::new(Call { id: CallId::from(id), tool: "act".to_owned(), arguments: json!({"n": 1}) })
}

pub fn proposal(id: &str, ruling: Ruling) -> Proposal {
    let reasons = match ruling {
        Ruling::Allow => vec![],
        outcome => vec![Reason {
            layer: "role".to_owned(),
            rule: "worker.tools".to_owned(),
            outcome,
            detail: "so it is".to_owned(),
        }],
    };
    let key = permission_key(RUN, MESSAGE, &CallId::from(id));
    let answer = ruling.asks().then(|| Answer::Request(request(key.as_str(), RequestKind::All)));
    Proposal { call: call(id), ruling, reasons, answer }
}

/// A question; its id is one that its key alone decides.
pub fn request(key: &str, kind: RequestKind) -> Arc<Request> {
    Arc::new(Request {
        id: permission_of(key),
        correlation_key: WaitKey::from(key),
        kind,
        payload: Default::default(),
        risk: None,
        capabilities: vec![],
        arguments_sha256: String::new(),
        definition_sha256: None,
        signature: None,
        asked_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        escalates: true,
    })
}

pub fn permission_of(key: &str) -> PermissionId {
    let number = key.bytes().fold(7u128, |sum, it| sum.wrapping_mul(257) + u128::from(it));
    PermissionId(Uuid::from_u128(number))
}

/// The question about a call that its proposal puts.
pub fn asked(id: &str) -> PermissionId {
    permission_of(permission_key(RUN, MESSAGE, &CallId::from(id)).as_str())
}

pub fn proposed(message: MessageId, calls: &[(&str, Ruling)]) -> Event {
    BatchProposed {
        message,
        text: "I shall".to_owned(),
        calls: calls.iter().map(|(id, ruling)| proposal(id, *ruling)).collect(),
        model: "scripted".to_owned(),
        usage: Usage { input_tokens: 3, output_tokens: 5, cost_micros: 7 },
    }
    .into()
}

pub fn started(id: &str) -> Event {
    let call = CallId::from(id);
    CallStarted { idempotency_key: idempotency_key(RUN, MESSAGE, &call), call }.into()
}

pub fn ended(id: &str) -> Event {
    CallEnded { call: CallId::from(id), result: CallResult::ok("done") }.into()
}

pub fn refused(id: &str) -> Event {
    CallRefused { call: CallId::from(id), result: CallResult::error("DENIED", "no") }.into()
}

pub fn retried(id: &str) -> Event {
    CallRetried { call: CallId::from(id) }.into()
}

/// A call that had started is asked about.
pub fn recovers(id: &str, key: &str) -> Event {
    let request = request(key, RequestKind::Recover);
    let (message, ruling, reasons) = (MESSAGE, Ruling::RequireHuman, vec![]);
    let Call { id: call, tool, arguments } = (*call(id)).clone();
    PermissionRequested { message, call, tool, arguments, ruling, reasons, request }.into()
}

/// A call that was cleared must be asked about after all.
pub fn asks_again(id: &str, key: &str, ruling: Ruling) -> Event {
    let request = request(key, RequestKind::All);
    let Call { id: call, tool, arguments } = (*call(id)).clone();
    let (message, reasons) = (MESSAGE, vec![]);
    PermissionRequested { message, call, tool, arguments, ruling, reasons, request }.into()
}

pub fn decided(id: &str, decision: Decision, by: Actor) -> Event {
    decision_on(asked(id), id, decision, by).into()
}

/// The answer to a question that was put later than its batch.
pub fn decided_on(key: &str, id: &str, decision: Decision, by: Actor) -> Event {
    decision_on(permission_of(key), id, decision, by).into()
}

pub fn decision_on(
    permission: PermissionId,
    id: &str,
    decision: Decision,
    by: Actor,
) -> PermissionDecided {
    PermissionDecided {
        call: CallId::from(id),
        permission,
        decision,
        by,
        comment: None,
        arguments: None,
        remember: None,
    }
}

pub fn escalated(id: &str) -> Event {
    PermissionEscalated {
        call: CallId::from(id),
        permission: asked(id),
        expires_at: Timestamp::MAX,
    }
    .into()
}

pub fn extended(id: &str) -> Event {
    more_time(asked(id), id)
}

/// On a question that has a key of its own.
pub fn extended_on(key: &str, id: &str) -> Event {
    more_time(permission_of(key), id)
}

fn more_time(permission: PermissionId, id: &str) -> Event {
    let (call, expires_at, by) = (CallId::from(id), Timestamp::MAX, ada());
    PermissionExtended { call, permission, expires_at, by }.into()
}

pub fn inquired(id: &str) -> Event {
    inquired_on(asked(id), id)
}

pub fn inquired_on(permission: PermissionId, id: &str) -> Event {
    let (call, text, by) = (CallId::from(id), "what for?".to_owned(), ada());
    PermissionInquired { call, permission, message: MESSAGE, text, by }.into()
}

pub fn explained(id: &str) -> Event {
    explained_on(asked(id), id)
}

pub fn explained_on(permission: PermissionId, id: &str) -> Event {
    PermissionExplained {
        call: CallId::from(id),
        permission,
        inquiry: MESSAGE,
        text: "for the rent".to_owned(),
        model: "scripted".to_owned(),
        usage: Usage { input_tokens: 3, output_tokens: 5, cost_micros: 7 },
    }
    .into()
}

pub fn waits(id: &str, key: &str) -> Event {
    WaitBegan { call: CallId::from(id), correlation_key: WaitKey::from(key), until: None }.into()
}

pub fn signalled(key: &str, payload: Value) -> Event {
    Signalled { correlation_key: WaitKey::from(key), payload, by: ada() }.into()
}

pub fn expired(key: &str) -> Event {
    WaitExpired { correlation_key: WaitKey::from(key) }.into()
}

pub fn closed() -> Event {
    BatchClosed { message: MESSAGE }.into()
}

pub fn spoke(text: &str) -> Event {
    UserSpoke { message: MESSAGE, text: text.to_owned(), by: ada(), to: None }.into()
}

pub const CHILD: RunId = RunId(Uuid::from_u128(8));

pub fn spawned(id: &str, child: RunId) -> Event {
    ChildSpawned {
        call: CallId::from(id),
        child,
        group: GroupId::from("legal"),
        goal: "find out".to_owned(),
        chosen: Some("tag `law`".to_owned()),
        spawned_at: Timestamp::UNIX_EPOCH,
        limit_seconds: Some(300),
    }
    .into()
}

pub fn came_back(id: &str, child: RunId) -> Event {
    ChildEnded {
        call: CallId::from(id),
        child,
        result: CallResult::ok("found"),
        usage: Usage { input_tokens: 4, output_tokens: 6, cost_micros: 7 },
        abandoned: true,
    }
    .into()
}

pub fn member(name: &str) -> Member {
    Member { agent: AgentId::from(name), role: RoleId::from(name) }
}

pub fn completed() -> Event {
    Completed {
        message: MESSAGE,
        output: "done".to_owned(),
        model: "scripted".to_owned(),
        usage: Usage { input_tokens: 2, output_tokens: 1, cost_micros: 7 },
    }
    .into()
}

pub fn failed() -> Event {
    Failed { error: "the model is away".to_owned() }.into()
}

/// The log of a run that has started, and then went through `events`.
pub fn log(events: impl IntoIterator<Item = Event>) -> Vec<Recorded> {
    [Event::Created(created()), Event::Started(Started {})]
        .into_iter()
        .chain(events)
        .zip(1..)
        .map(|(event, seq)| Recorded { seq, at: Timestamp::UNIX_EPOCH, event })
        .collect()
}

pub fn history(events: impl IntoIterator<Item = Event>) -> History {
    History::fold(RUN, &log(events)).unwrap()
}

/// One of every kind, with every optional field set, in the order of `Event::KINDS`.
pub fn every_event() -> Vec<Event> {
    let events: Vec<Event> = vec![
        Created {
            project: Some(ProjectId::from("bridge")),
            group: Some(GroupId::from("legal")),
            session_key: Some(SessionKey::from("monday")),
            parent: Some(RunId(Uuid::from_u128(1))),
            ancestors: vec![Ancestor { run: RunId(Uuid::from_u128(1)), group: None }],
            room: Some(Arc::new(Room {
                members: vec![member("clerk"), member("judge")],
                lead: Some(AgentId::from("judge")),
                rounds: 2,
            })),
            persons_words: vec!["do it".to_owned()],
            delegated: Some(serde_json::from_value(json!({"allowed_tools": ["a*"]})).unwrap()),
            forked: Some(Arc::new(Forked {
                run: RunId(Uuid::from_u128(2)),
                at: 7,
                by: ada(),
                earlier: Some("long ago".to_owned()),
                before: vec![Carried::Said { text: "hello".to_owned() }],
                after: vec![
                    Carried::Answered { text: "I shall".to_owned(), calls: vec![call("a")] },
                    Carried::Ended { call: CallId::from("a"), result: CallResult::ok("done") },
                ],
            })),
            ..created()
        }
        .into(),
        Started {}.into(),
        MemoryRecalled {
            memories: vec![Recalled {
                memory: MemoryId(Uuid::from_u128(5)),
                tier: "preferences".to_owned(),
                content: "in Chinese, and short".to_owned(),
                at: Timestamp::UNIX_EPOCH,
                why: "a preference".to_owned(),
            }],
        }
        .into(),
        spoke("wait: \0 \u{1f980}"),
        proposed(MESSAGE, &[("a", Ruling::RequireHuman), ("b", Ruling::Deny)]),
        PermissionDecided {
            comment: Some("seen to".to_owned()),
            arguments: Some(json!({"n": 2})),
            remember: Some(Remember {
                rule: RuleId(Uuid::from_u128(3)),
                scope: RuleScope::Agent,
                tool: "act".to_owned(),
                signature: "git push".to_owned(),
                expires_at: Timestamp::MAX,
            }),
            ..decision_on(asked("a"), "a", Decision::Granted, ada())
        }
        .into(),
        refused("a"),
        started("a"),
        ended("a"),
        retried("a"),
        recovers("a", "again"),
        escalated("a"),
        extended("a"),
        inquired("a"),
        explained("a"),
        closed(),
        WaitBegan {
            call: CallId::from("a"),
            correlation_key: WaitKey::from("k"),
            until: Some(Timestamp::from_microsecond(1_700_000_000_000_001).unwrap()),
        }
        .into(),
        signalled("k", json!({"deep": [1, null, {"x": 0.1}]})),
        expired("k"),
        spawned("a", CHILD),
        came_back("a", CHILD),
        TurnBegan { member: member("clerk"), round: 2 }.into(),
        TurnEnded {
            message: MESSAGE,
            text: "my part".to_owned(),
            model: "scripted".to_owned(),
            usage: Usage { input_tokens: 1, output_tokens: 1, cost_micros: 7 },
        }
        .into(),
        Concluded { call: CallId::from("a"), answer: "so it is".to_owned() }.into(),
        WrapUpAsked { by: ada() }.into(),
        PauseAsked { by: ada() }.into(),
        Paused {}.into(),
        Unpaused { by: ada() }.into(),
        completed(),
        failed(),
        Cancelled { by: agent() }.into(),
        Resumed { by: service() }.into(),
    ];
    let kinds: Vec<_> = events.iter().map(Event::kind).collect();
    assert_eq!(kinds, Event::KINDS, "a new kind of event wants a sample here");
    events
}
