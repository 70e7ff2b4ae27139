//! Several servers on one PostgreSQL: what each added one brings, and how busy the database is.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use chancery_runtime::clock;
use chancery_store::{Location, Store, raw};
use serde::{Deserialize, Serialize};

use super::load::{Load, Shape};
use super::process;
use crate::Global;
use crate::outcome::Outcome;
use crate::output;

/// What one server did.
#[derive(Debug, Serialize, Deserialize)]
struct Share {
    steps_per_second: f64,
}

/// What they did together.
#[derive(Debug, Clone, Copy)]
pub struct Together {
    pub steps_per_second: f64,
    /// Processors that the database kept busy; `None` where it is not on this machine.
    pub database: Option<f64>,
    /// Processors of this machine that had nothing to do.
    pub idle: Option<f64>,
}

/// `bench drive`: one of the servers, as a process of its own.
pub async fn drive(
    global: &Global,
    time: Duration,
    shape: Shape,
    runs: usize,
) -> anyhow::Result<Outcome> {
    let url = global.database.clone().context("name a PostgreSQL with --database")?;
    let store = Store::open(&Location::Postgres(url), clock::new_worker_id()).await?;
    let load = Load::start(store, shape, runs).await?;
    let steps_per_second = load.steps_per_second(runs, time).await?;
    load.stop().await;
    output::json(&Share { steps_per_second })?;
    Ok(Outcome::Done)
}

/// Lets `count` servers work at once.
pub async fn together(
    url: &str,
    dir: &Path,
    count: usize,
    time: Duration,
    shape: Shape,
    runs: usize,
) -> anyhow::Result<Together> {
    let backend = raw::postgres_backend(url).await?;
    let mut servers = Vec::new();
    for _ in 0..count {
        #[expect(clippy::disallowed_methods, reason = "the bench measures our own process")]
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        command.args(["bench", "drive", "--json", "--database", url]).arg("--data").arg(dir);
        command.args(["--seconds", &time.as_secs_f64().to_string()]);
        command.args(["--runs", &runs.to_string()]);
        command.args(["--calls", &shape.calls_per_message.to_string()]);
        command.args(["--thinks", &shape.thinks.as_secs_f64().to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        servers.push(command.spawn()?);
    }
    // In the middle of it: not while they start, not while they end.
    tokio::time::sleep(time.mul_f64(0.4)).await;
    let look = || (backend.and_then(process::family_time), process::machine_idle_time());
    let (before, began) = (look(), Instant::now());
    tokio::time::sleep(time.mul_f64(0.6)).await;
    let (now, took) = (look(), began.elapsed());
    let processors = |now: Option<Duration>, before: Option<Duration>| {
        Some(now?.saturating_sub(before?).as_secs_f64() / took.as_secs_f64())
    };
    let (database, idle) = (processors(now.0, before.0), processors(now.1, before.1));
    let mut steps_per_second = 0.0;
    for server in servers {
        let output = server.wait_with_output().await?;
        anyhow::ensure!(output.status.success(), "a server failed: {}", output.status);
        let share: Share = serde_json::from_slice(&output.stdout)?;
        steps_per_second += share.steps_per_second;
    }
    Ok(Together { steps_per_second, database, idle })
}
