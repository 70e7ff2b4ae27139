//! Claiming on SQLite: the one writer is the one claimer, so there is nothing to lock.

use chancery_domain::id::WorkerId;
use rusqlite::{Connection, params};

use super::{Receipt, Sqlite};
use crate::StoreError;
use crate::queue::{ClaimedRow, PAUSE_MAX, Wanted};

impl Sqlite {
    pub(crate) async fn claim(
        &self,
        worker: WorkerId,
        wanted: Wanted,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let now = super::now();
        let work = move |connection: &Connection| claim(connection, worker, wanted, limit, now);
        match wanted {
            Wanted::Suspects => self.write(work).await,
            // A lease dies with the process: it need not outlive it on disk.
            Wanted::Any | Wanted::Others => self.write_soon(work).await,
        }
    }

    /// Leaves an order for such a claim. A simulated process does not: it shares the store with
    /// others, as it would not in life.
    pub(crate) fn leave_order(
        &self,
        worker: WorkerId,
        wanted: Wanted,
        limit: u32,
    ) -> Option<Receipt> {
        #[cfg(feature = "faults")]
        if self.on_the_spot {
            return None;
        }
        Some(self.orders.leave(worker, wanted, limit))
    }
}

pub(super) fn claim(
    connection: &Connection,
    worker: WorkerId,
    wanted: Wanted,
    limit: u32,
    now: i64,
) -> rusqlite::Result<Vec<ClaimedRow>> {
    let (filter, order) = wanted.sql();
    let mut ready = connection.prepare_cached(&format!(
        "SELECT q.run_id, q.failures, q.crashes FROM queue q
         WHERE q.owner IS NULL AND (q.ready_at <= ?1 OR q.ready_at > ?2) {filter} ORDER BY {order} LIMIT ?3",
    ))?;
    let far = now + PAUSE_MAX.as_micros() as i64;
    let rows = ready.query_map(params![now, far, limit], |row| {
        Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;

    let mut own = connection.prepare_cached("UPDATE queue SET owner = ?2 WHERE run_id = ?1")?;
    let mut raise = connection.prepare_cached(
        "UPDATE heads SET attempt = attempt + 1 WHERE run_id = ?1 RETURNING attempt",
    )?;
    let mut log = connection
        .prepare_cached("SELECT seq, at, kind, body FROM events WHERE run_id = ?1 ORDER BY seq")?;
    let mut claimed = Vec::with_capacity(rows.len());
    for (run, failures, crashes) in rows {
        own.execute(params![run, worker.0.as_bytes()])?;
        let attempt = raise.query_row([run], |row| row.get(0))?;
        let events = log
            .query_map([run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let run = uuid::Uuid::from_bytes(run);
        claimed.push(ClaimedRow { run, attempt, failures, crashes, events });
    }
    Ok(claimed)
}
