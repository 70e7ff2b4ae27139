//! The hidden mode of our binary that stays: it has what every process behind walls stands on
//! ready, and makes a process for each order by forking itself, which costs a fraction of starting
//! our binary anew. It has one thread, reads nothing of what it passes on, and ends with the
//! server, together with all that it made.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

use fork::Fork;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group};

use super::ground::Ground;
use super::launch;
use super::namespaces::Namespaces;

/// What the hidden mode is asked for.
pub const RESIDENT: &str = "resident";
/// What comes with each message: the order, input, output, error output, and where to say how it
/// went.
pub const ENDS: usize = 5;

/// With how long a delay those who have ended are looked for.
const REAP: Duration = Duration::from_secs(1);

/// What is said of a process, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// As the kernel puts it.
    Ended(i32),
    /// It never began: its walls could not be put up.
    Refused(String),
}

impl Word {
    pub fn read(said: &[u8]) -> Option<Word> {
        match said.split_first()? {
            (b'e', number) => Some(Word::Ended(i32::from_ne_bytes(number.try_into().ok()?))),
            (b'r', why) => Some(Word::Refused(String::from_utf8_lossy(why).into_owned())),
            _ => None,
        }
    }

    pub fn written(&self) -> Vec<u8> {
        match self {
            Word::Ended(number) => [b"e", &number.to_ne_bytes()[..]].concat(),
            Word::Refused(why) => [b"r", why.as_bytes()].concat(),
        }
    }
}

/// Until the server is gone. Our input is the line to it.
pub fn stay(namespaces: Namespaces) -> ExitCode {
    match serve(namespaces) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody is there to be told: the server sees the line break.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(namespaces: Namespaces) -> io::Result<()> {
    close_inherited()?;
    let line = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    // What the ground is made of is for everyone to read.
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    let mut ground = Ground::prepare(namespaces);
    let mut living: Vec<Pid> = Vec::new();
    let done = loop {
        if !living.is_empty() && !came(&line)? {
            reap(&mut living);
            continue;
        }
        let ends = match receive(&line) {
            Ok(Some(ends)) => ends,
            Ok(None) => break Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break Err(error),
        };
        reap(&mut living);
        if let Ok(ground) = &mut ground {
            ground.refresh();
        }
        let [order, stdin, stdout, stderr, word] = ends;
        match make(ground.as_ref().ok()) {
            Ok(Fork::Child) => {
                drop((line, null));
                launch::launch(ground, order, [stdin, stdout, stderr], word);
            }
            Ok(Fork::Parent(number)) => {
                let leader = Pid::from_raw(number);
                // It does the same: whoever comes first, nobody can miss the group from here on.
                let _ = rustix::process::setpgid(leader, leader);
                living.extend(leader);
                // If nobody listens any more, the process ends with the line that it speaks on.
                let _ = rustix::io::write(&word, &number.to_ne_bytes());
            }
            Err(_) => {
                let _ = rustix::io::write(&word, &0_i32.to_ne_bytes());
            }
        }
    };
    // Nobody is left to wait for what they do.
    for leader in living {
        let _ = kill_process_group(leader, Signal::KILL);
    }
    done
}

/// Makes a process that is the first of a world of its own where we may make such worlds.
fn make(ground: Option<&Ground>) -> io::Result<Fork> {
    let Some(ground) = ground else { return fork::fork() };
    ground.number_anew()?;
    let made = fork::fork();
    if !matches!(made, Ok(Fork::Child)) {
        ground.number_as_before()?;
    }
    made
}

fn came(line: &OwnedFd) -> io::Result<bool> {
    let pause = Timespec::try_from(REAP).unwrap_or_default();
    let mut watched = [PollFd::from_borrowed_fd(line.as_fd(), PollFlags::IN)];
    match poll(&mut watched, Some(&pause)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn reap(living: &mut Vec<Pid>) {
    while let Ok(Some((gone, _))) = rustix::process::wait(WaitOptions::NOHANG) {
        living.retain(|it| *it != gone);
    }
}

fn receive(line: &OwnedFd) -> io::Result<Option<[OwnedFd; ENDS]>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ENDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut into = [IoSliceMut::new(&mut byte)];
    let came = rustix::net::recvmsg(line, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if came.bytes == 0 {
        return Ok(None);
    }
    let mut ends = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            ends.extend(some);
        }
    }
    let ends = ends.try_into().map_err(|_| io::Error::other("not one of our messages"))?;
    Ok(Some(ends))
}

/// What the server's own parent left open when it started the server is not for programs.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = std::fs::read_dir("/proc/self/fd")?
        .filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok())
        .filter(|it| *it > 2)
        .collect();
    for descriptor in open {
        // The one that the list was read with is closed already.
        let _ = nix::unistd::close(descriptor);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_as_it_was_written() {
        for word in [Word::Ended(0), Word::Ended(256), Word::Refused("mounts: no".to_owned())] {
            assert_eq!(Word::read(&word.written()), Some(word));
        }
        assert_eq!(Word::read(b""), None);
        assert_eq!(Word::read(b"e12"), None);
    }
}
