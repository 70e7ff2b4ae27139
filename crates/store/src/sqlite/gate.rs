//! What people are asked, on SQLite: within the append's transaction.

use rusqlite::{Connection, params};

use crate::projection::Prepared;

pub(super) fn project(connection: &Connection, change: &Prepared) -> rusqlite::Result<()> {
    let (run, at, gate) = (change.run.as_bytes(), change.at, &change.gate);
    if gate.is_empty() {
        return Ok(());
    }
    for it in &gate.asked {
        connection
            .prepare_cached(
                "INSERT INTO permissions (id, run_id, call_id, user_id, agent_id, tool, status,
                   ruling, risk, asked_at, expires_at, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                it.id.as_bytes(),
                run,
                it.call,
                it.user,
                it.agent,
                it.tool,
                it.ruling,
                it.risk,
                it.asked_at,
                it.expires_at,
                it.body
            ])?;
    }
    for it in &gate.decided {
        connection
            .prepare_cached(
                "UPDATE permissions SET status = ?2, decided_at = ?3, decided_by = ?4, comment = ?5,
                   decided_arguments = ?6 WHERE id = ?1",
            )?
            .execute(params![it.id.as_bytes(), it.status, at, it.by, it.comment, it.arguments])?;
    }
    for it in &gate.prolonged {
        connection
            .prepare_cached(
                "UPDATE permissions SET escalated_at = coalesce(?2, escalated_at), expires_at = ?3
                 WHERE id = ?1",
            )?
            .execute(params![it.id.as_bytes(), it.escalated.then_some(at), it.expires_at])?;
    }
    for it in &gate.made {
        connection
            .prepare_cached(
                "INSERT INTO standing_rules (id, user_id, agent_id, run_id, scope, tool, signature,
                   permission_id, made_by, made_at, expires_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?
            .execute(params![
                it.id.as_bytes(),
                it.user,
                it.agent,
                run,
                it.scope,
                it.tool,
                it.signature,
                it.permission.as_bytes(),
                it.by,
                at,
                it.expires_at
            ])?;
    }
    if gate.cancelled {
        connection
            .prepare_cached(
                "UPDATE permissions SET status = 'cancelled', decided_at = ?2
                 WHERE run_id = ?1 AND status = 'pending'",
            )?
            .execute(params![run, at])?;
    }
    Ok(())
}
