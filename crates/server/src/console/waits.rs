//! Whose turn it is: what a run waits for, also where it waits for a run that waits itself. A
//! group that needs somebody's word is not at work.

use std::collections::HashMap;

use chancery_domain::id::RunId;
use chancery_store::read::RunRow;

use super::words::{Words, fill};
use crate::error::Result;
use crate::router::App;

/// Deeper than goals are handed down (`limits.depth`) unless somebody wants it so.
const DEPTH: u32 = 16;

/// What the runs that some runs wait for wait for in the end.
#[derive(Debug, Default)]
pub struct Waits(HashMap<RunId, Inner>);

/// How a run stands, as a page says it.
#[derive(Debug, PartialEq, Eq)]
pub struct Stands {
    /// What it waits for in the end, as a class; empty: it does not wait.
    pub waits: &'static str,
    pub word: String,
}

/// What somebody should know of first stands last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Inner {
    Works,
    Paused,
    Signal,
    Person,
}

impl Waits {
    /// Of the runs among these that wait for others.
    pub async fn of<'r>(app: &App, runs: impl IntoIterator<Item = &'r RunRow>) -> Result<Waits> {
        let waiting = runs.into_iter().filter(|it| it.waiting_for.as_deref() == Some("child"));
        let waiting: Vec<RunId> = waiting.map(|it| it.id).collect();
        Ok(Waits::told(app.store.waits_beneath(&waiting, DEPTH).await?))
    }

    fn told(found: Vec<(RunId, Option<String>)>) -> Waits {
        let mut waits: HashMap<RunId, Inner> = HashMap::new();
        for (run, wait) in found {
            let inner = Inner::of(wait.as_deref());
            let known = waits.entry(run).or_insert(inner);
            *known = inner.max(*known);
        }
        Waits(waits)
    }

    /// The status, or what a run waits for.
    pub fn stands(&self, run: &RunRow, w: &'static Words) -> Stands {
        let waits = |waits, word: &str| Stands { waits, word: word.to_owned() };
        let through = |class, inner| {
            let word = fill(w.waits_through, &[("child", w.waits_child), ("inner", inner)]);
            Stands { waits: class, word }
        };
        match run.waiting_for.as_deref() {
            Some("permission") => waits("waits-person", w.waits_person),
            Some("signal") => waits("waits-signal", w.waits_signal),
            Some("pause") => waits("waits-pause", w.waits_pause),
            Some("child") => match self.0.get(&run.id) {
                Some(Inner::Person) => through("waits-person", w.waits_person),
                Some(Inner::Signal) => through("waits-signal", w.waits_signal),
                Some(Inner::Paused) => through("waits-pause", w.waits_paused),
                Some(Inner::Works) | None => waits("waits-child", w.waits_child),
            },
            _ => waits("", w.status_word(&run.status)),
        }
    }
}

impl Inner {
    fn of(wait: Option<&str>) -> Inner {
        match wait {
            Some("permission") => Inner::Person,
            Some("signal") => Inner::Signal,
            Some("pause") => Inner::Paused,
            _ => Inner::Works,
        }
    }
}
