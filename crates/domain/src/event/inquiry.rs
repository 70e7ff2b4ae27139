//! What somebody who looks at a permission request wants to know of the agent, and what it says.

use serde::{Deserialize, Serialize};

use super::{Actor, Usage};
use crate::id::{CallId, MessageId, PermissionId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionInquired {
    pub call: CallId,
    pub permission: PermissionId,
    /// What tells one inquiry from another.
    pub message: MessageId,
    pub text: String,
    pub by: Actor,
}

/// The agent's words: nothing in them is a fact, and nothing is decided by them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionExplained {
    pub call: CallId,
    pub permission: PermissionId,
    /// The inquiry that this is said to.
    pub inquiry: MessageId,
    pub text: String,
    pub model: String,
    pub usage: Usage,
}
