//! A store as large as one that has been at work for years, without the years: one run that came
//! about in the ordinary way is copied row by row under other names. For `chancery bench scale`
//! alone, on a store that nothing has open; no log of anybody's is ever written like this.

use std::path::Path;

use chancery_domain::id::RunId;
use rusqlite::Connection;
use tokio_postgres::{Client, NoTls};

use crate::sqlite::FILE;
use crate::{Location, StoreError};

/// Everything that a run has which has ended, or waits for a signal. `copies` holds the names.
const TABLES: [&str; 3] = [
    "INSERT INTO events (run_id, seq, at, kind, body)
       SELECT c.id, e.seq, e.at, e.kind, e.body FROM copies c CROSS JOIN events e
       WHERE e.run_id = $1 ORDER BY c.id, e.seq",
    "INSERT INTO heads (run_id, seq, attempt, input_tokens, output_tokens, cost_micros)
       SELECT c.id, h.seq, h.attempt, h.input_tokens, h.output_tokens, h.cost_micros
       FROM copies c CROSS JOIN heads h WHERE h.run_id = $1 ORDER BY c.id",
    "INSERT INTO runs (id, status, waiting_for, org_id, user_id, agent_id, role_id, input, output,
         created_at, started_at, ended_at)
       SELECT c.id, r.status, r.waiting_for, r.org_id, r.user_id, r.agent_id, r.role_id, r.input,
         r.output, r.created_at, r.started_at, r.ended_at
       FROM copies c CROSS JOIN runs r WHERE r.id = $1 ORDER BY c.id",
];

/// A transaction's worth: some ten megabytes.
const BATCH: usize = 10_000;

/// Copies a run under each of the names.
pub async fn copies(location: &Location, of: RunId, names: &[RunId]) -> Result<(), StoreError> {
    match location {
        Location::Sqlite(dir) => {
            let (dir, names) = (dir.clone(), names.to_vec());
            blocking(move || sqlite_copies(&dir, of, &names)).await
        }
        Location::Postgres(url) => postgres_copies(url, of, names).await,
    }
}

/// Brings the database to rest: what it would do later, beside the load, it has done.
pub async fn settle(location: &Location) -> Result<(), StoreError> {
    match location {
        Location::Sqlite(dir) => {
            let dir = dir.clone();
            blocking(move || {
                let connection = Connection::open(dir.join(FILE))?;
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
                Ok(())
            })
            .await
        }
        Location::Postgres(url) => {
            let client = connect(url).await?;
            client.batch_execute("VACUUM ANALYZE").await?;
            Ok(client.batch_execute("CHECKPOINT").await?)
        }
    }
}

/// How many bytes the store takes on its disk, indexes included.
pub async fn bytes(location: &Location) -> Result<u64, StoreError> {
    match location {
        Location::Sqlite(dir) => {
            let sizes = ["", "-wal"].into_iter().filter_map(|suffix| {
                std::fs::metadata(dir.join(format!("{FILE}{suffix}"))).ok().map(|it| it.len())
            });
            Ok(sizes.sum())
        }
        Location::Postgres(url) => {
            let client = connect(url).await?;
            let row = client.query_one("SELECT pg_database_size(current_database())", &[]).await?;
            Ok(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or_default())
        }
    }
}

fn sqlite_copies(dir: &Path, of: RunId, names: &[RunId]) -> Result<(), StoreError> {
    let mut connection = Connection::open(dir.join(FILE))?;
    connection.pragma_update(None, "cache_size", "-262144")?;
    connection.execute_batch("CREATE TEMP TABLE copies (id BLOB PRIMARY KEY) WITHOUT ROWID")?;
    for names in names.chunks(BATCH) {
        let transaction = connection.transaction()?;
        transaction.execute("DELETE FROM copies", [])?;
        for name in names {
            transaction
                .prepare_cached("INSERT INTO copies VALUES (?1)")?
                .execute([name.0.as_bytes().as_slice()])?;
        }
        for table in TABLES {
            transaction.execute(table, [of.0.as_bytes().as_slice()])?;
        }
        transaction.commit()?;
    }
    Ok(())
}

async fn postgres_copies(url: &str, of: RunId, names: &[RunId]) -> Result<(), StoreError> {
    let mut client = connect(url).await?;
    client.batch_execute("CREATE TEMP TABLE copies (id UUID PRIMARY KEY)").await?;
    for names in names.chunks(BATCH) {
        let names: Vec<uuid::Uuid> = names.iter().map(|it| it.0).collect();
        let transaction = client.transaction().await?;
        transaction.batch_execute("TRUNCATE copies").await?;
        transaction
            .execute("INSERT INTO copies SELECT unnest($1::UUID[]) ORDER BY 1", &[&names])
            .await?;
        for table in TABLES {
            transaction.execute(table, &[&of.0]).await?;
        }
        transaction.commit().await?;
    }
    Ok(())
}

async fn connect(url: &str) -> Result<Client, StoreError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|it| StoreError::Failed(it.to_string()))?
}
