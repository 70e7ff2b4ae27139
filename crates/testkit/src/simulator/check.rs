//! What must hold of a run's log and of the world when all is over, whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use chancery_domain::event::*;
use chancery_domain::history::History;
use chancery_domain::id::{CallId, MessageId, RunId, idempotency_key};
use chancery_domain::policy::Ruling;
use chancery_domain::run::{Run, Work};
use chancery_runtime::UnknownOutcome;
use serde_json::Value;

use super::Scenario;
use super::people::Law;
use super::world::{Act, World};

/// A call that was under way when a life ended, and where the log was.
#[derive(Debug, Clone)]
pub struct Orphan {
    pub after: u64,
    pub call: CallId,
    pub message: MessageId,
    act: Option<Act>,
}

/// The calls that have started and not ended, in a run that a crash left executing.
pub fn orphans(run: RunId, log: &[Recorded]) -> Vec<Orphan> {
    let Ok(history) = History::fold(run, log) else { return Vec::new() };
    let Run::Running(Work::Execute(batch)) = history.run() else { return Vec::new() };
    let message = batch.message();
    let mut open: Vec<Orphan> = Vec::new();
    for it in log {
        match &it.event {
            Event::CallStarted(started) => {
                let act = batch.call(&started.call).and_then(|it| Act::named(&it.tool));
                let (after, call) = (history.seq(), started.call.clone());
                open.push(Orphan { after, call, message, act });
            }
            Event::BatchProposed(_) => open.clear(),
            event => {
                if let Some(call) = settles(event) {
                    open.retain(|it| it.call != call);
                }
            }
        }
    }
    open
}

/// The call that is not under way any more after an event.
fn settles(event: &Event) -> Option<CallId> {
    match event {
        Event::CallEnded(it) => Some(it.call.clone()),
        Event::CallRetried(it) => Some(it.call.clone()),
        Event::PermissionRequested(it) => Some(it.call.clone()),
        Event::WaitBegan(it) => Some(it.call.clone()),
        Event::ChildSpawned(it) => Some(it.call.clone()),
        Event::Concluded(it) => Some(it.call.clone()),
        _ => None,
    }
}

/// Every orphan was dealt with as its tool and the operator say, before anything else was done
/// about it.
pub fn orphans_surfaced(
    log: &[Recorded],
    orphans: &[Orphan],
    scenario: &Scenario,
) -> Result<(), String> {
    for orphan in orphans {
        let next = log.iter().filter(|it| it.seq > orphan.after).find_map(|it| match &it.event {
            Event::CallEnded(e) if e.call == orphan.call => Some(match e.result.code.as_deref() {
                Some("OUTCOME_UNKNOWN") => "failed",
                _ => "finished",
            }),
            Event::CallRetried(e) if e.call == orphan.call => Some("retried"),
            Event::PermissionRequested(e) if e.call == orphan.call => Some("asked"),
            // Given up after too many tries: the run fails with it.
            Event::Failed(_) => Some("failed"),
            Event::Cancelled(_) => Some("cancelled"),
            _ => None,
        });
        let due = match (orphan.act, scenario.on_unknown) {
            (Some(Act::Wait), _) => return Err(format!("{orphan:?} can have no unknown outcome")),
            (Some(Act::Safe), _) | (_, UnknownOutcome::Retry) => "retried",
            (_, UnknownOutcome::Fail) => "failed",
            (_, UnknownOutcome::Ask) => "asked",
        };
        let given_up = next == Some("failed") && scenario.attempts < u32::MAX;
        if next != Some(due) && next != Some("cancelled") && !given_up {
            return Err(format!("{orphan:?} was {next:?}, not {due}"));
        }
    }
    Ok(())
}

/// What the log says of one call.
#[derive(Debug, Default)]
struct Course {
    starts: u32,
    /// By the operator's or a person's word, or because its tool may.
    repeats: u32,
    refused: bool,
    /// With a result that the tool gave.
    finished: bool,
}

pub fn whole(run: RunId, log: &[Recorded], world: &World) -> Result<(), String> {
    let history = History::fold(run, log).map_err(|it| it.to_string())?;
    if !matches!(history.run(), Run::Finished(_)) {
        return Err(format!("the run is {}", history.run().status()));
    }
    let courses = courses(run, log)?;
    let effects = world.effects_of(run);
    for (key, count) in &effects {
        let course = courses.get(key).ok_or_else(|| format!("`{key}` ran and is in no log"))?;
        if *count > course.starts {
            return Err(format!("`{key}` took effect {count} times: {course:?}"));
        }
    }
    for (key, course) in &courses {
        let count = effects.get(key).copied().unwrap_or(0);
        if course.starts > 1 + course.repeats {
            return Err(format!("`{key}` was started without a word for it: {course:?}"));
        }
        if course.refused && course.starts == 0 && count > 0 {
            return Err(format!("`{key}` was refused and took effect"));
        }
        if course.finished && count == 0 {
            return Err(format!("`{key}` has a result and had no effect: {course:?}"));
        }
        if course.finished && course.starts == 1 && count != 1 {
            return Err(format!("`{key}` took effect {count} times: {course:?}"));
        }
    }
    Ok(())
}

/// What is known of one call's right to run.
#[derive(Debug)]
struct Claim {
    tool: String,
    /// As they were granted.
    arguments: Value,
    /// It may be started, once.
    right: bool,
    by_rule: bool,
    by_person: bool,
}

/// A call starts only by right, each time: because it is allowed, because somebody said so, or
/// because its outcome is unknown and it may be repeated. What the rules have come to say while
/// the run waited holds for all that starts afterwards.
pub fn by_right(run: RunId, log: &[Recorded], world: &World) -> Result<(), String> {
    let enacted = world.enacted(run);
    // Who is dismissed speaks in no group.
    let first = log.first().map(|it| &it.event);
    let clerk = matches!(first, Some(Event::Created(it)) if it.room.is_none());
    let mut claims: BTreeMap<CallId, Claim> = BTreeMap::new();
    let mut batch = None;
    let mut on_rules_that_were_taken_back = 0;
    for Recorded { seq, event, .. } in log {
        if let Event::BatchProposed(it) = event {
            batch = Some(it.message);
            claims = it.calls.iter().map(|it| (it.call.id.clone(), claim(it))).collect();
            continue;
        }
        let call = match event {
            Event::PermissionRequested(it) => &it.call,
            Event::PermissionDecided(it) => &it.call,
            Event::CallRetried(it) => &it.call,
            Event::CallStarted(it) => &it.call,
            _ => continue,
        };
        let claim = claims.get_mut(call).ok_or_else(|| format!("no call {call}"))?;
        match event {
            Event::PermissionRequested(_) => (claim.right, claim.by_rule) = (false, false),
            Event::CallRetried(_) => claim.right = true,
            Event::PermissionDecided(it) => {
                claim.right = it.decision == Decision::Granted;
                claim.by_person |= claim.right && matches!(it.by, Actor::User(_));
                claim.arguments = it.arguments.clone().unwrap_or(claim.arguments.take());
            }
            _ => {
                if !std::mem::take(&mut claim.right) {
                    return Err(format!("{call} started without a right: {claim:?}"));
                }
                let forbidden = *seq > enacted.at
                    && match enacted.law {
                        Law::Usual => false,
                        Law::Human => claim.tool == "ask" && !claim.by_person,
                        Law::Denied | Law::Gone => claim.tool == "ask",
                        Law::Dismissed => clerk,
                    };
                if forbidden {
                    return Err(format!("{call} started under {enacted:?}: {claim:?}"));
                }
                let after = enacted.revoked_at.is_some_and(|at| *seq > at);
                on_rules_that_were_taken_back += u32::from(after && claim.by_rule);
                let key = batch.map(|it| idempotency_key(run, it, call)).unwrap_or_default();
                if let Some(given) = world.arguments(&key).filter(|it| *it != claim.arguments) {
                    return Err(format!("{call} was called with {given}, not as {claim:?}"));
                }
            }
        }
    }
    // One may have been on its way.
    if on_rules_that_were_taken_back > 1 {
        return Err("calls started by a rule that had been taken back".to_owned());
    }
    Ok(())
}

fn claim(proposal: &Proposal) -> Claim {
    let by_rule = matches!(proposal.answer, Some(Answer::Rule(_)));
    Claim {
        tool: proposal.call.tool.clone(),
        arguments: proposal.call.arguments.clone(),
        right: proposal.ruling == Ruling::Allow || by_rule,
        by_rule,
        by_person: false,
    }
}

/// Walks the log; refuses results that are not in the model's order.
fn courses(run: RunId, log: &[Recorded]) -> Result<BTreeMap<String, Course>, String> {
    let mut courses: BTreeMap<String, Course> = BTreeMap::new();
    let mut batch: Option<(MessageId, Vec<CallId>)> = None;
    // Calls of tools that count; what the others do is in the log alone.
    let mut counted: BTreeSet<CallId> = BTreeSet::new();
    let mut results: Vec<CallId> = Vec::new();
    // Children come back in an order of their own.
    let mut children = false;
    let mut waiting: Option<CallId> = None;
    for it in log {
        if let Event::BatchProposed(it) = &it.event {
            let calls = it.calls.iter().map(|it| it.call.id.clone()).collect();
            let acts = it.calls.iter().filter(|it| Act::named(&it.call.tool).is_some());
            counted = acts.map(|it| it.call.id.clone()).collect();
            batch = Some((it.message, calls));
            continue;
        }
        let Some((message, calls)) = &batch else { continue };
        let mut course = |call: &CallId, note: fn(&mut Course)| {
            note(courses.entry(idempotency_key(run, *message, call)).or_default());
        };
        match &it.event {
            Event::CallStarted(e) => course(&e.call, |it| it.starts += 1),
            Event::CallRetried(e) => course(&e.call, |it| it.repeats += 1),
            Event::CallEnded(e) => {
                if !e.result.is_error && counted.contains(&e.call) {
                    course(&e.call, |it| it.finished = true);
                }
                results.push(e.call.clone());
            }
            Event::CallRefused(e) => {
                course(&e.call, |it| it.refused = true);
                results.push(e.call.clone());
            }
            Event::PermissionDecided(e) => match e.decision {
                Decision::Granted => course(&e.call, |it| it.repeats += 1),
                Decision::Supplied(_) => results.push(e.call.clone()),
                Decision::Denied | Decision::Expired => {}
            },
            Event::WaitBegan(e) => waiting = Some(e.call.clone()),
            Event::Signalled(_) | Event::WaitExpired(_) => results.extend(waiting.take()),
            Event::Concluded(e) => results.push(e.call.clone()),
            Event::ChildEnded(e) => {
                children = true;
                results.push(e.call.clone());
            }
            Event::BatchClosed(_) => {
                let mut due = calls.clone();
                if std::mem::take(&mut children) {
                    due.sort();
                    results.sort();
                }
                if results != due {
                    return Err(format!("results {results:?} of calls {due:?}"));
                }
                results.clear();
                batch = None;
            }
            _ => {}
        }
    }
    Ok(courses)
}

/// An answer that has not heard the last word is no answer.
pub fn heard_all(log: &[Recorded]) -> Result<(), String> {
    let Some(Event::Completed(completed)) = log.last().map(|it| &it.event) else { return Ok(()) };
    for it in log {
        if let Event::UserSpoke(spoke) = &it.event
            && !completed.output.split('|').any(|it| it == spoke.text)
        {
            return Err(format!("`{}` was not heard in `{}`", spoke.text, completed.output));
        }
    }
    Ok(())
}

/// How many entries the audit owes to a log: all that is not a silent allow.
pub fn entries_due(log: &[Recorded]) -> usize {
    let mut due = 0;
    let first = log.first().map(|it| &it.event);
    let in_group = matches!(first, Some(Event::Created(it)) if it.room.is_some());
    // Calls of the batch in hand that somebody granted, and those that nobody may run.
    let (mut granted, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for it in log {
        due += match &it.event {
            Event::Cancelled(_)
            | Event::PermissionRequested(_)
            | Event::PermissionEscalated(_)
            | Event::PermissionExtended(_)
            | Event::PermissionInquired(_) => 1,
            Event::WrapUpAsked(_) | Event::PauseAsked(_) | Event::Unpaused(_) => 1,
            Event::ChildSpawned(_) => 1,
            Event::UserSpoke(_) if in_group => 1,
            Event::BatchProposed(batch) => {
                (granted, refused) = (BTreeSet::new(), BTreeSet::new());
                for it in &batch.calls {
                    match (it.ruling, &it.answer) {
                        (Ruling::Deny, _) => drop(refused.insert(it.call.id.clone())),
                        (_, Some(Answer::Rule(_))) => drop(granted.insert(it.call.id.clone())),
                        _ => {}
                    }
                }
                batch.calls.iter().filter(|it| it.ruling != Ruling::Allow).count()
            }
            Event::PermissionDecided(it) => {
                match it.decision {
                    Decision::Granted => drop(granted.insert(it.call.clone())),
                    Decision::Denied | Decision::Expired => drop(refused.insert(it.call.clone())),
                    Decision::Supplied(_) => {}
                }
                1 + usize::from(it.remember.is_some())
            }
            Event::CallEnded(it) => usize::from(granted.contains(&it.call)),
            Event::CallRefused(it) => usize::from(!refused.contains(&it.call)),
            _ => 0,
        };
    }
    due
}
