//! Words about a question that stands: what somebody wants to know of the agent, and what it says.

use super::{Batch, BatchError, Gate, Open, Standing};
use crate::event::{Actor, PermissionExplained, PermissionInquired};
use crate::id::{CallId, PermissionId};

impl Batch<Open> {
    /// Somebody wants to know something about one question. It stands as it stood.
    pub fn inquired(self, inquired: &PermissionInquired) -> Result<Gate, BatchError> {
        if matches!(inquired.by, Actor::Agent(_) | Actor::System) {
            return Err(BatchError::NotADecider);
        }
        self.spoken_of(&inquired.call, inquired.permission)
    }

    /// The agent has said something about one question, which nobody has answered yet.
    pub fn explained(self, explained: &PermissionExplained) -> Result<Gate, BatchError> {
        self.spoken_of(&explained.call, explained.permission)
    }

    // Invariant: words change nothing of a question, and so of nothing that it is about.
    fn spoken_of(mut self, call: &CallId, permission: PermissionId) -> Result<Gate, BatchError> {
        let standing = &self.asked_slot(call)?.standing;
        match matches!(standing, Standing::Asked { request, .. } if request.id == permission) {
            true => Ok(Gate::of(self.message, self.slots)),
            false => Err(BatchError::NotAsked(call.clone())),
        }
    }
}
