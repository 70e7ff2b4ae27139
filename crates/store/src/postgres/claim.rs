//! Claiming on PostgreSQL: in batches, skipping what another server is claiming.

use std::collections::HashMap;

use chancery_domain::id::WorkerId;
use uuid::Uuid;

use super::{NOW, Postgres};
use crate::StoreError;
use crate::queue::{ClaimedRow, PAUSE_MAX, Wanted};

impl Postgres {
    pub(crate) async fn claim(
        &self,
        worker: WorkerId,
        wanted: Wanted,
        limit: u32,
    ) -> Result<Vec<ClaimedRow>, StoreError> {
        let client = self.pool.get().await?;
        let (filter, order) = wanted.sql();
        // Both rows are locked or neither: an append locks the head first and the queue after,
        // and waiting for each other would cost a second.
        let sql = format!(
            "WITH ready AS (
               SELECT q.run_id FROM queue q JOIN heads h ON h.run_id = q.run_id
               WHERE q.owner IS NULL AND (q.ready_at <= {NOW} OR q.ready_at > {NOW} + $3::bigint) {filter}
               ORDER BY {order} LIMIT $2
               FOR UPDATE SKIP LOCKED
             ), owned AS (
               UPDATE queue q SET owner = $1 FROM ready WHERE q.run_id = ready.run_id
               RETURNING q.run_id, q.failures, q.crashes
             )
             UPDATE heads h SET attempt = h.attempt + 1 FROM owned WHERE h.run_id = owned.run_id
             RETURNING h.run_id, h.attempt, owned.failures, owned.crashes"
        );
        let statement = client.prepare_cached(&sql).await?;
        let far = PAUSE_MAX.as_micros() as i64;
        let rows = client.query(&statement, &[&worker.0, &i64::from(limit), &far]).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut claimed: HashMap<Uuid, ClaimedRow> = HashMap::new();
        for row in rows {
            let run = row.try_get(0)?;
            let (attempt, failures, crashes) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            let events = Vec::new();
            claimed.insert(run, ClaimedRow { run, attempt, failures, crashes, events });
        }
        // Read after the claim: what was appended before it is in here, and nothing else is.
        let runs: Vec<Uuid> = claimed.keys().copied().collect();
        let statement = client
            .prepare_cached(
                "SELECT run_id, seq, at, kind, body FROM events WHERE run_id = ANY($1) ORDER BY run_id, seq",
            )
            .await?;
        for row in client.query(&statement, &[&runs]).await? {
            let run: Uuid = row.try_get(0)?;
            let line = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
            if let Some(claim) = claimed.get_mut(&run) {
                claim.events.push(line);
            }
        }
        let mut claimed: Vec<ClaimedRow> = claimed.into_values().collect();
        claimed.sort_by_key(|it| it.run);
        Ok(claimed)
    }
}
