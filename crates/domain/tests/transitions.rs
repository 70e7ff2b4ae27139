//! The whole run machine as a table that a person can read: every event against every state.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod samples;

use std::sync::Arc;

use chancery_domain::event::*;
use chancery_domain::id::*;
use chancery_domain::policy::Ruling::{self, Allow, Deny, RequireApproval};
use chancery_domain::run::Run;
use samples::*;

/// The states, each as the log that leads to it. `None`: the run is not created.
fn columns() -> Vec<(&'static str, Option<Vec<Event>>)> {
    let batch = |calls: &[(&str, Ruling)]| proposed(MESSAGE, calls);
    let one = batch(&[("a", Allow)]);
    let run = |events: &[Event]| {
        let begin = [Event::Created(created()), Event::Started(Started {})];
        Some(begin.into_iter().chain(events.iter().cloned()).collect())
    };
    vec![
        ("not created", None),
        ("pending", Some(vec![created().into()])),
        ("generate", run(&[])),
        ("execute", run(std::slice::from_ref(&one))),
        ("call started", run(&[one.clone(), started("a")])),
        ("call refused", run(&[batch(&[("a", Deny)])])),
        ("ended", run(&[one.clone(), started("a"), ended("a")])),
        ("permissions", run(&[expiring(batch(&[("a", RequireApproval)]))])),
        ("recover", run(&[one.clone(), started("a"), expiring(recovers("a", "recover"))])),
        ("signal wait", run(&[one.clone(), started("a"), waits("a", "k")])),
        ("child away", run(&[one.clone(), started("a"), spawned("a", CHILD)])),
        ("paused", run(&[one.clone(), Paused {}.into()])),
        ("failed resumable", run(&[failed()])),
        ("failed", run(&[one, started("a"), failed()])),
        ("completed", run(&[completed()])),
        ("cancelled", run(&[Cancelled { by: ada() }.into()])),
    ]
}

/// The same question, for a while.
fn expiring(mut event: Event) -> Event {
    let expires = |it: &mut Arc<Request>| {
        Arc::make_mut(it).expires_at = Some(jiff::Timestamp::UNIX_EPOCH);
    };
    match &mut event {
        Event::BatchProposed(it) => {
            for it in &mut it.calls {
                if let Some(Answer::Request(request)) = &mut it.answer {
                    expires(request);
                }
            }
        }
        Event::PermissionRequested(it) => expires(&mut it.request),
        _ => {}
    }
    event
}

/// What an event may look like: the variants that some state takes.
fn variants(kind: &str) -> Vec<Event> {
    let decisions = [Decision::Granted, Decision::Denied, Decision::Supplied(CallResult::ok("x"))];
    match kind {
        "batch.proposed" => vec![
            proposed(MESSAGE, &[("a", Allow)]),
            proposed(MESSAGE, &[("a", RequireApproval)]),
            proposed(MESSAGE, &[("a", Deny)]),
        ],
        "permission.updated" => decisions
            .into_iter()
            .flat_map(|it| [decided("a", it.clone(), ada()), decided_on("recover", "a", it, ada())])
            .collect(),
        "permission.extended" => vec![extended("a"), extended_on("recover", "a")],
        "permission.inquired" => {
            vec![inquired("a"), inquired_on(permission_of("recover"), "a")]
        }
        "permission.explained" => {
            vec![explained("a"), explained_on(permission_of("recover"), "a")]
        }
        "permission.requested" => {
            vec![recovers("a", "again"), asks_again("a", "again", RequireApproval)]
        }
        // A fresh key: that a used one is refused is for the history's tests.
        "wait.began" => vec![waits("a", "another")],
        _ => every_event().into_iter().filter(|it| it.kind() == kind).collect(),
    }
}

fn state(events: Option<&Vec<Event>>) -> Option<Run> {
    let (first, rest) = events?.split_first().unwrap();
    let begun = Run::begin(first).unwrap();
    Some(rest.iter().fold(begun, |run, event| run.apply(event).unwrap()))
}

/// The status that follows; `*` when some variant of the event leaves the run waiting.
fn cell(column: Option<&Vec<Event>>, kind: &str) -> String {
    let next: Vec<Run> = variants(kind)
        .iter()
        .filter_map(|event| match state(column) {
            None => Run::begin(event).ok(),
            Some(run) => run.apply(event).ok(),
        })
        .collect();
    let waits = next.iter().any(|run| run.status() == "waiting");
    match next.iter().find(|run| run.status() != "waiting").or(next.first()) {
        None => "-".to_owned(),
        Some(run) if waits && run.status() != "waiting" => format!("{}*", run.status()),
        Some(run) => run.status().to_owned(),
    }
}

#[test]
fn every_event_in_every_state() {
    let columns = columns();
    let mut table = format!("{:<21}", "");
    for (name, _) in &columns {
        table.push_str(&format!("{name:<17}"));
    }
    table.truncate(table.trim_end().len());
    let mut exits = vec![false; columns.len()];
    for kind in Event::KINDS {
        let cells: Vec<String> = columns.iter().map(|(_, log)| cell(log.as_ref(), kind)).collect();
        assert!(cells.iter().any(|it| it != "-"), "`{kind}` is legal nowhere");
        for (exit, cell) in exits.iter_mut().zip(&cells) {
            let asks = ["message.user", "wrapup.requested", "pause.requested"];
            *exit |= cell != "-" && !asks.contains(kind);
        }
        let row: String = cells.iter().map(|it| format!("{it:<17}")).collect();
        table.push_str(&format!("\n{kind:<21}{}", row.trim_end()));
    }
    for ((name, _), exit) in columns.iter().zip(exits) {
        let terminal = matches!(*name, "failed" | "completed" | "cancelled");
        assert_eq!(exit, !terminal, "whether there is a way out of `{name}`");
    }
    table.push_str("\n(* or waiting, if a request is still open)");
    insta::assert_snapshot!(table);
}

#[test]
fn a_second_batch_may_reuse_the_names_of_the_first() {
    let again = proposed(MessageId(uuid(10)), &[("a", Allow)]);
    let run = history([
        proposed(MESSAGE, &[("a", Allow)]),
        started("a"),
        ended("a"),
        closed(),
        again,
        started("a"),
        ended("a"),
        closed(),
    ]);
    assert_eq!(run.run().status(), "running");
}

fn uuid(n: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(n)
}
