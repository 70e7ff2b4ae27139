//! That a group's results are to be deposited, on SQLite: within the append's transaction.

use rusqlite::Connection;
use uuid::Uuid;

use crate::projection::Moved;

pub(super) fn project(connection: &Connection, run: Uuid, moved: &Moved) -> rusqlite::Result<()> {
    if moved.status == "completed" {
        connection
            .prepare_cached(
                "INSERT INTO deposits (run_id) SELECT id FROM runs
                 WHERE id = ?1 AND group_id IS NOT NULL ON CONFLICT DO NOTHING",
            )?
            .execute([run.as_bytes()])?;
    }
    Ok(())
}
