//! What this machine's kernel holds a process with, found out by trying: our own binary, behind
//! walls, attempts to get out of them.

use std::ffi::OsString;
use std::fs::File;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::ExitCode;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{Pid, chroot, geteuid, getpid, getppid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::Namespaces;

/// What holds here, beside what is required anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    pub namespaces: Namespaces,
    /// Whether an agent has a user of its own.
    pub users: bool,
    /// Why there are no namespaces, where there are none.
    pub lacking: Option<String>,
    /// What was tried, all of it in vain.
    pub attempts: Vec<String>,
}

/// An attempt to get out, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub name: String,
    pub stopped: bool,
}

/// What the hidden mode is asked for.
pub const ATTEMPTS: &str = "attempts";

/// Tries, and says how it went. `server` is the process to be safe from this one.
pub fn answer(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let number = |it: OsString| it.to_str()?.parse::<i32>().ok();
    let (Some(server), Some(user)) =
        (arguments.next().and_then(number), arguments.next().and_then(number))
    else {
        return ExitCode::FAILURE;
    };
    match serde_json::to_string(&attempts(server, user)) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// `user` is whom we must be; a negative one is anybody.
fn attempts(server: i32, user: i32) -> Vec<Attempt> {
    let open = |path: &str| File::open(path).is_ok();
    // Where processes have numbers of their own, the server's can be ours, or that of the first one
    // of this world, which waits for us: a container's server is its process 1, or 2. The server
    // itself waits for nobody behind walls.
    let there = Pid::from_raw(server).filter(|it| *it != getpid() && Some(*it) != getppid());
    let signal = there.is_some_and(|it| test_kill_process(it).is_ok());
    let of_server = |path: &str| there.is_some() && open(&format!("/proc/{server}/{path}"));
    let elsewhere = format!("/var/tmp/chancery-{server}");
    let made = File::create(&elsewhere).is_ok();
    if made {
        let _ = std::fs::remove_file(&elsewhere);
    }
    let fields = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field =
        |name: &str| fields.lines().find_map(|it| Some(it.strip_prefix(name)?.trim().to_owned()));
    let powers = ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"];
    let powerful =
        powers.iter().any(|it| field(it).is_none_or(|it| it.contains(['1', '2', '4', '8', 'f'])));
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(usize::MAX, Iterator::count);
    let mine = i64::from(geteuid().as_raw());
    [
        ("list the root directory", std::fs::read_dir("/").is_ok()),
        ("read the passwords", open("/etc/shadow")),
        ("read the server's environment", of_server("environ")),
        ("go through the server's root directory", of_server("root/etc")),
        ("write to /var/tmp", made),
        ("connect over TCP", TcpStream::connect(("127.0.0.1", 9)).is_ok_or_refused()),
        ("make a UDP socket", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("make a unix socket", UnixDatagram::unbound().is_ok()),
        ("connect to a unix socket", UnixStream::connect("/run/nobody").is_ok_or_refused()),
        ("send the server a signal", signal),
        ("make a user namespace", unshare(CloneFlags::CLONE_NEWUSER).is_ok()),
        ("change the root directory", chroot("/").is_ok()),
        ("keep a capability", powerful),
        ("gain privileges", field("NoNewPrivs:").as_deref() != Some("1")),
        ("do without the filter", field("Seccomp:").as_deref() != Some("2")),
        // Standard input and outputs, and the one that looks.
        ("inherit a descriptor", descriptors > 4),
        ("be somebody else", user >= 0 && mine != i64::from(user)),
    ]
    .into_iter()
    .map(|(name, got_out)| Attempt { name: name.to_owned(), stopped: !got_out })
    .collect()
}

/// Whoever is told that nobody listens was let out to ask.
trait Reached {
    fn is_ok_or_refused(&self) -> bool;
}

impl<T> Reached for std::io::Result<T> {
    fn is_ok_or_refused(&self) -> bool {
        !matches!(self, Err(it) if it.kind() == std::io::ErrorKind::PermissionDenied)
    }
}
