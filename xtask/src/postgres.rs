//! A temporary PostgreSQL for the length of one task.

use std::fs;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result};

use crate::cluster::Cluster;
use crate::keeper::Keeper;
use crate::process::{command, run_in_terminal};
use std::os::unix::process::CommandExt;

/// Where tests find the server. They make databases of their own on it.
pub const VARIABLE: &str = "CHANCERY_TEST_POSTGRES";

/// Runs a command of the developer's beside a server that ends with it.
pub fn beside(program: &str, arguments: &[&str]) -> Result<ExitCode> {
    let mut keeper = Keeper::start()?;
    let cluster = start(&mut keeper)?;
    let mut command = command(program);
    command.args(arguments).env(VARIABLE, cluster.url());
    // For `psql` and its kin, which read these.
    command.env("PGHOST", "127.0.0.1").env("PGPORT", cluster.port.to_string());
    command.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    let status = run_in_terminal(&mut keeper, &mut command)?;
    // No code: a signal ended it.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

/// Starts a server that the keeper stops, and whose files it removes.
pub fn start(keeper: &mut Keeper) -> Result<Cluster> {
    let dir = std::env::temp_dir().join(format!("chancery-postgres-{}", std::process::id()));
    fs::create_dir(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    keeper.remove(&dir)?;
    let cluster = Cluster::create(&dir)?;
    let mut server =
        cluster.server()?.process_group(0).spawn().context("cannot start PostgreSQL")?;
    keeper.server(server.id())?;
    cluster.wait_ready(&mut server)?;
    // Someone must take note of its end, or the keeper would wait for a process that is no more.
    thread::spawn(move || server.wait());
    Ok(cluster)
}
