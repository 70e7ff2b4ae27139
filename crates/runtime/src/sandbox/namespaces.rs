//! A world of its own: mounts, process ids, shared memory, host name and network that nobody else
//! is in. Beside the walls that are required, and only where the kernel lets us.

use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use fork::Fork;
use nix::sched::{CloneFlags, unshare};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::mount::MountFlags;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, WaitOptions, getegid, geteuid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::user;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Namespaces {
    #[default]
    None,
    /// Made with the privileges that we have.
    Own,
    /// Within a user namespace, which needs none.
    Users,
}

/// Must come while this process has one thread.
pub fn enter(namespaces: Namespaces, network: bool) -> Result<(), String> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if !network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    match namespaces {
        Namespaces::None => Ok(()),
        Namespaces::Own => unshare(flags).map_err(|it| it.to_string()),
        Namespaces::Users => {
            let (user, group) = (geteuid().as_raw(), getegid().as_raw());
            unshare(flags | CloneFlags::CLONE_NEWUSER).map_err(|it| it.to_string())?;
            let map = |name: &str, text: &str| {
                let written = std::fs::OpenOptions::new()
                    .write(true)
                    .open(format!("/proc/self/{name}"))
                    .and_then(|mut it| it.write_all(text.as_bytes()));
                written.map_err(|it| format!("/proc/self/{name}: {it}"))
            };
            map("setgroups", "deny")?;
            map("uid_map", &format!("{user} {user} 1"))?;
            map("gid_map", &format!("{group} {group} 1"))
        }
    }
}

/// The first process of the new world, which everything in it ends with. It ends when this value
/// does, or its process.
#[derive(Debug)]
pub struct First {
    _held: OwnedFd,
}

/// Starts it. It mounts the world's own `/proc` at `proc` beneath the working directory, for that
/// can only be done from within.
pub fn first(user: Option<u32>) -> io::Result<First> {
    let (ending, held) = pipe_with(PipeFlags::CLOEXEC)?;
    let (ready, said) = pipe_with(PipeFlags::CLOEXEC)?;
    match fork::fork()? {
        Fork::Child => {
            drop((held, ready));
            let _ = stand(&ending, said, user);
            std::process::exit(0);
        }
        Fork::Parent(_) => {
            drop((ending, said));
            let mut word = [0; 1];
            match rustix::io::read(&ready, &mut word)? {
                1 => Ok(First { _held: held }),
                _ => Err(io::Error::other("no `/proc` of its own can be mounted")),
            }
        }
    }
}

fn stand(ending: &OwnedFd, said: OwnedFd, user: Option<u32>) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "proc", "proc", flags, c"")?;
    // It holds no end of the program's pipes, or they would not end with the program.
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    user::become_user(user)?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::io::write(&said, b".")?;
    drop(said);
    let pause = Timespec::try_from(Duration::from_millis(200)).unwrap_or_default();
    loop {
        let mut watched = [PollFd::from_borrowed_fd(ending.as_fd(), PollFlags::IN)];
        if poll(&mut watched, Some(&pause)).is_ok_and(|it| it > 0) {
            return Ok(());
        }
        // Those whose parents are gone are ours.
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    }
}
