//! The tally can fail: each wrong that it looks for is planted once, and found.

use serde_json::{Value, json};

use super::{Answer, Evidence, Figures, Signal, Tally};

fn log(events: &[(&str, Value)]) -> Vec<Value> {
    let event = |(place, (kind, data)): (usize, &(&str, Value))| json!({"seq": place + 1, "type": kind, "data": data});
    events.iter().enumerate().map(event).collect()
}

/// A run of one batch, whose two calls stand behind one question, and a call of which the outcome
/// was unknown once.
fn sound() -> Evidence {
    let asked = json!({"request": {"id": "perm_1"}});
    let calls = json!([
        {"call": {"id": "a", "tool": "asked_effect"}, "answer": asked},
        {"call": {"id": "b", "tool": "effect"}},
        {"call": {"id": "c", "tool": "wait_for_signal"}},
    ]);
    let started = |call: &str| json!({"call": call, "idempotency_key": format!("run_1-{call}")});
    let ended = |call: &str| json!({"call": call, "result": {"text": "exit code 0"}});
    let decided = |call: &str, permission: &str| json!({"call": call, "permission": permission, "decision": "granted"});
    let events = [
        ("run.created", json!({})),
        ("run.started", json!({})),
        ("batch.proposed", json!({"calls": calls})),
        ("permission.updated", decided("a", "perm_1")),
        ("tool.started", started("a")),
        ("tool.finished", ended("a")),
        ("tool.started", started("b")),
        ("permission.requested", json!({"call": "b", "request": {"id": "perm_2"}})),
        ("permission.updated", decided("b", "perm_2")),
        ("tool.started", started("b")),
        ("tool.finished", ended("b")),
        ("tool.started", started("c")),
        ("wait.began", json!({"call": "c", "correlation_key": "go-0"})),
        ("signal.received", json!({"correlation_key": "go-0"})),
        ("batch.closed", json!({})),
        ("run.completed", json!({})),
    ];
    let granted = |question: &str| Answer {
        question: question.to_owned(),
        decision: "granted",
        status: Some(200),
    };
    Evidence {
        plans: [("run_1".to_owned(), "aew".to_owned())].into(),
        logs: [("run_1".to_owned(), log(&events))].into(),
        ledger: ["! perm_1", "run_1-a", "run_1-b", "! perm_2", "run_1-b"].map(str::to_owned).into(),
        answers: vec![granted("perm_1"), granted("perm_2")],
        signals: vec![signal("go-0")],
    }
}

fn signal(key: &str) -> Signal {
    Signal { run: "run_1".to_owned(), key: key.to_owned(), status: Some(200) }
}

/// After that change exactly this is wrong.
fn check(change: impl FnOnce(&mut Evidence), expected: &[&str]) {
    let mut evidence = sound();
    change(&mut evidence);
    let found = Tally::of(&evidence).wrongs;
    let matches = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| found.contains(expected));
    assert!(matches, "expected {expected:?}, found {found:#?}");
}

fn events(evidence: &mut Evidence) -> &mut Vec<Value> {
    evidence.logs.get_mut("run_1").unwrap()
}

fn number(events: &mut [Value]) {
    for (place, event) in events.iter_mut().enumerate() {
        event["seq"] = json!(place + 1);
    }
}

#[test]
fn what_is_sound_is_counted() {
    check(|_| {}, &[]);
    let figures = Figures {
        runs: 1,
        completed: 1,
        events: 16,
        batches: 1,
        resumptions: 2,
        questions: 2,
        answers: 2,
        unknown_asked: 1,
        run_again_by_a_person: 1,
        signals: 1,
        calls_started: 3,
        effects: 3,
        ..Figures::default()
    };
    assert_eq!(Tally::of(&sound()).figures, figures);
}

#[test]
fn an_effect_too_many_is_found() {
    check(|it| it.ledger.push("run_1-a".to_owned()), &["doubled: run_1-a"]);
    // A person let it run twice, not three times.
    check(|it| it.ledger.push("run_1-b".to_owned()), &["doubled: run_1-b"]);
    check(|it| it.ledger.push("run_1-x".to_owned()), &["no durable start"]);
}

#[test]
fn an_effect_too_few_is_found() {
    check(|it| drop(it.ledger.remove(1)), &["no effect: run_1-a"]);
}

#[test]
fn an_effect_before_the_last_answer_is_found() {
    check(|it| it.ledger.swap(0, 1), &["run_1-a had an effect before perm_1 was answered"]);
    let too_early = |it: &mut Evidence| {
        events(it).swap(3, 4);
        number(events(it));
    };
    let unsettled = "a call starts while its batch is not settled";
    check(too_early, &[unsettled, "a call ends that has not started", "no durable start"]);
}

#[test]
fn a_lost_run_is_found() {
    check(|it| drop(events(it).pop()), &["run_1 is lost: its log has 15 events"]);
    let gone = |it: &mut Evidence| {
        it.plans.insert("run_2".to_owned(), "e".to_owned());
    };
    check(gone, &["run_2 is lost: its log has 0 events", "run_2 has 0 batches, not 1"]);
    check(|it| drop(events(it).remove(1)), &["gap"; 14]);
}

#[test]
fn a_batch_that_goes_on_twice_is_found() {
    let answered_twice = |it: &mut Evidence| {
        let again = events(it)[3].clone();
        events(it).insert(4, again);
        number(events(it));
    };
    check(answered_twice, &["answered though it is not open"]);
    let started_twice = |it: &mut Evidence| {
        let again = events(it)[4].clone();
        events(it).insert(5, again);
        number(events(it));
    };
    check(started_twice, &["started or ended too often: run_1-a"]);
    let closed_twice = |it: &mut Evidence| {
        let again = events(it)[14].clone();
        events(it).insert(15, again);
        number(events(it));
    };
    check(closed_twice, &["a batch is closed twice"]);
}

#[test]
fn two_answers_that_were_both_taken_are_found() {
    let both = |it: &mut Evidence| {
        it.answers.push(Answer { decision: "denied", ..it.answers[0].clone() });
    };
    check(both, &["perm_1 was denied, says a 200; not Some(\"granted\")"]);
    let late = |it: &mut Evidence| {
        it.answers.push(Answer { decision: "denied", status: Some(409), ..it.answers[0].clone() });
    };
    check(late, &[]);
    let broken = |it: &mut Evidence| {
        it.answers.push(Answer { status: Some(500), ..it.answers[0].clone() });
    };
    check(broken, &["perm_1 was granted: 500"]);
}

#[test]
fn a_signal_that_was_taken_and_is_not_there_is_found() {
    check(|it| it.signals.push(signal("go-1")), &["signalled go-1"]);
}
