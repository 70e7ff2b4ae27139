//! A copy of the whole record, as text: taken of one moment while servers go on, and put back into
//! an empty store of either kind.
//!
//! Lines of JSON: a head, then for each table its name with its columns and a line for each row,
//! and at the end how many rows there are and the SHA-256 of all lines before. A copy that was
//! cut short or changed is not put back.

#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod postgres;
mod sheet;
mod sqlite;

use std::io::{BufRead, Write};

use crate::{Location, OpenError, StoreError};

use self::sheet::{Reader, Writer};

/// All that is kept.
const TABLES: &[&str] = &[
    "events",
    "heads",
    "runs",
    "queue",
    "timers",
    "idempotency_keys",
    "tokens",
    "vouched",
    "outbox",
    "audit",
    "audit_head",
    "permissions",
    "standing_rules",
    "org_versions",
    "deliveries",
    "orphans",
    "memory_partitions",
    "memories",
    "memory_term",
    "memory_sources",
    "deposits",
    "rates",
    "mails",
    "mail_rejections",
    "contracts",
    "contract_steps",
    "mail_runs",
    "raises",
    "memory_spaces",
    "memory_vectors",
];

/// Who is at work, who is signed in or on the way, and whom a link would let in: of that moment
/// alone.
#[cfg(test)]
const PASSING: &[&str] = &["workers", "visits", "invitations", "departures"];

/// Whether anybody has used a store.
const TRACES: &[&str] = &["events", "audit", "tokens", "org_versions", "memories", "mails"];

/// What is no longer so when a copy is put back: whoever drove a run then does not now.
const FORGET: &str = "UPDATE queue SET owner = NULL";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copied {
    pub tables: usize,
    pub rows: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("there is no store in `{0}`")]
    Absent(String),
    #[error("the copy cannot be written: {0}")]
    Write(std::io::Error),
    #[error("the copy cannot be read: {0}")]
    Read(std::io::Error),
    #[error("line {line} is not of a copy of ours: {detail}")]
    Line { line: u64, detail: String },
    #[error("the copy ends before its end: it was cut short")]
    Short,
    #[error("the copy is not what was written: its digest differs")]
    Changed,
    #[error(
        "the copy is of migration {found} and this version has {ours}: put it back with the version that made it, and start this one on it then"
    )]
    Version { found: i64, ours: i64 },
    #[error("the store is not empty: a copy is put back into a new one")]
    NotEmpty,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Writes a copy. Servers may be at work on the store.
pub async fn back_up<W: Write + Send + 'static>(
    location: &Location,
    into: W,
) -> Result<(Copied, W), ArchiveError> {
    let writer = Writer::new(into, latest())?;
    match location {
        Location::Sqlite(dir) => {
            let dir = dir.clone();
            off(move || sqlite::back_up(&dir, writer)).await
        }
        Location::Postgres(url) => postgres::back_up(url, writer).await,
    }
}

/// Puts a copy back, all of it or nothing.
pub async fn restore<R: BufRead + Send + 'static>(
    location: &Location,
    from: R,
) -> Result<Copied, ArchiveError> {
    let reader = Reader::new(from, latest())?;
    match location {
        Location::Sqlite(dir) => {
            let dir = dir.clone();
            off(move || sqlite::restore(&dir, reader)).await
        }
        Location::Postgres(url) => postgres::restore(url, reader).await,
    }
}

async fn off<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
) -> Result<T, ArchiveError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(StoreError::Failed(error.to_string()).into()),
    }
}

fn latest() -> i64 {
    crate::migrate::ALL.last().map_or(0, |it| it.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_in_a_copy_but_those_of_a_moment() {
        let made = |text: fn(&crate::migrate::Migration) -> &'static str| {
            let lines = crate::migrate::ALL.iter().flat_map(move |it| text(it).lines());
            let names = lines.filter_map(|it| it.strip_prefix("CREATE TABLE "));
            let mut names: Vec<&str> = names.filter_map(|it| it.split(' ').next()).collect();
            names.sort_unstable();
            names
        };
        let mut copied = [TABLES, PASSING].concat();
        copied.sort_unstable();
        assert_eq!(made(|it| it.sqlite), copied);
        assert_eq!(made(|it| it.postgres), copied);
    }
}
