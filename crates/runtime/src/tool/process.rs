//! The one place that starts processes: commands of the operator and MCP servers.
//!
//! No shell is ever involved, nothing of the server's own environment is inherited, and what is
//! started is the leader of a process group that ends as a whole.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{fmt, io};

use futures_util::future::join;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::sandbox::{End, Input, Isolation, Launched, Walls};

/// What is to be started.
#[derive(Clone)]
pub(crate) struct Program {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// All of the environment.
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub behind: Behind,
}

/// What is between a program and the rest of the machine.
#[derive(Debug, Clone)]
pub(crate) enum Behind {
    Walls(Isolation, Box<Walls>),
    /// It is the operator's own, and as free as the server.
    Nothing,
}

// Without the environment, which holds secrets.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("argv", &self.argv).finish_non_exhaustive()
    }
}

/// How a program that was run to its end came to it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub how: How,
    pub stdout: Captured,
    pub stderr: Captured,
}

#[derive(Debug)]
pub(crate) enum How {
    Exited(ExitStatus),
    TimedOut,
    Cancelled,
}

/// The beginning of what a process said, and how much it was in all.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub bytes: Vec<u8>,
    pub total: u64,
}

/// A process and all that it started. Ends with this value.
#[derive(Debug)]
pub(crate) enum Group {
    /// It is our child.
    Free { child: Child, leader: Option<Pid> },
    /// Our launcher's.
    Walled(End),
}

struct Started {
    group: Group,
    stdin: Option<Sender>,
    stdout: Receiver,
    stderr: Receiver,
}

/// How long output is waited for after the end: a process that left the group may hold the pipe
/// open for ever.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Runs a program to its end, or to that of the time it has. Keeps `keep` bytes of each output
/// and reads on beyond them, so that the program does not wait for a reader. One whose walls could
/// not be put up is [`io::ErrorKind::Unsupported`].
pub(crate) async fn run(
    program: &Program,
    timeout: Duration,
    keep: usize,
    cancelled: &CancellationToken,
) -> io::Result<Ended> {
    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    let Started { mut group, stdout: out, stderr: err, .. } = start(program, Input::Nothing)?;
    let how = {
        let drain = join(stdout.fill(out, keep), stderr.fill(err, keep));
        tokio::pin!(drain);
        let mut drained = false;
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let how = loop {
            tokio::select! {
                biased;
                status = group.end() => break How::Exited(status?),
                () = cancelled.cancelled() => break How::Cancelled,
                () = &mut deadline => break How::TimedOut,
                _ = &mut drain, if !drained => drained = true,
            }
        };
        // Also after a good end: what it left behind in its group has no permit of its own.
        group.kill();
        if !drained {
            let _ = tokio::time::timeout(DRAIN_MAX, drain).await;
        }
        how
    };
    let _ = tokio::time::timeout(DRAIN_MAX, group.end()).await;
    Ok(Ended { how, stdout, stderr })
}

/// Starts a program that is talked to.
pub(crate) fn converse(program: &Program) -> io::Result<(Group, Sender, Receiver, Receiver)> {
    let Started { group, stdin, stdout, stderr } = start(program, Input::Piped)?;
    let stdin = stdin.ok_or_else(|| io::Error::other("the pipes are missing"))?;
    Ok((group, stdin, stdout, stderr))
}

// Everything that starts comes through here. What is to be behind walls is started by our
// launcher when they stand.
fn start(program: &Program, input: Input) -> io::Result<Started> {
    let Program { argv, environment, directory, behind } = program;
    match behind {
        Behind::Walls(Isolation::On(launcher), walls) => {
            let launched = launcher.launch(argv, environment, directory, walls, input)?;
            let Launched { stdin, stdout, stderr, end } = launched;
            Ok(Started { group: Group::Walled(end), stdin, stdout, stderr })
        }
        Behind::Walls(Isolation::Lacking(why), _) => {
            Err(io::Error::new(io::ErrorKind::Unsupported, why.to_string()))
        }
        Behind::Walls(Isolation::Off, _) | Behind::Nothing => start_freely(program, input),
    }
}

// No `pre_exec`: without it the server is not forked.
#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
fn start_freely(program: &Program, input: Input) -> io::Result<Started> {
    let (first, rest) = program
        .argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program is named"))?;
    let mut command = Command::new(first);
    command.args(rest).env_clear().envs(&program.environment).current_dir(&program.directory);
    let stdin = match input {
        Input::Nothing => Stdio::null(),
        Input::Piped => Stdio::piped(),
    };
    let mut child = command
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let missing = || io::Error::other("the pipes are missing");
    let stdin = match child.stdin.take() {
        Some(stdin) => Some(Sender::from_owned_fd(stdin.into_owned_fd()?)?),
        None => None,
    };
    let stdout = child.stdout.take().ok_or_else(missing)?.into_owned_fd()?;
    let stderr = child.stderr.take().ok_or_else(missing)?.into_owned_fd()?;
    let (stdout, stderr) = (Receiver::from_owned_fd(stdout)?, Receiver::from_owned_fd(stderr)?);
    let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    Ok(Started { group: Group::Free { child, leader }, stdin, stdout, stderr })
}

impl Group {
    /// May be given up and asked for again.
    async fn end(&mut self) -> io::Result<ExitStatus> {
        match self {
            Group::Free { child, .. } => child.wait().await,
            Group::Walled(end) => {
                let ended = end.wait().await?;
                ended.map_err(|why| io::Error::new(io::ErrorKind::Unsupported, why))
            }
        }
    }

    /// Kills every process of the group. Once, and at the latest right after the leader's end:
    /// the number stays taken while a member lives, and is not given out again soon after.
    pub(crate) fn kill(&mut self) {
        match self {
            Group::Free { leader, .. } => {
                if let Some(leader) = leader.take() {
                    // An error says that none is left.
                    let _ = kill_process_group(leader, Signal::KILL);
                }
            }
            Group::Walled(end) => end.kill(),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Captured {
    async fn fill(&mut self, mut from: impl AsyncRead + Unpin, keep: usize) {
        let mut buffer = vec![0; 16 * 1024];
        // An error ends it as the end of the stream does.
        while let Ok(read) = from.read(&mut buffer).await {
            if read == 0 {
                break;
            }
            self.total += read as u64;
            let room = keep.saturating_sub(self.bytes.len());
            self.bytes.extend_from_slice(&buffer[..read.min(room)]);
        }
    }

    /// As text, with a word about what was cut.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        let kept = self.bytes.len() as u64;
        if kept < self.total {
            text.push_str(&format!("\n[cut: the first {kept} of {} bytes are shown]", self.total));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
            environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            directory: std::env::temp_dir(),
            behind: Behind::Nothing,
        }
    }

    async fn run_for(script: &str, timeout: Duration) -> Ended {
        run(&shell(script), timeout, 1000, &CancellationToken::new()).await.unwrap()
    }

    fn alive(pid: &str) -> bool {
        // A zombie that nobody has waited for yet is as dead as can be.
        std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
            .is_ok_and(|it| !it.contains(") Z "))
    }

    async fn gone(pid: &str) -> bool {
        for _ in 0..50 {
            if !alive(pid) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    #[tokio::test]
    async fn output_beyond_the_bound_is_read_and_dropped() {
        let ended =
            run_for("head -c 3000000 /dev/zero | tr '\\0' x", Duration::from_secs(20)).await;
        assert!(matches!(ended.how, How::Exited(status) if status.success()), "{:?}", ended.how);
        assert_eq!((ended.stdout.bytes.len(), ended.stdout.total), (1000, 3_000_000));
        assert!(ended.stdout.text().ends_with("[cut: the first 1000 of 3000000 bytes are shown]"));
    }

    #[tokio::test]
    async fn the_whole_group_ends_with_the_time_it_has() {
        let begun = Instant::now();
        let ended = run_for("sleep 300 & echo $!; wait", Duration::from_millis(300)).await;
        assert!(matches!(ended.how, How::TimedOut), "{:?}", ended.how);
        assert!(gone(&ended.stdout.text()).await);
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_ends_with_it() {
        let begun = Instant::now();
        let ended = run_for("sleep 300 & echo $!", Duration::from_secs(60)).await;
        assert!(matches!(ended.how, How::Exited(_)), "{:?}", ended.how);
        assert!(gone(&ended.stdout.text()).await);
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn cancelling_ends_it() {
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let minute = Duration::from_secs(60);
        let ended = run(&shell("sleep 300"), minute, 10, &cancelled).await.unwrap();
        assert!(matches!(ended.how, How::Cancelled), "{:?}", ended.how);
    }

    #[tokio::test]
    async fn nothing_of_our_environment_is_inherited() {
        let ended = run_for("env", Duration::from_secs(20)).await;
        let names: Vec<_> = ended
            .stdout
            .text()
            .lines()
            .filter_map(|it| Some(it.split_once('=')?.0.to_owned()))
            .collect();
        assert!(
            names.iter().all(|it| ["PATH", "PWD", "_", "SHLVL", "OLDPWD"].contains(&&**it)),
            "{names:?}"
        );
    }
}
