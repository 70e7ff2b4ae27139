//! Runs to fill a store with: one is made in the ordinary way, the others are its copies.

use std::path::PathBuf;
use std::time::Duration;

use chancery_domain::id::RunId;
use chancery_runtime::clock;
use chancery_store::raw::fill;
use chancery_store::{Location, Store};

use crate::cmd::bench::load::{Load, Shape};

/// What the store is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One call, and an answer.
    Finished,
    /// For a signal, without a deadline.
    Waiting,
}

impl Kind {
    pub fn status(self) -> &'static str {
        match self {
            Kind::Finished => "completed",
            Kind::Waiting => "waiting",
        }
    }
}

/// Where the store is.
#[derive(Debug, Clone)]
pub struct Place {
    pub dir: PathBuf,
    pub database: Option<String>,
}

impl Place {
    pub fn location(&self) -> Location {
        match &self.database {
            Some(url) => Location::Postgres(url.clone()),
            None => Location::Sqlite(self.dir.clone()),
        }
    }
}

/// The run that is copied.
pub async fn template(location: &Location, kind: Kind) -> anyhow::Result<RunId> {
    let store = Store::open(location, clock::new_worker_id()).await?;
    let is_empty = store.count_by_status().await?.is_empty();
    anyhow::ensure!(is_empty, "this store has runs already: a benchmark fills an empty one");
    let shape = Shape { waits: kind == Kind::Waiting, ..Shape::of(1, 1) };
    let load = Load::start(store, shape, 1).await?;
    let run = load.create("template").await?;
    while load.store.run(run).await?.is_none_or(|it| it.status != kind.status()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    load.stop().await;
    Ok(run)
}

/// Copies it so often, in the order in which runs come about.
pub async fn grow(location: &Location, template: RunId, more: usize) -> anyhow::Result<()> {
    let names: Vec<RunId> = (0..more).map(|_| clock::new_run_id()).collect();
    fill::copies(location, template, &names).await?;
    Ok(fill::settle(location).await?)
}
