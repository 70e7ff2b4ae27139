//! Two servers: a primary, and a standby that has what is committed before the commit is answered.
//! The primary can be lost without a word, and the standby takes its place.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use tokio::task::spawn_blocking;

use super::cluster::{Cluster, free_port};
use super::{PrivatePostgres, because, execute};

/// On one machine; their addresses stay while this value lives, whoever leads.
#[derive(Debug)]
pub struct Pair {
    /// Lives in the primary's directory, so it ends before it.
    standby: PrivatePostgres,
    primary: PrivatePostgres,
}

/// Kept in the data directory: what is killed cannot clean up after itself.
const SHARED_MEMORY: &str = "dynamic_shared_memory_type=mmap";

impl Pair {
    pub async fn start() -> Pair {
        let mut primary = PrivatePostgres::create().await;
        primary.settings.push(SHARED_MEMORY);
        primary.start_again().await;
        let first = primary.cluster.clone();
        let copied = spawn_blocking(move || copy(&first)).await;
        let copied = copied.unwrap_or_else(because("pg_basebackup panicked"));
        let cluster = copied.unwrap_or_else(because("cannot make a standby"));
        let settings = vec![SHARED_MEMORY];
        let mut standby = PrivatePostgres { cluster, settings, server: None, dir: None };
        standby.start_again().await;
        // After the copy was made, which would have it otherwise: who is promoted waits for nobody.
        let url = primary.url();
        for statement in [
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "SELECT pg_reload_conf()",
            // Answered when the standby has it.
            "DO $$ BEGIN
               WHILE NOT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync') LOOP
                 PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
               END LOOP;
             END $$",
        ] {
            let executed = execute(&url, statement).await;
            executed.unwrap_or_else(because("cannot make the standby synchronous"));
        }
        Pair { standby, primary }
    }

    /// Both hosts, as a program that shall find whichever leads is told of them.
    pub fn url(&self) -> String {
        let [first, second] = self.ports();
        format!("postgres://postgres@127.0.0.1:{first},127.0.0.1:{second}/postgres")
    }

    /// Of the primary and of the standby.
    pub fn ports(&self) -> [u16; 2] {
        [self.primary.cluster.port, self.standby.cluster.port]
    }

    /// `kill -9` for all processes of the primary, as if its machine had lost power for good.
    pub async fn lose_primary(&mut self) {
        let Some(mut server) = self.primary.server.take() else { return };
        let cluster = self.primary.cluster.clone();
        let lost = spawn_blocking(move || {
            let children = children(server.id());
            server.kill()?;
            children.into_iter().for_each(kill);
            server.wait()?;
            free_memory(&cluster);
            Ok::<_, std::io::Error>(())
        });
        let lost = lost.await.unwrap_or_else(because("the kill panicked"));
        lost.unwrap_or_else(because("cannot kill the primary"));
    }

    /// The standby leads from now on. Whether the primary is dead is the caller's business.
    pub async fn promote(&mut self) {
        let cluster = self.standby.cluster.clone();
        let promoted = spawn_blocking(move || {
            let mut promote = cluster.program("pg_ctl");
            promote.args(["promote", "--wait", "--silent", "--pgdata"]).arg(cluster.data());
            promote.status().is_ok_and(|status| status.success())
        });
        let promoted = promoted.await.unwrap_or_else(because("the promotion panicked"));
        assert!(promoted, "the standby was not promoted");
    }

    /// Stops every process of the primary where it stands, or lets them go on.
    pub fn freeze_primary(&self, frozen: bool) {
        let signal = if frozen { Signal::STOP } else { Signal::CONT };
        let server = self.primary.server.as_ref().map(std::process::Child::id);
        for pid in server.into_iter().flat_map(|it| [vec![it], children(it)].concat()) {
            let _ = kill_process(known(pid), signal);
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.freeze_primary(false);
    }
}

/// Copies a running server's data into a directory within its own, and makes a standby of it.
fn copy(primary: &Cluster) -> std::io::Result<Cluster> {
    let mut standby = primary.clone();
    standby.dir = primary.dir.join("standby");
    standby.port = free_port()?;
    let made = primary
        .program("pg_basebackup")
        .args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--dbname"])
        .arg(primary.url())
        .arg("--pgdata")
        .arg(standby.data())
        .output()?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(std::io::Error::other(format!("`pg_basebackup` failed: {}", said.trim())));
    }
    Ok(standby)
}

/// The processes that a process has started, by the fourth field of their `stat`.
fn children(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|it| it.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The second is a name in brackets, in which anything may stand.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        fields.split_whitespace().nth(1) == Some(parent.to_string().as_str())
    };
    pids.filter(is_child).collect()
}

fn kill(pid: u32) {
    // It may have noticed by itself that its parent is gone.
    let _ = kill_process(known(pid), Signal::KILL);
}

fn known(pid: u32) -> Pid {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.unwrap_or_else(|| panic!("no process has this number"))
}

/// The one piece of shared memory that is not in the directory; its number is in the pid file.
fn free_memory(cluster: &Cluster) {
    let file = fs::read_to_string(cluster.data().join("postmaster.pid")).unwrap_or_default();
    let number = file.lines().nth(6).and_then(|it| it.split_whitespace().nth(1));
    if let Some(number) = number {
        // Best effort: it is 56 bytes.
        let _ = cluster.program("/usr/bin/ipcrm").args(["-m", number]).status();
    }
}
