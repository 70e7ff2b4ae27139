//! A server in a process of its own, to see how long it takes to be ready and what it holds.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// How a server process stands right after it is ready.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    pub ready_after: Duration,
    pub resident_mb: f64,
    /// What is left of it without the binary, which the kernel maps as it likes and shares.
    pub own_mb: f64,
}

/// A server of ours that runs until it is dropped.
#[derive(Debug)]
pub struct Served {
    pub address: String,
    server: tokio::process::Child,
    ready_after: Duration,
}

impl Served {
    pub async fn start(data: &Path, more: &[&str]) -> anyhow::Result<Served> {
        let exe = std::env::current_exe()?;
        let _ = std::fs::remove_file(data.join("server"));
        let began = Instant::now();
        #[expect(clippy::disallowed_methods, reason = "the bench measures our own process")]
        let mut command = tokio::process::Command::new(exe);
        command.arg("serve").args(["--listen", "127.0.0.1:0"]).arg("--data").arg(data).args(more);
        let server = command.stderr(std::process::Stdio::null()).kill_on_drop(true).spawn()?;
        let address = loop {
            anyhow::ensure!(began.elapsed() < Duration::from_secs(30), "the server did not start");
            match std::fs::read_to_string(data.join("server")) {
                Ok(address) if !address.is_empty() => break address,
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        let ready = reqwest::get(format!("{address}/readyz")).await?;
        anyhow::ensure!(ready.status().is_success(), "the server is not ready");
        Ok(Served { address, server, ready_after: began.elapsed() })
    }

    /// As `/proc` has it: `VmRSS:`, or without the binary `RssAnon:`.
    pub fn memory_mb(&self, kind: &str) -> anyhow::Result<f64> {
        memory_mb(self.server.id().context("the server ended")?, kind)
    }

    pub async fn end(mut self) -> anyhow::Result<()> {
        Ok(self.server.kill().await?)
    }
}

pub async fn start_and_look(data: &Path, database: Option<&str>) -> anyhow::Result<Standing> {
    let more: Vec<&str> = database.into_iter().flat_map(|url| ["--database", url]).collect();
    let served = Served::start(data, &more).await?;
    // Time for what a start puts off.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (resident_mb, own_mb) = (served.memory_mb("VmRSS:")?, served.memory_mb("RssAnon:")?);
    let ready_after = served.ready_after;
    served.end().await?;
    Ok(Standing { ready_after, resident_mb, own_mb })
}

fn memory_mb(pid: u32, kind: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line =
        status.lines().find_map(|it| it.strip_prefix(kind)).with_context(|| kind.to_owned())?;
    let kb: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kb / 1024.0)
}

/// The processor time that this process has used.
pub fn processor_time() -> Duration {
    stat("self").map(|it| it.used).unwrap_or_default()
}

/// The processor time that a process, its parent and all children of that have used: of a
/// PostgreSQL, when it is one of its connections. `None`: it is not on this machine.
pub fn family_time(pid: i32) -> Option<Duration> {
    let parent = stat(&pid.to_string())?.parent;
    let processes = std::fs::read_dir("/proc").ok()?.filter_map(|it| {
        let name = it.ok()?.file_name();
        let stat = stat(name.to_str()?)?;
        (stat.parent == parent || name == *parent).then_some(stat.used)
    });
    Some(processes.sum())
}

/// The time that processors of this machine had nothing to do, all of them together.
pub fn machine_idle_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<&str> = stat.lines().next()?.split_whitespace().collect();
    // With nothing to do, or nothing but waiting for the disk.
    let ticks: u64 = [4, 5].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 10))
}

struct Stat {
    parent: String,
    used: Duration,
}

fn stat(process: &str) -> Option<Stat> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    // Clock ticks are hundredths of a second on Linux.
    Some(Stat { parent: (*fields.get(1)?).to_owned(), used: Duration::from_millis(ticks * 10) })
}
