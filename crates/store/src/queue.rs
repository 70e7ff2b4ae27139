//! Which runs want a worker, and who has one. The database is the queue.
//!
//! A lease is a row's `owner` together with the attempt that the claim raised: the attempt
//! fences the log, the owner tells the dead from the living. Workers renew one row of their own,
//! not one a run. Where only one process can be (SQLite), every other owner is dead.

use std::collections::HashSet;
use std::time::Duration;

use chancery_domain::event::Recorded;
use chancery_domain::id::RunId;

use crate::sql::Param;
use crate::sqlite::Receipt;
use crate::{Database, Store, StoreError};

/// A worker's sole right to drive a run, until it is given back or the worker is taken for dead.
#[derive(Debug)]
pub struct Lease {
    pub(crate) run: RunId,
    pub(crate) attempt: u64,
    pub(crate) failures: u32,
    pub(crate) suspect: bool,
}

impl Lease {
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Raised by every claim of the run.
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// How many claims in a row ended badly, with the log where it is now and for no other run's
    /// sake.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether workers were lost time and again with the log where it is now: the run may be why,
    /// or one of those that happened to be there. It is to be driven alone, which tells.
    pub fn is_suspect(&self) -> bool {
        self.suspect
    }
}

/// A lease and the log that it is for.
#[derive(Debug)]
pub struct Claimed {
    pub lease: Lease,
    /// One unreadable log does not keep the others from being claimed.
    pub log: Result<Vec<Recorded>, StoreError>,
}

/// How a lease is given back while its run still wants a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// The worker stops in good order: the run is ready at once.
    Handover,
    /// The store was away: ready after a pause.
    Later { pause: Duration },
    /// It did not work out: ready after a pause, and counted.
    Failure { pause: Duration },
}

/// Which runs to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Any,
    /// Those that are to be driven alone, the least suspect first.
    Suspects,
    Others,
}

impl Wanted {
    /// What the queue's row `q` must be, and which comes first. One lost worker makes no suspect:
    /// servers are killed for many reasons.
    pub(crate) fn sql(self) -> (&'static str, &'static str) {
        match self {
            Wanted::Any => ("", "q.ready_at, q.run_id"),
            Wanted::Suspects => ("AND q.crashes >= 2", "q.failures, q.run_id"),
            Wanted::Others => ("AND q.crashes < 2", "q.ready_at, q.run_id"),
        }
    }
}

/// A claim that is made as soon as a run becomes ready, in the same commit. Only the embedded
/// store has such orders: it has one process, and knows what that one wants.
#[derive(Debug)]
pub struct Order(Receipt);

impl Order {
    /// Returns when something was claimed, or when this order will never be carried out.
    pub async fn filled(&mut self) -> Vec<Claimed> {
        self.0.filled().await.into_iter().map(Claimed::from).collect()
    }

    /// Takes it back. What was claimed for it meanwhile is the answer, and is to be driven.
    pub async fn withdraw(self) -> Vec<Claimed> {
        self.0.withdraw().await.into_iter().map(Claimed::from).collect()
    }
}

/// What a database answers to a claim.
#[derive(Debug)]
pub(crate) struct ClaimedRow {
    pub run: uuid::Uuid,
    pub attempt: i64,
    pub failures: i64,
    pub crashes: i64,
    pub events: Vec<(i64, i64, String, String)>,
}

/// A row whose time is further off than any pause of ours was written by a clock that has since
/// been set back: it is due.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);

/// Where a run stands: what its log says last, but for what is begun and begun again.
macro_rules! place {
    () => {
        "(SELECT max(seq) FROM events WHERE run_id = queue.run_id
            AND kind NOT IN ('tool.started', 'tool.retried'))"
    };
}

/// A row without an owner, with so many failures and crashes more. Both are counted as long as
/// the run stands where it stood.
macro_rules! given_back {
    ($failures:literal, $crashes:literal) => {
        concat!(
            "owner = NULL, failures = ",
            $failures,
            " + CASE WHEN failed_seq = ",
            place!(),
            " THEN failures ELSE 0 END, crashes = ",
            $crashes,
            " + CASE WHEN failed_seq = ",
            place!(),
            " THEN crashes ELSE 0 END, failed_seq = ",
            place!()
        )
    };
}

mod workers;

impl Store {
    /// Takes up to `limit` runs that want a worker. Readers may see it a moment later: a lease
    /// need not survive a crash, so it shares the commit of what comes next.
    pub async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, StoreError> {
        self.claim_of(Wanted::Any, limit).await
    }

    /// The same for some of them. The claim of a suspect survives a crash: it is what a crash is
    /// known by.
    pub async fn claim_of(&self, wanted: Wanted, limit: u32) -> Result<Vec<Claimed>, StoreError> {
        let worker = self.worker();
        #[cfg(feature = "faults")]
        {
            self.point().await?;
            if self.has_plant(crate::fault::Plant::NoPolling) && !self.was_woken() {
                return Ok(Vec::new());
            }
        }
        let rows = match &self.inner.database {
            Database::Sqlite(sqlite) => sqlite.claim(worker, wanted, limit).await?,
            Database::Postgres(postgres) => postgres.claim(worker, wanted, limit).await?,
        };
        #[cfg(feature = "faults")]
        {
            self.touched(crate::fault::Touch::Claim);
            self.point().await?;
        }
        Ok(rows.into_iter().map(Claimed::from).collect())
    }

    /// Leaves an order for the next claim, where that can be. One at a time.
    pub fn order(&self, wanted: Wanted, limit: u32) -> Option<Order> {
        match &self.inner.database {
            Database::Sqlite(sqlite) => sqlite.leave_order(self.worker(), wanted, limit).map(Order),
            Database::Postgres(_) => None,
        }
    }

    /// Gives a lease back. A lease that was lost meanwhile is gone already.
    pub async fn release(&self, lease: Lease, how: Release) -> Result<(), StoreError> {
        self.disown(lease.run, lease.attempt, how).await
    }

    /// The same for a lease that is not at hand any more, by its name.
    pub async fn disown(&self, run: RunId, attempt: u64, how: Release) -> Result<(), StoreError> {
        let (pause, failures) = match how {
            Release::Handover => (None, 0),
            Release::Later { pause } => (Some(pause), 0),
            Release::Failure { pause } => (Some(pause), 1),
        };
        let ready_at = match pause {
            None => 0,
            Some(pause) => self.database_time().await? + pause.min(PAUSE_MAX).as_micros() as i64,
        };
        self.execute(
            concat!(
                "UPDATE queue SET ready_at = $1, ",
                given_back!("CAST($2 AS BIGINT)", "0"),
                " WHERE run_id = $3 AND owner = $4
                    AND (SELECT attempt FROM heads WHERE run_id = $3) = $5"
            ),
            vec![
                Param::Int(ready_at),
                Param::Int(failures),
                Param::Uuid(run.0),
                Param::Uuid(self.worker().0),
                Param::Int(attempt as i64),
            ],
        )
        .await?;
        self.bell().ring_work();
        self.tell_others(true);
        Ok(())
    }

    /// The runs that this worker has a lease on.
    pub async fn owned(&self) -> Result<HashSet<RunId>, StoreError> {
        let me = Param::Uuid(self.worker().0);
        let owned = self
            .query("SELECT run_id FROM queue WHERE owner = $1", vec![me], |row| {
                Ok(RunId(row.uuid(0)?))
            })
            .await?;
        Ok(owned.into_iter().collect())
    }

    /// Whether a lease still holds.
    pub async fn holds(&self, lease: &Lease) -> Result<bool, StoreError> {
        let found = self
            .query(
                "SELECT h.attempt FROM queue q JOIN heads h ON h.run_id = q.run_id
                 WHERE q.run_id = $1 AND q.owner = $2",
                vec![Param::Uuid(lease.run.0), Param::Uuid(self.worker().0)],
                |row| row.int(0),
            )
            .await?;
        Ok(found.first() == Some(&(lease.attempt as i64)))
    }

    /// Frees what this worker owns and does not drive: claims whose answer never came. Nothing was
    /// done with them, so nothing is counted against them. Answers how many there were.
    pub async fn free_all_but(&self, driven: &HashSet<RunId>) -> Result<u64, StoreError> {
        let mut freed = 0;
        for run in self.owned().await?.difference(driven) {
            freed += self
                .execute(
                    "UPDATE queue SET owner = NULL WHERE run_id = $1 AND owner = $2",
                    vec![Param::Uuid(run.0), Param::Uuid(self.worker().0)],
                )
                .await?;
        }
        if freed > 0 {
            self.bell().ring_work();
        }
        Ok(freed)
    }

    /// How many runs want a worker, and how many of them have one.
    pub async fn queue_depth(&self) -> Result<(u64, u64), StoreError> {
        let found = self
            .query("SELECT count(*), count(owner) FROM queue", vec![], |row| {
                Ok((row.int(0)? as u64, row.int(1)? as u64))
            })
            .await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }
}

impl From<ClaimedRow> for Claimed {
    fn from(row: ClaimedRow) -> Claimed {
        let log = row
            .events
            .iter()
            .map(|(seq, at, kind, body)| crate::log::decode(*seq, *at, kind, body))
            .collect();
        let lease = Lease {
            run: RunId(row.run),
            attempt: row.attempt as u64,
            failures: row.failures as u32,
            suspect: row.crashes >= 2,
        };
        Claimed { lease, log }
    }
}
