//! The work. The only crate that calls models and tools.
//!
//! Start with [`runner`]: it is the whole system on one screen. [`worker`] claims runs and gives
//! them to it, [`gate`] rules on a batch under the [`authority`] in force, [`tool`] has the only door to a tool, [`context`] is
//! what a model reads, [`journal`] a run's log as its worker holds it.

pub mod authority;
pub mod clock;
pub mod consult;
pub mod context;
pub mod courier;
pub mod deposit;
pub mod digest;
pub mod embedding;
pub mod escalation;
pub mod fork;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod gate;
pub mod issuer;
pub mod journal;
pub mod mailroom;
pub mod model;
mod prompt;
mod recall;
pub mod rules;
pub mod runner;
pub mod sandbox;
mod timer;
pub mod tool;
pub mod worker;

use std::sync::Arc;
use std::time::Duration;

use chancery_store::Store;

/// What a worker works with.
#[derive(Debug, Clone)]
pub struct Parts {
    pub store: Store,
    /// Who may call what, and what there is to call.
    pub authority: authority::InForce,
    pub models: Arc<model::Models>,
    pub limits: Limits,
    /// On which terms people are asked.
    pub terms: gate::Terms,
    /// On which terms goals are handed to groups.
    pub escalation: escalation::Terms,
    /// What texts mean, where somebody can tell.
    pub embeddings: Option<Arc<embedding::Embeddings>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Runs driven at once by this process.
    pub concurrency: usize,
    /// How long a worker that is not heard of keeps its runs.
    pub lease: Duration,
    /// Claims that may end badly at one place in the log before the run fails.
    pub attempts: u32,
    pub on_unknown_outcome: UnknownOutcome,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            concurrency: 64,
            lease: Duration::from_secs(10),
            attempts: 5,
            on_unknown_outcome: UnknownOutcome::Ask,
        }
    }
}

/// What to do about a call that started in an earlier life, never ended, and whose tool does
/// not say that it may be run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownOutcome {
    Ask,
    Fail,
    Retry,
}
