//! Changes of several runs at once, on SQLite: all are checked before any is written, so that a
//! refusal leaves the group's transaction as it was.

use rusqlite::{Connection, OptionalExtension, params};

use super::Sqlite;
use super::append::{append, create, stale};
use crate::StoreError;
use crate::log::{Joint, Verdict};
use crate::projection::Prepared;

impl Sqlite {
    pub(crate) async fn append_jointly(&self, joint: Joint) -> Result<Vec<Verdict>, StoreError> {
        let chain = self.chain.clone();
        self.write(move |connection| {
            let checked = joint.appends.iter().map(|it| check(connection, it));
            let mut verdicts = checked.collect::<rusqlite::Result<Vec<_>>>()?;
            if verdicts.iter().any(|it| *it != Verdict::Current) {
                return Ok(verdicts);
            }
            for (verdict, change) in verdicts.iter_mut().zip(&joint.appends) {
                *verdict = append(connection, change)?;
                chain.write(connection, &change.audit)?;
                #[cfg(feature = "faults")]
                crate::fault::brink();
            }
            for (change, birth) in &joint.births {
                create(connection, change, birth, None)?;
                chain.write(connection, &change.audit)?;
            }
            Ok(verdicts)
        })
        .await
    }
}

/// Whether a change would be appended.
fn check(connection: &Connection, change: &Prepared) -> rusqlite::Result<Verdict> {
    let current = connection
        .prepare_cached(
            "SELECT 1 FROM heads WHERE run_id = ?1 AND seq = ?2 AND (?3 = 0 OR attempt = ?3)",
        )?
        .query_row(params![change.run.as_bytes(), change.expected, change.attempt], |_| Ok(()))
        .optional()?;
    match current {
        Some(()) => Ok(Verdict::Current),
        None => stale(connection, change.run),
    }
}
