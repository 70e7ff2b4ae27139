//! The audit's chain on SQLite: the one writer knows its head, and reads it again only after a
//! group that failed.

use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, params};

use super::Sqlite;
use crate::StoreError;
use crate::audit::{Draft, Head, Row};
use crate::sql::Param;

/// Where the chain ends as the writer has written it. `None`: look.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    head: Mutex<Option<Head>>,
}

impl Sqlite {
    pub(crate) async fn audit(&self, drafts: Vec<Draft>) -> Result<(), StoreError> {
        let chain = self.chain.clone();
        self.write(move |connection| chain.write(connection, &drafts)).await
    }

    pub(crate) async fn execute_audited(
        &self,
        sql: &'static str,
        params: Vec<Param>,
        drafts: Vec<Draft>,
    ) -> Result<u64, StoreError> {
        let chain = self.chain.clone();
        self.write(move |connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let moved = statement.execute(rusqlite::params_from_iter(&params))?;
            if moved > 0 {
                chain.write(connection, &drafts)?;
            }
            Ok(moved as u64)
        })
        .await
    }
}

impl Chain {
    /// What was written since the last commit is undone.
    pub(crate) fn forget(&self) {
        *self.head.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Puts entries at the end, but for those that are there already.
    pub(crate) fn write(&self, connection: &Connection, drafts: &[Draft]) -> rusqlite::Result<()> {
        if drafts.is_empty() {
            return Ok(());
        }
        let mut known = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let mut head = match *known {
            Some(head) => head,
            None => read(connection)?,
        };
        for draft in drafts {
            let there = connection
                .prepare_cached("SELECT 1 FROM audit WHERE id = ?1")?
                .exists([draft.id().as_bytes()])?;
            if !there {
                let row = head
                    .extend(draft)
                    .map_err(|it| rusqlite::Error::ToSqlConversionFailure(Box::new(it)))?;
                insert(connection, &row)?;
            }
        }
        connection
            .prepare_cached("UPDATE audit_head SET seq = ?1, hash = ?2 WHERE one = 1")?
            .execute(params![head.seq as i64, head.hash])?;
        *known = Some(head);
        Ok(())
    }
}

fn read(connection: &Connection) -> rusqlite::Result<Head> {
    connection
        .prepare_cached("SELECT seq, hash FROM audit_head WHERE one = 1")?
        .query_row([], |row| Ok(Head { seq: row.get::<_, i64>(0)? as u64, hash: row.get(1)? }))
}

fn insert(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
    let copies = &row.copies;
    connection
        .prepare_cached(
            "INSERT INTO audit (seq, id, at, kind, agent, tool, ruling, user_id, run_id, entry, hash)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            row.seq,
            copies.id.as_bytes(),
            copies.at,
            copies.kind,
            copies.agent,
            copies.tool,
            copies.ruling,
            copies.user,
            copies.run.as_ref().map(uuid::Uuid::as_bytes),
            row.text,
            row.hash,
        ])?;
    Ok(())
}
