//! What stands beside the logs, for those who hold it to them.

use chancery_domain::id::{RunId, WorkerId};

use crate::sql::Param;
use crate::{Store, StoreError};

/// A run's rows beside its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    pub status: String,
    pub waiting_for: Option<String>,
    pub seq: u64,
    pub attempt: u64,
    pub in_queue: bool,
    pub owner: Option<WorkerId>,
    /// In microseconds.
    pub due_at: Option<i64>,
    /// Questions that are open.
    pub pending: u64,
}

/// A run that wants a worker, who has it, and which claim that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owned {
    pub run: RunId,
    pub owner: Option<WorkerId>,
    pub attempt: u64,
}

impl Store {
    /// What a run's rows say.
    pub async fn rows_of(&self, run: RunId) -> Result<Option<Rows>, StoreError> {
        let found = self
            .query(
                "SELECT r.status, r.waiting_for, h.seq, h.attempt,
                   (SELECT count(*) FROM queue WHERE run_id = $1),
                   (SELECT owner FROM queue WHERE run_id = $1),
                   (SELECT due_at FROM timers WHERE run_id = $1),
                   (SELECT count(*) FROM permissions WHERE run_id = $1 AND status = 'pending')
                 FROM runs r JOIN heads h ON h.run_id = r.id WHERE r.id = $1",
                vec![Param::Uuid(run.0)],
                |row| {
                    Ok(Rows {
                        status: row.text(0)?,
                        waiting_for: row.opt_text(1)?,
                        seq: row.int(2)? as u64,
                        attempt: row.int(3)? as u64,
                        in_queue: row.int(4)? > 0,
                        owner: row.opt_uuid(5)?.map(WorkerId),
                        due_at: row.opt_int(6)?,
                        pending: row.int(7)? as u64,
                    })
                },
            )
            .await?;
        Ok(found.into_iter().next())
    }

    /// Who has which run, of all that want a worker.
    pub async fn owners(&self) -> Result<Vec<Owned>, StoreError> {
        self.query(
            "SELECT q.run_id, q.owner, h.attempt FROM queue q JOIN heads h ON h.run_id = q.run_id
             ORDER BY q.run_id",
            vec![],
            |row| {
                let (run, owner) = (RunId(row.uuid(0)?), row.opt_uuid(1)?.map(WorkerId));
                Ok(Owned { run, owner, attempt: row.int(2)? as u64 })
            },
        )
        .await
    }

    /// How many memories were deposited of a run.
    pub async fn deposits_of(&self, run: RunId) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM memory_sources WHERE run_id = $1 AND source <> 'call'";
        let found = self.query(sql, vec![Param::Uuid(run.0)], |row| row.int(0)).await?;
        Ok(found.first().copied().unwrap_or_default() as u64)
    }
}
