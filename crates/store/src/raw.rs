//! The raw limit of this disk and this database: the least that a durable step costs, with
//! nothing of ours around it. What `chancery bench` measures our own figures against, in the
//! same run.

pub mod fill;
mod postgres;
mod sqlite;

use std::path::Path;
use std::time::Duration;

use crate::StoreError;

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    /// From asking to being durable.
    pub p50: Duration,
    pub p99: Duration,
}

/// What a measurement writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One row a commit.
    Row,
    /// A step: two events and the guarded move of a run's head.
    Step,
}

/// As large as a small tool call and its result.
const BODY: &str = r#"{"tool":"search","args":{"q":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},"result":"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"}"#;

/// SQLite, one client, one commit each, fsync on.
pub fn sqlite_single(dir: &Path, shape: Shape, time: Duration) -> Result<Rate, StoreError> {
    sqlite::single(dir, shape, time)
}

/// SQLite, many clients, one writer that commits what has gathered.
pub fn sqlite_group(dir: &Path, clients: usize, time: Duration) -> Result<Rate, StoreError> {
    sqlite::group(dir, clients, time)
}

/// PostgreSQL, a connection for each client, a step as one statement.
pub async fn postgres(url: &str, clients: usize, time: Duration) -> Result<Rate, StoreError> {
    postgres::steps(url, clients, time).await
}

/// The process at the other end of a connection to PostgreSQL, where it is on this machine.
pub async fn postgres_backend(url: &str) -> Result<Option<i32>, StoreError> {
    postgres::backend(url).await
}

impl Rate {
    fn of(mut latencies: Vec<Duration>, took: Duration) -> Rate {
        latencies.sort_unstable();
        let at = |share: f64| {
            let place = (latencies.len() as f64 * share) as usize;
            latencies.get(place.min(latencies.len().saturating_sub(1))).copied()
        };
        Rate {
            per_second: latencies.len() as f64 / took.as_secs_f64(),
            p50: at(0.5).unwrap_or_default(),
            p99: at(0.99).unwrap_or_default(),
        }
    }
}
