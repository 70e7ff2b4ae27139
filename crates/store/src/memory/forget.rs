//! Forgetting: the row, what it was found by, and what it had taken the place of are gone. Copies
//! stay, and point to nothing.

use chancery_domain::id::MemoryId;
use chancery_domain::memory::MemoryKind;
use jiff::Timestamp;

use super::row::{self, MemoryRow};
use super::session::Session;
use super::write::unindex;
use crate::StoreError;
use crate::sql::{Columns, Param};

/// Nobody corrects one thing more often than this.
const CORRECTIONS_MAX: usize = 10_000;

/// Answers whether it was still there.
pub(super) async fn forget(
    session: &impl Session,
    partition: u32,
    id: MemoryId,
) -> Result<bool, StoreError> {
    session.lock(partition).await?;
    session.admit(&[partition]).await?;
    // Read again under the lock: another may have been faster.
    let mut next: Vec<MemoryRow> = row::by_id(session, id).await?.into_iter().collect();
    let mut gone = 0;
    while let Some(row) = next.pop() {
        next.extend(row::superseded_by(session, row.id).await?);
        if row.superseded_by.is_none() {
            unindex(session, &row).await?;
        }
        remove(session, &row).await?;
        gone += 1;
        if gone > CORRECTIONS_MAX {
            return Err(StoreError::Unreadable("corrections that do not end".to_owned()));
        }
    }
    Ok(gone > 0)
}

async fn remove(session: &impl Session, row: &MemoryRow) -> Result<(), StoreError> {
    for sql in [
        "DELETE FROM memory_sources WHERE doc = $1",
        "UPDATE memory_sources SET original = NULL WHERE original = $1",
        "DELETE FROM memories WHERE doc = $1",
    ] {
        session.execute(sql, vec![Param::Int(row.doc)]).await?;
    }
    let sql = "UPDATE memories SET near = NULL WHERE near = $1";
    session.execute(sql, vec![Param::Uuid(row.id.0)]).await?;
    Ok(())
}

/// Those of a kind that were made before a time, the oldest first.
pub(super) async fn outdated(
    session: &impl Session,
    org: &str,
    kind: MemoryKind,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<(u32, MemoryId)>, StoreError> {
    let sql = "SELECT m.partition_id, m.id FROM memories m JOIN memory_partitions p ON p.id = m.partition_id
        WHERE p.org_id = $1 AND p.kind = $2 AND m.made_at < $3 AND m.superseded_by IS NULL
        ORDER BY m.id LIMIT $4";
    let params = vec![
        Param::Text(org.to_owned()),
        Param::Text(kind.as_str().to_owned()),
        Param::Int(before.as_microsecond()),
        Param::Int(i64::from(limit)),
    ];
    let decode = |row: &dyn Columns| {
        let partition =
            u32::try_from(row.int(0)?).map_err(|it| StoreError::Unreadable(it.to_string()));
        Ok((partition?, MemoryId(row.uuid(1)?)))
    };
    session.rows(sql, params, decode).await
}
