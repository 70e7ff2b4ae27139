//! A run folded from its log, and the changes that may be appended to it.
//!
//! A [`Change`] is a proof: it is made only by recording events on a [`History`], which applies
//! each of them to the state first. The store takes nothing else, so what is in the log is legal.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::batch::{BatchError, Clearance, Permit};
use crate::escalation::deadline_key;
use crate::event::{
    Actor, CallStarted, ChildSpawned, Created, Event, Member, PermissionRequested, Recorded,
    Spoken, Usage, WaitBegan,
};
use crate::id::{RunId, WaitKey};
use crate::room::Floor;
use crate::run::{Illegal, Outcome, Run, Wait};

#[derive(Debug)]
pub struct History {
    id: RunId,
    /// The first event: whose run it is.
    created: Arc<Created>,
    /// Events recorded, staged ones included.
    seq: u64,
    run: Run,
    staged: Vec<Event>,
    /// The keys that the run has waited for: a key is waited for once.
    waited: BTreeSet<WaitKey>,
    /// As the store has it: the posture before the staged events.
    before: Posture,
    /// By what the calls were cleared that the staged events end or refuse, by place in the log.
    clearances: Vec<(u64, Clearance)>,
    /// The child runs that the staged events spawn.
    children: Vec<Change>,
    tally: Tally,
    /// Who spoke before the staged events.
    spoke_before: Option<Member>,
}

/// What adds up over a log beside its state.
#[derive(Debug, Clone, Default)]
struct Tally {
    floor: Floor,
    usage: Usage,
    /// What people said into a child run.
    spoken: Vec<Spoken>,
    /// A person wants it to rest, and it does not yet.
    pauses: bool,
    /// When the children that are away are to be back.
    deadlines: Vec<(RunId, Timestamp)>,
}

/// What to append, and to which state of the log. Not `Clone`: it is appended once.
#[derive(Debug)]
pub struct Change {
    run: RunId,
    created: Arc<Created>,
    expected_seq: u64,
    events: Vec<Event>,
    before: Posture,
    after: Posture,
    clearances: Vec<(u64, Clearance)>,
    children: Vec<Change>,
    /// What became of the run, if it has ended.
    outcome: Option<Outcome>,
    usage: Usage,
    spoken: Vec<Spoken>,
    speaker: Option<Member>,
}

/// What of a run's state the store keeps beside the log, for queries, queue and timers.
#[derive(Debug, Clone, PartialEq)]
pub struct Posture {
    pub status: &'static str,
    pub waiting_for: Option<&'static str>,
    pub wants_worker: bool,
    pub deadline: Option<(WaitKey, Timestamp)>,
}

#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    #[error("the log of {0} is empty")]
    Empty(RunId),
    #[error("the log of {run} has event {found} where {expected} should be")]
    Gap { run: RunId, expected: u64, found: u64 },
    #[error("the log of {run} is not legal at event {seq}: {source}")]
    Illegal { run: RunId, seq: u64, source: Illegal },
}

impl History {
    /// The log of a run that does not exist yet: its first event is staged.
    pub fn create(id: RunId, created: Created) -> History {
        let before = Posture {
            status: "not created",
            waiting_for: None,
            wants_worker: false,
            deadline: None,
        };
        let staged = vec![Event::Created(created.clone())];
        History {
            id,
            created: Arc::new(created),
            seq: 1,
            run: Run::Pending,
            staged,
            waited: BTreeSet::new(),
            before,
            clearances: Vec::new(),
            children: Vec::new(),
            tally: Tally::default(),
            spoke_before: None,
        }
    }

    pub fn fold(id: RunId, events: &[Recorded]) -> Result<History, FoldError> {
        let (first, rest) = events.split_first().ok_or(FoldError::Empty(id))?;
        let illegal = |seq, source| FoldError::Illegal { run: id, seq, source };
        let mut waited = BTreeSet::new();
        let mut run = Run::begin(&first.event).map_err(|it| illegal(1, it))?;
        // Nothing else begins a run.
        let Event::Created(created) = &first.event else { return Err(FoldError::Empty(id)) };
        let created = Arc::new(created.clone());
        let mut tally = Tally::default();
        let mut seq = 1;
        if first.seq != 1 {
            return Err(FoldError::Gap { run: id, expected: 1, found: first.seq });
        }
        for it in rest {
            if it.seq != seq + 1 {
                return Err(FoldError::Gap { run: id, expected: seq + 1, found: it.seq });
            }
            note_key(&mut waited, &it.event).map_err(|source| illegal(it.seq, source))?;
            run = run.apply(&it.event).map_err(|source| illegal(it.seq, source))?;
            tally.follow(&created, &it.event);
            seq += 1;
        }
        let before = Posture::of(&run, &tally);
        let spoke_before = tally.floor.speaker().cloned();
        Ok(History {
            id,
            created,
            seq,
            run,
            staged: Vec::new(),
            waited,
            before,
            clearances: Vec::new(),
            children: Vec::new(),
            tally,
            spoke_before,
        })
    }

    pub fn id(&self) -> RunId {
        self.id
    }

    pub fn created(&self) -> &Arc<Created> {
        &self.created
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    /// How far a group's run has come.
    pub fn floor(&self) -> &Floor {
        &self.tally.floor
    }

    /// Whether a person wants the run to rest before its next step.
    pub fn pauses(&self) -> bool {
        self.tally.pauses
    }

    /// Applies an event and stages it. The history is used up when the event is illegal: what
    /// was staged with it is not to be appended either.
    pub fn record(self, event: impl Into<Event>) -> Result<History, Illegal> {
        self.step(event.into()).map(|(history, _)| history)
    }

    /// Records that a call starts. The permit is for after the start is durable.
    pub fn start(self, started: CallStarted) -> Result<(History, Permit), Illegal> {
        let call = started.call.clone();
        match self.step(started.into())? {
            (history, Some(permit)) => Ok((history, permit)),
            (_, None) => Err(BatchError::Standing(call).into()),
        }
    }

    /// Records that a goal is handed to a group: the child's first event is part of the change.
    pub fn spawn(self, spawned: ChildSpawned, child: Created) -> Result<History, Illegal> {
        let id = spawned.child;
        let mut history = self.record(spawned)?;
        history.children.extend(History::create(id, child).change());
        Ok(history)
    }

    fn step(mut self, event: Event) -> Result<(History, Option<Permit>), Illegal> {
        note_key(&mut self.waited, &event)?;
        let ends = match &event {
            Event::CallEnded(it) => self.run.clearance(&it.call),
            Event::CallRefused(it) => self.run.clearance(&it.call),
            _ => None,
        };
        let (run, permit) = self.run.step(&event)?;
        self.run = run;
        self.seq += 1;
        self.clearances.extend(ends.map(|it| (self.seq, it)));
        self.tally.follow(&self.created, &event);
        self.staged.push(event);
        Ok((self, permit))
    }

    /// Whether a key is spent for waits: it was waited for, or is the system's own.
    pub fn has_waited_for(&self, key: &WaitKey) -> bool {
        key.is_reserved() || self.waited.contains(key)
    }

    /// Takes what is staged, to be appended. `None`: nothing is.
    pub fn change(&mut self) -> Option<Change> {
        if self.staged.is_empty() {
            return None;
        }
        let after = Posture::of(&self.run, &self.tally);
        let before = std::mem::replace(&mut self.before, after.clone());
        let events = std::mem::take(&mut self.staged);
        let expected_seq = self.seq - events.len() as u64;
        let created = self.created.clone();
        let clearances = std::mem::take(&mut self.clearances);
        let speaks = self.tally.floor.speaker().cloned();
        let ended = match &self.run {
            Run::Finished(outcome) => Some(outcome.clone()),
            _ => None,
        };
        Some(Change {
            run: self.id,
            created,
            expected_seq,
            events,
            before,
            after,
            clearances,
            children: std::mem::take(&mut self.children),
            spoken: if ended.is_some() { self.tally.spoken.clone() } else { Vec::new() },
            outcome: ended,
            usage: self.tally.usage,
            speaker: std::mem::replace(&mut self.spoke_before, speaks),
        })
    }

    pub fn staged(&self) -> &[Event] {
        &self.staged
    }
}

fn note_key(waited: &mut BTreeSet<WaitKey>, event: &Event) -> Result<(), Illegal> {
    match event {
        Event::WaitBegan(WaitBegan { correlation_key: key, .. })
            if key.is_reserved() || !waited.insert(key.clone()) =>
        {
            Err(Illegal::KeyUsed(key.clone()))
        }
        Event::PermissionRequested(PermissionRequested { request, .. })
            if !waited.insert(request.correlation_key.clone()) =>
        {
            Err(Illegal::KeyUsed(request.correlation_key.clone()))
        }
        _ => Ok(()),
    }
}

impl Change {
    pub fn run(&self) -> RunId {
        self.run
    }

    /// What the run was made with.
    pub fn created(&self) -> &Created {
        &self.created
    }

    /// The number of events that the log must hold for this change to be appended.
    pub fn expected_seq(&self) -> u64 {
        self.expected_seq
    }

    pub fn next_seq(&self) -> u64 {
        self.expected_seq + self.events.len() as u64
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Whether the event at a place ends a call that ran because somebody said so.
    pub fn ran_by_grant(&self, seq: u64) -> bool {
        self.clearances.iter().any(|(at, it)| *at == seq && *it != Clearance::Ruled)
    }

    /// Whether the event at a place ends or refuses a call that had been cleared.
    pub fn was_cleared(&self, seq: u64) -> bool {
        self.clearances.iter().any(|(at, _)| *at == seq)
    }

    /// The child runs that are made with it.
    pub fn children(&self) -> &[Change] {
        &self.children
    }

    /// The run whose wait ends with this change, if it waits.
    pub fn hands_back_to(&self) -> Option<RunId> {
        self.created.parent.filter(|_| self.outcome.is_some())
    }

    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// All that the run has used.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    pub fn spoken(&self) -> &[Spoken] {
        &self.spoken
    }

    /// The events, each with the member that has the floor as it takes place.
    pub fn spoken_by(&self) -> impl Iterator<Item = (u64, &Event, Member)> {
        let alone = Member { agent: self.created.agent.clone(), role: self.created.role.clone() };
        let mut speaker = self.speaker.clone();
        (self.expected_seq + 1..).zip(&self.events).map(move |(seq, event)| {
            if let Event::TurnBegan(it) = event {
                speaker = Some(it.member.clone());
            }
            (seq, event, speaker.clone().unwrap_or_else(|| alone.clone()))
        })
    }

    pub fn before(&self) -> &Posture {
        &self.before
    }

    pub fn after(&self) -> &Posture {
        &self.after
    }
}

impl Tally {
    fn follow(&mut self, created: &Created, event: &Event) {
        self.usage += event.usage();
        if let Some(room) = &created.room {
            self.floor.follow(room, event);
        }
        match event {
            Event::UserSpoke(it) if created.parent.is_some() && it.by != Actor::System => {
                self.spoken.push(Spoken { by: it.by.clone(), text: it.text.clone() });
            }
            Event::PauseAsked(_) => self.pauses = true,
            Event::Paused(_) | Event::Unpaused(_) => self.pauses = false,
            Event::ChildSpawned(it) => self.deadlines.extend(it.until().map(|at| (it.child, at))),
            Event::ChildEnded(it) => self.deadlines.retain(|(child, _)| *child != it.child),
            _ => {}
        }
    }
}

impl Posture {
    fn of(run: &Run, tally: &Tally) -> Posture {
        let deadline = match run {
            Run::Waiting(Wait::Signal { key, until: Some(until), .. }) => {
                Some((key.clone(), *until))
            }
            // The first of the questions to expire; the others have their turn after it.
            Run::Waiting(Wait::Permissions(batch)) => batch
                .asked()
                .filter_map(|(_, it)| Some((it.correlation_key.clone(), it.expires_at?)))
                .min_by_key(|(_, until)| *until),
            Run::Waiting(Wait::Children(_)) => {
                let next = tally.deadlines.iter().min_by_key(|(_, until)| *until);
                next.map(|(child, until)| (deadline_key(*child), *until))
            }
            _ => None,
        };
        Posture {
            status: run.status(),
            waiting_for: run.waiting_for(),
            wants_worker: run.wants_worker(),
            deadline,
        }
    }
}
