//! The audit's chain on PostgreSQL. Whoever extends it locks the head, and locks nothing after
//! that: so nobody waits in a circle. Entries that come alone share transactions as appends do.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use deadpool_postgres::{Pool, Transaction};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::{OUTAGE_MAX, Postgres, as_params};
use crate::StoreError;
use crate::audit::{Draft, Head, Row};
use crate::sql::Param;

/// More than this many requests in one transaction make the first of them wait too long.
const GROUP_MAX: usize = 256;

const LOCK: &str = "SELECT seq, hash FROM audit_head WHERE one = 1 FOR UPDATE";
const KNOWN: &str = "SELECT id FROM audit WHERE id = ANY($1)";
const EXTEND: &str = "WITH line AS (
    INSERT INTO audit (seq, id, at, kind, agent, tool, ruling, user_id, run_id, entry, hash)
    SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[],
      $7::text[], $8::text[], $9::uuid[], $10::text[], $11::bytea[])
  )
  UPDATE audit_head SET seq = $12::bigint, hash = $13::bytea WHERE one = 1";

/// Entries that belong to no run's log, and who waits for them.
#[derive(Debug)]
pub(crate) struct Alone {
    drafts: Vec<Draft>,
    reply: oneshot::Sender<Result<(), StoreError>>,
}

impl Postgres {
    pub(crate) async fn audit(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        let (reply, answer) = oneshot::channel();
        self.auditor.send(Alone { drafts, reply }).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    pub(crate) async fn execute_audited(
        &self,
        sql: &str,
        params: &[Param],
        drafts: &[Draft],
    ) -> Result<u64, StoreError> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let statement = transaction.prepare_cached(sql).await?;
        let moved = transaction.execute(&statement, &as_params(params)).await?;
        if moved > 0 {
            extend(&transaction, drafts).await?;
        }
        transaction.commit().await?;
        Ok(moved)
    }
}

/// Puts entries at the end, but for those that are there already.
pub(crate) async fn extend<'a>(
    transaction: &Transaction<'_>,
    drafts: impl IntoIterator<Item = &'a Draft>,
) -> Result<(), StoreError> {
    let drafts: Vec<&Draft> = drafts.into_iter().collect();
    if drafts.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = drafts.iter().map(|it| it.id()).collect();
    let (lock, known) =
        tokio::try_join!(transaction.prepare_cached(LOCK), transaction.prepare_cached(KNOWN))?;
    let extend = transaction.prepare_cached(EXTEND).await?;
    let asked: [&(dyn ToSql + Sync); 1] = [&ids];
    // Sent together, carried out one after the other: what is known is asked under the lock.
    let (head, known) = tokio::try_join!(
        biased;
        transaction.query_opt(&lock, &[]),
        transaction.query(&known, &asked),
    )?;
    let head = head.ok_or_else(|| StoreError::Unreadable("the audit has no head".to_owned()))?;
    let hash: &[u8] = head.try_get(1)?;
    let hash =
        hash.try_into().map_err(|_| StoreError::Unreadable("the audit's head".to_owned()))?;
    let mut head = Head { seq: head.try_get::<_, i64>(0)? as u64, hash };
    let mut known: HashSet<Uuid> =
        known.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let rows: Vec<Row> = drafts
        .iter()
        .filter(|it| known.insert(it.id()))
        .map(|it| head.extend(it))
        .collect::<Result<_, _>>()?;
    if rows.is_empty() {
        return Ok(());
    }
    let column = |get: fn(&Row) -> Option<&str>| rows.iter().map(get).collect::<Vec<_>>();
    let seqs: Vec<i64> = rows.iter().map(|it| it.seq).collect();
    let ids: Vec<Uuid> = rows.iter().map(|it| it.copies.id).collect();
    let ats: Vec<i64> = rows.iter().map(|it| it.copies.at).collect();
    let kinds = column(|it| Some(&it.copies.kind));
    let agents = column(|it| it.copies.agent.as_deref());
    let tools = column(|it| it.copies.tool.as_deref());
    let rulings = column(|it| it.copies.ruling.as_deref());
    let users = column(|it| it.copies.user.as_deref());
    let runs: Vec<Option<Uuid>> = rows.iter().map(|it| it.copies.run).collect();
    let texts = column(|it| Some(&it.text));
    let hashes: Vec<&[u8]> = rows.iter().map(|it| &it.hash[..]).collect();
    let (last, hash) = (head.seq as i64, &head.hash[..]);
    transaction
        .execute(
            &extend,
            &[
                &seqs, &ids, &ats, &kinds, &agents, &tools, &rulings, &users, &runs, &texts,
                &hashes, &last, &hash,
            ],
        )
        .await?;
    Ok(())
}

/// Takes all that waits, writes it, answers. Ends with its queue.
pub(crate) async fn audit_loop(pool: Pool, mut queue: mpsc::UnboundedReceiver<Alone>) {
    while let Some(first) = queue.recv().await {
        let mut group = vec![first];
        while group.len() < GROUP_MAX {
            let Ok(alone) = queue.try_recv() else { break };
            group.push(alone);
        }
        let (drafts, replies): (Vec<_>, Vec<_>) =
            group.into_iter().map(|it| (it.drafts, it.reply)).unzip();
        let drafts: Vec<Draft> = drafts.into_iter().flatten().collect();
        let written = write_through_outages(&pool, &drafts).await;
        for reply in replies {
            // The caller may be gone; what it asked for is done all the same.
            let _ = reply.send(written.clone());
        }
    }
}

/// Tries again while the database is away. What was committed before the connection broke is
/// there already, and stays as it is.
async fn write_through_outages(pool: &Pool, drafts: &[Draft]) -> Result<(), StoreError> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(20);
    loop {
        let error = match write(pool, drafts).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if !matches!(error, StoreError::Unreachable(_)) || began.elapsed() > OUTAGE_MAX {
            return Err(error);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

async fn write(pool: &Pool, drafts: &[Draft]) -> Result<(), StoreError> {
    let mut client = pool.get().await?;
    let transaction = client.transaction().await?;
    extend(&transaction, drafts).await?;
    transaction.commit().await?;
    Ok(())
}
