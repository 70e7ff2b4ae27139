//! Where a run goes on from another one's log: what it begins with, and which calls that leaves
//! out. Pure, and of words alone: no ruling, no grant and no permit is carried over, and every
//! call of the new run meets the gate by itself.

use std::sync::Arc;

use chancery_domain::command::requests;
use chancery_domain::event::{Actor, Call, Carried, Created, Event, Forked, Recorded};
use chancery_domain::id::{CallId, RunId};
use chancery_store::read::Exchange;

use crate::context::{Context, is_persons};
use crate::model::Message;

/// In bytes, as it is recorded. It is a quarter of a million tokens, more than most models read at
/// once; and whoever looks at such a run reads it again with the first event.
const CARRIED_MAX: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("a group's run has no one talk to go on from: ask the group for its goal anew")]
    Group,
    #[error("a run beneath another is that one's: go on from the run above it")]
    Beneath,
    #[error("a call from outside is made anew by whoever made it: there is no talk to go on from")]
    Outside,
    #[error("the log has no event {at}: it has {end}")]
    NoSuchPlace { at: u64, end: u64 },
    #[error("what the model had read there is {0} bytes long; at most {CARRIED_MAX} are carried")]
    TooLong(usize),
    #[error("the log does not begin with the run's creation")]
    NoBeginning,
}

/// From where, and with which words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Absent: from where the run has come to.
    pub at: Option<u64>,
    /// Something new to go on with, and who says it. Absent: the goal as it was.
    pub says: Option<(&'a str, &'a Actor)>,
}

/// What the new run is made with, beside whose it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Beginning {
    pub input: String,
    pub persons_words: Vec<String>,
    pub forked: Forked,
}

/// What the model had read at the last place, at or before the one that is wanted, where no batch
/// is open. `before` is what was said earlier in the run's session.
pub fn begin(
    run: RunId,
    log: &[Recorded],
    before: Vec<Exchange>,
    wanted: Wanted<'_>,
) -> Result<Beginning, Refusal> {
    let created = forkable(log)?;
    let end = log.len() as u64;
    let at = wanted.at.unwrap_or(end);
    if !(1..=end).contains(&at) {
        return Err(Refusal::NoSuchPlace { at, end });
    }
    let at = place(log, at, wanted.says.is_some());
    let log = &log[..at as usize];
    let mut context = Context::new(created.clone(), before);
    let goal = match &created.forked {
        Some(forked) => forked.before.len(),
        None => context.messages().len() - 1,
    };
    // That it was to come to an end was asked of that run, not of this one.
    let heard = log.iter().filter(|it| !matches!(it.event, Event::WrapUpAsked(_)));
    heard.for_each(|it| context.follow(&it.event));
    let mut carried: Vec<Carried> = context.messages().iter().cloned().map(Carried::from).collect();
    if let Some(Event::Completed(it)) = log.last().map(|it| &it.event) {
        carried.push(Message::Assistant { text: it.output.clone(), calls: Vec::new() }.into());
    }
    let mut persons_words = context.kept_words();
    let (input, before, after) = match wanted.says {
        Some((text, by)) => {
            persons_words.extend(is_persons(by).then(|| text.to_owned()));
            (text.to_owned(), carried, Vec::new())
        }
        None => {
            let after = carried.split_off(goal + 1);
            carried.truncate(goal);
            (created.input.clone(), carried, after)
        }
    };
    let by = created.forked.as_ref().map_or(&created.by, |it| &it.by).clone();
    let earlier = context.earlier().map(str::to_owned);
    let forked = Forked { run, at, by, earlier, before, after };
    match serde_json::to_vec(&forked).map_or(usize::MAX, |it| it.len()) {
        0..=CARRIED_MAX => Ok(Beginning { input, persons_words, forked }),
        long => Err(Refusal::TooLong(long)),
    }
}

/// A run of one agent that a person may talk with.
fn forkable(log: &[Recorded]) -> Result<&Created, Refusal> {
    let Some(Event::Created(created)) = log.first().map(|it| &it.event) else {
        return Err(Refusal::NoBeginning);
    };
    match created {
        Created { room: Some(_), .. } => Err(Refusal::Group),
        Created { parent: Some(_), .. } => Err(Refusal::Beneath),
        Created { call: Some(_), .. } => Err(Refusal::Outside),
        created => Ok(created),
    }
}

/// The last place up to one where every call has its result. What was answered is asked anew,
/// unless there is something new to be said to it.
fn place(log: &[Recorded], at: u64, says: bool) -> u64 {
    let (mut open, mut place) = (false, 1);
    for it in log.iter().take_while(|it| it.seq <= at) {
        match &it.event {
            Event::BatchProposed(_) => open = true,
            Event::BatchClosed(_) => open = false,
            Event::Completed(_) if !says => break,
            _ => {}
        }
        if !open {
            place = it.seq;
        }
    }
    place
}

/// Where one may go on from: the beginning, and after each batch, with the tools that it called.
/// Nowhere in a run that is not gone on from.
pub fn places(log: &[Recorded]) -> Vec<(u64, Vec<&str>)> {
    if forkable(log).is_err() {
        return Vec::new();
    }
    let mut places = vec![(1, Vec::new())];
    let mut called = Vec::new();
    for it in log {
        match &it.event {
            Event::BatchProposed(batch) => {
                called = batch.calls.iter().map(|it| &*it.call.tool).collect();
            }
            Event::BatchClosed(_) => places.push((it.seq, std::mem::take(&mut called))),
            _ => {}
        }
    }
    places
}

/// A call of the run that another one goes on from.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    pub call: Arc<Call>,
    /// Its result is carried over: it is not made again.
    pub carried: bool,
    /// It was begun there.
    pub ran: bool,
    /// Somebody was asked about it there.
    pub asked: bool,
}

/// What becomes of the calls of a run in one that goes on from it after the event `at`.
pub fn known(log: &[Recorded], at: u64) -> Vec<Known> {
    let mut all: Vec<Known> = Vec::new();
    for Recorded { seq, event, .. } in log {
        match event {
            Event::Created(created) => {
                let before = created.forked.iter().flat_map(|it| it.before.iter().chain(&it.after));
                let calls = before.filter_map(|it| match it {
                    Carried::Answered { calls, .. } => Some(calls),
                    _ => None,
                });
                all.extend(calls.flatten().map(|call| Known {
                    call: call.clone(),
                    carried: true,
                    ran: true,
                    asked: false,
                }));
            }
            Event::BatchProposed(batch) => all.extend(batch.calls.iter().map(|it| Known {
                call: it.call.clone(),
                carried: *seq <= at,
                ran: false,
                asked: false,
            })),
            Event::CallStarted(it) => mark(&mut all, &it.call, |it| it.ran = true),
            Event::ChildSpawned(it) => mark(&mut all, &it.call, |it| it.ran = true),
            _ => {}
        }
        for (call, _) in requests(event) {
            mark(&mut all, call, |it| it.asked = true);
        }
    }
    all
}

/// Ids come again in another batch: the last one is meant.
fn mark(all: &mut [Known], call: &CallId, how: impl FnOnce(&mut Known)) {
    if let Some(it) = all.iter_mut().rev().find(|it| it.call.id == *call) {
        how(it);
    }
}

#[cfg(test)]
mod tests;
