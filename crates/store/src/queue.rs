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
use crate::{Database, Store, StoreError};

/// A worker's sole right to drive a run, until it is given back or the worker is taken for dead.
#[derive(Debug)]
pub struct Lease {
    pub(crate) run: RunId,
    pub(crate) attempt: u64,
    pub(crate) failures: u32,
}

impl Lease {
    pub fn run(&self) -> RunId {
        self.run
    }

    /// Raised by every claim of the run.
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// How many claims in a row ended badly with the log where it is now.
    pub fn failures(&self) -> u32 {
        self.failures
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
    /// It did not work out: ready after a pause, and counted.
    Failure { pause: Duration },
}

/// What a database answers to a claim.
#[derive(Debug)]
pub(crate) struct ClaimedRow {
    pub run: uuid::Uuid,
    pub attempt: i64,
    pub failures: i64,
    pub events: Vec<(i64, i64, String, String)>,
}

/// A row whose time is further off than any pause of ours was written by a clock that has since
/// been set back: it is due.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(15 * 60);

/// One more claim that ended badly, counted as long as the log does not move.
macro_rules! count_failure {
    () => {
        "failures = CASE WHEN failed_seq = (SELECT seq FROM heads WHERE run_id = queue.run_id)
           THEN failures + 1 ELSE 1 END,
         failed_seq = (SELECT seq FROM heads WHERE run_id = queue.run_id)"
    };
}

impl Store {
    /// Takes up to `limit` runs that want a worker. Readers may see it a moment later: a lease
    /// need not survive a crash, so it shares the commit of what comes next.
    pub async fn claim(&self, limit: u32) -> Result<Vec<Claimed>, StoreError> {
        let worker = self.worker();
        #[cfg(feature = "faults")]
        self.point().await?;
        let rows = match &self.inner.database {
            Database::Sqlite(sqlite) => sqlite.claim(worker, limit).await?,
            Database::Postgres(postgres) => postgres.claim(worker, limit).await?,
        };
        #[cfg(feature = "faults")]
        self.point().await?;
        Ok(rows.into_iter().map(Claimed::from).collect())
    }

    /// Gives a lease back. A lease that was lost meanwhile is gone already.
    pub async fn release(&self, lease: Lease, how: Release) -> Result<(), StoreError> {
        let (ready_at, failed) = match how {
            Release::Handover => (0, 0),
            Release::Failure { pause } => {
                let pause = pause.min(PAUSE_MAX).as_micros() as i64;
                (self.database_time().await? + pause, 1)
            }
        };
        // The failures are counted as long as the log does not move.
        self.execute(
            "UPDATE queue SET owner = NULL, ready_at = $1,
               failures = CASE WHEN CAST($2 AS BIGINT) = 0 THEN failures
                 WHEN failed_seq = (SELECT seq FROM heads WHERE run_id = $3) THEN failures + 1 ELSE 1 END,
               failed_seq = CASE WHEN CAST($2 AS BIGINT) = 0 THEN failed_seq
                 ELSE (SELECT seq FROM heads WHERE run_id = $3) END
             WHERE run_id = $3 AND owner = $4
               AND (SELECT attempt FROM heads WHERE run_id = $3) = $5",
            vec![
                Param::Int(ready_at),
                Param::Int(failed),
                Param::Uuid(lease.run.0),
                Param::Uuid(self.worker().0),
                Param::Int(lease.attempt as i64),
            ],
        )
        .await?;
        self.bell().ring_work();
        self.tell_others(true);
        Ok(())
    }

    /// Gives back a run of this worker whose lease is lost to it, by name.
    pub async fn disown(&self, run: RunId, pause: Duration) -> Result<(), StoreError> {
        let ready_at = self.database_time().await? + pause.min(PAUSE_MAX).as_micros() as i64;
        self.execute(
            concat!(
                "UPDATE queue SET owner = NULL, ready_at = $1, ",
                count_failure!(),
                " WHERE run_id = $2 AND owner = $3"
            ),
            vec![Param::Int(ready_at), Param::Uuid(run.0), Param::Uuid(self.worker().0)],
        )
        .await?;
        self.bell().ring_work();
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

    /// Says that this worker lives, for the length of a lease from now.
    pub async fn beat(&self, lease: Duration) -> Result<(), StoreError> {
        let until = self.database_time().await? + lease.as_micros() as i64;
        self.execute(
            "INSERT INTO workers (id, alive_until) VALUES ($1, $2)
             ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until",
            vec![Param::Uuid(self.worker().0), Param::Int(until)],
        )
        .await?;
        Ok(())
    }

    /// This worker is gone, in good order: whatever it still had is free at once.
    pub async fn resign(&self) -> Result<(), StoreError> {
        let me = || Param::Uuid(self.worker().0);
        self.execute("UPDATE queue SET owner = NULL WHERE owner = $1", vec![me()]).await?;
        self.execute("DELETE FROM workers WHERE id = $1", vec![me()]).await?;
        if let Database::Postgres(postgres) = &self.inner.database {
            // Now: whoever would send it later is about to end.
            postgres.notify_now().await?;
        }
        Ok(())
    }

    /// Frees the runs of workers that are taken for dead, and answers how many.
    pub async fn rescue(&self) -> Result<u64, StoreError> {
        let rescued = match &self.inner.database {
            Database::Sqlite(_) => self.rescue_others().await?,
            Database::Postgres(_) => self.rescue_silent().await?,
        };
        if rescued > 0 {
            self.bell().ring_work();
        }
        Ok(rescued)
    }

    async fn rescue_others(&self) -> Result<u64, StoreError> {
        let me = Param::Uuid(self.worker().0);
        let rescued = self
            .execute(
                concat!(
                    "UPDATE queue SET owner = NULL, ready_at = 0, ",
                    count_failure!(),
                    " WHERE owner IS NOT NULL AND owner <> $1"
                ),
                vec![me.clone()],
            )
            .await?;
        self.execute("DELETE FROM workers WHERE id <> $1", vec![me]).await?;
        Ok(rescued)
    }

    async fn rescue_silent(&self) -> Result<u64, StoreError> {
        let now = self.database_time().await?;
        let rescued = self
            .execute(
                concat!(
                    "UPDATE queue SET owner = NULL, ready_at = 0, ",
                    count_failure!(),
                    " WHERE owner IS NOT NULL AND owner <> $2
                        AND NOT EXISTS (SELECT 1 FROM workers WHERE id = queue.owner AND alive_until > $1)"
                ),
                // Whoever asks lives: what it has is driven.
                vec![Param::Int(now), Param::Uuid(self.worker().0)],
            )
            .await?;
        // The row outlives the lease by far: it costs nothing, and its absence says dead too.
        let long_dead = now - 3_600_000_000;
        self.execute("DELETE FROM workers WHERE alive_until < $1", vec![Param::Int(long_dead)])
            .await?;
        Ok(rescued)
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
        };
        Claimed { lease, log }
    }
}
