//! The write path of runs: [`Store::append`] and, for a run's first event, [`Store::create`].
//! Events, projections, queue row, timer and audit are one transaction; nothing updates or deletes
//! an event.

mod joint;

use chancery_domain::event::{Event, Recorded};
use chancery_domain::history::{Change, History};
use chancery_domain::id::RunId;
use jiff::Timestamp;

use crate::bell::Changed;
use crate::projection::{self, Prepared};
use crate::queue::Lease;
use crate::sql::{Columns, Param};
use crate::sqlite::Taken;
use crate::{Database, Store, StoreError};

pub(crate) use joint::Joint;

/// By what right something is appended.
#[derive(Debug, Clone, Copy)]
pub enum Fence<'a> {
    /// As the worker that drives the run: refused once the lease is lost.
    Lease(&'a Lease),
    /// From outside: a person, a timer. Held to the log by the expected sequence alone.
    Outside,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// The log has grown since it was read: read it again and decide again.
    #[error("the log of {run} is at {found}, not at {expected}")]
    Conflict { run: RunId, expected: u64, found: u64 },
    /// Another worker has the run.
    #[error("the lease on {0} is lost")]
    LeaseLost(RunId),
    #[error("there is no run {0}")]
    NoSuchRun(RunId),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What makes the same request to create a run the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Two callers' keys are two keys.
    pub caller: String,
    pub key: String,
    pub request_sha256: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    Created,
    /// The same request was made before, and made this run.
    Existed(RunId),
    /// The key was used for another request.
    KeyReused,
}

/// What came of deciding on a change from outside.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made once a request and taken apart at once")]
pub enum Amendment<R> {
    Record(History),
    Nothing(R),
}

/// Whether a change is appended for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    First,
    Again,
}

/// Why an append was not made; the databases answer with this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Appended,
    /// It would have been appended, had it not been tied to another one that was not.
    Current,
    Absent,
    /// Where the log is, and which attempt has it.
    Stale {
        seq: i64,
        attempt: i64,
    },
}

impl Store {
    /// Appends a change to a run's log: all of it, or nothing.
    pub async fn append(
        &self,
        change: &Change,
        fence: Fence<'_>,
        at: Timestamp,
    ) -> Result<(), AppendError> {
        self.try_append(change, fence, at, Told::First).await
    }

    /// Appends a change whose append was answered with an error of the store: it may have been
    /// made all the same, and then this says so.
    pub async fn append_again(
        &self,
        change: &Change,
        lease: &Lease,
        at: Timestamp,
    ) -> Result<(), AppendError> {
        self.try_append(change, Fence::Lease(lease), at, Told::Again).await
    }

    async fn try_append(
        &self,
        change: &Change,
        fence: Fence<'_>,
        at: Timestamp,
        told: Told,
    ) -> Result<(), AppendError> {
        let attempt = match fence {
            Fence::Lease(lease) => lease.attempt as i64,
            Fence::Outside => 0,
        };
        #[cfg(feature = "faults")]
        let (holder, attempt) = match self.has_plant(crate::fault::Plant::NoFence) {
            true => (attempt, 0),
            false => (attempt, attempt),
        };
        let enters = !change.before().wants_worker && change.after().wants_worker;
        #[cfg(feature = "faults")]
        {
            crate::fault::brink();
            self.point().await?;
        }
        let taken = Taken::default();
        let mut verdict = if change.children().is_empty() && change.hands_back_to().is_none() {
            let prepared = self.prepare(change, attempt, at)?;
            match &self.inner.database {
                Database::Sqlite(sqlite) => sqlite.append(prepared, taken.clone()).await?,
                Database::Postgres(postgres) => postgres.append(prepared).await?,
            }
        } else {
            self.append_jointly(change, attempt, at).await?
        };
        #[cfg(feature = "faults")]
        if verdict == Verdict::Appended {
            self.witnessed(holder, change);
        }
        // Asked after the append, not before: it has waited for the one that was not answered, if
        // that was still under way at the database.
        if let (Told::Again, Verdict::Stale { attempt: holder, .. }) = (told, verdict)
            && holder == attempt
            && self.is_in_log(change).await?
        {
            verdict = Verdict::Appended;
        }
        #[cfg(feature = "faults")]
        {
            crate::fault::brink();
            self.point().await?;
        }
        let run = change.run();
        match verdict {
            Verdict::Appended => {
                let changed = match fence {
                    Fence::Lease(_) => Changed::Driven(run),
                    Fence::Outside => Changed::Outside(run),
                };
                self.announce(changed, enters && !taken.get());
                Ok(())
            }
            Verdict::Absent | Verdict::Current => Err(AppendError::NoSuchRun(run)),
            Verdict::Stale { attempt: holder, .. } if attempt != 0 && holder != attempt => {
                Err(AppendError::LeaseLost(run))
            }
            Verdict::Stale { seq, .. } => Err(AppendError::Conflict {
                run,
                expected: change.expected_seq(),
                found: seq as u64,
            }),
        }
    }

    /// Appends a run's first event, and puts it in the queue.
    pub async fn create(
        &self,
        change: &Change,
        key: Option<IdempotencyKey>,
        at: Timestamp,
    ) -> Result<CreateOutcome, StoreError> {
        let (prepared, birth) = self.birth(change, at)?;
        #[cfg(feature = "faults")]
        self.point().await?;
        let taken = Taken::default();
        let outcome = match &self.inner.database {
            Database::Sqlite(sqlite) => sqlite.create(prepared, birth, key, taken.clone()).await?,
            Database::Postgres(postgres) => postgres.create(prepared, birth, key).await?,
        };
        #[cfg(feature = "faults")]
        {
            if outcome == CreateOutcome::Created {
                self.witnessed(0, change);
            }
            self.point().await?;
        }
        if outcome == CreateOutcome::Created {
            self.announce(Changed::Outside(change.run()), !taken.get());
        }
        Ok(outcome)
    }

    /// The log of a run after a place in it, in order, at most `limit` events.
    pub async fn events(
        &self,
        run: RunId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Recorded>, StoreError> {
        self.query(
            "SELECT seq, at, kind, body FROM events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
            vec![
                Param::Uuid(run.0),
                Param::Int(i64::try_from(after).unwrap_or(i64::MAX)),
                Param::Int(i64::from(limit)),
            ],
            recorded,
        )
        .await
    }

    /// Whether the log holds the change where it was to be, word for word.
    async fn is_in_log(&self, change: &Change) -> Result<bool, StoreError> {
        let count = u32::try_from(change.events().len()).unwrap_or(u32::MAX);
        let found = self.events(change.run(), change.expected_seq(), count).await?;
        Ok(found.iter().map(|it| &it.event).eq(change.events()))
    }

    /// Changes a run from outside: reads its log, decides, appends, and decides again when the
    /// log has grown in between. `decide` answers with the history that it recorded on, or with
    /// a value of its own when there is nothing to append.
    pub async fn amend<R, E>(
        &self,
        run: RunId,
        at: Timestamp,
        decide: impl Fn(History, &[Recorded]) -> Result<Amendment<R>, E>,
    ) -> Result<Result<Option<R>, E>, AppendError> {
        loop {
            let events = self.events(run, 0, u32::MAX).await?;
            if events.is_empty() {
                return Err(AppendError::NoSuchRun(run));
            }
            let history =
                History::fold(run, &events).map_err(|it| StoreError::Unreadable(it.to_string()))?;
            let mut history = match decide(history, &events) {
                Ok(Amendment::Record(history)) => history,
                Ok(Amendment::Nothing(value)) => return Ok(Ok(Some(value))),
                Err(refusal) => return Ok(Err(refusal)),
            };
            let Some(change) = history.change() else { return Ok(Ok(None)) };
            match self.append(&change, Fence::Outside, at).await {
                Ok(()) => return Ok(Ok(None)),
                Err(AppendError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn prepare(
        &self,
        change: &Change,
        attempt: i64,
        at: Timestamp,
    ) -> Result<Prepared, StoreError> {
        let mut prepared = projection::prepare(change, attempt, at)?;
        let subscriptions =
            self.inner.subscriptions.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        prepared.notices = projection::notices(change, &subscriptions);
        #[cfg(feature = "faults")]
        self.spoil(&mut prepared);
        Ok(prepared)
    }

    fn announce(&self, changed: Changed, work: bool) {
        let bell = self.bell();
        bell.ring_changed(changed);
        if work {
            bell.ring_work();
        }
        self.tell_others(work);
    }

    /// Wakes the other servers, if there can be any.
    pub(crate) fn tell_others(&self, work: bool) {
        #[cfg(feature = "faults")]
        self.tell_company(work);
        if let Database::Postgres(postgres) = &self.inner.database {
            postgres.tell_others(work);
        }
    }
}

pub(crate) fn recorded(row: &dyn Columns) -> Result<Recorded, StoreError> {
    let (seq, at, kind, body) = (row.int(0)?, row.int(1)?, row.text(2)?, row.text(3)?);
    decode(seq, at, &kind, &body)
}

pub(crate) fn decode(seq: i64, at: i64, kind: &str, body: &str) -> Result<Recorded, StoreError> {
    let event = Event::decode(kind, body).map_err(|it| StoreError::Unreadable(it.to_string()))?;
    Ok(Recorded { seq: seq as u64, at: timestamp(at)?, event })
}

pub(crate) fn timestamp(microseconds: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(microseconds)
        .map_err(|it| StoreError::Unreadable(format!("a time: {it}")))
}

impl CreateOutcome {
    /// What a key that is known already means for a request with that key.
    pub(crate) fn before(key: &IdempotencyKey, request: &[u8], run: uuid::Uuid) -> CreateOutcome {
        if request == key.request_sha256 {
            CreateOutcome::Existed(RunId(run))
        } else {
            CreateOutcome::KeyReused
        }
    }
}
