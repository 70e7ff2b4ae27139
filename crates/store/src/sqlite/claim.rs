//! Claiming on SQLite: the one writer is the one claimer, so there is nothing to lock.

use chancery_domain::id::WorkerId;
use rusqlite::{Connection, params};

use super::Sqlite;
use crate::StoreError;
use crate::queue::{ClaimedRow, PAUSE_MAX};

impl Sqlite {
    pub(crate) async fn claim(
        &self,
        worker: WorkerId,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let now = super::now();
        // A lease dies with the process: it need not outlive it on disk.
        self.write_soon(move |connection| claim(connection, worker, limit, now)).await
    }
}

fn claim(
    connection: &Connection,
    worker: WorkerId,
    limit: u32,
    now: i64,
) -> rusqlite::Result<Vec<ClaimedRow>> {
    let mut ready = connection.prepare_cached(
        "SELECT run_id, failures FROM queue
         WHERE owner IS NULL AND (ready_at <= ?1 OR ready_at > ?2) ORDER BY ready_at, run_id LIMIT ?3",
    )?;
    let far = now + PAUSE_MAX.as_micros() as i64;
    let rows = ready.query_map(params![now, far, limit], |row| {
        Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, i64>(1)?))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;

    let mut own = connection.prepare_cached("UPDATE queue SET owner = ?2 WHERE run_id = ?1")?;
    let mut raise = connection.prepare_cached(
        "UPDATE heads SET attempt = attempt + 1 WHERE run_id = ?1 RETURNING attempt",
    )?;
    let mut log = connection
        .prepare_cached("SELECT seq, at, kind, body FROM events WHERE run_id = ?1 ORDER BY seq")?;
    let mut claimed = Vec::with_capacity(rows.len());
    for (run, failures) in rows {
        own.execute(params![run, worker.0.as_bytes()])?;
        let attempt = raise.query_row([run], |row| row.get(0))?;
        let events = log
            .query_map([run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<rusqlite::Result<_>>()?;
        claimed.push(ClaimedRow { run: uuid::Uuid::from_bytes(run), attempt, failures, events });
    }
    Ok(claimed)
}
