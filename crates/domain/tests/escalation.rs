//! What is handed back, and whose time it was.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod samples;

use std::time::Duration;

use chancery_domain::escalation::{self, Refusal, waited_for_person};
use chancery_domain::event::*;
use chancery_domain::history::History;
use chancery_domain::id::*;
use chancery_domain::policy::Ruling::{Allow, RequireApproval};
use jiff::Timestamp;
use samples::*;
use serde_json::json;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A log whose events happened at these seconds, after it began at 0.
fn timed(events: Vec<(i64, Event)>) -> Vec<Recorded> {
    let begin = [(0, Event::Created(created())), (0, Event::Started(Started {}))];
    let all = begin.into_iter().chain(events).zip(1..);
    all.map(|((second, event), seq)| Recorded { seq, at: at(second), event }).collect()
}

fn nobody(_: RunId, _: (Timestamp, Timestamp)) -> (Duration, bool) {
    (Duration::ZERO, false)
}

fn asks() -> Event {
    proposed(MESSAGE, &[("a", RequireApproval)])
}

#[test]
fn time_in_which_a_person_is_waited_for_is_told_apart_from_work() {
    let log = timed(vec![
        (10, asks()),
        (70, decided("a", Decision::Granted, ada())),
        (70, started("a")),
        (90, ended("a")),
    ]);
    let whole = (at(0), at(100));
    assert_eq!(waited_for_person(&log, whole, &mut nobody), (Duration::from_secs(60), false));
    // Only what lies between the two times counts.
    let part = (at(50), at(100));
    assert_eq!(waited_for_person(&log, part, &mut nobody), (Duration::from_secs(20), false));
    // While it waits, it waits now.
    let open = timed(vec![(10, asks())]);
    assert_eq!(waited_for_person(&open, whole, &mut nobody), (Duration::from_secs(90), true));
    // Waiting for a signal is no person's time, and what has ended waits no more.
    let signal = timed(vec![
        (10, proposed(MESSAGE, &[("a", Allow)])),
        (10, started("a")),
        (10, waits("a", "k")),
    ]);
    assert_eq!(waited_for_person(&signal, whole, &mut nobody), (Duration::ZERO, false));
    let over = timed(vec![(10, asks()), (40, Cancelled { by: ada() }.into())]);
    assert_eq!(waited_for_person(&over, whole, &mut nobody), (Duration::from_secs(30), false));
}

#[test]
fn a_person_that_a_child_waits_for_is_waited_for_above_as_well() {
    let log = timed(vec![
        (10, proposed(MESSAGE, &[("a", Allow)])),
        (10, started("a")),
        (10, spawned("a", CHILD)),
    ]);
    let mut asked = Vec::new();
    let waited = waited_for_person(&log, (at(0), at(100)), &mut |child, span| {
        asked.push((child, span));
        (Duration::from_secs(25), true)
    });
    assert_eq!(waited, (Duration::from_secs(25), true));
    assert_eq!(asked, [(CHILD, (at(10), at(100)))]);
}

fn parent() -> History {
    history([proposed(MESSAGE, &[("a", Allow)]), started("a"), spawned("a", CHILD)])
}

/// The last change of a child with these events.
fn child(events: Vec<Event>) -> chancery_domain::history::Change {
    let created = Created { parent: Some(RUN), ..created() };
    let mut history = History::create(CHILD, created);
    for event in [Event::Started(Started {})].into_iter().chain(events) {
        history = history.record(event).unwrap();
    }
    history.change().unwrap()
}

fn handed_back(child: &chancery_domain::history::Change) -> ChildEnded {
    let parent = escalation::hand_back(parent(), child).unwrap().unwrap();
    match parent.staged() {
        [Event::ChildEnded(it)] => it.clone(),
        other => panic!("{other:?}"),
    }
}

fn said(back: &ChildEnded) -> serde_json::Value {
    serde_json::from_str(&back.result.text).unwrap()
}

#[test]
fn what_a_child_came_to_is_the_result_of_the_call_that_asked() {
    let back = handed_back(&child(vec![completed()]));
    assert_eq!((back.call.as_str(), back.child), ("a", CHILD));
    assert_eq!(said(&back), json!({"success": true, "result": "done"}));
    assert_eq!(back.usage, Usage { input_tokens: 2, output_tokens: 1, cost_micros: 7 });
    let back = handed_back(&child(vec![failed()]));
    let error = "Group run failed: the model is away";
    assert_eq!(said(&back), json!({"success": false, "error": error}));
    let back = handed_back(&child(vec![spoke("faster"), completed()]));
    assert_eq!(said(&back)["people_spoke"], json!([{"by": "ada", "text": "faster"}]));
}

#[test]
fn a_parent_that_does_not_wait_is_told_nothing() {
    let done = child(vec![completed()]);
    let not_waiting = history([]);
    assert!(escalation::hand_back(not_waiting, &done).unwrap().is_none());
    let gave_up = escalation::give_up(parent(), CHILD, Duration::from_secs(300), true);
    let gave_up = gave_up.unwrap().unwrap();
    assert!(escalation::hand_back(gave_up, &done).unwrap().is_none(), "it came too late");
}

#[test]
fn depth_and_circles_are_refused() {
    let legal = GroupId::from("legal");
    let above = |n: u128| Ancestor { run: RunId(uuid::Uuid::from_u128(n)), group: None };
    let deep = Created { ancestors: (0..5).map(above).collect(), ..created() };
    assert_eq!(escalation::check(&deep, &legal, 5), Err(Refusal::TooDeep(5)));
    assert_eq!(escalation::check(&deep, &legal, 6), Ok(()));
    let own = Created { group: Some(legal.clone()), ..created() };
    assert_eq!(escalation::check(&own, &legal, 5), Err(Refusal::AboveAlready(legal.clone())));
    let ancestor = Ancestor { group: Some(legal.clone()), ..above(1) };
    let beneath = Created { ancestors: vec![ancestor], ..created() };
    assert_eq!(escalation::check(&beneath, &legal, 5), Err(Refusal::AboveAlready(legal)));
}
