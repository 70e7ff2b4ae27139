//! Lines from whoever is at standard input, a terminal or not. Nothing is read ahead of its
//! question: whoever is handed the terminal meanwhile, an editor for one, has it alone.

use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long one look at the input takes at most.
const LOOK: Duration = Duration::from_millis(200);
/// A longer line is nobody's answer.
const LINE_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub struct Prompt {
    pub is_terminal: bool,
    read: Vec<u8>,
    ended: bool,
}

/// What a look at the input found.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    Line(String),
    Nothing,
    End,
}

impl Prompt {
    pub fn new() -> Prompt {
        let is_terminal = std::io::stdin().is_terminal();
        Prompt { is_terminal, read: Vec::new(), ended: false }
    }

    /// Says something without ending the line, where a person can see it.
    pub fn say(&self, text: &str) {
        let mut err = std::io::stderr();
        // Nobody may be there to read it.
        let _ = write!(err, "{text}").and_then(|()| err.flush());
    }

    /// Waits a little for a line.
    pub async fn look(&mut self) -> anyhow::Result<Look> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Look::Line(line));
            }
            if self.ended || self.read.len() > LINE_MAX {
                return Ok(Look::End);
            }
            let Some(bytes) = tokio::task::spawn_blocking(|| readable(LOOK)).await?? else {
                return Ok(Look::Nothing);
            };
            self.ended = bytes.is_empty();
            self.read.extend(bytes);
        }
    }

    /// The answer to a question; `None` where nobody answers any more.
    pub async fn ask(&mut self, question: &str) -> anyhow::Result<Option<String>> {
        self.say(question);
        loop {
            match self.look().await? {
                Look::Line(line) => return Ok(Some(line)),
                Look::Nothing => {}
                Look::End => {
                    self.say("\n");
                    return Ok(None);
                }
            }
        }
    }

    /// A word for yes or one for no: nothing is taken for either.
    pub async fn confirm(&mut self, question: &str) -> anyhow::Result<bool> {
        loop {
            match self.ask(question).await?.as_deref() {
                Some("yes" | "y") => return Ok(true),
                Some("no" | "n") | None => return Ok(false),
                Some(_) => {}
            }
        }
    }

    /// Forgets what was typed so far; answers whether there was a whole line.
    pub fn forget(&mut self) -> anyhow::Result<bool> {
        let mut lines = self.read.contains(&b'\n');
        while !self.ended {
            let Some(bytes) = readable(Duration::ZERO)? else { break };
            self.ended = bytes.is_empty();
            lines |= bytes.contains(&b'\n');
        }
        self.read.clear();
        // What was typed and not yet ended by Enter.
        let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
        Ok(lines)
    }

    fn take_line(&mut self) -> Option<String> {
        let end = match self.read.iter().position(|it| *it == b'\n') {
            Some(end) => end + 1,
            // The last line may lack its end.
            None if self.ended && !self.read.is_empty() => self.read.len(),
            None => return None,
        };
        let line: Vec<u8> = self.read.drain(..end).collect();
        Some(String::from_utf8_lossy(&line).trim().to_owned())
    }
}

/// What has come, waiting for it no longer than that; empty at the end of the input. Never waits
/// for more than is there.
fn readable(wait: Duration) -> std::io::Result<Option<Vec<u8>>> {
    let stdin = std::io::stdin();
    let fd = stdin.as_fd();
    let timeout = Timespec::try_from(wait).ok();
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], timeout.as_ref()) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut bytes = vec![0; 4096];
    match rustix::io::read(fd, &mut bytes) {
        Ok(length) => {
            bytes.truncate(length);
            Ok(Some(bytes))
        }
        Err(Errno::INTR | Errno::AGAIN) => Ok(None),
        // The terminal is gone.
        Err(Errno::IO) => Ok(Some(Vec::new())),
        Err(error) => Err(error.into()),
    }
}
