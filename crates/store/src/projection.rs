//! Events to rows: what an append changes beside the log. Pure; both databases carry it out.

mod audit;
mod gate;

use chancery_domain::command;
use chancery_domain::event::{Created, Event};
use chancery_domain::history::{Change, Posture};
use jiff::Timestamp;
use uuid::Uuid;

use crate::StoreError;
use crate::audit::{Draft, drafts};
use crate::outbox::Subscription;

pub(crate) use gate::{AskedBody, GateMoves};

/// A change with everything that goes into the database worked out.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub run: Uuid,
    pub expected: i64,
    pub next: i64,
    /// The attempt that the writer's lease is of; 0 for writers without one.
    pub attempt: i64,
    pub at: i64,
    pub events: Vec<Line>,
    pub input_tokens: i64,
    pub output_tokens: i64,
    pub cost_micros: i64,
    pub moved: Option<Moved>,
    pub queue: QueueMove,
    pub timer: TimerMove,
    /// Children that are not waited for any longer, and are to be cancelled.
    pub abandoned: Vec<Uuid>,
    /// Whether it has ended without an answer: its children are to end, too.
    pub ends_badly: bool,
    pub gate: GateMoves,
    pub notices: Vec<Told>,
    pub audit: Vec<Draft>,
}

/// A notice for the outbox: whom to tell of which event.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub subscriber: String,
    pub seq: i64,
    pub topic: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub seq: i64,
    pub kind: &'static str,
    pub body: String,
}

impl Prepared {
    /// Whether it may leave runs behind that nobody waits for.
    pub(crate) fn orphans(&self) -> bool {
        self.ends_badly || !self.abandoned.is_empty()
    }
}

/// The run's row, when its status changes.
#[derive(Debug, Clone)]
pub(crate) struct Moved {
    pub status: &'static str,
    pub waiting_for: Option<&'static str>,
    pub output: Option<String>,
    pub error: Option<String>,
    pub started: bool,
    pub ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueMove {
    Stay,
    Enter,
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimerMove {
    Stay,
    Set { due_at: i64, key: String },
    Clear,
}

/// The row of a run that did not exist.
#[derive(Debug, Clone)]
pub(crate) struct Birth {
    pub org: String,
    pub user: String,
    pub agent: String,
    pub role: String,
    pub group: Option<String>,
    pub project: Option<String>,
    pub session_key: Option<String>,
    pub parent: Option<Uuid>,
    pub delegated: Option<String>,
    pub input: String,
}

pub(crate) fn prepare(
    change: &Change,
    attempt: i64,
    at: Timestamp,
) -> Result<Prepared, StoreError> {
    let mut events = Vec::with_capacity(change.events().len());
    let (mut input_tokens, mut output_tokens, mut cost_micros) = (0, 0, 0);
    for (seq, event) in (change.expected_seq() as i64 + 1..).zip(change.events()) {
        let usage = event.usage();
        input_tokens += countable(usage.input_tokens);
        output_tokens += countable(usage.output_tokens);
        cost_micros += payable(usage.cost_micros);
        let body = event.encode().map_err(|it| StoreError::Failed(it.to_string()))?;
        events.push(Line { seq, kind: event.kind(), body });
    }
    Ok(Prepared {
        run: change.run().0,
        expected: change.expected_seq() as i64,
        next: change.next_seq() as i64,
        attempt,
        at: at.as_microsecond(),
        events,
        input_tokens,
        output_tokens,
        cost_micros,
        moved: moved(change),
        queue: queue_move(change.before(), change.after()),
        timer: timer_move(change.before(), change.after()),
        abandoned: abandoned(change),
        ends_badly: matches!(change.after().status, "failed" | "cancelled"),
        gate: GateMoves::of(change)?,
        notices: Vec::new(),
        audit: drafts(audit::of(change), at)?,
    })
}

/// Whom to tell of what a change records. Questions are told of as such, whichever event puts
/// them.
pub(crate) fn notices(change: &Change, subscriptions: &[Subscription]) -> Vec<Told> {
    if subscriptions.is_empty() {
        return Vec::new();
    }
    let mut told = Vec::new();
    for (seq, event) in (change.expected_seq() as i64 + 1..).zip(change.events()) {
        let asks = matches!(event, Event::BatchProposed(_)) && !command::requests(event).is_empty();
        let topics = [Some(event.kind()), asks.then_some("permission.requested")];
        for topic in topics.into_iter().flatten() {
            let of = |it: &&Subscription| it.topics.iter().any(|wanted| wanted == topic);
            let subscribers = subscriptions.iter().filter(of).map(|it| it.subscriber.clone());
            told.extend(subscribers.map(|subscriber| Told { subscriber, seq, topic }));
        }
    }
    told
}

fn moved(change: &Change) -> Option<Moved> {
    let (before, after) = (change.before(), change.after());
    if (before.status, before.waiting_for) == (after.status, after.waiting_for) {
        return None;
    }
    let mut moved = Moved {
        status: after.status,
        waiting_for: after.waiting_for,
        output: None,
        error: None,
        started: false,
        ended: matches!(after.status, "completed" | "failed" | "cancelled"),
    };
    for event in change.events() {
        match event {
            Event::Started(_) => moved.started = true,
            Event::Completed(it) => moved.output = Some(storable(&it.output)),
            Event::Failed(it) => moved.error = Some(storable(&it.error)),
            _ => {}
        }
    }
    Some(moved)
}

fn abandoned(change: &Change) -> Vec<Uuid> {
    let children = change.events().iter().filter_map(|event| match event {
        Event::ChildEnded(it) if it.abandoned => Some(it.child.0),
        _ => None,
    });
    children.collect()
}

fn queue_move(before: &Posture, after: &Posture) -> QueueMove {
    match (before.wants_worker, after.wants_worker) {
        (false, true) => QueueMove::Enter,
        (true, false) => QueueMove::Leave,
        _ => QueueMove::Stay,
    }
}

fn timer_move(before: &Posture, after: &Posture) -> TimerMove {
    match (&before.deadline, &after.deadline) {
        (before, after) if before == after => TimerMove::Stay,
        (_, Some((key, due))) => {
            TimerMove::Set { due_at: due.as_microsecond(), key: storable(key.as_str()) }
        }
        (_, None) => TimerMove::Clear,
    }
}

pub(crate) fn birth(created: &Created) -> Result<Birth, StoreError> {
    let delegated = created
        .delegated
        .as_ref()
        .map(serde_json::to_string)
        .transpose()
        .map_err(|it| StoreError::Failed(it.to_string()))?;
    Ok(Birth {
        org: storable(&created.org),
        user: storable(created.user.as_str()),
        agent: storable(created.agent.as_str()),
        role: storable(created.role.as_str()),
        group: created.group.as_ref().map(|it| storable(it.as_str())),
        project: created.project.as_ref().map(|it| storable(it.as_str())),
        session_key: created.session_key.as_ref().map(|it| storable(it.as_str())),
        parent: created.parent.map(|it| it.0),
        delegated,
        input: storable(&created.input),
    })
}

/// A count that no sum of which overflows. What the far side really said is in the log.
fn countable(tokens: u64) -> i64 {
    tokens.min(1 << 40) as i64
}

/// The same of money. Small money has large numbers, so that an answer may cost seventy millions
/// of it; a hundred thousand such answers fit into a row.
fn payable(micros: u64) -> i64 {
    micros.min(1 << 46) as i64
}

/// PostgreSQL has no NUL in text. Event bodies are JSON, which escapes it, so the log keeps it;
/// the projection shows the replacement character instead, in both databases.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
