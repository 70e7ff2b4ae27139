//! The write path on SQLite. Every function checks first and writes after, so that a refusal
//! leaves the group's transaction as it was.

use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use super::{Sqlite, Taken};
use crate::StoreError;
use crate::log::{CreateOutcome, IdempotencyKey, Verdict};
use crate::projection::{Birth, Prepared, QueueMove, TimerMove};

impl Sqlite {
    /// `taken` is told whether the run, made ready by this, was claimed with it.
    pub(crate) async fn append(
        &self,
        change: Prepared,
        taken: Taken,
    ) -> Result<Verdict, StoreError> {
        let (chain, orders) = (self.chain.clone(), self.orders.clone());
        self.write(move |connection| {
            let verdict = append(connection, &change)?;
            if verdict == Verdict::Appended {
                chain.write(connection, &change.audit)?;
                if change.queue == QueueMove::Enter {
                    orders.made_ready(change.run, taken);
                }
            }
            Ok(verdict)
        })
        .await
    }

    pub(crate) async fn create(
        &self,
        change: Prepared,
        birth: Birth,
        key: Option<IdempotencyKey>,
        taken: Taken,
    ) -> Result<CreateOutcome, StoreError> {
        let (chain, orders) = (self.chain.clone(), self.orders.clone());
        self.write(move |connection| {
            let outcome = create(connection, &change, &birth, key.as_ref())?;
            if outcome == CreateOutcome::Created {
                chain.write(connection, &change.audit)?;
                orders.made_ready(change.run, taken);
            }
            Ok(outcome)
        })
        .await
    }
}

pub(super) fn append(connection: &Connection, change: &Prepared) -> rusqlite::Result<Verdict> {
    let moved = connection
        .prepare_cached(
            "UPDATE heads SET seq = ?2, input_tokens = input_tokens + ?3, output_tokens = output_tokens + ?4,
               cost_micros = cost_micros + ?7
             WHERE run_id = ?1 AND seq = ?5 AND (?6 = 0 OR attempt = ?6)",
        )?
        .execute(params![
            change.run.as_bytes(),
            change.next,
            change.input_tokens,
            change.output_tokens,
            change.expected,
            change.attempt,
            change.cost_micros
        ])?;
    if moved == 0 {
        return stale(connection, change.run);
    }
    write_events(connection, change)?;
    project(connection, change)?;
    Ok(Verdict::Appended)
}

pub(super) fn stale(connection: &Connection, run: Uuid) -> rusqlite::Result<Verdict> {
    let head = connection
        .prepare_cached("SELECT seq, attempt FROM heads WHERE run_id = ?1")?
        .query_row([run.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match head {
        None => Verdict::Absent,
        Some((seq, attempt)) => Verdict::Stale { seq, attempt },
    })
}

fn write_events(connection: &Connection, change: &Prepared) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO events (run_id, seq, at, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for line in &change.events {
        insert.execute(params![
            change.run.as_bytes(),
            line.seq,
            change.at,
            line.kind,
            line.body
        ])?;
    }
    Ok(())
}

fn project(connection: &Connection, change: &Prepared) -> rusqlite::Result<()> {
    let run = change.run.as_bytes();
    tell(connection, change)?;
    super::gate::project(connection, change)?;
    if let Some(moved) = &change.moved {
        connection
            .prepare_cached(
                "UPDATE runs SET status = ?2, waiting_for = ?3, output = ?4, error = ?5,
                   started_at = COALESCE(started_at, ?6), ended_at = ?7 WHERE id = ?1",
            )?
            .execute(params![
                run,
                moved.status,
                moved.waiting_for,
                moved.output,
                moved.error,
                moved.started.then_some(change.at),
                moved.ended.then_some(change.at),
            ])?;
        super::deposit::project(connection, change.run, moved)?;
    }
    if change.orphans() {
        orphan(connection, change)?;
    }
    match change.queue {
        QueueMove::Stay => {}
        QueueMove::Enter => {
            connection
                .prepare_cached("INSERT INTO queue (run_id) VALUES (?1) ON CONFLICT DO NOTHING")?
                .execute([run])?;
        }
        QueueMove::Leave => {
            connection.prepare_cached("DELETE FROM queue WHERE run_id = ?1")?.execute([run])?;
        }
    }
    match &change.timer {
        TimerMove::Stay => {}
        TimerMove::Set { due_at, key } => {
            connection
                .prepare_cached(
                    "INSERT INTO timers (run_id, due_at, wait_key) VALUES (?1, ?2, ?3)
                     ON CONFLICT (run_id) DO UPDATE SET due_at = excluded.due_at, wait_key = excluded.wait_key",
                )?
                .execute(params![run, due_at, key])?;
        }
        TimerMove::Clear => {
            connection.prepare_cached("DELETE FROM timers WHERE run_id = ?1")?.execute([run])?;
        }
    }
    Ok(())
}

fn orphan(connection: &Connection, change: &Prepared) -> rusqlite::Result<()> {
    if change.ends_badly {
        connection
            .prepare_cached(
                "INSERT INTO orphans (run_id) SELECT id FROM runs
                 WHERE parent_run_id = ?1 AND ended_at IS NULL ON CONFLICT DO NOTHING",
            )?
            .execute([change.run.as_bytes()])?;
    }
    for child in &change.abandoned {
        connection
            .prepare_cached("INSERT INTO orphans (run_id) VALUES (?1) ON CONFLICT DO NOTHING")?
            .execute([child.as_bytes()])?;
    }
    Ok(())
}

fn tell(connection: &Connection, change: &Prepared) -> rusqlite::Result<()> {
    for told in &change.notices {
        connection
            .prepare_cached(
                "INSERT INTO outbox (subscriber, run_id, seq, topic, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                told.subscriber,
                change.run.as_bytes(),
                told.seq,
                told.topic,
                change.at
            ])?;
    }
    Ok(())
}

pub(super) fn create(
    connection: &Connection,
    change: &Prepared,
    birth: &Birth,
    key: Option<&IdempotencyKey>,
) -> rusqlite::Result<CreateOutcome> {
    if let Some(key) = key {
        if let Some(before) = used(connection, key)? {
            return Ok(before);
        }
        connection
            .prepare_cached(
                "INSERT INTO idempotency_keys (caller, key, request_sha256, run_id, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                key.caller,
                key.key,
                key.request_sha256,
                change.run.as_bytes(),
                change.at
            ])?;
    }
    connection
        .prepare_cached(
            "INSERT INTO runs (id, status, org_id, user_id, agent_id, role_id, group_id, project_id,
               session_key, parent_run_id, delegated_permissions, input, created_at)
             VALUES (?1, 'pending', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            change.run.as_bytes(),
            birth.org,
            birth.user,
            birth.agent,
            birth.role,
            birth.group,
            birth.project,
            birth.session_key,
            birth.parent.as_ref().map(Uuid::as_bytes),
            birth.delegated,
            birth.input,
            change.at,
        ])?;
    connection
        .prepare_cached("INSERT INTO heads (run_id, seq) VALUES (?1, ?2)")?
        .execute(params![change.run.as_bytes(), change.next])?;
    write_events(connection, change)?;
    tell(connection, change)?;
    connection
        .prepare_cached("INSERT INTO queue (run_id) VALUES (?1)")?
        .execute([change.run.as_bytes()])?;
    Ok(CreateOutcome::Created)
}

fn used(connection: &Connection, key: &IdempotencyKey) -> rusqlite::Result<Option<CreateOutcome>> {
    let found = connection
        .prepare_cached(
            "SELECT request_sha256, run_id FROM idempotency_keys WHERE caller = ?1 AND key = ?2",
        )?
        .query_row([&key.caller, &key.key], |row| {
            Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, [u8; 16]>(1)?))
        })
        .optional()?;
    Ok(found.map(|(request, run)| CreateOutcome::before(key, &request, Uuid::from_bytes(run))))
}
