//! Opening the file: one process at a time, durable commits, the schema up to date.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use crate::migrate;
use crate::{OpenError, StoreError};

pub(crate) const FILE: &str = "chancery.db";

pub(super) fn open(dir: &Path) -> Result<(File, PathBuf, Connection), OpenError> {
    let unusable =
        |it: std::io::Error| OpenError::Directory { dir: dir.to_owned(), detail: it.to_string() };
    // What agents and people said is nobody else's business.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unusable)?;
    let lock = open_own(&dir.join("chancery.lock")).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Err(OpenError::InUse(dir.to_owned())),
        Err(std::fs::TryLockError::Error(error)) => return Err(unusable(error)),
    }
    let path = dir.join(FILE);
    // Also where the folder is open to others. What SQLite puts beside the file is as the file is.
    let file = open_own(&path).map_err(unusable)?;
    file.set_permissions(Permissions::from_mode(0o600)).map_err(unusable)?;
    // Now, and not later: a file that is closed takes SQLite's locks on it along.
    drop(file);
    let mut connection = Connection::open(&path).map_err(StoreError::from)?;
    configure(&connection)?;
    migrate(&mut connection)?;
    Ok((lock, path, connection))
}

/// A file that only its owner reads, made if it is not there.
fn open_own(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// For simulations: what is committed there outlives every simulated process, and nothing else.
#[cfg(feature = "faults")]
pub(super) fn in_memory() -> Result<Connection, OpenError> {
    let mut connection = Connection::open_in_memory().map_err(StoreError::from)?;
    connection.set_prepared_statement_cache_capacity(128);
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(StoreError::from)?;
    migrate(&mut connection)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> Result<(), OpenError> {
    let set = |name: &str, value: &str| {
        connection.pragma_update(None, name, value).map_err(StoreError::from)
    };
    set("journal_mode", "WAL")?;
    set("synchronous", "FULL")?;
    set("temp_store", "MEMORY")?;
    set("cache_size", "-16384")?;
    set("journal_size_limit", "67108864")?;
    // The same few pages are written again and again: what is carried over less often is carried
    // over once for many commits. Sixteen megabytes are read back in a blink after a crash.
    set("wal_autocheckpoint", "4000")?;
    connection.set_prepared_statement_cache_capacity(64);
    // A statement is planned once, not anew for every value that it is given.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(StoreError::from)?;
    // SQLite reads a value that it does not know as another one, and says nothing.
    let read = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            .map_err(StoreError::from)
    };
    for (setting, wanted, value) in [
        ("synchronous", "FULL", rusqlite::types::Value::Integer(2)),
        ("journal_mode", "wal", rusqlite::types::Value::Text("wal".to_owned())),
    ] {
        let found = read(setting)?;
        if found != value {
            return Err(OpenError::NotDurable { setting, found: format!("{found:?}"), wanted });
        }
    }
    Ok(())
}

/// Whether a store that is only looked at is of this version.
pub(crate) fn check_current(connection: &Connection) -> Result<(), OpenError> {
    match migrate::pending(&applied(connection)?, |it| it.sqlite)?.first() {
        None => Ok(()),
        Some(older) => Err(OpenError::Older(older.number)),
    }
}

fn applied(connection: &Connection) -> Result<Vec<(i64, String)>, StoreError> {
    let mut statement =
        connection.prepare("SELECT number, checksum FROM migrations ORDER BY number")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::from)?;
    transaction.execute_batch(migrate::TABLE).map_err(StoreError::from)?;
    for migration in migrate::pending(&applied(&transaction)?, |it| it.sqlite)? {
        transaction.execute_batch(migration.sqlite).map_err(StoreError::from)?;
        transaction
            .execute(
                "INSERT INTO migrations (number, name, checksum) VALUES (?1, ?2, ?3)",
                (migration.number, migration.name, migrate::checksum(migration.sqlite)),
            )
            .map_err(StoreError::from)?;
    }
    transaction.commit().map_err(StoreError::from)?;
    Ok(())
}
