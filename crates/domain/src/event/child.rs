//! A goal handed to a group as a run of its own, and what came back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Actor, CallResult, Usage};
use crate::id::{CallId, GroupId, RunId};

/// A run above another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ancestor {
    pub run: RunId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildSpawned {
    pub call: CallId,
    pub child: RunId,
    pub group: GroupId,
    pub goal: String,
    /// Why this group, where the model named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    pub spawned_at: Timestamp,
    /// How long it may take, not counting the time that it waits for a person. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<u64>,
}

impl ChildSpawned {
    /// When its time is up, unless a person kept it waiting.
    pub fn until(&self) -> Option<Timestamp> {
        let limit = i64::try_from(self.limit_seconds?).ok()?;
        self.spawned_at.checked_add(jiff::SignedDuration::from_secs(limit)).ok()
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildEnded {
    pub call: CallId,
    pub child: RunId,
    pub result: CallResult,
    /// What the child used, with all beneath it.
    pub usage: Usage,
    /// It took too long and is to be cancelled: the same transaction sees to that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandoned: bool,
}

/// What a person said into a child run: its parent's agent is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spoken {
    pub by: Actor,
    pub text: String,
}
