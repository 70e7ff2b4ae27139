//! What is known of one run: its log folded once more, by one who has no part in writing it.

use std::collections::BTreeMap;

use chancery_domain::command::requests;
use chancery_domain::event::{Actor, Decision, Event};
use chancery_domain::history::{Change, History, Posture};
use chancery_domain::id::CallId;
use chancery_domain::policy::Ruling;

#[derive(Debug, Default)]
pub struct Account {
    /// Absent only after an event that does not fit.
    pub history: Option<History>,
    /// What the store must say of it beside the log.
    pub posture: Option<Posture>,
    /// How often a call was started, by its idempotency key.
    pub starts: BTreeMap<String, u32>,
    /// Who had the run when the rules changed may have looked them up before: what it appends
    /// next may stand on the old ones.
    pub lenient: bool,
    pub lenient_until: Option<u64>,
    /// Calls that a question is open about, and whether a person must answer it.
    open: BTreeMap<CallId, bool>,
}

impl Account {
    /// Follows a change that was appended.
    pub fn follow(&mut self, change: &Change) -> Result<(), String> {
        let mut events = change.events().iter();
        let mut history = match self.history.take() {
            Some(history) if history.seq() == change.expected_seq() => history,
            Some(history) => return Err(format!("I3: the log was at {}", history.seq())),
            None if change.expected_seq() == 0 => {
                let Some(Event::Created(created)) = events.next() else {
                    return Err("I3: a log that does not begin".to_owned());
                };
                History::create(change.run(), created.clone())
            }
            None => return Err("I3: a log that nobody has seen begin".to_owned()),
        };
        for event in events {
            self.note(event)?;
            history = history.record(event.clone()).map_err(|it| format!("I2: {it}"))?;
        }
        let own = history.change().ok_or("an append of nothing")?;
        if own.after() != change.after() {
            return Err(format!("I2: {:?} is written as {:?}", own.after(), change.after()));
        }
        self.posture = Some(own.after().clone());
        self.history = Some(history);
        Ok(())
    }

    fn note(&mut self, event: &Event) -> Result<(), String> {
        for (call, _) in requests(event) {
            self.open.insert(call.clone(), needs_a_person(event, call));
        }
        match event {
            Event::CallStarted(it) if !self.open.is_empty() => {
                let open: Vec<_> = self.open.keys().collect();
                return Err(format!("I5: {} starts while {open:?} are asked for", it.call));
            }
            Event::CallStarted(it) => {
                *self.starts.entry(it.idempotency_key.clone()).or_default() += 1;
            }
            Event::PermissionDecided(it) => match self.open.remove(&it.call) {
                None => return Err(format!("I8: nobody had asked about {}", it.call)),
                Some(true)
                    if it.decision == Decision::Granted && !matches!(it.by, Actor::User(_)) =>
                {
                    return Err(format!("I7: {:?} stood in for a person at {}", it.by, it.call));
                }
                Some(_) => {}
            },
            Event::Cancelled(_) | Event::Failed(_) | Event::BatchClosed(_) => self.open.clear(),
            _ => {}
        }
        Ok(())
    }
}

fn needs_a_person(event: &Event, call: &CallId) -> bool {
    match event {
        Event::PermissionRequested(it) => it.ruling == Ruling::RequireHuman,
        Event::BatchProposed(it) => {
            let mut calls = it.calls.iter();
            calls.any(|it| it.call.id == *call && it.ruling == Ruling::RequireHuman)
        }
        _ => false,
    }
}
