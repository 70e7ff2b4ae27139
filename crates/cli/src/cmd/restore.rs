//! `restore`: puts a copy back, all of it or nothing.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context as _;
use chancery_store::archive::restore;
use serde_json::json;
use toml::Table;

use crate::Global;
use crate::outcome::Outcome;
use crate::output;
use crate::server::settings;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What `backup` wrote
    file: PathBuf,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let (config, _) = settings(global, Table::new())?;
    let from =
        File::open(&args.file).with_context(|| format!("cannot read `{}`", args.file.display()))?;
    let copied = restore(&config.location(), BufReader::new(from)).await?;
    if global.json {
        output::json(&json!({ "rows": copied.rows, "tables": copied.tables }))?;
    } else {
        output::line(format_args!("{} rows of {} tables are back", copied.rows, copied.tables))?;
        output::note(format_args!(
            "Do not let the server that the copy was taken of go on: what waits in both would be \
             done by both."
        ));
    }
    Ok(Outcome::Done)
}
