//! Deadlines: which waits are over by the clock. The runtime turns them into events.

use std::time::Duration;

use chancery_domain::escalation;
use chancery_domain::id::{RunId, WaitKey};

use crate::log::timestamp;
use crate::projection::storable;
use crate::sql::Param;
use crate::{Database, Store, StoreError};

/// A wait whose time is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub run: RunId,
    /// As far as a database can write it: ask `is_for`.
    pub key: WaitKey,
}

impl Due {
    /// Whether this is the deadline of a wait for `key`.
    pub fn is_for(&self, key: &WaitKey) -> bool {
        self.key.as_str() == storable(key.as_str())
    }
}

impl Due {
    /// Whether it is about a child run that takes long.
    pub fn is_of_child(&self) -> bool {
        escalation::is_deadline(&self.key)
    }
}

impl Store {
    pub async fn due(&self, limit: u32) -> Result<Vec<Due>, StoreError> {
        let now = self.database_time().await?;
        self.query(
            "SELECT run_id, wait_key FROM timers WHERE due_at <= $1 ORDER BY due_at LIMIT $2",
            vec![Param::Int(now), Param::Int(i64::from(limit))],
            |row| Ok(Due { run: RunId(row.uuid(0)?), key: WaitKey(row.text(1)?) }),
        )
        .await
    }

    /// A deadline was looked at before its time: it is looked at again in a while.
    pub async fn look_again(&self, due: &Due, wait: Duration) -> Result<(), StoreError> {
        let at = self.database_time().await?.saturating_add(wait.as_micros() as i64);
        let key = storable(due.key.as_str());
        self.execute(
            "UPDATE timers SET due_at = $1 WHERE run_id = $2 AND wait_key = $3",
            vec![Param::Int(at), Param::Uuid(due.run.0), Param::Text(key)],
        )
        .await?;
        Ok(())
    }

    /// Runs that nobody waits for any longer: they are to be cancelled, and then forgotten here.
    pub async fn orphans(&self, limit: u32) -> Result<Vec<RunId>, StoreError> {
        self.query(
            "SELECT run_id FROM orphans LIMIT $1",
            vec![Param::Int(i64::from(limit))],
            |row| Ok(RunId(row.uuid(0)?)),
        )
        .await
    }

    pub async fn forget_orphan(&self, run: RunId) -> Result<(), StoreError> {
        let sql = "DELETE FROM orphans WHERE run_id = $1";
        self.execute(sql, vec![Param::Uuid(run.0)]).await?;
        Ok(())
    }

    /// How long until the next deadline, if there is one.
    pub async fn next_due(&self) -> Result<Option<Duration>, StoreError> {
        let now = self.database_time().await?;
        let found = self
            .query("SELECT min(due_at) FROM timers", vec![], |row| row.opt_int(0))
            .await?
            .into_iter()
            .next()
            .flatten();
        Ok(found.map(|due| Duration::from_micros((due - now).max(0) as u64)))
    }

    /// The time by which leases and deadlines are judged: one clock for all who share the store.
    pub(crate) async fn database_time(&self) -> Result<i64, StoreError> {
        match &self.inner.database {
            Database::Sqlite(_) => Ok(crate::sqlite::now()),
            Database::Postgres(postgres) => postgres.now().await,
        }
    }

    pub async fn now(&self) -> Result<jiff::Timestamp, StoreError> {
        timestamp(self.database_time().await?)
    }
}
