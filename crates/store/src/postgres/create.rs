//! A run's first event on PostgreSQL: one statement, one round trip.

use deadpool_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::Postgres;
use super::audit::extend;
use crate::StoreError;
use crate::log::{CreateOutcome, IdempotencyKey};
use crate::projection::{Birth, Prepared};

const CREATE: &str = "WITH fresh AS (
    INSERT INTO idempotency_keys (caller, key, request_sha256, run_id, at)
    SELECT $1::text, $2::text, $3::bytea, $4::uuid, $5::bigint WHERE $2::text IS NOT NULL
    ON CONFLICT DO NOTHING RETURNING run_id
  ), run AS (
    INSERT INTO runs (id, status, org_id, user_id, agent_id, role_id, group_id, project_id, session_key,
      parent_run_id, delegated_permissions, input, created_at)
    SELECT $4::uuid, 'pending', $6, $7, $8, $9, $10, $11, $12, $13::uuid, $14, $15, $5::bigint
    WHERE $2::text IS NULL OR EXISTS (SELECT 1 FROM fresh)
    RETURNING id
  ), head AS (
    INSERT INTO heads (run_id, seq) SELECT id, $16::bigint FROM run
  ), line AS (
    INSERT INTO events (run_id, seq, at, kind, body)
    SELECT id, e.seq, $5::bigint, e.kind, e.body
    FROM run, unnest($17::bigint[], $18::text[], $19::text[]) AS e(seq, kind, body)
  ), queued AS (
    INSERT INTO queue (run_id) SELECT id FROM run
  ), told AS (
    INSERT INTO outbox (subscriber, run_id, seq, topic, at)
    SELECT o.subscriber, id, o.seq, o.topic, $5::bigint
    FROM run, unnest($20::text[], $21::bigint[], $22::text[]) AS o(subscriber, seq, topic)
  )
  SELECT id FROM run";

impl Postgres {
    pub(crate) async fn create(
        &self,
        change: Prepared,
        birth: Birth,
        key: Option<IdempotencyKey>,
    ) -> Result<CreateOutcome, StoreError> {
        let mut client = self.pool.get().await?;
        let made = if change.audit.is_empty() {
            make(&client, &change, &birth, key.as_ref()).await?
        } else {
            let transaction = client.transaction().await?;
            let made = make(&transaction, &change, &birth, key.as_ref()).await?;
            if made {
                extend(&transaction, &change.audit).await?;
            }
            transaction.commit().await?;
            made
        };
        match (made, key) {
            (true, _) | (false, None) => Ok(CreateOutcome::Created),
            (false, Some(key)) => {
                let row = client
                    .query_one(
                        "SELECT request_sha256, run_id FROM idempotency_keys WHERE caller = $1 AND key = $2",
                        &[&key.caller, &key.key],
                    )
                    .await?;
                let (request, run): (&[u8], Uuid) = (row.try_get(0)?, row.try_get(1)?);
                Ok(CreateOutcome::before(&key, request, run))
            }
        }
    }
}

/// Makes a run, unless its key was used before.
pub(super) async fn make(
    client: &impl GenericClient,
    change: &Prepared,
    birth: &Birth,
    key: Option<&IdempotencyKey>,
) -> Result<bool, StoreError> {
    let caller = key.map(|it| it.caller.as_str());
    let name = key.map(|it| it.key.as_str());
    let request = key.map(|it| it.request_sha256.as_slice());
    let seqs: Vec<i64> = change.events.iter().map(|it| it.seq).collect();
    let kinds: Vec<&str> = change.events.iter().map(|it| it.kind).collect();
    let bodies: Vec<&str> = change.events.iter().map(|it| &*it.body).collect();
    let subscribers: Vec<&str> = change.notices.iter().map(|it| &*it.subscriber).collect();
    let told_seqs: Vec<i64> = change.notices.iter().map(|it| it.seq).collect();
    let topics: Vec<&str> = change.notices.iter().map(|it| it.topic).collect();
    let params: [&(dyn ToSql + Sync); 22] = [
        &caller,
        &name,
        &request,
        &change.run,
        &change.at,
        &birth.org,
        &birth.user,
        &birth.agent,
        &birth.role,
        &birth.group,
        &birth.project,
        &birth.session_key,
        &birth.parent,
        &birth.delegated,
        &birth.input,
        &change.next,
        &seqs,
        &kinds,
        &bodies,
        &subscribers,
        &told_seqs,
        &topics,
    ];
    let statement = client.prepare_cached(CREATE).await?;
    Ok(client.query_opt(&statement, &params).await?.is_some())
}
