//! The audit: what was ruled, decided and changed, one chain of entries for all. An entry is
//! written in the transaction of what it is about, or alone; nothing updates or deletes one, and
//! if somebody does, [`Store::audit_verify`] shows where.

mod chain;
mod export;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod verify;

use chancery_domain::audit::{Entry, Link};
use chancery_domain::id::{AgentId, AuditId, RunId, UserId};
use chancery_domain::policy::Ruling;
use jiff::Timestamp;

pub(crate) use chain::{Draft, Row};
pub use chain::{Hash, Head, hex, unhex};
pub use export::{ExportCheck, ExportError, Exported};
pub use verify::{Bad, Verification, Why};

use crate::projection::storable;
use crate::sql::{Columns, Param};
use crate::{Database, Store, StoreError};

/// An entry as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub seq: u64,
    /// The canonical JSON that is hashed.
    pub text: String,
    /// The hash of the entry before; `None` where that entry is gone.
    pub prev: Option<Hash>,
    pub hash: Hash,
}

/// Which entries; every field that is set narrows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuditFilter {
    pub agent: Option<AgentId>,
    pub tool: Option<String>,
    pub ruling: Option<Ruling>,
    pub kind: Option<String>,
    pub user: Option<UserId>,
    pub run: Option<RunId>,
    /// Written then or later.
    pub since: Option<Timestamp>,
    /// Written before.
    pub until: Option<Timestamp>,
}

impl Kept {
    /// What it says. One that was tampered with may say nothing.
    pub fn link(&self) -> Result<Link, StoreError> {
        serde_json::from_str(&self.text)
            .map_err(|it| StoreError::Unreadable(format!("entry {} of the audit: {it}", self.seq)))
    }
}

/// What may go into the chain.
pub(crate) fn drafts(entries: Vec<Entry>, at: Timestamp) -> Result<Vec<Draft>, StoreError> {
    entries.into_iter().map(|it| Draft::new(at, it)).collect()
}

const SELECT: &str = "SELECT a.seq, a.entry, p.hash, a.hash
    FROM audit a LEFT JOIN audit p ON p.seq = a.seq - 1 WHERE 1 = 1";

impl Store {
    /// Writes entries that belong to no other write. One that is there already, by its id, is
    /// not written again.
    pub async fn audit(&self, entries: Vec<Entry>, at: Timestamp) -> Result<(), StoreError> {
        let drafts = drafts(entries, at)?;
        if drafts.is_empty() {
            return Ok(());
        }
        #[cfg(feature = "faults")]
        self.point().await?;
        match &self.inner.database {
            Database::Sqlite(sqlite) => sqlite.audit(drafts).await?,
            Database::Postgres(postgres) => postgres.audit(drafts).await?,
        }
        #[cfg(feature = "faults")]
        self.point().await?;
        Ok(())
    }

    /// Where the chain ends, and since when.
    pub async fn audit_head(&self) -> Result<(Head, Option<Timestamp>), StoreError> {
        let found = self
            .query(
                "SELECT h.seq, h.hash, a.at FROM audit_head h LEFT JOIN audit a ON a.seq = h.seq",
                vec![],
                |row| {
                    let head = Head { seq: row.int(0)? as u64, hash: row.hash(1)? };
                    Ok((head, row.opt_int(2)?.map(crate::log::timestamp).transpose()?))
                },
            )
            .await?;
        let head = found.into_iter().next();
        head.ok_or_else(|| StoreError::Unreadable("the audit has no head".to_owned()))
    }

    pub async fn audit_entry(&self, id: AuditId) -> Result<Option<Kept>, StoreError> {
        let sql = format!("{SELECT} AND a.id = $1");
        Ok(self.query(sql, vec![Param::Uuid(id.0)], kept).await?.into_iter().next())
    }

    /// The newest first, from before a place in the chain.
    pub async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Kept>, StoreError> {
        let (mut sql, mut params) = narrowed(filter);
        params.push(Param::Int(place(before.unwrap_or(u64::MAX))));
        sql.push_str(&format!(" AND a.seq < ${}", params.len()));
        params.push(Param::Int(i64::from(limit)));
        sql.push_str(&format!(" ORDER BY a.seq DESC LIMIT ${}", params.len()));
        self.query(sql, params, kept).await
    }

    /// The oldest first, from after a place in the chain.
    pub async fn audit_after(
        &self,
        filter: &AuditFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Kept>, StoreError> {
        let (mut sql, mut params) = narrowed(filter);
        params.push(Param::Int(place(after)));
        sql.push_str(&format!(" AND a.seq > ${}", params.len()));
        params.push(Param::Int(i64::from(limit)));
        sql.push_str(&format!(" ORDER BY a.seq LIMIT ${}", params.len()));
        self.query(sql, params, kept).await
    }
}

fn place(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn narrowed(filter: &AuditFilter) -> (String, Vec<Param>) {
    let mut sql = SELECT.to_owned();
    let mut params = Vec::new();
    let mut narrow = |clause: &str, param: Option<Param>| {
        if let Some(param) = param {
            params.push(param);
            sql.push_str(&format!(" AND {clause} ${}", params.len()));
        }
    };
    let text = |it: Option<&str>| it.map(|it| Param::Text(storable(it)));
    narrow("a.agent =", text(filter.agent.as_ref().map(AgentId::as_str)));
    narrow("a.tool =", text(filter.tool.as_deref()));
    narrow("a.ruling =", text(filter.ruling.map(Ruling::as_str)));
    narrow("a.kind =", text(filter.kind.as_deref()));
    narrow("a.user_id =", text(filter.user.as_ref().map(UserId::as_str)));
    narrow("a.run_id =", filter.run.map(|it| Param::Uuid(it.0)));
    narrow("a.at >=", filter.since.map(|it| Param::Int(it.as_microsecond())));
    narrow("a.at <", filter.until.map(|it| Param::Int(it.as_microsecond())));
    (sql, params)
}

fn kept(row: &dyn Columns) -> Result<Kept, StoreError> {
    let seq = row.int(0)? as u64;
    let prev = if seq == 1 { Some(Head::NONE.hash) } else { row.opt_hash(2)? };
    Ok(Kept { seq, text: row.text(1)?, prev, hash: row.hash(3)? })
}
