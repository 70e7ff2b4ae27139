//! `backup`: everything that is recorded, as one file. Servers may be at work.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chancery_store::archive::{Copied, back_up};
use serde_json::json;
use toml::Table;

use crate::Global;
use crate::outcome::Outcome;
use crate::output;
use crate::server::settings;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to write it; `-` is the standard output
    file: PathBuf,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let (config, _) = settings(global, Table::new())?;
    let location = config.location();
    if args.file == Path::new("-") {
        let into = BufWriter::new(std::io::stdout());
        back_up(&location, into).await?;
        return Ok(Outcome::Done);
    }
    anyhow::ensure!(
        args.force || !args.file.exists(),
        "`{}` is there already: choose another name, or write over it with `--force`",
        args.file.display()
    );
    // Whoever looks for the file finds a whole one or none.
    let mut beside = args.file.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    let copied = write(&location, &beside).await;
    let moved = match copied {
        Ok(copied) => std::fs::rename(&beside, &args.file).map(|()| copied).map_err(Into::into),
        Err(error) => Err(error),
    };
    if moved.is_err() {
        // Half a copy is of no use to anybody.
        let _ = std::fs::remove_file(&beside);
    }
    let copied = moved.with_context(|| format!("nothing is in `{}`", args.file.display()))?;
    if global.json {
        output::json(&json!({ "file": args.file, "rows": copied.rows, "tables": copied.tables }))?;
    } else {
        let file = args.file.display();
        output::line(format_args!(
            "{} rows of {} tables are in {file}",
            copied.rows, copied.tables
        ))?;
        output::note(format_args!(
            "It holds what people and agents said: keep it as you keep the store. The workspace \
             and the settings are not in it."
        ));
    }
    Ok(Outcome::Done)
}

async fn write(location: &chancery_store::Location, path: &Path) -> anyhow::Result<Copied> {
    // What agents and people said is nobody else's business.
    let opened = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path);
    let into = opened.with_context(|| format!("cannot write `{}`", path.display()))?;
    let (copied, into) = back_up(location, BufWriter::new(into)).await?;
    let file: File = into.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    durable(file)?;
    Ok(copied)
}

fn durable(mut file: File) -> std::io::Result<()> {
    file.flush()?;
    file.sync_all()
}
