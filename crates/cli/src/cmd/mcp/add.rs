//! `add`: an MCP server's entry in `tools.yaml`. A server that uses the directory takes it up by
//! itself.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chancery_server::organisation::{load, read_files};
use serde_json::json;
use toml::Table;

use crate::Global;
use crate::outcome::{Misused, Outcome, Stopped};
use crate::output;
use crate::server::settings;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its tools are called `mcp__NAME__TOOL`
    name: String,
    /// Where it is reached
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    url: Option<String>,
    /// What starts it, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// The organisation's files [default: those of the settings]
    #[arg(long, value_name = "DIR")]
    org: Option<PathBuf>,
}

pub fn add(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let dir = match args.org {
        Some(dir) => Some(dir),
        None => settings(global, Table::new())?.0.org,
    };
    let Some(dir) = dir else {
        let said = "the built-in organisation has no files: `chancery org init DIR` writes them";
        return Err(Misused(said.to_owned()).into());
    };
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if args.name.is_empty() || !args.name.chars().all(plain) {
        let said = format!("`{}` is no name: letters, digits, `_` and `-`", args.name);
        return Err(Misused(said).into());
    }
    let entry = match args.url {
        Some(url) => json!({ "url": url }),
        None => json!({ "command": args.command }),
    };
    let file = dir.join("tools.yaml");
    write(&dir, &file, &args.name, &entry.to_string())?;
    if global.json {
        output::json(&json!({ "name": args.name, "file": file.display().to_string() }))?;
    } else {
        output::line(format_args!("`{}` is in {}", args.name, file.display()))?;
    }
    Ok(Outcome::Done)
}

/// What the organisation cannot be used with is left as it was.
fn write(dir: &Path, file: &Path, name: &str, entry: &str) -> anyhow::Result<()> {
    let before = match std::fs::read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("`{}`", file.display())),
    };
    let text = before.as_deref().unwrap_or("extends: builtin\n");
    let Some(with) = with_entry(text, name, entry) else {
        let said = format!("`mcp` in {} is on one line: write it there", file.display());
        return Err(Stopped::new(Outcome::Failed, "not_written", said).into());
    };
    std::fs::write(file, with).with_context(|| format!("`{}`", file.display()))?;
    let (files, mistakes) = read_files(Some(dir));
    let Err(wrong) = load(files, mistakes) else { return Ok(()) };
    match before {
        Some(text) => std::fs::write(file, text)?,
        None => std::fs::remove_file(file)?,
    }
    let first = wrong.first().map(ToString::to_string).unwrap_or_default();
    Err(Stopped::new(Outcome::Failed, "not_written", first).into())
}

/// The file with one entry more, in the block that it has or in one of its own. JSON is YAML.
fn with_entry(text: &str, name: &str, entry: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = lines.iter().position(|it| it.starts_with("mcp:")) else {
        return Some(format!("{}\nmcp:\n  {name}: {entry}\n", text.trim_end()));
    };
    let rest = lines[at]["mcp:".len()..].split('#').next().unwrap_or_default().trim();
    if !matches!(rest, "" | "{}") {
        return None;
    }
    let next = lines.get(at + 1).filter(|it| it.starts_with(' ') && !it.trim().is_empty());
    let indent = next.map_or(2, |it| it.len() - it.trim_start().len());
    let mut with: Vec<String> = lines[..at].iter().map(|it| (*it).to_owned()).collect();
    with.extend(["mcp:".to_owned(), format!("{:indent$}{name}: {entry}", "")]);
    with.extend(lines[at + 1..].iter().map(|it| (*it).to_owned()));
    Some(with.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_put_where_the_others_are() {
        let with = |text: &str| with_entry(text, "files", "{}");
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(with("extends: builtin\n"), some("extends: builtin\nmcp:\n  files: {}\n"));
        assert_eq!(with("mcp: {}\ntools: {}\n"), some("mcp:\n  files: {}\ntools: {}\n"));
        let block = "mcp: # ours\n    a: {url: x}\ntools: {}\n";
        assert_eq!(with(block), some("mcp:\n    files: {}\n    a: {url: x}\ntools: {}\n"));
        assert_eq!(with("mcp: {a: {url: x}}\n"), None);
    }
}
