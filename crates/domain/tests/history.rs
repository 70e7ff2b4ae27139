//! Folding and recording are one thing seen twice, and what is stored stays readable.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod samples;

use chancery_domain::event::*;
use chancery_domain::history::{FoldError, History};
use chancery_domain::id::*;
use chancery_domain::policy::Ruling::{Allow, Deny, RequireApproval};
use chancery_domain::run::Illegal;
use jiff::Timestamp;
use proptest::prelude::*;
use samples::*;
use serde_json::{Value, json};

/// Events that may or may not be legal where they are tried.
fn any_event() -> impl Strategy<Value = Event> {
    let names = prop_oneof![Just("a"), Just("b")];
    (0..16u8, names, any::<bool>()).prop_map(|(kind, id, yes)| match kind {
        0 | 1 => {
            proposed(MESSAGE, &[("a", if yes { Allow } else { RequireApproval }), ("b", Allow)])
        }
        2 => proposed(MESSAGE, &[("a", Deny), ("b", RequireApproval)]),
        3 | 4 => started(id),
        5 => ended(id),
        6 => refused(id),
        7 => retried(id),
        8 => recovers(id, if yes { "r1" } else { "r2" }),
        9 => decided(id, if yes { Decision::Granted } else { Decision::Denied }, ada()),
        10 => waits(id, if yes { "k1" } else { "k2" }),
        11 => signalled(if yes { "k1" } else { "k2" }, Value::Null),
        12 => spoke("and"),
        13 => closed(),
        14 if yes => failed(),
        14 => expired("k1"),
        _ if yes => Resumed { by: ada() }.into(),
        _ => completed(),
    })
}

proptest! {
    #[test]
    fn recording_one_by_one_comes_to_the_same_as_folding(tried in proptest::collection::vec(any_event(), 0..60)) {
        let mut log = log([]);
        let mut live = History::fold(RUN, &log).unwrap();
        for event in tried {
            let seq = live.seq();
            let run = format!("{:?}", live.run());
            let before = History::fold(RUN, &log).unwrap();
            prop_assert_eq!(format!("{:?}", before.run()), run);
            match live.record(event.clone()) {
                Ok(mut next) => {
                    let change = next.change().unwrap();
                    prop_assert_eq!((change.expected_seq(), change.next_seq()), (seq, seq + 1));
                    prop_assert_eq!(change.events(), std::slice::from_ref(&event));
                    log.push(Recorded { seq: seq + 1, at: Timestamp::UNIX_EPOCH, event });
                    let folded = History::fold(RUN, &log).unwrap();
                    prop_assert_eq!(folded.run(), next.run());
                    prop_assert_eq!(folded.seq(), next.seq());
                    let posture = change.after();
                    prop_assert_eq!(posture.status, next.run().status());
                    prop_assert_eq!(posture.wants_worker, matches!(posture.status, "pending" | "running"));
                    prop_assert_eq!(posture.waiting_for.is_some(), posture.status == "waiting");
                    live = next;
                }
                Err(illegal) => {
                    log.push(Recorded { seq: seq + 1, at: Timestamp::UNIX_EPOCH, event });
                    match History::fold(RUN, &log).unwrap_err() {
                        FoldError::Illegal { seq: at, source, .. } => {
                            prop_assert_eq!((at, source), (seq + 1, illegal));
                        }
                        other => prop_assert!(false, "{other}"),
                    }
                    log.pop();
                    live = before;
                }
            }
        }
    }
}

#[test]
fn many_staged_events_are_one_change() {
    let mut history = History::create(RUN, created()).record(Started {}).unwrap();
    assert_eq!(history.staged().len(), 2);
    let change = history.change().unwrap();
    assert_eq!((change.expected_seq(), change.next_seq()), (0, 2));
    assert_eq!((change.before().status, change.after().status), ("not created", "running"));
    assert!(history.change().is_none(), "what is taken is taken");
}

#[test]
fn a_log_with_a_hole_is_refused() {
    let mut events = log([failed()]);
    events[2].seq = 4;
    let said = History::fold(RUN, &events).unwrap_err().to_string();
    assert_eq!(said, format!("the log of {RUN} has event 4 where 3 should be"));
    assert!(matches!(History::fold(RUN, &[]), Err(FoldError::Empty(RUN))));
    let late = &log([])[1..];
    assert!(matches!(History::fold(RUN, late), Err(FoldError::Illegal { seq: 1, .. })));
}

#[test]
fn a_key_is_waited_for_once() {
    let two = proposed(MESSAGE, &[("a", Allow), ("b", Allow)]);
    let waited = [two, started("a"), waits("a", "k"), signalled("k", Value::Null), started("b")];
    let history = history(waited.clone());
    assert!(history.has_waited_for(&WaitKey::from("k")));
    assert!(!history.has_waited_for(&WaitKey::from("other")));
    let refused = history.record(waits("b", "k")).unwrap_err();
    assert_eq!(refused, Illegal::KeyUsed(WaitKey::from("k")));
    let folded = History::fold(RUN, &log(waited.into_iter().chain([waits("b", "k")])));
    assert!(matches!(folded, Err(FoldError::Illegal { seq: 8, source: Illegal::KeyUsed(_), .. })));
}

#[test]
fn a_signal_for_another_key_ends_no_wait() {
    let one = proposed(MESSAGE, &[("a", Allow)]);
    for event in [signalled("j", Value::Null), expired("j")] {
        let waiting = history([one.clone(), started("a"), waits("a", "k")]);
        let wrong = Illegal::Key { expected: WaitKey::from("k"), given: WaitKey::from("j") };
        assert_eq!(waiting.record(event).unwrap_err(), wrong);
    }
}

#[test]
fn every_event_is_read_back_as_it_was_written() {
    for event in every_event() {
        let body = event.encode().unwrap();
        assert_eq!(Event::decode(event.kind(), &body).unwrap(), event, "{body}");
    }
    let said = Event::decode("run.abducted", "{}").unwrap_err().to_string();
    assert_eq!(said, "unknown event kind `run.abducted`: was it written by a newer version?");
}

#[test]
fn an_answer_that_cost_nothing_is_written_as_before_there_were_prices() {
    let free = Usage { input_tokens: 3, output_tokens: 5, ..Usage::default() };
    let before = json!({"input_tokens": 3, "output_tokens": 5});
    assert_eq!(serde_json::to_value(free).unwrap(), before);
    assert_eq!(serde_json::from_value::<Usage>(before).unwrap(), free);
    let dear = Usage { cost_micros: 7, ..free };
    let after = json!({"input_tokens": 3, "output_tokens": 5, "cost_micros": 7});
    assert_eq!(serde_json::to_value(dear).unwrap(), after);
    assert_eq!(serde_json::from_value::<Usage>(after).unwrap(), dear);
    assert_eq!((free.cost(), dear.cost()), (None, Some(0.000007)));
}

/// The bodies as the first version wrote them at their shortest. They must be readable for ever:
/// never change a line here, only add.
#[test]
fn bodies_without_their_optional_fields_are_read() {
    let message = MESSAGE.to_string();
    let user = json!({"kind": "user", "id": "ada"});
    let usage = json!({"input_tokens": 1, "output_tokens": 2});
    let call = json!({"id": "a", "tool": "act", "arguments": {}});
    let request = json!({"id": asked("a"), "correlation_key": "k", "kind": "recover",
        "arguments_sha256": "", "asked_at": "2026-11-16T00:00:00Z"});
    let bodies = [
        (
            "run.created",
            json!({"org": "o", "agent": "g", "role": "r", "user": "ada", "input": "x", "by": user, "org_version": 1}),
        ),
        ("run.started", json!({})),
        ("memory.recalled", json!({"memories": []})),
        ("message.user", json!({"message": message, "text": "x", "by": user})),
        (
            "batch.proposed",
            json!({"message": message, "calls": [{"call": call, "ruling": "allow"}], "model": "m", "usage": usage}),
        ),
        (
            "permission.updated",
            json!({"call": "a", "permission": asked("a"), "decision": "granted", "by": user}),
        ),
        ("tool.refused", json!({"call": "a", "result": {"text": "no"}})),
        ("tool.started", json!({"call": "a", "idempotency_key": "k"})),
        ("tool.finished", json!({"call": "a", "result": {"text": "done"}})),
        ("tool.retried", json!({"call": "a"})),
        (
            "permission.requested",
            json!({"message": message, "call": "a", "tool": "act", "arguments": {},
                "ruling": "require_human", "request": request}),
        ),
        (
            "permission.escalated",
            json!({"call": "a", "permission": asked("a"), "expires_at": "2026-11-16T00:00:00Z"}),
        ),
        (
            "permission.extended",
            json!({"call": "a", "permission": asked("a"), "expires_at": "2026-11-16T00:00:00Z",
                "by": user}),
        ),
        (
            "permission.inquired",
            json!({"call": "a", "permission": asked("a"), "message": message, "text": "why?",
                "by": user}),
        ),
        (
            "permission.explained",
            json!({"call": "a", "permission": asked("a"), "inquiry": message, "text": "so",
                "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}),
        ),
        ("batch.closed", json!({"message": message})),
        ("wait.began", json!({"call": "a", "correlation_key": "k"})),
        ("signal.received", json!({"correlation_key": "k", "by": user})),
        ("wait.expired", json!({"correlation_key": "k"})),
        (
            "child.spawned",
            json!({"call": "a", "child": CHILD, "group": "g", "goal": "x",
                "spawned_at": "2026-11-16T00:00:00Z"}),
        ),
        (
            "child.ended",
            json!({"call": "a", "child": CHILD, "result": {"text": "done"}, "usage": usage}),
        ),
        ("turn.began", json!({"member": {"agent": "g", "role": "r"}, "round": 1})),
        ("turn.ended", json!({"message": message, "text": "x", "model": "m", "usage": usage})),
        ("group.concluded", json!({"call": "a", "answer": "x"})),
        ("wrapup.requested", json!({"by": user})),
        ("pause.requested", json!({"by": user})),
        ("run.paused", json!({})),
        ("run.unpaused", json!({"by": user})),
        ("run.completed", json!({"message": message, "output": "x", "model": "m", "usage": usage})),
        ("run.failed", json!({"error": "x"})),
        ("run.cancelled", json!({"by": user})),
        ("run.resumed", json!({"by": user})),
    ];
    assert_eq!(bodies.clone().map(|(kind, _)| kind), Event::KINDS);
    for (kind, body) in bodies {
        let event = Event::decode(kind, &body.to_string()).unwrap();
        // What is optional and absent is not written either.
        let written: Value = serde_json::from_str(&event.encode().unwrap()).unwrap();
        assert_eq!(written, body);
        // And a field of a later version is no obstacle to this one.
        let mut later = body.clone();
        later["since_later"] = json!(1);
        assert_eq!(Event::decode(kind, &later.to_string()).unwrap(), event);
    }
}

/// A number must come back as it was recorded: grants bind arguments by their hash.
#[test]
fn numbers_are_read_back_to_the_last_digit() {
    for number in [0.1 + 0.2, 1.0 / 3.0, 5e-324, 1.7976931348623157e308, 31.245270191439438] {
        let event: Event =
            Signalled { correlation_key: WaitKey::from("k"), payload: json!(number), by: ada() }
                .into();
        assert_eq!(Event::decode(event.kind(), &event.encode().unwrap()).unwrap(), event);
    }
}
