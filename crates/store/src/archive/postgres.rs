//! A copy of a PostgreSQL store, and back.

use std::io::{BufRead, Write};
use std::pin::pin;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::{SinkExt as _, TryStreamExt as _};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{IsolationLevel, Row, Transaction};
use uuid::Uuid;

use super::sheet::{Next, Reader, Table, Value, Writer, hex};
use super::{ArchiveError, Copied, FORGET, TABLES, TRACES};
use crate::StoreError;
use crate::bell::Bell;
use crate::postgres::Postgres;

/// How much is handed to the database at once.
const CHUNK: usize = 256 << 10;
const NONE: [&(dyn ToSql + Sync); 0] = [];
/// It takes as long as it takes.
const PATIENT: &str =
    "SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL enable_seqscan = on";

pub async fn back_up<W: Write>(
    url: &str,
    mut writer: Writer<W>,
) -> Result<(Copied, W), ArchiveError> {
    let database = Postgres::open(url, Bell::default()).await?;
    let mut client = database.client().await?;
    // One moment for all tables.
    let moment = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await
        .map_err(failed)?;
    moment.batch_execute(PATIENT).await.map_err(failed)?;
    for name in TABLES {
        let statement = moment.prepare(&format!("SELECT * FROM {name}")).await.map_err(failed)?;
        let columns = statement.columns().iter().map(|it| it.name().to_owned()).collect();
        writer.table(&Table { table: (*name).to_owned(), columns })?;
        let mut rows = pin!(moment.query_raw(&statement, NONE).await.map_err(failed)?);
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let values = (0..row.len()).map(|it| value(&row, it));
            writer.row(&values.collect::<Result<Vec<_>, _>>()?)?;
        }
    }
    moment.commit().await.map_err(failed)?;
    database.close();
    writer.end()
}

fn value(row: &Row, at: usize) -> Result<Value, ArchiveError> {
    let of = &row.columns()[at];
    let found = match *of.type_() {
        Type::INT8 => row.try_get::<_, Option<i64>>(at).map(|it| it.map(Value::Int)),
        Type::INT4 => {
            row.try_get::<_, Option<i32>>(at).map(|it| it.map(|it| Value::Int(it.into())))
        }
        Type::TEXT => row.try_get::<_, Option<String>>(at).map(|it| it.map(Value::Text)),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at).map(|it| it.map(Value::Bytes)),
        Type::UUID => row
            .try_get::<_, Option<Uuid>>(at)
            .map(|it| it.map(|it| Value::Bytes(it.as_bytes().to_vec()))),
        ref other => {
            let detail = format!("column `{}` is of type {other}", of.name());
            return Err(StoreError::Unreadable(detail).into());
        }
    };
    Ok(found.map_err(failed)?.unwrap_or(Value::Null))
}

pub async fn restore<R: BufRead>(url: &str, mut reader: Reader<R>) -> Result<Copied, ArchiveError> {
    let database = Postgres::open(url, Bell::default()).await?;
    let mut client = database.client().await?;
    let transaction = client.transaction().await.map_err(failed)?;
    transaction.batch_execute(PATIENT).await.map_err(failed)?;
    for name in TRACES {
        // Nobody begins to use it while we look.
        let lock = format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE");
        transaction.batch_execute(&lock).await.map_err(failed)?;
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {name})");
        let used = transaction.query_one(&sql, &[]).await.map_err(failed)?;
        if used.try_get::<_, bool>(0).map_err(failed)? {
            return Err(ArchiveError::NotEmpty);
        }
    }
    let mut filled: Option<Filling> = None;
    let copied = loop {
        match reader.next()? {
            Next::Table(table) => {
                let next = Filling::new(&transaction, &reader, &table).await?;
                if let Some(before) = filled.replace(next) {
                    before.finish(&transaction).await?;
                }
            }
            Next::Row(values) => match &mut filled {
                None => return Err(reader.wrong(&"a row before the first table")),
                Some(it) => {
                    it.put(&values).map_err(|it| reader.wrong(&it))?;
                    if it.text.len() > CHUNK {
                        it.flush(&transaction).await?;
                    }
                }
            },
            Next::End(copied) => break copied,
        }
    };
    if let Some(last) = filled {
        last.finish(&transaction).await?;
    }
    transaction.batch_execute(FORGET).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    database.close();
    Ok(copied)
}

/// A table that is being filled, with rows in the text that `COPY` reads.
struct Filling {
    name: &'static str,
    copy: String,
    types: Vec<Type>,
    text: BytesMut,
}

impl Filling {
    async fn new<R: BufRead>(
        transaction: &Transaction<'_>,
        reader: &Reader<R>,
        table: &Table,
    ) -> Result<Filling, ArchiveError> {
        let Some(name) = TABLES.iter().find(|it| **it == table.table) else {
            return Err(reader.wrong(&format!("there is no table `{}`", table.table)));
        };
        let known = transaction.prepare(&format!("SELECT * FROM {name}")).await.map_err(failed)?;
        // Names come from the file, and become part of a statement.
        let types = table.columns.iter().map(|wanted| {
            let found = known.columns().iter().find(|it| it.name() == wanted);
            let unknown = || reader.wrong(&format!("`{name}` has no column `{wanted}`"));
            found.map(|it| it.type_().clone()).ok_or_else(unknown)
        });
        let types = types.collect::<Result<Vec<_>, _>>()?;
        // What a migration put there is in the copy.
        transaction.batch_execute(&format!("DELETE FROM {name}")).await.map_err(failed)?;
        let copy = format!("COPY {name} ({}) FROM STDIN", table.columns.join(", "));
        Ok(Filling { name, copy, types, text: BytesMut::new() })
    }

    fn put(&mut self, values: &[Value]) -> Result<(), String> {
        if values.len() != self.types.len() {
            return Err(format!("a row of {} values", values.len()));
        }
        for (at, (value, of)) in values.iter().zip(&self.types).enumerate() {
            if at > 0 {
                self.text.put_u8(b'\t');
            }
            match (value, of) {
                (Value::Null, _) => self.text.put_slice(b"\\N"),
                (Value::Int(it), _) => self.text.put_slice(it.to_string().as_bytes()),
                (Value::Text(it), _) => escape(&mut self.text, it),
                (Value::Bytes(it), &Type::UUID) => {
                    let id = Uuid::from_slice(it).map_err(|it| it.to_string())?;
                    self.text.put_slice(id.to_string().as_bytes());
                }
                (Value::Bytes(it), _) => {
                    self.text.put_slice(b"\\\\x");
                    self.text.put_slice(hex(it).as_bytes());
                }
            }
        }
        self.text.put_u8(b'\n');
        Ok(())
    }

    async fn flush(&mut self, transaction: &Transaction<'_>) -> Result<(), ArchiveError> {
        let copy = transaction.copy_in::<_, Bytes>(&self.copy).await.map_err(failed)?;
        let mut sink = pin!(copy);
        sink.send(self.text.split().freeze()).await.map_err(failed)?;
        sink.finish().await.map_err(failed)?;
        Ok(())
    }

    /// The last rows, and the next number where numbers are given out.
    async fn finish(mut self, transaction: &Transaction<'_>) -> Result<(), ArchiveError> {
        self.flush(transaction).await?;
        let name = self.name;
        let counted = "SELECT column_name::text FROM information_schema.columns
             WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'YES'";
        for row in transaction.query(counted, &[&name]).await.map_err(failed)? {
            let column: String = row.try_get(0).map_err(failed)?;
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('{name}', '{column}'),
                   COALESCE((SELECT max({column}) FROM {name}), 1),
                   EXISTS (SELECT 1 FROM {name}))"
            );
            transaction.query(&sql, &[]).await.map_err(failed)?;
        }
        Ok(())
    }
}

fn escape(into: &mut BytesMut, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'\\' => into.put_slice(b"\\\\"),
            b'\t' => into.put_slice(b"\\t"),
            b'\n' => into.put_slice(b"\\n"),
            b'\r' => into.put_slice(b"\\r"),
            other => into.put_u8(other),
        }
    }
}

fn failed(error: tokio_postgres::Error) -> ArchiveError {
    StoreError::from(error).into()
}
