//! Where a run goes on from another one: what it begins with, in the words of that moment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Actor, Call, CallResult};
use crate::id::{CallId, RunId};

/// The run that this one goes on from, and what its model had read there. Words alone: nothing
/// that was asked, granted or denied in that run has any force in this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    pub run: RunId,
    /// The last event of that run that counts here.
    pub at: u64,
    /// Who had asked for that run, or for the first of those that it goes on from itself: its goal
    /// is theirs, whoever goes on with it.
    pub by: Actor,
    /// What of an earlier talk was read in short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<String>,
    /// What stands before this run's own input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Carried>,
    /// What stands after it: the goal is the other run's, and this is how far it had come.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Carried>,
}

/// Something that a model has read or said. Never a fact about who said it: what the person said
/// themselves is in `Created::persons_words`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carried {
    Said {
        text: String,
    },
    Answered {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Arc<Call>>,
    },
    Ended {
        call: CallId,
        result: CallResult,
    },
}
