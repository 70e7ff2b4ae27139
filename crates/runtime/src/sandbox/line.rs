//! The server's line to its resident launcher. What is to be started goes out with the far ends of
//! its pipes; who it is and how it ended comes back.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::resident::{self, ENDS, Word};
use super::{Belongings, MODE, Namespaces, Order};

/// All clones of a launcher have one.
#[derive(Debug)]
pub struct Line {
    /// Our own binary. Absent where the resident was started by somebody else.
    program: Option<PathBuf>,
    namespaces: Namespaces,
    /// Absent until it is needed, and once it broke.
    open: Mutex<Option<Arc<Open>>>,
}

#[derive(Debug)]
struct Open {
    line: UnixStream,
    /// It ends by itself when the line does.
    _resident: Option<Child>,
}

/// What was started, and our ends of its pipes.
#[derive(Debug)]
pub struct Launched {
    pub stdin: Option<pipe::Sender>,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
    pub end: End,
}

/// Whether a process is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Nothing,
    Piped,
}

/// How long the resident may take to say that it has started something. It takes less than a
/// millisecond; a machine that is busy may need more.
const PATIENCE: Duration = Duration::from_secs(10);
/// An order holds arguments and an environment, and those have their own bounds.
const ORDER_BYTES_MAX: usize = 4 << 20;

impl Line {
    pub fn new(program: PathBuf, namespaces: Namespaces) -> Line {
        Line { program: Some(program), namespaces, open: Mutex::default() }
    }

    /// To a resident that somebody else has started, with the other end as its input.
    pub fn to(line: UnixStream, namespaces: Namespaces) -> Line {
        let open = Open { line, _resident: None };
        Line { program: None, namespaces, open: Mutex::new(Some(Arc::new(open))) }
    }

    /// What the resident is started with.
    pub fn arguments(namespaces: Namespaces) -> [&'static str; 3] {
        [MODE, resident::RESIDENT, namespaces.name()]
    }

    pub(super) fn launch(
        &self,
        order: &Order,
        input: Input,
        belongings: Belongings,
    ) -> io::Result<Launched> {
        let file = written(order)?;
        let (stdin, ours) = match input {
            Input::Nothing => (OwnedFd::from(std::fs::File::open("/dev/null")?), None),
            Input::Piped => {
                let (theirs, ours) = io::pipe()?;
                (OwnedFd::from(theirs), Some(ours))
            }
        };
        let (stdout, theirs_out) = io::pipe()?;
        let (stderr, theirs_err) = io::pipe()?;
        let ends = [file.as_fd(), stdin.as_fd(), theirs_out.as_fd(), theirs_err.as_fd()];
        let (mut word, leader) = self.ask(ends)?;
        // From here on its end is ours to bring about, whatever else fails.
        let limits = order.walls.limits;
        let led = Led(Some(leader));
        if let Some(group) = &belongings.group {
            group.admit(leader, &limits)?;
        }
        word.write_all(b"g")?;
        word.set_nonblocking(true)?;
        let word = tokio::net::UnixStream::from_std(word)?;
        Ok(Launched {
            stdin: ours.map(|it| pipe::Sender::from_owned_fd(it.into())).transpose()?,
            stdout: pipe::Receiver::from_owned_fd(stdout.into())?,
            stderr: pipe::Receiver::from_owned_fd(stderr.into())?,
            end: End { word, said: Vec::new(), leader: led, belongings },
        })
    }

    /// Once more with a new resident where the one that we had is gone.
    fn ask(&self, ends: [BorrowedFd<'_>; ENDS - 1]) -> io::Result<(UnixStream, Pid)> {
        let first = self.ask_once(ends);
        match first {
            Err(error) if self.program.is_some() && is_gone(&error) => self.ask_once(ends),
            outcome => outcome,
        }
    }

    fn ask_once(&self, ends: [BorrowedFd<'_>; ENDS - 1]) -> io::Result<(UnixStream, Pid)> {
        let (mut word, theirs) = UnixStream::pair()?;
        let [order, stdin, stdout, stderr] = ends;
        let ends = [order, stdin, stdout, stderr, theirs.as_fd()];
        let line = self.line()?;
        let mut number = [0; 4];
        let told = send(&line.line, ends).and_then(|()| {
            drop(theirs);
            word.set_read_timeout(Some(PATIENCE))?;
            word.read_exact(&mut number)
        });
        if let Err(error) = told {
            if is_gone(&error) {
                self.forget(&line);
            }
            return Err(error);
        }
        let leader = Pid::from_raw(i32::from_ne_bytes(number));
        let leader = leader.ok_or_else(|| io::Error::other("no process can be made"))?;
        Ok((word, leader))
    }

    /// The one that is open, or a new one.
    fn line(&self) -> io::Result<Arc<Open>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let line = match open.take() {
            Some(line) => line,
            None => Arc::new(self.open()?),
        };
        Ok(open.insert(line).clone())
    }

    /// That very one, and not what somebody else has opened since: with a line goes all that its
    /// resident has made.
    fn forget(&self, line: &Arc<Open>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.take_if(|it| Arc::ptr_eq(it, line));
    }

    #[expect(clippy::disallowed_methods, reason = "the launcher of all the others is ours")]
    fn open(&self) -> io::Result<Open> {
        let Some(program) = &self.program else {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the launcher is gone"));
        };
        let (line, theirs) = UnixStream::pair()?;
        let mut command = Command::new(program);
        command.args(Line::arguments(self.namespaces)).env_clear().current_dir("/");
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        // A signal from the terminal is for the server to make of what it will.
        let resident =
            command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
        Ok(Open { line, _resident: Some(resident) })
    }
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn send(line: &UnixStream, ends: [BorrowedFd<'_>; ENDS]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ENDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&ends)) {
        return Err(io::Error::other("no room for the ends of pipes"));
    }
    rustix::net::sendmsg(line, &[IoSlice::new(b".")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// In a file that only its holders can reach: the resident does not read it, for what it read
/// would be in the memory of every process that it makes later.
fn written(order: &Order) -> io::Result<OwnedFd> {
    let text = serde_json::to_vec(order)?;
    if text.len() > ORDER_BYTES_MAX {
        let kind = io::ErrorKind::ArgumentListTooLong;
        return Err(io::Error::new(kind, "its arguments and its walls are too long"));
    }
    let file = rustix::fs::memfd_create("order", MemfdFlags::CLOEXEC)?;
    let mut at = 0;
    while at < text.len() {
        at += rustix::io::pwrite(&file, &text[at..], at as u64)?;
    }
    Ok(file)
}

/// The end of a process, when it comes. The process ends with this value.
#[derive(Debug)]
pub struct End {
    word: tokio::net::UnixStream,
    said: Vec<u8>,
    leader: Led,
    belongings: Belongings,
}

impl End {
    /// How it ended, or why it never began. May be given up and asked for again.
    pub async fn wait(&mut self) -> io::Result<Result<ExitStatus, String>> {
        loop {
            // Before whoever said it is gone: he takes a whole world down with him.
            if let Some(Word::Ended(status)) = Word::read(&self.said) {
                return Ok(Ok(ExitStatus::from_raw(status)));
            }
            if self.word.read_buf(&mut self.said).await? == 0 {
                break;
            }
        }
        Ok(match Word::read(&self.said) {
            Some(Word::Refused(why)) => Err(why),
            // Whoever had to say it was killed before he could.
            _ => Ok(ExitStatus::from_raw(Signal::KILL.as_raw())),
        })
    }

    pub fn kill(&mut self) {
        self.leader.kill();
    }
}

/// The leader of a process group, which ends with this value.
#[derive(Debug)]
struct Led(Option<Pid>);

impl Led {
    /// Kills every process of the group. Once, and at the latest right after the leader's end: the
    /// number stays taken while a member lives, and is not given out again soon after.
    fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            // An error says that none is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Led {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.kill();
        drop(std::mem::take(&mut self.belongings));
    }
}
