//! `org`: who there is. Directories are read here, without a server; versions are asked for.

mod show;
pub mod side;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chancery_api::client::ClientError;
use chancery_api::org::{Changed, NewOrg};
use chancery_server::organisation::difference::{Effect, difference};
use chancery_server::organisation::mistake::{Mistake, Severity};
use chancery_server::organisation::{Files, load, read_files};
use clap::Subcommand;
use serde_json::json;
use toml::Table;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output::{self, visible};
use crate::server::{client, settings};
use crate::window::Window;
use side::Side;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Who there is; with --tools, which role has which tool; with --chart, who reports to whom;
    /// with --mail, who writes what to whom
    Show {
        /// A directory, a version's number, `running` or `builtin` [default: the server's]
        which: Option<Side>,
        #[arg(long, group = "view")]
        tools: bool,
        #[arg(long, group = "view")]
        chart: bool,
        #[arg(long, group = "view")]
        mail: bool,
    },
    /// Writes the built-in organisation out, for you to change
    Init { dir: PathBuf },
    /// Finds every mistake in an organisation's files, without a server
    Check {
        /// [default: the one that is set as `org`, else the built-in one]
        dir: Option<PathBuf>,
    },
    /// What is different in meaning
    Diff {
        /// A directory, a version's number, `running` or `builtin`
        from: Side,
        /// [default: running]
        to: Option<Side>,
    },
    /// Every version that was in force
    History {
        #[command(flatten)]
        window: Window,
    },
    /// Puts a directory's files in force on the server
    Apply {
        dir: PathBuf,
        /// Only say what would be
        #[arg(long)]
        dry_run: bool,
    },
    /// Writes the files in force into a directory
    Export { dir: PathBuf },
    /// Puts an earlier version in force again
    Revert { version: u64 },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Show { which, tools, chart, mail } => {
            let loaded = side::of(global, which).await?;
            match (tools, chart, mail) {
                (true, ..) => show::matrix(global, &loaded)?,
                (_, true, _) => show::chart(global, &loaded.org)?,
                (_, _, true) => show::mail(global, &loaded.org)?,
                _ => show::people(global, &loaded.org)?,
            }
            Ok(Outcome::Done)
        }
        Command::Init { dir } => {
            write_out(&dir, &Files::default())?;
            said(global, &dir, "the built-in organisation")
        }
        Command::Check { dir } => check(global, dir),
        Command::Diff { from, to } => diff(global, from, to).await,
        Command::History { window } => history(global, &window).await,
        Command::Apply { dir, dry_run } => {
            let (files, mistakes) = read_files(Some(&dir));
            // What is wrong with the directory itself no server can see.
            if mistakes.has_errors() {
                return report(global, &load(files, mistakes).err().unwrap_or_default(), "");
            }
            let files = files.iter().map(|(name, text)| (name.to_owned(), text.to_owned()));
            change(global, NewOrg { files: files.collect() }, dry_run).await
        }
        Command::Export { dir } => {
            let loaded = side::of(global, Some(Side::Running)).await?;
            write_out(&dir, &loaded.files)?;
            said(global, &dir, "the organisation in force")
        }
        Command::Revert { version } => {
            let kept = client(global)?.org_version(version).await?;
            change(global, NewOrg { files: kept.files }, false).await
        }
    }
}

fn check(global: &Global, dir: Option<PathBuf>) -> anyhow::Result<Outcome> {
    let dir = match dir {
        Some(dir) => Some(dir),
        None => settings(global, Table::new())?.0.org,
    };
    let (files, mistakes) = read_files(dir.as_deref());
    match load(files, mistakes) {
        Ok(loaded) => {
            let counted = format!(
                "{} agents, {} tools, ",
                loaded.org.agents().count(),
                loaded.facts.names().count()
            );
            report(global, &loaded.warnings, &counted)
        }
        Err(mistakes) => report(global, &mistakes, ""),
    }
}

/// Everything that is wrong, and the exit code of it.
fn report(global: &Global, mistakes: &[Mistake], counted: &str) -> anyhow::Result<Outcome> {
    let errors = mistakes.iter().filter(|it| it.severity == Severity::Error).count();
    let warnings = mistakes.len() - errors;
    if global.json {
        let items: Vec<_> = mistakes.iter().map(as_json).collect();
        output::json(&json!({
            "ok": errors == 0, "errors": errors, "warnings": warnings, "mistakes": items,
        }))?;
    } else {
        let problems = mistakes.len();
        output::line(format_args!("org   {counted}{}", number(problems, "problem")))?;
        let width = mistakes.iter().map(|it| it.detail.chars().count()).max().unwrap_or(0).min(90);
        for Mistake { file, line, column, code, detail, hint, .. } in mistakes {
            let detail = visible(detail).replace('\n', " ");
            output::line(format_args!("{code} {detail:<width$}  {file}:{line}:{column}"))?;
            if let Some(hint) = hint {
                output::line(format_args!("     {}", visible(hint)))?;
            }
        }
        if problems > 0 {
            let (errors, warnings) = (number(errors, "error"), number(warnings, "warning"));
            output::line(format_args!("{errors}, {warnings}"))?;
        }
    }
    Ok(if errors == 0 { Outcome::Done } else { Outcome::Failed })
}

fn number(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn as_json(it: &Mistake) -> serde_json::Value {
    json!({
        "file": it.file, "line": it.line, "column": it.column, "severity": it.severity.as_str(),
        "code": it.code, "detail": it.detail, "hint": it.hint,
    })
}

async fn diff(global: &Global, from: Side, to: Option<Side>) -> anyhow::Result<Outcome> {
    let from = side::of(global, Some(from)).await?;
    let to = side::of(global, Some(to.unwrap_or(Side::Running))).await?;
    let found = difference(&from, &to);
    if global.json {
        let items = found.iter().map(|it| {
            json!({ "subject": it.subject, "detail": it.detail, "effect": it.effect.as_str() })
        });
        output::json(&items.collect::<Vec<_>>())?;
        return Ok(Outcome::Done);
    }
    for it in &found {
        let mark = mark(it.effect.as_str());
        output::line(format_args!("{mark} {}: {}", visible(&it.subject), visible(&it.detail)))?;
    }
    if found.is_empty() {
        output::line(format_args!("no difference in meaning"))?;
    }
    Ok(Outcome::Done)
}

/// Whether agents may do more, less, or something else.
fn mark(effect: &str) -> char {
    match effect {
        it if it == Effect::Wider.as_str() => '+',
        it if it == Effect::Narrower.as_str() => '-',
        _ => '~',
    }
}

async fn history(global: &Global, window: &Window) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    let mut items = Vec::new();
    let mut cursor = None;
    loop {
        let mut query = vec![("limit", "200".to_owned())];
        query.extend(cursor.map(|it| ("cursor", it)));
        let page = client.org_versions(&query).await?;
        items.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    window.cut(&mut items, |it| it.at)?;
    if global.json {
        output::list(&items)?;
        return Ok(Outcome::Done);
    }
    let rows = items.into_iter().map(|it| {
        let digest = it.digest.chars().take(12).collect();
        vec![it.version.to_string(), it.at.to_string(), it.source, it.by, digest]
    });
    output::table(&["VERSION", "AT", "SOURCE", "BY", "DIGEST"], rows.collect())?;
    Ok(Outcome::Done)
}

async fn change(global: &Global, new: NewOrg, only_check: bool) -> anyhow::Result<Outcome> {
    let changed = match client(global)?.change_org(&new, only_check).await {
        Ok(changed) => changed,
        Err(ClientError::Problem(problem)) if !problem.mistakes.is_empty() && !global.json => {
            for it in &problem.mistakes {
                let place = format!("{}:{}:{}", it.file, it.line, it.column);
                let hint = it.hint.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
                let line = format!("{} {}{hint}  {place}", it.code, it.detail);
                output::line(format_args!("{}", visible(&line)))?;
            }
            return Err(ClientError::Problem(problem).into());
        }
        Err(error) => return Err(error.into()),
    };
    if global.json {
        output::json(&changed)?;
        return Ok(Outcome::Done);
    }
    let Changed { version, differences, .. } = changed;
    for it in differences {
        let mark = mark(&it.effect);
        output::line(format_args!("{mark} {}: {}", visible(&it.subject), visible(&it.detail)))?;
    }
    match version {
        Some(version) => output::line(format_args!("version {version} is in force"))?,
        None => output::line(format_args!("it can be put in force; nothing was changed"))?,
    }
    Ok(Outcome::Done)
}

/// Writes files where none of them is yet.
fn write_out(dir: &Path, files: &Files) -> anyhow::Result<()> {
    let there = files.whole().find(|(name, _)| dir.join(name).exists());
    if let Some((name, _)) = there {
        let path = dir.join(name);
        return Err(Misused(format!("`{}` is there already", path.display())).into());
    }
    for (name, text) in files.whole() {
        let path = dir.join(name);
        let parent = path.parent().unwrap_or(dir);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("`{}` cannot be written", path.display()))?;
    }
    Ok(())
}

fn said(global: &Global, dir: &Path, what: &str) -> anyhow::Result<Outcome> {
    if global.json {
        output::json(&json!({ "dir": dir }))?;
    } else {
        output::line(format_args!("{what} is in `{}`", dir.display()))?;
    }
    Ok(Outcome::Done)
}
