//! Memories as they are kept, and pages of them.

use chancery_domain::event::Actor;
use chancery_domain::id::{MemoryId, RunId, UserId};
use chancery_domain::memory::Partition;
use jiff::Timestamp;
use serde_json::Value;

use super::reach::Reach;
use super::session::Session;
use super::{marks, padded};
use crate::StoreError;
use crate::log::timestamp;
use crate::sql::{Columns, Param};

/// A memory as its row says, without whose it is.
#[derive(Debug, Clone)]
pub(super) struct MemoryRow {
    pub doc: i64,
    pub id: MemoryId,
    pub partition_id: u32,
    pub content: String,
    pub metadata: Value,
    pub run: Option<RunId>,
    pub seq: Option<i64>,
    pub at: Timestamp,
    pub made_at: Timestamp,
    pub made_by: Actor,
    pub owner: UserId,
    pub length: i64,
    pub analyser: i64,
    pub near: Option<MemoryId>,
    pub superseded_by: Option<MemoryId>,
}

/// A memory, with whose it is and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    pub id: MemoryId,
    pub partition: Partition,
    pub content: String,
    pub metadata: Value,
    /// The run that it was first written in, and its place among what that run wrote there.
    pub run: Option<RunId>,
    pub seq: Option<i64>,
    /// The day that it is about.
    pub at: Timestamp,
    pub made_at: Timestamp,
    pub made_by: Actor,
    /// On whose behalf it was written.
    pub owner: UserId,
    /// An earlier one that says nearly the same.
    pub near: Option<MemoryId>,
    pub superseded_by: Option<MemoryId>,
    /// Every run that it came from, the first first.
    pub sources: Vec<Source>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub run: RunId,
    /// `call`, `group_run` or `group_run_output`.
    pub kind: String,
    /// The record that it is a copy of.
    pub original: Option<MemoryId>,
    pub at: Timestamp,
}

const COLUMNS: &str = "doc, id, partition_id, content, metadata, run_id, seq, at, made_at, made_by, \
                       owner, length, analyser, near, superseded_by";

fn memory_row(row: &dyn Columns) -> Result<MemoryRow, StoreError> {
    let unreadable = |it: &dyn std::fmt::Display| StoreError::Unreadable(format!("a memory: {it}"));
    Ok(MemoryRow {
        doc: row.int(0)?,
        id: MemoryId(row.uuid(1)?),
        partition_id: u32::try_from(row.int(2)?).map_err(|it| unreadable(&it))?,
        content: row.text(3)?,
        metadata: serde_json::from_str(&row.text(4)?).map_err(|it| unreadable(&it))?,
        run: row.opt_uuid(5)?.map(RunId),
        seq: row.opt_int(6)?,
        at: timestamp(row.int(7)?)?,
        made_at: timestamp(row.int(8)?)?,
        made_by: serde_json::from_str(&row.text(9)?).map_err(|it| unreadable(&it))?,
        owner: UserId(row.text(10)?),
        length: row.int(11)?,
        analyser: row.int(12)?,
        near: row.opt_uuid(13)?.map(MemoryId),
        superseded_by: row.opt_uuid(14)?.map(MemoryId),
    })
}

pub(super) fn actor(by: &Actor) -> Result<String, StoreError> {
    serde_json::to_string(by).map_err(|it| StoreError::Failed(it.to_string()))
}

pub(super) async fn by_doc(
    session: &impl Session,
    doc: Option<i64>,
) -> Result<Option<MemoryRow>, StoreError> {
    match doc {
        None => Ok(None),
        Some(doc) => Ok(by_docs(session, &[doc]).await?.into_iter().next()),
    }
}

pub(super) async fn by_docs(
    session: &impl Session,
    docs: &[i64],
) -> Result<Vec<MemoryRow>, StoreError> {
    if docs.is_empty() {
        return Ok(Vec::new());
    }
    let docs = padded(docs);
    let places = marks(1, docs.len());
    let sql = format!("SELECT {COLUMNS} FROM memories WHERE doc IN ({places}) ORDER BY doc");
    session.rows(&sql, docs.into_iter().map(Param::Int).collect(), memory_row).await
}

pub(super) async fn by_id(
    session: &impl Session,
    id: MemoryId,
) -> Result<Option<MemoryRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM memories WHERE id = $1");
    Ok(session.rows(&sql, vec![Param::Uuid(id.0)], memory_row).await?.into_iter().next())
}

/// Those that a memory took the place of, one after the other.
pub(super) async fn superseded_by(
    session: &impl Session,
    id: MemoryId,
) -> Result<Vec<MemoryRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM memories WHERE superseded_by = $1");
    session.rows(&sql, vec![Param::Uuid(id.0)], memory_row).await
}

/// The newest first, what was corrected too.
pub(super) async fn page(
    session: &impl Session,
    reach: &Reach,
    before: Option<MemoryId>,
    limit: usize,
) -> Result<Vec<MemoryRow>, StoreError> {
    let before = before.map_or(uuid::Uuid::max(), |it| it.0);
    let limit_param = i64::try_from(limit).unwrap_or(i64::MAX);
    let each = reach
        .partitions()
        .map(|it| vec![Param::Int(i64::from(it.id)), Param::Uuid(before), Param::Int(limit_param)]);
    let sql = "SELECT id, doc FROM memories WHERE partition_id = $1 AND id < $2
        ORDER BY id DESC LIMIT $3";
    let decode = |row: &dyn Columns| Ok((row.uuid(0)?, row.int(1)?));
    let mut found = session.rows_each(sql, each.collect(), decode).await?;
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.truncate(limit);
    let docs: Vec<i64> = found.into_iter().map(|(_, doc)| doc).collect();
    let mut rows = by_docs(session, &docs).await?;
    rows.sort_unstable_by_key(|it| std::cmp::Reverse(it.id));
    rows.dedup_by_key(|it| it.id);
    Ok(rows)
}

/// Rows with whose they are and where they came from. What is not within reach is left out.
pub(super) async fn whole(
    session: &impl Session,
    reach: &Reach,
    rows: Vec<MemoryRow>,
) -> Result<Vec<(i64, Memory)>, StoreError> {
    let docs: Vec<i64> = rows.iter().map(|it| it.doc).collect();
    let mut sources = sources(session, &docs).await?;
    let with = |row: MemoryRow| {
        let partition = reach.partition(row.partition_id)?.clone();
        let own = sources.extract_if(.., |(doc, _)| *doc == row.doc);
        let memory = Memory {
            id: row.id,
            partition,
            content: row.content,
            metadata: row.metadata,
            run: row.run,
            seq: row.seq,
            at: row.at,
            made_at: row.made_at,
            made_by: row.made_by,
            owner: row.owner,
            near: row.near,
            superseded_by: row.superseded_by,
            sources: own.map(|(_, source)| source).collect(),
        };
        Some((row.doc, memory))
    };
    Ok(rows.into_iter().filter_map(with).collect())
}

async fn sources(session: &impl Session, docs: &[i64]) -> Result<Vec<(i64, Source)>, StoreError> {
    if docs.is_empty() {
        return Ok(Vec::new());
    }
    let docs = padded(docs);
    let sql = format!(
        "SELECT s.doc, s.run_id, s.source, m.id, s.at FROM memory_sources s
         LEFT JOIN memories m ON m.doc = s.original
         WHERE s.doc IN ({}) ORDER BY s.at, s.key",
        marks(1, docs.len())
    );
    let decode = |row: &dyn Columns| {
        let source = Source {
            run: RunId(row.uuid(1)?),
            kind: row.text(2)?,
            original: row.opt_uuid(3)?.map(MemoryId),
            at: timestamp(row.int(4)?)?,
        };
        Ok((row.int(0)?, source))
    };
    session.rows(&sql, docs.into_iter().map(Param::Int).collect(), decode).await
}
