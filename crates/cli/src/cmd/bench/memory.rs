//! `bench memory`: how much is found, by the rule of the data set, and how long it takes.

mod quality;
mod speed;

use std::path::PathBuf;

use chancery_runtime::clock;
use chancery_runtime::embedding::Memories;
use chancery_store::{Location, Store};
use serde::Serialize;
use toml::Table;

use crate::Global;
use crate::outcome::Outcome;
use crate::output;
use crate::server::{environment, settings};

#[derive(Debug, Clone, clap::Args)]
pub struct MemoryArgs {
    /// A directory of sets: NAME.memories.jsonl with NAME.queries.jsonl
    #[arg(long, value_name = "DIR")]
    data_set: Option<PathBuf>,
    /// How many memories there are when searches are timed
    #[arg(long, default_value_t = 100_000)]
    memories: usize,
    /// How many searches and writes are timed
    #[arg(long, default_value_t = 300)]
    rounds: usize,
    /// Only what is found
    #[arg(long)]
    quality: bool,
}

#[derive(Debug, Serialize)]
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    /// Against the raw figure of the same run.
    ratio: Option<f64>,
}

pub async fn run(global: &Global, args: &MemoryArgs) -> anyhow::Result<Outcome> {
    let dir = std::env::temp_dir().join(format!("chancery-bench-{}", std::process::id()));
    let location = match &global.database {
        Some(url) => Location::Postgres(url.clone()),
        None => Location::Sqlite(dir.clone()),
    };
    let (config, _) = settings(global, Table::new())?;
    let embeddings = config.memory.embeddings(&environment().collect())?;
    let store = Store::open(&location, clock::new_worker_id()).await?;
    let memories = Memories { store: store.clone(), embeddings };
    let measured = measure(global, args, &memories, &dir).await;
    store.close().await;
    if dir.exists() {
        std::fs::remove_dir_all(&dir)?;
    }
    let figures = measured?;
    if global.json {
        output::json(&figures)?;
    }
    Ok(Outcome::Done)
}

async fn measure(
    global: &Global,
    args: &MemoryArgs,
    memories: &Memories,
    dir: &std::path::Path,
) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut note = |figure: Figure| -> anyhow::Result<()> {
        if !global.json {
            let beside = figure.ratio.map(|it| format!("  {it:.1} x")).unwrap_or_default();
            let Figure { what, value, unit, .. } = &figure;
            output::line(format_args!("{what:<58} {value:>10.3} {unit}{beside}"))?;
        }
        figures.push(figure);
        Ok(())
    };
    if let Some(sets) = &args.data_set {
        quality::measure(memories, sets, &mut note).await?;
    }
    if !args.quality {
        speed::measure(&memories.store, global.database.as_deref(), dir, args, &mut note).await?;
    }
    Ok(figures)
}

/// An organisation that nothing else uses: what was measured before is not in the way.
fn org_of_its_own(of: &str) -> String {
    format!("bench {of} {}", clock::new_memory_id())
}

/// A database that others use is left as it was found; a directory of our own goes as a whole.
async fn tidy_up(store: &Store, org: &str) -> anyhow::Result<()> {
    if store.is_shared() {
        store.unload_memories(org).await?;
    }
    Ok(())
}
