//! One way to work on both databases within a transaction: what is remembered takes several
//! statements, and they are written once.
//!
//! On SQLite nothing is ever waited for, so that the same `async` functions run through at once on
//! the writer's thread. On PostgreSQL a session is let in for one organisation and one user, and
//! row-level security holds it to that.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use chancery_domain::memory::rank::Posting;
use deadpool_postgres::Transaction;
use futures_util::future::try_join_all;
use futures_util::{FutureExt as _, StreamExt as _};
use rusqlite::Connection;
use tokio_postgres::types::ToSql;

use crate::StoreError;
use crate::audit::Draft;
use crate::postgres::as_params;
use crate::postgres::audit::extend;
use crate::sql::{Columns, Param, rows};
use crate::sqlite::Chain;

pub(crate) type Decode<T> = fn(&dyn Columns) -> Result<T, StoreError>;

/// In the place of a user, for the system's own work. No user is called so: names have no control
/// characters.
pub(crate) const EVERYONE: &str = "\u{1}";

/// For whom a session is.
#[derive(Debug, Clone)]
pub(crate) struct Wall {
    pub org: String,
    /// Whose own memories it reaches.
    pub user: String,
}

impl Wall {
    /// For the system's own work on what has no wall of its own.
    pub(crate) fn system() -> Wall {
        Wall { org: String::new(), user: EVERYONE.to_owned() }
    }
}

/// One term of one memory, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub key: Vec<u8>,
    pub count: u32,
    pub length: u32,
}

pub(crate) trait Session {
    async fn rows<T>(
        &self,
        sql: &str,
        params: Vec<Param>,
        decode: Decode<T>,
    ) -> Result<Vec<T>, StoreError>;

    /// The same question, once for each set of parameters.
    async fn rows_each<T>(
        &self,
        sql: &str,
        each: Vec<Vec<Param>>,
        decode: Decode<T>,
    ) -> Result<Vec<T>, StoreError>;

    async fn execute(&self, sql: &str, params: Vec<Param>) -> Result<u64, StoreError>;

    /// Nobody else writes to the partition until this session ends.
    async fn lock(&self, partition: u32) -> Result<(), StoreError>;

    /// Lets the session in to the terms of these partitions, and of no others.
    async fn admit(&self, partitions: &[u32]) -> Result<(), StoreError>;

    /// What is kept under each key.
    async fn postings(&self, keys: &[Vec<u8>]) -> Result<Vec<Vec<Posting>>, StoreError>;

    /// Shows the vectors of a partition in a space that have so many bytes, one after the other.
    async fn vectors(
        &self,
        partition: u32,
        space: i64,
        length: usize,
        each: &mut (dyn FnMut(i64, &[u8]) + Send),
    ) -> Result<(), StoreError>;

    async fn index(&self, lines: &[(i64, Line)]) -> Result<(), StoreError>;

    /// Answers how many were there.
    async fn unindex(&self, doc: i64, keys: &[Vec<u8>]) -> Result<u64, StoreError>;

    /// The last thing that a session does: whoever extends the audit locks its head.
    async fn audit(&self, drafts: &[Draft]) -> Result<(), StoreError>;
}

/// SQLite, within the writer's transaction or on a reader's connection.
pub(crate) struct Local<'c> {
    pub connection: &'c Connection,
    pub chain: Arc<Chain>,
}

/// PostgreSQL, within a transaction.
pub(crate) struct Remote<'t>(pub &'t Transaction<'t>);

/// Runs work to its end that never waits.
pub(crate) fn at_once<T>(work: impl Future<Output = Result<T, StoreError>>) -> rusqlite::Result<T> {
    let waited = || StoreError::Failed("a session on SQLite waited".to_owned());
    work.now_or_never().unwrap_or_else(|| Err(waited())).map_err(|error| match error {
        // What may pass is to be known as such by whoever asked.
        StoreError::DiskFull => rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(13), None),
        other => rusqlite::Error::ToSqlConversionFailure(Box::new(other)),
    })
}

impl Session for Local<'_> {
    async fn rows<T>(
        &self,
        sql: &str,
        params: Vec<Param>,
        decode: Decode<T>,
    ) -> Result<Vec<T>, StoreError> {
        rows(self.connection, sql, &params, decode)?.into_iter().collect()
    }

    async fn rows_each<T>(
        &self,
        sql: &str,
        each: Vec<Vec<Param>>,
        decode: Decode<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        for params in each {
            for row in rows(self.connection, sql, &params, decode)? {
                found.push(row?);
            }
        }
        Ok(found)
    }

    async fn execute(&self, sql: &str, params: Vec<Param>) -> Result<u64, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.execute(rusqlite::params_from_iter(&params))? as u64)
    }

    async fn lock(&self, _: u32) -> Result<(), StoreError> {
        // There is one writer.
        Ok(())
    }

    async fn admit(&self, _: &[u32]) -> Result<(), StoreError> {
        Ok(())
    }

    async fn postings(&self, keys: &[Vec<u8>]) -> Result<Vec<Vec<Posting>>, StoreError> {
        let sql = "SELECT doc, tf, dl FROM memory_term WHERE k = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut lists = Vec::with_capacity(keys.len());
        for key in keys {
            let mut list = Vec::new();
            let mut rows = statement.query([key])?;
            while let Some(row) = rows.next()? {
                list.push(Posting { doc: row.get(0)?, count: row.get(1)?, length: row.get(2)? });
            }
            lists.push(list);
        }
        Ok(lists)
    }

    async fn vectors(
        &self,
        partition: u32,
        space: i64,
        length: usize,
        each: &mut (dyn FnMut(i64, &[u8]) + Send),
    ) -> Result<(), StoreError> {
        let sql = "SELECT doc, v FROM memory_vectors WHERE partition_id = ?1 AND space = ?2
            AND length(v) = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query((partition, space, length as i64))?;
        while let Some(row) = rows.next()? {
            each(row.get(0)?, row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?);
        }
        Ok(())
    }

    async fn index(&self, lines: &[(i64, Line)]) -> Result<(), StoreError> {
        let sql = "INSERT INTO memory_term (k, doc, tf, dl) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = self.connection.prepare_cached(sql)?;
        for (doc, line) in lines {
            insert.execute((&line.key, doc, line.count, line.length))?;
        }
        Ok(())
    }

    async fn unindex(&self, doc: i64, keys: &[Vec<u8>]) -> Result<u64, StoreError> {
        let sql = "DELETE FROM memory_term WHERE k = ?1 AND doc = ?2";
        let mut delete = self.connection.prepare_cached(sql)?;
        let mut gone = 0;
        for key in keys {
            gone += delete.execute((key, doc))? as u64;
        }
        Ok(gone)
    }

    async fn audit(&self, drafts: &[Draft]) -> Result<(), StoreError> {
        Ok(self.chain.write(self.connection, drafts)?)
    }
}

impl Remote<'_> {
    /// Until the transaction ends, and no longer.
    pub(crate) async fn let_in(&self, wall: &Wall) -> Result<(), StoreError> {
        let sql =
            "SELECT set_config('chancery.org', $1, true), set_config('chancery.user', $2, true)";
        let statement = self.0.prepare_cached(sql).await?;
        self.0.query(&statement, &[&wall.org, &wall.user]).await?;
        Ok(())
    }
}

impl Session for Remote<'_> {
    async fn rows<T>(
        &self,
        sql: &str,
        params: Vec<Param>,
        decode: Decode<T>,
    ) -> Result<Vec<T>, StoreError> {
        let statement = self.0.prepare_cached(sql).await?;
        let found = self.0.query(&statement, &as_params(&params)).await?;
        found.iter().map(|row| decode(row)).collect()
    }

    async fn rows_each<T>(
        &self,
        sql: &str,
        each: Vec<Vec<Param>>,
        decode: Decode<T>,
    ) -> Result<Vec<T>, StoreError> {
        let statement = self.0.prepare_cached(sql).await?;
        let asked: Vec<Vec<&(dyn ToSql + Sync)>> = each.iter().map(|it| as_params(it)).collect();
        // Sent together, answered one after the other.
        let answers = try_join_all(asked.iter().map(|it| self.0.query(&statement, it))).await?;
        answers.iter().flatten().map(|row| decode(row)).collect()
    }

    async fn execute(&self, sql: &str, params: Vec<Param>) -> Result<u64, StoreError> {
        let statement = self.0.prepare_cached(sql).await?;
        Ok(self.0.execute(&statement, &as_params(&params)).await?)
    }

    async fn lock(&self, partition: u32) -> Result<(), StoreError> {
        let sql = "SELECT id FROM memory_partitions WHERE id = $1 FOR UPDATE";
        let statement = self.0.prepare_cached(sql).await?;
        self.0.query(&statement, &[&i64::from(partition)]).await?;
        Ok(())
    }

    async fn admit(&self, partitions: &[u32]) -> Result<(), StoreError> {
        let ids: Vec<String> = partitions.iter().map(|it| format!("{it:08x}")).collect();
        let sql = "SELECT set_config('chancery.reach', $1, true)";
        let statement = self.0.prepare_cached(sql).await?;
        self.0.query(&statement, &[&ids.join(",")]).await?;
        Ok(())
    }

    async fn postings(&self, keys: &[Vec<u8>]) -> Result<Vec<Vec<Posting>>, StoreError> {
        // One small scan for each key, whatever the planner thinks of their number.
        let sql = "SELECT asked.place, found.docs, found.counts
            FROM unnest($1::bytea[]) WITH ORDINALITY AS asked(k, place),
            LATERAL (SELECT array_agg(doc) AS docs, array_agg((tf::bigint << 32) | dl) AS counts
              FROM memory_term WHERE k = asked.k) AS found
            WHERE found.docs IS NOT NULL";
        let statement = self.0.prepare_cached(sql).await?;
        let mut lists = vec![Vec::new(); keys.len()];
        for row in self.0.query(&statement, &[&keys]).await? {
            let place: i64 = row.try_get(0)?;
            let (docs, counts): (Vec<i64>, Vec<i64>) = (row.try_get(1)?, row.try_get(2)?);
            let list = docs.into_iter().zip(counts).map(|(doc, packed)| Posting {
                doc,
                count: (packed >> 32) as u32,
                length: packed as u32,
            });
            if let Some(place) = lists.get_mut(place as usize - 1) {
                *place = list.collect();
            }
        }
        Ok(lists)
    }

    async fn vectors(
        &self,
        partition: u32,
        space: i64,
        length: usize,
        each: &mut (dyn FnMut(i64, &[u8]) + Send),
    ) -> Result<(), StoreError> {
        // Many in a row of the answer, for a row costs more than a vector.
        let sql = "SELECT array_agg(doc ORDER BY doc), string_agg(v, '' ORDER BY doc)
            FROM memory_vectors WHERE partition_id = $1 AND space = $2 AND length(v) = $3
            GROUP BY doc >> 12";
        let statement = self.0.prepare_cached(sql).await?;
        let bytes = i32::try_from(length).unwrap_or(i32::MAX);
        let params: [&(dyn ToSql + Sync); 3] = [&i64::from(partition), &space, &bytes];
        let mut rows = pin!(self.0.query_raw(&statement, params).await?);
        while let Some(row) = rows.next().await {
            let row = row?;
            let (docs, all): (Vec<i64>, &[u8]) = (row.try_get(0)?, row.try_get(1)?);
            for (doc, vector) in docs.into_iter().zip(all.chunks_exact(length.max(1))) {
                each(doc, vector);
            }
        }
        Ok(())
    }

    async fn index(&self, lines: &[(i64, Line)]) -> Result<(), StoreError> {
        let sql = "INSERT INTO memory_term (k, doc, tf, dl)
            SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::int[], $4::int[])";
        let statement = self.0.prepare_cached(sql).await?;
        let keys: Vec<&[u8]> = lines.iter().map(|(_, it)| &*it.key).collect();
        let docs: Vec<i64> = lines.iter().map(|(doc, _)| *doc).collect();
        let counts: Vec<i32> = lines.iter().map(|(_, it)| it.count as i32).collect();
        let lengths: Vec<i32> = lines.iter().map(|(_, it)| it.length as i32).collect();
        self.0.execute(&statement, &[&keys, &docs, &counts, &lengths]).await?;
        Ok(())
    }

    async fn unindex(&self, doc: i64, keys: &[Vec<u8>]) -> Result<u64, StoreError> {
        let sql = "DELETE FROM memory_term WHERE k = ANY($1) AND doc = $2";
        let statement = self.0.prepare_cached(sql).await?;
        Ok(self.0.execute(&statement, &[&keys, &doc]).await?)
    }

    async fn audit(&self, drafts: &[Draft]) -> Result<(), StoreError> {
        extend(self.0, drafts).await
    }
}
