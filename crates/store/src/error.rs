//! What can go wrong with a store.

use std::path::PathBuf;

/// The store could not do what was asked. Nothing of it was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The disk is full, a file is damaged, a statement is refused.
    #[error("the store failed: {0}")]
    Failed(String),
    #[error("the store failed: the disk is full")]
    DiskFull,
    /// The database cannot be reached, and may be again.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// What is stored cannot be read by this version.
    #[error("the store holds something that cannot be read: {0}")]
    Unreadable(String),
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same may work later, without anyone changing what is asked for.
    pub fn may_pass(&self) -> bool {
        matches!(self, StoreError::DiskFull | StoreError::Unreachable(_))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "another server uses the data directory `{}`: stop it, choose another directory with `--data`, or share a PostgreSQL with `--database`",
        .0.display()
    )]
    InUse(PathBuf),
    #[error("the data directory `{}` cannot be used: {detail}", .dir.display())]
    Directory { dir: PathBuf, detail: String },
    #[error("the database URL is not usable: {0}")]
    Url(String),
    #[error("PostgreSQL {found} is too old: 13 or newer is needed")]
    TooOld { found: String },
    #[error(
        "durable commits are off: `{setting}` is `{found}` where `{wanted}` is needed, and a server that loses what it has answered for does not start"
    )]
    NotDurable { setting: &'static str, found: String, wanted: &'static str },
    #[error("migration {number} `{name}` is not the one that this database was made with")]
    Checksum { number: i64, name: String },
    #[error(
        "the database is of a newer version: it has migration {0}, which this server does not know"
    )]
    Newer(i64),
    #[error(
        "the database is of an older version: it has no migration {0}; a server of this version brings it up to date when it starts"
    )]
    Older(i64),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => StoreError::DiskFull,
            _ => StoreError::Failed(error.to_string()),
        }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> StoreError {
        if error.code() == Some(&tokio_postgres::error::SqlState::DISK_FULL) {
            return StoreError::DiskFull;
        }
        use std::error::Error as _;
        let said = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        if is_outage(&error) { StoreError::Unreachable(said) } else { StoreError::Failed(said) }
    }
}

impl From<deadpool_postgres::PoolError> for StoreError {
    fn from(error: deadpool_postgres::PoolError) -> StoreError {
        match error {
            deadpool_postgres::PoolError::Backend(error) => error.into(),
            other => StoreError::Unreachable(other.to_string()),
        }
    }
}

/// Whether the same statement may work on a new connection: the connection is gone, the server
/// is stopping or starting (class 57P), out of connections (53300), or chose us to break a
/// deadlock (40P01) or a serialisation failure (40001), did not hear of us in the middle of a
/// transaction for too long (25P03), or is a standby, to which somebody's road led us (25006).
pub(crate) fn is_outage(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        None => error.is_closed() || error.as_db_error().is_none(),
        Some(code) => {
            let code = code.code();
            code.starts_with("57P")
                || code.starts_with("08")
                || matches!(code, "53300" | "40P01" | "40001" | "25P03" | "25006")
        }
    }
}
