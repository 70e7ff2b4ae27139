//! What people, services and clocks may do to a run, and what they are told.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod samples;

use chancery_domain::command::{self, Effect, Refusal};
use chancery_domain::event::*;
use chancery_domain::history::History;
use chancery_domain::id::*;
use chancery_domain::policy::Ruling::{Allow, RequireApproval, RequireHuman};
use samples::*;
use serde_json::{Value, json};

/// What a command came to, in one line: the events it recorded, or what it said.
fn told(effect: Result<Effect, Refusal>) -> String {
    match effect {
        Ok(Effect::Already) => "already".to_owned(),
        Ok(Effect::Record(history)) => {
            let lines =
                history.staged().iter().map(|it| format!("{} {}", it.kind(), it.encode().unwrap()));
            format!("{} → {}", lines.collect::<Vec<_>>().join(", "), history.run().status())
        }
        Err(refusal) => format!("refused: {refusal}"),
    }
}

fn signal(events: impl IntoIterator<Item = Event>, key: &str, payload: Value, by: Actor) -> String {
    let log = log(events);
    let history = History::fold(RUN, &log).unwrap();
    told(command::signal(history, &log, &WaitKey::from(key), payload, by))
}

fn key_of(call: &str) -> String {
    permission_key(RUN, MESSAGE, &CallId::from(call)).0
}

fn one() -> Event {
    proposed(MESSAGE, &[("a", Allow)])
}

#[test]
fn a_signal_ends_its_wait_once() {
    let waiting = [one(), started("a"), waits("a", "k")];
    assert_eq!(
        signal(waiting.clone(), "k", json!({"n": 1}), service()),
        "signal.received {\"correlation_key\":\"k\",\"payload\":{\"n\":1},\"by\":{\"kind\":\"service\",\"id\":\"watchdog\"}} → running"
    );
    let delivered: Vec<Event> = waiting.into_iter().chain([signalled("k", Value::Null)]).collect();
    assert_eq!(signal(delivered.clone(), "k", json!({"n": 2}), service()), "already");
    // However much later, and whatever became of the run.
    let over = delivered.into_iter().chain([closed(), completed()]);
    assert_eq!(signal(over, "k", Value::Null, service()), "already");
}

#[test]
fn a_signal_that_nobody_waits_for_is_unknown() {
    let unknown = "refused: the run does not wait for `j`, and has not";
    let waiting = [one(), started("a"), waits("a", "k")];
    assert_eq!(signal(waiting, "j", Value::Null, ada()), unknown);
    assert_eq!(signal([], "j", Value::Null, ada()), unknown);
    assert_eq!(signal([completed()], "j", Value::Null, ada()), unknown);
    assert_eq!(
        signal([proposed(MESSAGE, &[("a", RequireHuman)])], "j", Value::Null, ada()),
        unknown
    );
}

#[test]
fn an_answer_has_one_of_these_forms() {
    let question = || [proposed(MESSAGE, &[("a", RequireApproval)])];
    let answer = |payload| signal(question(), &key_of("a"), payload, ada());
    let recorded = |decision: &str| {
        format!(
            "permission.updated {{\"call\":\"a\",\"permission\":\"{}\",\"decision\":\"{decision}\",\"by\":{{\"kind\":\"user\",\"id\":\"ada\"}}}} → running",
            asked("a")
        )
    };
    assert_eq!(answer(Value::Null), recorded("granted"));
    assert_eq!(answer(json!({"approved": true})), recorded("granted"));
    assert_eq!(answer(json!({"approved": false})), recorded("denied"));
    let form = "refused: the payload of an answer is `{\"approved\": true | false}`, with `result` where a call's outcome is unknown";
    for odd in
        [json!({}), json!({"approved": "yes"}), json!(true), json!([]), json!({"Approved": true})]
    {
        assert_eq!(answer(odd), form);
    }
    // A result is for a call that ran; this one has not.
    assert!(answer(json!({"result": "x"})).starts_with("refused: "));
}

#[test]
fn the_same_answer_again_is_fine_and_the_opposite_is_not() {
    let two = || proposed(MESSAGE, &[("a", RequireApproval), ("b", RequireApproval)]);
    for rest in [vec![], vec![decided("b", Decision::Denied, ada()), started("a"), ended("a")]] {
        let log: Vec<Event> =
            [two(), decided("a", Decision::Granted, ada())].into_iter().chain(rest).collect();
        let again = |payload| signal(log.clone(), &key_of("a"), payload, service());
        assert_eq!(again(Value::Null), "already");
        assert_eq!(again(json!({"approved": true})), "already");
        let before = format!("refused: `{}` was answered before: granted", asked("a"));
        assert_eq!(again(json!({"approved": false})), before);
    }
}

#[test]
fn only_a_person_grants_what_needs_one_and_an_agent_decides_nothing() {
    let question = || [proposed(MESSAGE, &[("a", RequireHuman)])];
    let refused = "refused: call `a` needs a person's word, each time it is asked for";
    assert_eq!(signal(question(), &key_of("a"), Value::Null, service()), refused);
    let not = "refused: an agent decides nothing, and the system only that nobody did";
    assert_eq!(signal(question(), &key_of("a"), Value::Null, Actor::System), not);
    for ruling in [RequireApproval, RequireHuman] {
        for payload in [json!({"approved": true}), json!({"approved": false})] {
            let log = [proposed(MESSAGE, &[("a", ruling)])];
            assert_eq!(signal(log, &key_of("a"), payload, agent()), not);
        }
    }
}

/// The worst that a retried request could do: the "yes" to "may it run?", sent again by a client
/// that missed the answer, must not be taken for "yes, run it again".
#[test]
fn a_late_copy_of_an_answer_answers_no_later_question() {
    let first = recover_key(RUN, MESSAGE, &CallId::from("a"), 5);
    let second = recover_key(RUN, MESSAGE, &CallId::from("a"), 8);
    let granted = || decided("a", Decision::Granted, ada());
    let asked_again = vec![
        proposed(MESSAGE, &[("a", RequireApproval)]),
        granted(),
        started("a"),
        recovers("a", first.as_str()),
    ];
    assert_eq!(signal(asked_again.clone(), &key_of("a"), Value::Null, ada()), "already");
    let run_again = signal(asked_again.clone(), first.as_str(), json!({"approved": true}), ada());
    assert!(run_again.ends_with("→ running"), "{run_again}");
    let found = signal(asked_again.clone(), first.as_str(), json!({"result": "sent"}), ada());
    assert!(found.contains("\"supplied\":{\"text\":\"sent\"}"), "{found}");

    let granted_again = decided_on(first.as_str(), "a", Decision::Granted, ada());
    let asked_twice: Vec<Event> = asked_again
        .into_iter()
        .chain([granted_again, started("a"), recovers("a", second.as_str())])
        .collect();
    assert_eq!(signal(asked_twice.clone(), first.as_str(), Value::Null, ada()), "already");
    assert_eq!(signal(asked_twice.clone(), &key_of("a"), Value::Null, ada()), "already");
    let denied = signal(asked_twice, second.as_str(), json!({"approved": false}), ada());
    assert!(denied.contains("\"denied\""), "{denied}");
}

#[test]
fn the_keys_of_permissions_are_not_for_waits() {
    let log = [one(), started("a")];
    for key in [key_of("a"), recover_key(RUN, MESSAGE, &CallId::from("a"), 3).0] {
        assert!(history(log.clone()).has_waited_for(&WaitKey(key.clone())));
        assert!(history(log.clone()).record(waits("a", &key)).is_err());
    }
}

#[test]
fn a_run_is_cancelled_once() {
    let cancel = |events: Vec<Event>| told(command::cancel(history(events), ada()));
    let recorded = "run.cancelled {\"by\":{\"kind\":\"user\",\"id\":\"ada\"}} → cancelled";
    assert_eq!(cancel(vec![]), recorded);
    assert_eq!(cancel(vec![one(), started("a")]), recorded);
    assert_eq!(cancel(vec![one(), started("a"), waits("a", "k")]), recorded);
    assert_eq!(cancel(vec![Cancelled { by: service() }.into()]), "already");
    assert_eq!(cancel(vec![completed()]), "refused: the run is completed: it takes nothing more");
    assert_eq!(cancel(vec![failed()]), "refused: the run is failed: it takes nothing more");
}

#[test]
fn a_run_that_has_ended_hears_nothing() {
    let speak = |events: Vec<Event>| {
        told(command::speak(history(events), MESSAGE, "and?".to_owned(), None, ada()))
    };
    for end in [completed(), failed(), Cancelled { by: ada() }.into()] {
        assert!(speak(vec![end]).starts_with("refused: the run is "));
    }
    for (events, status) in [
        (vec![], "running"),
        (vec![one(), started("a")], "running"),
        (vec![one(), started("a"), waits("a", "k")], "waiting"),
        (vec![proposed(MESSAGE, &[("a", RequireHuman)])], "waiting"),
    ] {
        assert!(speak(events).ends_with(&format!("→ {status}")));
    }
}

#[test]
fn only_a_failure_at_the_model_is_resumed() {
    let resume = |events: Vec<Event>| told(command::resume(history(events), ada()));
    let resumed = "run.resumed {\"by\":{\"kind\":\"user\",\"id\":\"ada\"}} → running";
    assert_eq!(resume(vec![failed()]), resumed);
    assert_eq!(resume(vec![one(), started("a"), ended("a"), closed(), failed()]), resumed);
    let not = |status| {
        format!(
            "refused: only a run that is paused, or that failed at the model, can be resumed; this one is {status}"
        )
    };
    assert_eq!(resume(vec![one(), started("a"), failed()]), not("failed"));
    assert_eq!(resume(vec![completed()]), not("completed"));
    assert_eq!(resume(vec![Cancelled { by: ada() }.into()]), not("cancelled"));
    assert_eq!(resume(vec![]), not("running"));
    assert_eq!(resume(vec![failed(), Resumed { by: ada() }.into()]), not("running"));
}

fn hour(nth: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(nth * 3600).unwrap()
}

/// A batch whose first call is asked about for an hour.
fn standing(escalates: bool) -> Event {
    let mut proposal = proposal("a", RequireApproval);
    if let Some(Answer::Request(request)) = &mut proposal.answer {
        let request = std::sync::Arc::make_mut(request);
        (request.expires_at, request.escalates) = (Some(hour(1)), escalates);
    }
    let (text, model, usage) = (String::new(), "scripted".to_owned(), Usage::default());
    BatchProposed { message: MESSAGE, text, calls: vec![proposal], model, usage }.into()
}

fn expire(events: impl IntoIterator<Item = Event>, key: &str, now: jiff::Timestamp) -> String {
    told(command::expire(history(events), &WaitKey::from(key), now))
}

#[test]
fn nothing_ends_before_its_time() {
    let key = key_of("a");
    assert_eq!(expire([standing(false)], &key, hour(0)), "already");
    let expired = expire([standing(false)], &key, hour(1));
    assert!(expired.contains("\"expired\"") && expired.ends_with("→ running"), "{expired}");
    // A question that stands for ever.
    let asked = || [proposed(MESSAGE, &[("a", RequireHuman)])];
    assert_eq!(expire(asked(), &key, jiff::Timestamp::MAX), "already");
    let mut wait = WaitBegan {
        call: CallId::from("a"),
        correlation_key: WaitKey::from("k"),
        until: Some(hour(1)),
    };
    let waiting = |wait: &WaitBegan| [one(), started("a"), wait.clone().into()];
    assert_eq!(expire(waiting(&wait), "k", hour(0)), "already");
    assert!(expire(waiting(&wait), "k", hour(1)).starts_with("wait.expired"));
    wait.until = None;
    assert_eq!(expire(waiting(&wait), "k", jiff::Timestamp::MAX), "already");
}

/// Two servers see the same deadline. One puts the question to others; the other, a moment
/// later, must not take it for one that nobody answered in its second hour either.
#[test]
fn a_question_that_was_put_to_others_has_its_time_again() {
    let key = key_of("a");
    let first = expire([standing(true)], &key, hour(1));
    assert!(first.starts_with("permission.escalated") && first.ends_with("→ waiting"), "{first}");
    let again: Event = PermissionEscalated {
        call: CallId::from("a"),
        permission: asked("a"),
        expires_at: hour(2),
    }
    .into();
    let log = || [standing(true), again.clone()];
    assert_eq!(expire(log(), &key, hour(1)), "already");
    assert!(expire(log(), &key, hour(2)).contains("\"expired\""));
}

fn extend(events: impl IntoIterator<Item = Event>, by: u64, at_most: u64) -> String {
    let hours = |it: u64| std::time::Duration::from_secs(it * 60 * 60);
    let longer = command::Extension { by: hours(by), at_most: hours(at_most) };
    let log = log(events);
    let history = History::fold(RUN, &log).unwrap();
    told(command::extend(history, &log, asked("a"), longer, ada()))
}

#[test]
fn a_question_is_given_more_time_up_to_a_limit_and_never_less() {
    let extended = |to: i64| {
        format!(
            "permission.extended {{\"call\":\"a\",\"permission\":\"{}\",\"expires_at\":\"{}\",\"by\":{{\"kind\":\"user\",\"id\":\"ada\"}}}} → waiting",
            asked("a"),
            hour(to)
        )
    };
    assert_eq!(extend([standing(false)], 2, 9), extended(3));
    assert_eq!(extend([standing(false)], 20, 9), extended(9));
    let full = format!("refused: `{}` stands for as long as a question may already", asked("a"));
    assert_eq!(extend([standing(false)], 2, 1), full);
    assert_eq!(extend([standing(false)], 0, 9), full);
    let longer: Event = PermissionExtended {
        call: CallId::from("a"),
        permission: asked("a"),
        expires_at: hour(3),
        by: ada(),
    }
    .into();
    let log = || [standing(false), longer.clone()];
    assert_eq!(extend(log(), 2, 9), extended(5));
    // It ends when its new time is up, and not before.
    assert_eq!(expire(log(), &key_of("a"), hour(1)), "already");
    assert!(expire(log(), &key_of("a"), hour(3)).contains("\"expired\""));
}

#[test]
fn only_an_open_question_that_expires_is_given_more_time() {
    let question = || proposed(MESSAGE, &[("a", RequireHuman)]);
    let endless = format!("refused: `{}` does not expire: it needs no more time", asked("a"));
    assert_eq!(extend([question()], 1, 9), endless);
    let answered = [standing(false), decided("a", Decision::Denied, ada())];
    let late = format!("refused: `{}` was answered before: denied", asked("a"));
    assert_eq!(extend(answered, 1, 9), late);
    let unknown = format!("refused: the run has no question `{}`", asked("a"));
    assert_eq!(extend([one()], 1, 9), unknown);
    let over = [standing(false), Cancelled { by: ada() }.into()];
    assert_eq!(extend(over, 1, 9), "refused: the run is cancelled: it takes nothing more");
    for nobody in [agent(), Actor::System] {
        let longer = command::Extension {
            by: std::time::Duration::from_secs(1),
            at_most: std::time::Duration::MAX,
        };
        let log = log([standing(false)]);
        let history = History::fold(RUN, &log).unwrap();
        let refused = told(command::extend(history, &log, asked("a"), longer, nobody));
        assert_eq!(
            refused,
            "refused: an agent decides nothing, and the system only that nobody did"
        );
    }
}

#[test]
fn an_agent_is_asked_about_an_open_question_so_often_and_nothing_moves() {
    let question = || proposed(MESSAGE, &[("a", RequireHuman)]);
    let inquire = |events: Vec<Event>, by: Actor| {
        let log = log(events);
        let history = History::fold(RUN, &log).unwrap();
        told(command::inquire(history, &log, asked("a"), MESSAGE, "what for?".to_owned(), by))
    };
    let explain = |events: Vec<Event>| {
        let log = log(events);
        let history = History::fold(RUN, &log).unwrap();
        let Event::PermissionExplained(it) = explained("a") else { unreachable!() };
        told(command::explain(history, &log, it))
    };
    let asks = inquire(vec![question()], service());
    assert!(asks.starts_with("permission.inquired") && asks.ends_with("→ waiting"), "{asks}");
    for nobody in [agent(), Actor::System] {
        assert!(inquire(vec![question()], nobody).starts_with("refused: an agent decides nothing"));
    }
    let often: Vec<Event> = [question()].into_iter().chain((0..5).map(|_| inquired("a"))).collect();
    assert!(inquire(often[..5].to_vec(), ada()).ends_with("→ waiting"));
    assert!(inquire(often.clone(), ada()).contains("as often as it may be"));
    // It stands as it stood, whatever was said about it.
    let state =
        |events: Vec<Event>| format!("{:?}", History::fold(RUN, &log(events)).unwrap().run());
    let said = || vec![question(), inquired("a"), explained("a")];
    assert_eq!(state(said()), state(vec![question()]));
    let says = explain(vec![question(), inquired("a")]);
    assert!(says.starts_with("permission.explained") && says.ends_with("→ waiting"), "{says}");
    assert_eq!(explain(said()), "already");
    // What nobody has asked is not explained, and what was decided not any more.
    assert!(explain(vec![question()]).starts_with("refused"));
    let late = format!("refused: `{}` was answered before: denied", asked("a"));
    let denied = || decided("a", Decision::Denied, ada());
    assert_eq!(explain(vec![question(), inquired("a"), denied()]), late);
    assert_eq!(inquire(vec![question(), denied()], ada()), late);
}
