//! The rules about this tree that the compiler cannot hold. Every finding names the file and the
//! rule, and all are printed at once.

mod edges;
mod source;
mod words;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::{command, output};

/// A rule that a file breaks.
#[derive(Debug, PartialEq)]
pub struct Finding {
    path: String,
    /// 0: the file as a whole.
    line: usize,
    rule: String,
}

/// A text file of the tree. Paths are relative to the root, with `/`.
#[derive(Debug)]
pub struct SourceFile {
    path: String,
    text: String,
}

pub fn report() -> Result<()> {
    let files = files()?;
    let findings = findings(&files);
    if findings.is_empty() {
        println!("{} files are tidy", files.len());
        return Ok(());
    }
    let list: Vec<String> = findings.iter().map(Finding::to_string).collect();
    bail!("{} findings:\n{}", list.len(), list.join("\n"));
}

fn findings(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = edges::check(files);
    findings.extend(files.iter().flat_map(source::check));
    findings.extend(words::check(files));
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    findings
}

/// Where the workspace is: the parent of this package. Asked of the cargo that runs us, not of the
/// one that built us: two checkouts may share what was built.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    package.parent().map_or(package.clone(), Path::to_owned)
}

/// What git tracks or would, if it were added.
fn files() -> Result<Vec<SourceFile>> {
    let mut git = command("git");
    // A checkout may belong to someone else than the one who tests it.
    git.arg("-C").arg(root()).args(["-c", "safe.directory=*", "ls-files", "-z"]);
    let listed = output(git.args(["--cached", "--others", "--exclude-standard"]))?;
    let listed = String::from_utf8(listed).context("a file name is not UTF-8")?;
    let mut files = Vec::new();
    for path in listed.split_terminator('\0') {
        let whole: PathBuf = root().join(path);
        // What is deleted and not yet committed is still listed.
        let Ok(bytes) = fs::read(&whole) else { continue };
        // Pictures have no lines.
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(SourceFile { path: path.to_owned(), text });
        }
    }
    Ok(files)
}

impl SourceFile {
    fn finding(&self, line: usize, rule: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, rule: rule.into() }
    }

    /// The lines with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.rule),
            line => write!(out, "{}:{line}: {}", self.path, self.rule),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        report().unwrap();
    }

    pub(super) fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    pub(super) fn printed(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(Finding::to_string).collect()
    }
}
