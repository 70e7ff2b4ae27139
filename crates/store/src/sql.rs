//! One way to ask both databases: parameters that both take and rows that both give.
//!
//! Statements use `$1`, `$2`, … in the order of their first appearance, which both read alike.

use chancery_domain::audit::Entry;
use jiff::Timestamp;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut};
use uuid::Uuid;

use crate::{Database, Store, StoreError, audit};

#[derive(Debug, Clone)]
pub(crate) enum Param {
    Uuid(Uuid),
    Text(String),
    Int(i64),
    Bytes(Vec<u8>),
    Null,
}

/// A row of either database.
pub(crate) trait Columns {
    fn uuid(&self, at: usize) -> Result<Uuid, StoreError>;
    fn opt_uuid(&self, at: usize) -> Result<Option<Uuid>, StoreError>;
    fn text(&self, at: usize) -> Result<String, StoreError>;
    fn opt_text(&self, at: usize) -> Result<Option<String>, StoreError>;
    fn int(&self, at: usize) -> Result<i64, StoreError>;
    fn opt_int(&self, at: usize) -> Result<Option<i64>, StoreError>;
    fn opt_hash(&self, at: usize) -> Result<Option<[u8; 32]>, StoreError>;

    fn hash(&self, at: usize) -> Result<[u8; 32], StoreError> {
        self.opt_hash(at)?.ok_or_else(|| unreadable("a hash is missing"))
    }
}

impl Store {
    /// Reads rows.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        sql: impl Into<String>,
        params: Vec<Param>,
        decode: fn(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let sql = sql.into();
        #[cfg(feature = "faults")]
        self.passage().await?;
        match &self.inner.database {
            Database::Sqlite(sqlite) => {
                let rows = sqlite.read(move |connection| rows(connection, &sql, &params, decode));
                rows.await?.into_iter().collect()
            }
            Database::Postgres(postgres) => {
                let rows = postgres.query(&sql, &params).await?;
                rows.iter().map(|row| decode(row)).collect()
            }
        }
    }

    /// Writes, and answers with the rows that `RETURNING` gives.
    pub(crate) async fn write_rows<T: Send + 'static>(
        &self,
        sql: &'static str,
        params: Vec<Param>,
        decode: fn(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        #[cfg(feature = "faults")]
        self.passage().await?;
        match &self.inner.database {
            Database::Sqlite(sqlite) => {
                let rows = sqlite.write(move |connection| rows(connection, sql, &params, decode));
                rows.await?.into_iter().collect()
            }
            Database::Postgres(postgres) => {
                let rows = postgres.query(sql, &params).await?;
                rows.iter().map(|row| decode(row)).collect()
            }
        }
    }

    /// Writes what is not a run's log: tokens, leases, workers. Answers how many rows moved.
    pub(crate) async fn execute(
        &self,
        sql: &'static str,
        params: Vec<Param>,
    ) -> Result<u64, StoreError> {
        self.execute_with(sql, || params).await
    }

    /// The same with parameters that are made when it is written: whatever held it up is over.
    pub(crate) async fn execute_with(
        &self,
        sql: &'static str,
        params: impl FnOnce() -> Vec<Param> + Send,
    ) -> Result<u64, StoreError> {
        #[cfg(feature = "faults")]
        self.passage().await?;
        let params = params();
        #[cfg(feature = "faults")]
        let touches = crate::fault::Touch::of(sql, &params);
        let moved = match &self.inner.database {
            Database::Sqlite(sqlite) => {
                sqlite
                    .write(move |connection| {
                        let mut statement = connection.prepare_cached(sql)?;
                        let moved = statement.execute(rusqlite::params_from_iter(&params))?;
                        Ok(moved as u64)
                    })
                    .await
            }
            Database::Postgres(postgres) => postgres.execute(sql, &params).await,
        };
        #[cfg(feature = "faults")]
        {
            touches.into_iter().for_each(|it| self.touched(it));
            self.passage().await?;
        }
        moved
    }

    /// Writes, and if any row moved by it, the audit's entries about it in the same transaction.
    pub(crate) async fn execute_audited(
        &self,
        sql: &'static str,
        params: Vec<Param>,
        entries: Vec<Entry>,
        at: Timestamp,
    ) -> Result<u64, StoreError> {
        let drafts = audit::drafts(entries, at)?;
        match &self.inner.database {
            Database::Sqlite(sqlite) => sqlite.execute_audited(sql, params, drafts).await,
            Database::Postgres(postgres) => postgres.execute_audited(sql, &params, &drafts).await,
        }
    }
}

/// What SQLite answers, row by row; one that cannot be read is an answer too.
pub(crate) fn rows<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    params: &[Param],
    decode: fn(&dyn Columns) -> Result<T, StoreError>,
) -> rusqlite::Result<Vec<Result<T, StoreError>>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(params))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(decode(row));
    }
    Ok(found)
}

impl rusqlite::ToSql for Param {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        Ok(match self {
            Param::Uuid(it) => it.as_bytes().as_slice().into(),
            Param::Text(it) => it.as_str().into(),
            Param::Int(it) => (*it).into(),
            Param::Bytes(it) => it.as_slice().into(),
            Param::Null => rusqlite::types::Null.into(),
        })
    }
}

impl ToSql for Param {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Param::Uuid(it) => it.to_sql_checked(ty, out),
            Param::Text(it) => it.to_sql_checked(ty, out),
            Param::Int(it) => it.to_sql_checked(ty, out),
            Param::Bytes(it) => it.to_sql_checked(ty, out),
            Param::Null => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Each kind checks for itself.
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unreadable(error.to_string())
}

impl Columns for rusqlite::Row<'_> {
    fn uuid(&self, at: usize) -> Result<Uuid, StoreError> {
        self.get::<_, [u8; 16]>(at).map(Uuid::from_bytes).map_err(unreadable)
    }

    fn opt_uuid(&self, at: usize) -> Result<Option<Uuid>, StoreError> {
        let found = self.get::<_, Option<[u8; 16]>>(at).map_err(unreadable)?;
        Ok(found.map(Uuid::from_bytes))
    }

    fn text(&self, at: usize) -> Result<String, StoreError> {
        self.get(at).map_err(unreadable)
    }

    fn opt_text(&self, at: usize) -> Result<Option<String>, StoreError> {
        self.get(at).map_err(unreadable)
    }

    fn int(&self, at: usize) -> Result<i64, StoreError> {
        self.get(at).map_err(unreadable)
    }

    fn opt_int(&self, at: usize) -> Result<Option<i64>, StoreError> {
        self.get(at).map_err(unreadable)
    }

    fn opt_hash(&self, at: usize) -> Result<Option<[u8; 32]>, StoreError> {
        self.get(at).map_err(unreadable)
    }
}

impl Columns for tokio_postgres::Row {
    fn uuid(&self, at: usize) -> Result<Uuid, StoreError> {
        self.try_get(at).map_err(unreadable)
    }

    fn opt_uuid(&self, at: usize) -> Result<Option<Uuid>, StoreError> {
        self.try_get(at).map_err(unreadable)
    }

    fn text(&self, at: usize) -> Result<String, StoreError> {
        self.try_get(at).map_err(unreadable)
    }

    fn opt_text(&self, at: usize) -> Result<Option<String>, StoreError> {
        self.try_get(at).map_err(unreadable)
    }

    fn int(&self, at: usize) -> Result<i64, StoreError> {
        self.try_get(at).map_err(unreadable)
    }

    fn opt_int(&self, at: usize) -> Result<Option<i64>, StoreError> {
        self.try_get(at).map_err(unreadable)
    }

    fn opt_hash(&self, at: usize) -> Result<Option<[u8; 32]>, StoreError> {
        let bytes: Option<&[u8]> = self.try_get(at).map_err(unreadable)?;
        bytes.map(|it| it.try_into().map_err(unreadable)).transpose()
    }
}
