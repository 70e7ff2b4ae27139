//! Starts other programs: the one file of the task runner that does, [`crate::cluster`] apart.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

use crate::keeper::Keeper;

#[expect(clippy::disallowed_methods, reason = "a task runner runs programs")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // `cargo run` describes the task runner's own package to us. Handed on, that would look like
    // a change to every build script that watches these, and they would all run again.
    for (name, _) in std::env::vars_os() {
        let told = name.to_string_lossy();
        if told.starts_with("CARGO_PKG_") || told.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a program to its end, and all that it started ends with us.
pub fn run(keeper: &mut Keeper, command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    // In a group of its own it is not the terminal's, so it must not read from there.
    command.process_group(0).stdin(Stdio::null());
    let mut child = command.spawn().with_context(|| format!("cannot start `{name}`"))?;
    keeper.group(child.id())?;
    let status = child.wait()?;
    keeper.ended(child.id())?;
    if !status.success() {
        bail!("`{}` failed ({status})", spelled(command));
    }
    Ok(())
}

/// Runs a program that owns the terminal: it reads what is typed and gets the Ctrl-C itself.
pub fn run_in_terminal(keeper: &mut Keeper, command: &mut Command) -> Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("cannot start `{name}`"))?;
    keeper.process(child.id())?;
    let status = child.wait()?;
    keeper.ended(child.id())?;
    Ok(status)
}

/// Whether a program is there and answers.
pub fn answers(program: &str, arguments: &[&str]) -> bool {
    command(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// What a program prints.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let spelled = spelled(command);
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{spelled}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{spelled}` failed: {}", said.trim());
    }
    Ok(output.stdout)
}

pub fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
