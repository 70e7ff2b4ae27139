//! An organisation as its files say it, before it is known whether what they name is there.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chancery_domain::id::{AgentId, GroupId, RoleId, UserId};
use chancery_domain::org::{Agent, Group, MailType, PolicyRules, Role, User};

use super::mistake::At;
use super::tools::{Facts, ToolsDraft};

#[derive(Debug, Default)]
pub struct Draft {
    pub roles: BTreeMap<RoleId, Role>,
    pub agents: BTreeMap<AgentId, Agent>,
    pub users: BTreeMap<UserId, User>,
    pub groups: BTreeMap<GroupId, Group>,
    pub policy: PolicyRules,
    pub mail: BTreeMap<String, MailType>,
    pub tools: ToolsDraft,
    pub references: Vec<Reference>,
    /// The same by what names what.
    places: HashMap<(String, String), At>,
    /// Files whose tree could not be read: what they would have named is not known to be absent.
    pub unread: BTreeSet<&'static str>,
}

/// Something that names something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub to: To,
    pub name: String,
    pub at: At,
    /// What names it: `agents.pa.role`.
    pub by: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// A role that an agent acts under.
    Role,
    /// A role, or the board.
    Superior,
    /// A role, an agent, or the board.
    Contact,
    MailType,
    /// A role that may send a type of mail.
    Sender,
    Member,
    Capability,
    /// A tool's name, or a pattern.
    Tool,
}

impl Draft {
    pub fn refer(&mut self, to: To, name: &str, at: At, by: impl Into<String>) {
        let (name, by) = (name.to_owned(), by.into());
        self.places.entry((by.clone(), name.clone())).or_insert(at);
        self.references.push(Reference { to, name, at, by });
    }

    /// Where a reference stands.
    pub fn place_of(&self, by: &str, name: &str) -> Option<At> {
        self.places.get(&(by.to_owned(), name.to_owned())).copied()
    }

    pub fn facts(&self) -> Facts {
        self.tools.facts()
    }
}
