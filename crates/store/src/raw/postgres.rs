//! PostgreSQL with nothing around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, NoTls};

use super::{BODY, Rate};
use crate::StoreError;

const STEP: &str = "WITH head AS (
    UPDATE raw_heads SET seq = seq + 2 WHERE id = $1 AND seq = $2 RETURNING id, seq
  )
  INSERT INTO raw_events SELECT id, seq - k, 0, 'e', $3 FROM head, generate_series(0, 1) k";

pub(super) async fn steps(url: &str, clients: usize, time: Duration) -> Result<Rate, StoreError> {
    let setup = connect(url).await?;
    setup
        .batch_execute(
            "DROP TABLE IF EXISTS raw_heads, raw_events;
             CREATE TABLE raw_heads (id BIGINT PRIMARY KEY, seq BIGINT NOT NULL) WITH (fillfactor = 50);
             CREATE TABLE raw_events (run_id BIGINT, seq BIGINT, at BIGINT, kind TEXT, body TEXT,
               PRIMARY KEY (run_id, seq));
             INSERT INTO raw_heads SELECT id, 0 FROM generate_series(0, 255) id;",
        )
        .await?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(connect(url).await?);
    }
    let began = Instant::now();
    let tasks: Vec<_> = (0i64..)
        .zip(connections)
        .map(|(run, client)| tokio::spawn(ask(client, run, stop.clone())))
        .collect();
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for task in tasks {
        let asked = task.await.map_err(|it| StoreError::Failed(it.to_string()))?;
        latencies.extend(asked?);
    }
    let rate = Rate::of(latencies, began.elapsed());
    setup.batch_execute("DROP TABLE raw_heads, raw_events").await?;
    Ok(rate)
}

async fn ask(client: Client, run: i64, stop: Arc<AtomicBool>) -> Result<Vec<Duration>, StoreError> {
    let step = client.prepare(STEP).await?;
    let mut latencies = Vec::new();
    let mut seq = 0i64;
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        client.execute(&step, &[&run, &seq, &BODY]).await?;
        latencies.push(asked.elapsed());
        seq += 2;
    }
    Ok(latencies)
}

pub(super) async fn backend(url: &str) -> Result<Option<i32>, StoreError> {
    let client = connect(url).await?;
    let row = client
        .query_one(
            "SELECT pg_backend_pid(), inet_server_addr() IS NOT DISTINCT FROM inet_client_addr()",
            &[],
        )
        .await?;
    let (pid, is_here): (i32, bool) = (row.try_get(0)?, row.try_get(1)?);
    Ok(is_here.then_some(pid))
}

async fn connect(url: &str) -> Result<Client, StoreError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("SET synchronous_commit = on").await?;
    Ok(client)
}
