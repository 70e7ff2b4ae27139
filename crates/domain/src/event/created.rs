//! What a run is made with: whose it is, and by whose word.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Actor, Ancestor, Call, Forked, Room};
use crate::id::{
    AgentId, ContractId, GroupId, MailId, ProjectId, RoleId, RunId, SessionKey, UserId,
};
use crate::policy::Bounds;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Created {
    pub org: String,
    pub agent: AgentId,
    pub role: RoleId,
    pub user: UserId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<SessionKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// The runs above, from the one that a person started down to the parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<Ancestor>,
    /// Of a group's run: who speaks in it, as the group was when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<Arc<Room>>,
    /// What the person had said themselves above, or in the run that this one goes on from, for
    /// rules that ask for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persons_words: Vec<String>,
    /// `None`: a run that a person started without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegated: Option<Bounds>,
    pub input: String,
    pub by: Actor,
    /// The version of the organisation that it was created under.
    #[serde(default)]
    pub org_version: u64,
    /// The contract that it works under; absent: all that its agent holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<ContractId>,
    /// The mails that it is to answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mails: Vec<MailId>,
    /// The one call that an agent outside asks for: no model is asked, and its result is what the
    /// run comes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Arc<Call>>,
    /// The run that it goes on from, with what its model had read there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Arc<Forked>>,
}
