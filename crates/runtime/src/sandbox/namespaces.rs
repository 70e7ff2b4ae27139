//! A world of its own: mounts, process ids, shared memory, host name and network that nobody else
//! is in. Beside the walls that are required, and only where the kernel lets us.

use std::io::{self, Write as _};

use fork::Fork;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_change};
use rustix::process::{
    Pid, Signal, WaitOptions, getegid, geteuid, set_parent_process_death_signal,
};
use serde::{Deserialize, Serialize};

use super::ground::Ground;

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

impl Namespaces {
    pub fn name(self) -> &'static str {
        match self {
            Namespaces::None => "none",
            Namespaces::Own => "own",
            Namespaces::Users => "users",
        }
    }

    pub fn named(name: &str) -> Option<Namespaces> {
        [Namespaces::None, Namespaces::Own, Namespaces::Users]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

/// For the resident launcher, once: mounts of its own, and where it has no privileges a user
/// namespace in which it has them. Must come while it has one thread.
pub fn prepare(namespaces: Namespaces) -> Result<(), String> {
    match namespaces {
        Namespaces::None => return Ok(()),
        Namespaces::Own => unshare(CloneFlags::CLONE_NEWNS).map_err(|it| it.to_string())?,
        Namespaces::Users => {
            let (user, group) = (geteuid().as_raw(), getegid().as_raw());
            let flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUSER;
            unshare(flags).map_err(|it| it.to_string())?;
            let map = |name: &str, text: &str| {
                let written = std::fs::OpenOptions::new()
                    .write(true)
                    .open(format!("/proc/self/{name}"))
                    .and_then(|mut it| it.write_all(text.as_bytes()));
                written.map_err(|it| format!("/proc/self/{name}: {it}"))
            };
            map("setgroups", "deny")?;
            map("uid_map", &format!("{user} {user} 1"))?;
            map("gid_map", &format!("{group} {group} 1"))?;
        }
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(|it| it.to_string())
}

/// For a process that the resident has made: all that is left to make it a world of its own. Ends
/// in the first process of it.
pub fn enter(ground: &Ground, network: bool) -> io::Result<()> {
    let mut flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWCGROUP;
    if !network && !ground.leave_network()? {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    match ground.namespaces {
        Namespaces::None => Ok(()),
        Namespaces::Own => Ok(unshare(flags)?),
        Namespaces::Users => {
            unshare(flags | CloneFlags::CLONE_NEWPID)?;
            become_first()
        }
    }
}

/// Goes on as a child of this process, which waits for its end.
fn become_first() -> io::Result<()> {
    match fork::fork()? {
        Fork::Child => Ok(set_parent_process_death_signal(Some(Signal::KILL))?),
        Fork::Parent(number) => {
            let first = Pid::from_raw(number);
            while rustix::process::waitpid(first, WaitOptions::empty())
                .is_err_and(|it| it == rustix::io::Errno::INTR)
            {}
            std::process::exit(0);
        }
    }
}

/// Mounts this world's own `/proc` at `proc` beneath the working directory.
pub fn mount_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(rustix::mount::mount("proc", "proc", "proc", flags, c"")?)
}
