//! The write path on PostgreSQL: many runs' changes in one statement.

use std::collections::HashMap;
use std::time::Instant;

use deadpool_postgres::{GenericClient, Pool};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::Patience;
use super::audit::extend;
use super::gate::{self, GATE};
use crate::StoreError;
use crate::log::Verdict;
use crate::projection::{Prepared, QueueMove, TimerMove};

/// More than this many changes in one statement make the first of them wait too long.
const GROUP_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Flush {
    change: Prepared,
    reply: oneshot::Sender<Result<Verdict, StoreError>>,
}

impl Flush {
    pub(crate) fn new(change: Prepared) -> (Flush, oneshot::Receiver<Result<Verdict, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Flush { change, reply }, answer)
    }
}

/// Takes all that waits, flushes it, answers. Ends with its queue.
pub(crate) async fn flush_loop(
    pool: Pool,
    patience: Patience,
    mut queue: mpsc::UnboundedReceiver<Flush>,
) {
    // A second change of a run that is in the group already waits for the next one.
    let mut held: Option<Flush> = None;
    loop {
        let first = match held.take() {
            Some(flush) => flush,
            None => match queue.recv().await {
                Some(flush) => flush,
                None => return,
            },
        };
        let mut group = HashMap::from([(first.change.run, first)]);
        while group.len() < GROUP_MAX {
            let Ok(flush) = queue.try_recv() else { break };
            if group.contains_key(&flush.change.run) {
                held = Some(flush);
                break;
            }
            group.insert(flush.change.run, flush);
        }
        let mut group: Vec<Flush> = group.into_values().collect();
        // Every server locks its runs in this order, so that none waits in a circle.
        group.sort_unstable_by_key(|it| it.change.run);
        let (changes, replies): (Vec<_>, Vec<_>) = group
            .into_iter()
            .map(|flush| {
                let run = flush.change.run;
                (flush.change, (run, flush.reply))
            })
            .unzip();
        let verdicts = flush_through_outages(&pool, &patience, &changes).await;
        for (run, reply) in replies {
            let verdict = match &verdicts {
                Ok(verdicts) => Ok(verdicts.get(&run).copied().unwrap_or(Verdict::Absent)),
                Err(error) => Err(error.clone()),
            };
            // The caller may be gone; what it asked for is done all the same.
            let _ = reply.send(verdict);
        }
    }
}

pub(super) type Verdicts = HashMap<Uuid, Verdict>;

/// Tries again while the database is away. A flush that broke off may have been committed: what
/// is found in the log, word for word, was.
async fn flush_through_outages(
    pool: &Pool,
    patience: &Patience,
    changes: &[Prepared],
) -> Result<Verdicts, StoreError> {
    let began = Instant::now();
    let mut pause = std::time::Duration::from_millis(20);
    let mut broken = false;
    loop {
        let error = match try_flush(pool, changes, broken).await {
            Ok(verdicts) => return Ok(verdicts),
            Err(error) => error,
        };
        let patience = *patience.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !matches!(error, StoreError::Unreachable(_)) || began.elapsed() > patience {
            return Err(error);
        }
        broken = true;
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(std::time::Duration::from_secs(1));
    }
}

async fn try_flush(
    pool: &Pool,
    changes: &[Prepared],
    broken: bool,
) -> Result<Verdicts, StoreError> {
    let mut client = pool.get().await?;
    let mut verdicts = Verdicts::new();
    let all: Vec<&Prepared> = changes.iter().collect();
    let appended = match all.iter().any(|it| !it.audit.is_empty() || it.orphans()) {
        false => send(&client, &all).await?,
        true => send_with_more(&mut client, &all).await?,
    };
    for run in appended {
        verdicts.insert(run, Verdict::Appended);
    }
    if broken {
        // Asked after the statement, not before: it has waited for the one that broke off, if
        // that was still under way at the server.
        for change in changes {
            if !verdicts.contains_key(&change.run) && is_in_log(&client, change).await? {
                verdicts.insert(change.run, Verdict::Appended);
            }
        }
    }
    let refused: Vec<Uuid> =
        changes.iter().map(|it| it.run).filter(|it| !verdicts.contains_key(it)).collect();
    if !refused.is_empty() {
        let heads = client
            .query("SELECT run_id, seq, attempt FROM heads WHERE run_id = ANY($1)", &[&refused])
            .await?;
        for head in heads {
            let (seq, attempt) = (head.try_get(1)?, head.try_get(2)?);
            verdicts.insert(head.try_get(0)?, Verdict::Stale { seq, attempt });
        }
    }
    Ok(verdicts)
}

/// Whether the log holds the change, and the writer still has the lease that it wrote under:
/// another worker may have written the same words in the same place.
pub(super) async fn is_in_log(
    client: &deadpool_postgres::Object,
    change: &Prepared,
) -> Result<bool, StoreError> {
    let rows = client
        .query(
            "SELECT e.kind, e.body FROM events e JOIN heads h USING (run_id)
             WHERE e.run_id = $1 AND e.seq > $2 AND e.seq <= $3 AND ($4 = 0::bigint OR h.attempt = $4)
             ORDER BY e.seq",
            &[&change.run, &change.expected, &change.next, &change.attempt],
        )
        .await?;
    if rows.len() != change.events.len() {
        return Ok(false);
    }
    for (row, line) in rows.iter().zip(&change.events) {
        let (kind, body): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        if (kind, body) != (line.kind, &*line.body) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same in one transaction with the audit's entries and the orphans: those of the runs that it
/// was appended to, so that whoever finds a change in the log knows that all of it took place.
async fn send_with_more(
    client: &mut deadpool_postgres::Object,
    changes: &[&Prepared],
) -> Result<Vec<Uuid>, StoreError> {
    let transaction = client.transaction().await?;
    let appended = send(&transaction, changes).await?;
    let made: Vec<&Prepared> =
        changes.iter().copied().filter(|it| appended.contains(&it.run)).collect();
    orphan(&transaction, &made).await?;
    extend(&transaction, made.into_iter().flat_map(|it| &it.audit)).await?;
    transaction.commit().await?;
    Ok(appended)
}

/// Notes the runs that nobody waits for any longer.
pub(super) async fn orphan(
    client: &impl GenericClient,
    changes: &[&Prepared],
) -> Result<(), StoreError> {
    let parents: Vec<Uuid> = changes.iter().filter(|it| it.ends_badly).map(|it| it.run).collect();
    let children: Vec<Uuid> = changes.iter().flat_map(|it| it.abandoned.clone()).collect();
    if parents.is_empty() && children.is_empty() {
        return Ok(());
    }
    let statement = client
        .prepare_cached(
            "INSERT INTO orphans (run_id)
             SELECT id FROM runs WHERE parent_run_id = ANY($1) AND ended_at IS NULL
             UNION SELECT unnest($2::uuid[]) ON CONFLICT DO NOTHING",
        )
        .await?;
    client.execute(&statement, &[&parents, &children]).await?;
    Ok(())
}

/// Heads and events: all that a step in the middle of a run touches. Planned once (see `WRITING`), so
/// each table names the keys that are looked for: however it was planned, it is found by them.
const STEP: &str = "WITH head AS (
    UPDATE heads h SET seq = i.next, input_tokens = h.input_tokens + i.tokens_in,
      output_tokens = h.output_tokens + i.tokens_out, cost_micros = h.cost_micros + i.cost
    FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
        $7::bigint[])
      AS i(run_id, expected, next, attempt, tokens_in, tokens_out, cost)
    WHERE h.run_id = ANY($1) AND h.run_id = i.run_id AND h.seq = i.expected AND (i.attempt = 0 OR h.attempt = i.attempt)
    RETURNING h.run_id
  ), line AS (
    INSERT INTO events (run_id, seq, at, kind, body)
    SELECT e.run_id, e.seq, e.at, e.kind, e.body
    FROM unnest($8::uuid[], $9::bigint[], $10::bigint[], $11::text[], $12::text[])
      AS e(run_id, seq, at, kind, body) JOIN head USING (run_id)
  )";

/// What else a change may touch: the run's row, the queue, the timers, the outbox.
const MOVES: &str = ", moved AS (
    UPDATE runs r SET status = m.status, waiting_for = m.waiting_for, output = m.output, error = m.error,
      started_at = COALESCE(r.started_at, m.started_at), ended_at = m.ended_at
    FROM unnest($13::uuid[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[], $19::bigint[])
      AS m(run_id, status, waiting_for, output, error, started_at, ended_at) JOIN head USING (run_id)
    WHERE r.id = ANY($13) AND r.id = m.run_id
    RETURNING r.id, r.status, r.group_id
  ), deposited AS (
    INSERT INTO deposits (run_id)
    SELECT id FROM moved WHERE status = 'completed' AND group_id IS NOT NULL ON CONFLICT DO NOTHING
  ), entered AS (
    INSERT INTO queue (run_id) SELECT q.run_id FROM unnest($20::uuid[]) AS q(run_id) JOIN head USING (run_id)
    ON CONFLICT DO NOTHING
  ), gone AS (
    DELETE FROM queue WHERE run_id = ANY($21::uuid[]) AND run_id IN (SELECT run_id FROM head)
  ), timed AS (
    INSERT INTO timers (run_id, due_at, wait_key)
    SELECT t.run_id, t.due_at, t.wait_key
    FROM unnest($22::uuid[], $23::bigint[], $24::text[]) AS t(run_id, due_at, wait_key) JOIN head USING (run_id)
    ON CONFLICT (run_id) DO UPDATE SET due_at = excluded.due_at, wait_key = excluded.wait_key
  ), untimed AS (
    DELETE FROM timers WHERE run_id = ANY($25::uuid[]) AND run_id IN (SELECT run_id FROM head)
  ), told AS (
    INSERT INTO outbox (subscriber, run_id, seq, topic, at)
    SELECT o.subscriber, o.run_id, o.seq, o.topic, o.at
    FROM unnest($26::text[], $27::uuid[], $28::bigint[], $29::text[], $30::bigint[])
      AS o(subscriber, run_id, seq, topic, at) JOIN head USING (run_id)
  )";

/// Sends one statement for all; answers which runs it was appended to.
pub(super) async fn send(
    client: &impl GenericClient,
    changes: &[&Prepared],
) -> Result<Vec<Uuid>, StoreError> {
    let heads = |get: fn(&Prepared) -> i64| changes.iter().map(|it| get(it)).collect::<Vec<i64>>();
    let runs: Vec<Uuid> = changes.iter().map(|it| it.run).collect();
    let lines = || changes.iter().flat_map(|it| it.events.iter().map(move |line| (it, line)));
    let (expected, next) = (heads(|it| it.expected), heads(|it| it.next));
    let attempts = heads(|it| it.attempt);
    let (tokens_in, tokens_out) = (heads(|it| it.input_tokens), heads(|it| it.output_tokens));
    let costs = heads(|it| it.cost_micros);
    let line_runs: Vec<Uuid> = lines().map(|(it, _)| it.run).collect();
    let line_seqs: Vec<i64> = lines().map(|(_, line)| line.seq).collect();
    let line_ats: Vec<i64> = lines().map(|(it, _)| it.at).collect();
    let kinds: Vec<&str> = lines().map(|(_, line)| line.kind).collect();
    let bodies: Vec<&str> = lines().map(|(_, line)| &*line.body).collect();
    let mut params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> = vec![
        &runs,
        &expected,
        &next,
        &attempts,
        &tokens_in,
        &tokens_out,
        &costs,
        &line_runs,
        &line_seqs,
        &line_ats,
        &kinds,
        &bodies,
    ];
    let moves = Moves::of(changes);
    let gate = gate::Columns::of(changes);
    let sql = match &gate {
        None if moves.none() => format!("{STEP} SELECT run_id FROM head"),
        None => {
            moves.push(&mut params);
            format!("{STEP} {MOVES} SELECT run_id FROM head")
        }
        Some(gate) => {
            moves.push(&mut params);
            params.extend(gate.params());
            format!("{STEP} {MOVES} {GATE} SELECT run_id FROM head")
        }
    };
    let statement = client.prepare_cached(&sql).await?;
    let rows = client.query(&statement, &params).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The columns of `MOVES`, a vector each.
#[derive(Default)]
struct Moves<'a> {
    runs: Vec<Uuid>,
    statuses: Vec<&'a str>,
    waiting_for: Vec<Option<&'a str>>,
    outputs: Vec<Option<&'a str>>,
    errors: Vec<Option<&'a str>>,
    started_at: Vec<Option<i64>>,
    ended_at: Vec<Option<i64>>,
    entering: Vec<Uuid>,
    leaving: Vec<Uuid>,
    timed: Vec<Uuid>,
    due_at: Vec<i64>,
    wait_keys: Vec<&'a str>,
    untimed: Vec<Uuid>,
    subscribers: Vec<&'a str>,
    told_runs: Vec<Uuid>,
    told_seqs: Vec<i64>,
    topics: Vec<&'a str>,
    told_at: Vec<i64>,
}

impl<'a> Moves<'a> {
    fn of(changes: &[&'a Prepared]) -> Moves<'a> {
        let mut moves = Moves::default();
        for change in changes {
            if let Some(moved) = &change.moved {
                moves.runs.push(change.run);
                moves.statuses.push(moved.status);
                moves.waiting_for.push(moved.waiting_for);
                moves.outputs.push(moved.output.as_deref());
                moves.errors.push(moved.error.as_deref());
                moves.started_at.push(moved.started.then_some(change.at));
                moves.ended_at.push(moved.ended.then_some(change.at));
            }
            match change.queue {
                QueueMove::Stay => {}
                QueueMove::Enter => moves.entering.push(change.run),
                QueueMove::Leave => moves.leaving.push(change.run),
            }
            match &change.timer {
                TimerMove::Stay => {}
                TimerMove::Set { due_at, key } => {
                    moves.timed.push(change.run);
                    moves.due_at.push(*due_at);
                    moves.wait_keys.push(key);
                }
                TimerMove::Clear => moves.untimed.push(change.run),
            }
            for told in &change.notices {
                moves.subscribers.push(&told.subscriber);
                moves.told_runs.push(change.run);
                moves.told_seqs.push(told.seq);
                moves.topics.push(told.topic);
                moves.told_at.push(change.at);
            }
        }
        moves
    }

    fn none(&self) -> bool {
        self.runs.is_empty()
            && self.entering.is_empty()
            && self.leaving.is_empty()
            && self.timed.is_empty()
            && self.untimed.is_empty()
            && self.subscribers.is_empty()
    }

    fn push<'p>(&'p self, params: &mut Vec<&'p (dyn tokio_postgres::types::ToSql + Sync)>) {
        params.extend([
            &self.runs as &(dyn tokio_postgres::types::ToSql + Sync),
            &self.statuses,
            &self.waiting_for,
            &self.outputs,
            &self.errors,
            &self.started_at,
            &self.ended_at,
            &self.entering,
            &self.leaving,
            &self.timed,
            &self.due_at,
            &self.wait_keys,
            &self.untimed,
            &self.subscribers,
            &self.told_runs,
            &self.told_seqs,
            &self.topics,
            &self.told_at,
        ]);
    }
}
