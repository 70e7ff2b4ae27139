//! What was remembered as a run began.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::MemoryId;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryRecalled {
    pub memories: Vec<Recalled>,
}

/// A memory as it was when it was recalled: what the model has read does not change with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recalled {
    pub memory: MemoryId,
    /// `preferences`, `enterprise`, `history`, `blackboard` or `project`.
    pub tier: String,
    pub content: String,
    /// The day that it is about.
    pub at: Timestamp,
    pub why: String,
}
