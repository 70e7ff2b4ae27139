//! A terminal of the test's own, with a program on it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

pub struct Terminal {
    keys: File,
    seen: Receiver<Vec<u8>>,
    /// Everything that was on the screen so far.
    pub screen: String,
    /// How much of it was looked at.
    read: usize,
    program: Option<File>,
    child: Option<Child>,
}

impl Terminal {
    pub fn new() -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let keys = File::from(ours);
        let mut screen = keys.try_clone().unwrap();
        let (send, seen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // An error: the last program has left.
            while let Ok(length @ 1..) = screen.read(&mut bytes) {
                if send.send(bytes[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
        let program = Some(File::from(theirs));
        Terminal { keys, seen, screen: String::new(), read: 0, program, child: None }
    }

    pub fn start(&mut self, mut command: Command) {
        let theirs = self.program.take().unwrap();
        let clone = || Stdio::from(theirs.try_clone().unwrap());
        command.stdin(clone()).stdout(clone()).stderr(clone());
        self.child = Some(command.spawn().unwrap());
    }

    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until that is on the screen, behind what was waited for before.
    #[track_caller]
    pub fn shows(&mut self, text: &str) {
        loop {
            if let Some(at) = self.screen[self.read..].find(text) {
                self.read += at + text.len();
                return;
            }
            match self.seen.recv_timeout(Duration::from_secs(30)) {
                Ok(bytes) => self.screen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("`{text}` does not come after:\n{}", self.screen),
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Waits for the program to end; its exit code.
    pub fn ended(&mut self) -> i32 {
        self.child.as_mut().unwrap().wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
