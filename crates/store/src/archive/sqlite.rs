//! A copy of an SQLite store, and back.

use std::io::{BufRead, Write};
use std::path::Path;

use rusqlite::types::{ToSql, ToSqlOutput, Value as Sql, ValueRef};
use rusqlite::{Connection, OpenFlags};

use super::sheet::{Next, Reader, Table, Value, Writer};
use super::{ArchiveError, Copied, FORGET, TABLES, TRACES};
use crate::StoreError;
use crate::sqlite;

pub fn back_up<W: Write>(dir: &Path, mut writer: Writer<W>) -> Result<(Copied, W), ArchiveError> {
    let path = dir.join(sqlite::FILE);
    if !path.is_file() {
        return Err(ArchiveError::Absent(dir.display().to_string()));
    }
    // No lock of ours is needed to look: a server may be at work.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(std::time::Duration::from_secs(10)).map_err(failed)?;
    // One moment for all tables.
    let moment = connection.transaction().map_err(failed)?;
    sqlite::check_current(&moment)?;
    for name in TABLES {
        let mut statement = moment.prepare(&format!("SELECT * FROM {name}")).map_err(failed)?;
        let columns: Vec<String> = names(&statement);
        let width = columns.len();
        writer.table(&Table { table: (*name).to_owned(), columns })?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let values = (0..width).map(|it| match row.get_ref(it).map_err(failed)? {
                ValueRef::Null => Ok(Value::Null),
                ValueRef::Integer(it) => Ok(Value::Int(it)),
                ValueRef::Text(it) => {
                    String::from_utf8(it.to_vec()).map(Value::Text).map_err(failed)
                }
                ValueRef::Blob(it) => Ok(Value::Bytes(it.to_vec())),
                ValueRef::Real(it) => Err(failed(format!("`{name}` holds {it}"))),
            });
            writer.row(&values.collect::<Result<Vec<_>, ArchiveError>>()?)?;
        }
    }
    writer.end()
}

pub fn restore<R: BufRead>(dir: &Path, mut reader: Reader<R>) -> Result<Copied, ArchiveError> {
    let (_lock, mut connection) = sqlite::open_alone(dir)?;
    let transaction = connection.transaction().map_err(failed)?;
    for name in TRACES {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {name})");
        if transaction.query_row(&sql, [], |row| row.get::<_, bool>(0)).map_err(failed)? {
            return Err(ArchiveError::NotEmpty);
        }
    }
    let mut insert: Option<(String, usize)> = None;
    let copied = loop {
        match reader.next()? {
            Next::Table(table) => insert = Some(prepare(&transaction, &reader, &table)?),
            Next::Row(values) => {
                let Some((sql, width)) = &insert else {
                    return Err(reader.wrong(&"a row before the first table"));
                };
                if values.len() != *width {
                    return Err(reader.wrong(&format!("a row of {} values", values.len())));
                }
                let mut statement = transaction.prepare_cached(sql).map_err(failed)?;
                let values = rusqlite::params_from_iter(values.iter());
                statement.execute(values).map_err(|it| reader.wrong(&it))?;
            }
            Next::End(copied) => break copied,
        }
    };
    transaction.execute(FORGET, []).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    Ok(copied)
}

fn prepare<R: BufRead>(
    connection: &Connection,
    reader: &Reader<R>,
    table: &Table,
) -> Result<(String, usize), ArchiveError> {
    let Some(name) = TABLES.iter().find(|it| **it == table.table) else {
        return Err(reader.wrong(&format!("there is no table `{}`", table.table)));
    };
    let known = names(&connection.prepare(&format!("SELECT * FROM {name}")).map_err(failed)?);
    // Names come from the file, and become part of a statement.
    if let Some(unknown) = table.columns.iter().find(|it| !known.contains(it)) {
        return Err(reader.wrong(&format!("`{name}` has no column `{unknown}`")));
    }
    // What a migration put there is in the copy.
    connection.execute(&format!("DELETE FROM {name}"), []).map_err(failed)?;
    let places = vec!["?"; table.columns.len()].join(", ");
    let sql = format!("INSERT INTO {name} ({}) VALUES ({places})", table.columns.join(", "));
    Ok((sql, table.columns.len()))
}

fn names(statement: &rusqlite::Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Value::Null => ToSqlOutput::Owned(Sql::Null),
            Value::Int(it) => ToSqlOutput::Owned(Sql::Integer(*it)),
            Value::Text(it) => ToSqlOutput::Borrowed(ValueRef::Text(it.as_bytes())),
            Value::Bytes(it) => ToSqlOutput::Borrowed(ValueRef::Blob(it)),
        })
    }
}

fn failed(error: impl std::fmt::Display) -> ArchiveError {
    StoreError::Failed(error.to_string()).into()
}
