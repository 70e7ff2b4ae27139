//! Deposits that are due: a row for each group run that is done, written with its last event. A
//! deposit is made with the removal of its row, so that it is made once.

use std::time::Duration;

use chancery_domain::id::RunId;
use chancery_domain::memory::deposit::Record;
use chancery_domain::memory::{EpisodeKind, Home};

use super::session::{Session, Wall};
use super::{NewMemory, Written, within, write};
use crate::queue::PAUSE_MAX;
use crate::sql::{Columns, Param};
use crate::{Database, Store, StoreError};

/// A group run whose results are to be deposited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    pub run: RunId,
    /// This one included.
    pub tries: u32,
}

impl Store {
    /// Takes deposits that are due. Those that are not made come back after `hold`.
    pub async fn take_deposits(&self, limit: u32, hold: Duration) -> Result<Vec<Due>, StoreError> {
        let now = self.database_time().await?;
        let until = now + hold.min(PAUSE_MAX).as_micros() as i64;
        let taken = self.write_rows(
            "UPDATE deposits SET due_at = $1, tries = tries + 1 WHERE due_at <= $2
               AND run_id IN (SELECT run_id FROM deposits WHERE due_at <= $2 ORDER BY due_at LIMIT $3)
             RETURNING run_id, tries",
            vec![Param::Int(until), Param::Int(now), Param::Int(i64::from(limit))],
            |row| Ok(Due { run: RunId(row.uuid(0)?), tries: row.int(1)? as u32 }),
        );
        let taken = taken.await?;
        #[cfg(feature = "faults")]
        if !taken.is_empty() {
            crate::fault::brink();
        }
        Ok(taken)
    }

    /// What a group wrote down in one run, the first first.
    pub async fn run_records(&self, home: &Home, run: RunId) -> Result<Vec<Record>, StoreError> {
        let (wall, home) = (Wall::of_home(home), home.clone());
        within!(read, self, wall, session => records(session, &home, run))
    }

    /// Makes a run's deposits, if they are still to be made. Answers how many are new.
    pub async fn deposit(
        &self,
        run: RunId,
        home: &Home,
        deposits: Vec<NewMemory>,
    ) -> Result<usize, StoreError> {
        let (wall, home) = (Wall::of_home(home), home.clone());
        let made: Result<usize, StoreError> =
            within!(write, self, wall, session => carry_out(session, run, &home, &deposits));
        #[cfg(feature = "faults")]
        crate::fault::brink();
        made
    }

    /// There is nothing to deposit of this run.
    pub async fn drop_deposit(&self, run: RunId) -> Result<(), StoreError> {
        let sql = "DELETE FROM deposits WHERE run_id = $1";
        self.execute(sql, vec![Param::Uuid(run.0)]).await?;
        Ok(())
    }

    /// How many wait, taken or not.
    pub async fn deposits_due(&self) -> Result<u64, StoreError> {
        let found = self.query("SELECT count(*) FROM deposits", vec![], |row| row.int(0)).await?;
        Ok(found.first().copied().unwrap_or_default() as u64)
    }
}

async fn records(
    session: &impl Session,
    home: &Home,
    run: RunId,
) -> Result<Vec<Record>, StoreError> {
    let sql = "SELECT m.id, m.metadata, m.content FROM memory_sources s
        JOIN memories m ON m.doc = s.doc JOIN memory_partitions p ON p.id = m.partition_id
        WHERE s.run_id = $1 AND s.source = 'call' AND p.tuple = $2 AND m.superseded_by IS NULL
        ORDER BY m.doc";
    let params = vec![Param::Uuid(run.0), Param::Text(home.partition().tuple())];
    let decode = |row: &dyn Columns| {
        let metadata: serde_json::Value = serde_json::from_str(&row.text(1)?)
            .map_err(|it| StoreError::Unreadable(format!("a memory: {it}")))?;
        let kind = metadata["memory_type"].as_str().and_then(EpisodeKind::parse);
        let id = chancery_domain::id::MemoryId(row.uuid(0)?);
        let content = row.text(2)?;
        Ok(kind.map(|kind| Record { id, kind, content }))
    };
    let mut found: Vec<Record> =
        session.rows(sql, params, decode).await?.into_iter().flatten().collect();
    found.dedup_by_key(|it| it.id);
    Ok(found)
}

async fn carry_out(
    session: &impl Session,
    run: RunId,
    home: &Home,
    deposits: &[NewMemory],
) -> Result<usize, StoreError> {
    let sql = "DELETE FROM deposits WHERE run_id = $1";
    if session.execute(sql, vec![Param::Uuid(run.0)]).await? == 0 {
        return Ok(0);
    }
    #[cfg(feature = "faults")]
    crate::fault::brink();
    let mut made = 0;
    for deposit in deposits {
        if let Ok(Written::New { .. }) = write::write(session, home, deposit).await? {
            made += 1;
        }
        #[cfg(feature = "faults")]
        crate::fault::brink();
    }
    Ok(made)
}
