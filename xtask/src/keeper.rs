//! What must not outlive the task runner, and the shell that sees to it.
//!
//! The standard library cannot catch a signal, and nothing can catch SIGKILL. So the cleaning up
//! is done by a small shell that waits for its standard input to close, which the kernel does
//! however we end. A good end and a bad one take the same path.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, Result};

use crate::process::command;

#[derive(Debug)]
pub struct Keeper {
    shell: Child,
}

impl Keeper {
    pub fn start() -> Result<Keeper> {
        let shell = command("sh")
            .args(["-c", include_str!("keeper.sh")])
            .stdin(Stdio::piped())
            // A Ctrl-C of the terminal is for us, not for the one who cleans up after it.
            .process_group(0)
            .spawn()
            .context("cannot start `sh`")?;
        Ok(Keeper { shell })
    }

    /// End this process and all of its group with us.
    pub fn group(&mut self, pid: u32) -> Result<()> {
        self.tell("group", &pid.to_string())
    }

    /// End this process with us.
    pub fn process(&mut self, pid: u32) -> Result<()> {
        self.tell("process", &pid.to_string())
    }

    /// It ended by itself: its number may soon be someone else's.
    pub fn ended(&mut self, pid: u32) -> Result<()> {
        self.tell("ended", &pid.to_string())
    }

    /// Stop this PostgreSQL after everything that may use it.
    pub fn server(&mut self, pid: u32) -> Result<()> {
        self.tell("server", &pid.to_string())
    }

    /// Remove this folder last.
    pub fn remove(&mut self, folder: &Path) -> Result<()> {
        self.tell("remove", &folder.display().to_string())
    }

    fn tell(&mut self, word: &str, value: &str) -> Result<()> {
        let pipe = self.shell.stdin.as_mut().context("the keeper has no pipe")?;
        writeln!(pipe, "{word} {value}").context("the keeper is gone")
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // It cannot fail in a way that we could mend.
        let _ = self.shell.wait();
    }
}
