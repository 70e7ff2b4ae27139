//! A run's goal handed to a group, and what is handed back. Pure.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::event::{Actor, CallResult, ChildEnded, Created, Event, Recorded, Spoken};
use crate::history::{Change, History};
use crate::id::{CallId, GroupId, RunId, WaitKey};
use crate::policy::{Layer, Reason, Ruling};
use crate::run::{Illegal, Outcome, Run, Wait};

/// Why a goal cannot be handed on. A word that programs can match is its code.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no group `{0}`")]
    UnknownGroup(GroupId),
    #[error("group `{0}` has no member that is at work")]
    NobodyAtWork(GroupId),
    #[error("group `{0}` is at work above this run already: it would wait for itself")]
    AboveAlready(GroupId),
    #[error("goals are handed on at most {0} deep, and this run is that deep")]
    TooDeep(usize),
}

impl Refusal {
    /// What the model reads.
    pub fn result(&self) -> CallResult {
        failure(self.code(), &self.to_string(), &[])
    }

    /// As the layer of limits says it.
    pub fn reason(&self) -> Reason {
        Reason {
            layer: Layer::Limits.as_str().to_owned(),
            rule: "escalation.depth".to_owned(),
            outcome: Ruling::Deny,
            detail: self.to_string(),
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Refusal::UnknownGroup(_) => "UNKNOWN_GROUP",
            Refusal::NobodyAtWork(_) => "EMPTY_GROUP",
            Refusal::AboveAlready(_) => "GROUP_ABOVE",
            Refusal::TooDeep(_) => "TOO_DEEP",
        }
    }
}

/// Whether a run may hand a goal to a group, as far as the runs above it say.
pub fn check(created: &Created, group: &GroupId, depth_max: usize) -> Result<(), Refusal> {
    if let Some(refusal) = too_deep(created, depth_max) {
        return Err(refusal);
    }
    if is_above(created, group) {
        return Err(Refusal::AboveAlready(group.clone()));
    }
    Ok(())
}

/// Why a run may hand no goal on at all, if it may not.
pub fn too_deep(created: &Created, depth_max: usize) -> Option<Refusal> {
    (created.ancestors.len() >= depth_max).then_some(Refusal::TooDeep(depth_max))
}

/// Whether a group is at work in this run or above it.
pub fn is_above(created: &Created, group: &GroupId) -> bool {
    let above = created.ancestors.iter().filter_map(|it| it.group.as_ref());
    above.chain(&created.group).any(|it| it == group)
}

/// Records on a parent that a child has ended, in the transaction that ends it. `None`: the parent
/// does not wait for it (any more).
pub fn hand_back(parent: History, child: &Change) -> Result<Option<History>, Illegal> {
    let Some(call) = awaits(&parent, child.run()) else { return Ok(None) };
    let result = result(child.outcome(), child.spoken());
    let (child, usage) = (child.run(), child.usage());
    parent.record(ChildEnded { call, child, result, usage, abandoned: false }).map(Some)
}

/// Records on a parent that a child took too long. `abandoned`: it is to be cancelled.
pub fn give_up(
    parent: History,
    child: RunId,
    limit: Duration,
    abandoned: bool,
) -> Result<Option<History>, Illegal> {
    let Some(call) = awaits(&parent, child) else { return Ok(None) };
    let become_of = if abandoned { "it was cancelled" } else { "it goes on by itself" };
    let error = format!(
        "Group run {child} did not complete within {} seconds; {become_of}",
        limit.as_secs_f64()
    );
    let result = failure("TIMEOUT", &error, &[]);
    parent
        .record(ChildEnded { call, child, result, usage: Default::default(), abandoned })
        .map(Some)
}

/// The call that a child is at.
fn awaits(parent: &History, child: RunId) -> Option<CallId> {
    match parent.run() {
        Run::Waiting(Wait::Children(batch)) => {
            batch.away().find(|(_, it)| *it == child).map(|(call, _)| call.id.clone())
        }
        _ => None,
    }
}

/// What the parent's model reads.
fn result(outcome: Option<&Outcome>, spoken: &[Spoken]) -> CallResult {
    match outcome {
        Some(Outcome::Completed { output }) => {
            let output = match output.trim().is_empty() {
                true => "Group completed but produced no output",
                false => output,
            };
            let mut said = json!({"success": true, "result": output});
            tell(&mut said, spoken);
            CallResult::ok(said.to_string())
        }
        Some(Outcome::Failed { error, .. }) => {
            failure("GROUP_RUN_FAILED", &format!("Group run failed: {error}"), spoken)
        }
        Some(Outcome::Cancelled) => {
            failure("GROUP_RUN_CANCELLED", "Group run failed: it was cancelled", spoken)
        }
        None => failure("GROUP_RUN_FAILED", "Group run failed: Unknown error", spoken),
    }
}

fn failure(code: &str, error: &str, spoken: &[Spoken]) -> CallResult {
    let mut said = json!({"success": false, "error": error});
    tell(&mut said, spoken);
    answer(code, &said)
}

/// The tool has done its work when it says how it went, so this is no error of the call; the code
/// is for programs.
pub fn answer(code: &str, said: &serde_json::Value) -> CallResult {
    CallResult { is_error: false, code: Some(code.to_owned()), text: said.to_string() }
}

/// The parent's agent is told that people spoke to the group, and what.
fn tell(said: &mut serde_json::Value, spoken: &[Spoken]) {
    if !spoken.is_empty() {
        let words = |it: &Spoken| json!({"by": name(&it.by), "text": it.text});
        said["people_spoke"] = spoken.iter().map(words).collect();
    }
}

fn name(by: &Actor) -> &str {
    match by {
        Actor::User(user) => user.as_str(),
        Actor::Service(name) => name,
        Actor::Agent(agent) => agent.as_str(),
        Actor::System => "system",
    }
}

/// The key under which a child's deadline is kept. No signal can name it.
pub fn deadline_key(child: RunId) -> WaitKey {
    WaitKey(format!("cap-child-{child}"))
}

pub fn is_deadline(key: &WaitKey) -> bool {
    key.as_str().starts_with("cap-child-")
}

/// For how long a run has waited for a person between two times, and whether it does so now:
/// time for which nobody else's clock runs. `beneath` says the same of a child run.
pub fn waited_for_person(
    log: &[Recorded],
    (from, to): (Timestamp, Timestamp),
    beneath: &mut impl FnMut(RunId, (Timestamp, Timestamp)) -> (Duration, bool),
) -> (Duration, bool) {
    let Some((first, rest)) = log.split_first() else { return Default::default() };
    let Ok(mut run) = Run::begin(&first.event) else { return Default::default() };
    let (mut waited, mut since, mut now) = (Duration::ZERO, first.at, false);
    let mut span = |run: &Run, begin: Timestamp, end: Timestamp| {
        let (begin, end) = (begin.max(from), end.min(to));
        let length = Duration::try_from(end.duration_since(begin)).unwrap_or_default();
        match run {
            Run::Waiting(Wait::Permissions(_) | Wait::Pause(_)) => (length, true),
            // While several are away the one that waits longest counts.
            Run::Waiting(Wait::Children(batch)) if begin < end => batch
                .away()
                .map(|(_, child)| beneath(child, (begin, end)))
                .max()
                .unwrap_or_default(),
            _ => Default::default(),
        }
    };
    for it in rest {
        waited += span(&run, since, it.at).0;
        since = it.at;
        match run.apply(&it.event) {
            Ok(next) => run = next,
            Err(_) => return (waited, false),
        }
    }
    if !matches!(run, Run::Finished(_)) {
        let (last, waits) = span(&run, since, to);
        (waited, now) = (waited + last, waits);
    }
    (waited, now)
}

/// The spawn of a child in its parent's log.
pub fn spawn_of(log: &[Recorded], child: RunId) -> Option<&crate::event::ChildSpawned> {
    log.iter().find_map(|it| match &it.event {
        Event::ChildSpawned(spawned) if spawned.child == child => Some(spawned),
        _ => None,
    })
}
