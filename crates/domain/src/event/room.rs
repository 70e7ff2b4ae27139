//! A group at work: who has the floor, and what a person may do about it.

use serde::{Deserialize, Serialize};

use super::{Actor, Usage};
use crate::id::{AgentId, CallId, MessageId, RoleId};

/// Who speaks in a group's run, in which order and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Room {
    pub members: Vec<Member>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<AgentId>,
    pub rounds: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub agent: AgentId,
    pub role: RoleId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnBegan {
    pub member: Member,
    /// The first round is 1.
    pub round: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub message: MessageId,
    pub text: String,
    pub model: String,
    pub usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Concluded {
    pub call: CallId,
    pub answer: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WrapUpAsked {
    pub by: Actor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PauseAsked {
    pub by: Actor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paused {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unpaused {
    pub by: Actor,
}
