//! Who there is: roles, the agents that act under them, the people behind them, and what the
//! policy says of tools. Read from files once per version; nothing here changes afterwards.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::id::{AgentId, GroupId, RoleId, UserId};
use crate::policy::{Bounds, Limits, Risk, Ruling, glob};

/// Where a rule was written. What the system made up itself has no place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: Arc<str>,
    pub line: u32,
}

/// Something that was said, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated<T> {
    pub value: T,
    pub place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    pub id: RoleId,
    pub display_name: String,
    /// Rank in the chain of command; 0 is the board: people.
    pub level: u8,
    pub department: Option<String>,
    pub reports_to: Vec<RoleId>,
    /// Which of the configured models it talks through: `capable`, `balanced` or `fast`.
    pub model_tier: String,
    pub prompt: String,
    /// Absent: no limit. Empty: nothing.
    pub tools: Option<Vec<Stated<String>>>,
    pub deny_tools: Vec<Stated<String>>,
    /// A narrower list of what the model is shown; presentation, not permission.
    pub expose: Option<Vec<String>>,
    /// What it may pass on to a group. Absent: its own tools and deny_tools.
    pub delegates: Option<Bounds>,
    pub contacts: BTreeMap<String, Contact>,
    pub file_scope: Option<FileScope>,
    pub git: Option<GitScope>,
    pub place: Option<Place>,
}

/// On which terms a role writes to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// Empty: every type that the sender may send.
    pub types: Vec<String>,
    pub needs_active_contract: bool,
}

/// Path prefixes beneath the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileScope {
    pub read: Vec<Stated<String>>,
    pub write: Vec<Stated<String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitScope {
    pub branches: Vec<String>,
    pub protected: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    pub role: RoleId,
    /// Whether people talk to it.
    pub personal: bool,
    pub active: bool,
    pub place: Option<Place>,
}

/// A person, and the limits that bind whatever acts for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    pub bounds: Bounds,
    pub approver: bool,
    pub place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub members: Vec<AgentId>,
    pub lead: Option<AgentId>,
    pub rounds: u32,
    pub place: Option<Place>,
}

/// A type of mail: who may send it, which way, and what it must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailType {
    pub description: String,
    /// Absent: every role.
    pub senders: Option<Vec<RoleId>>,
    pub direction: Direction,
    /// What it says beside a subject and a body.
    pub fields: Vec<String>,
    pub place: Option<Place>,
}

/// Which way along the chain of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
    Across,
    Any,
}

/// `policy.yaml`: what is asked and what is refused, whoever calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRules {
    /// Over the defaults: low and medium allow, high asks.
    pub risk: BTreeMap<Risk, Stated<Ruling>>,
    pub capabilities: BTreeMap<String, Stated<Ruling>>,
    /// By name or glob; of those that match, the strictest counts.
    pub tools: BTreeMap<String, Stated<Ruling>>,
    pub limits: Limits,
}

/// The organisation as one version of its files has it.
// Invariant: every agent's role is among the roles.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Org {
    pub version: u64,
    roles: BTreeMap<RoleId, Role>,
    agents: BTreeMap<AgentId, Agent>,
    pub users: BTreeMap<UserId, User>,
    pub groups: BTreeMap<GroupId, Group>,
    pub policy: PolicyRules,
    /// The types of mail that there are, by name.
    pub mail: BTreeMap<String, MailType>,
}

impl Org {
    /// Refuses the agents whose role does not exist, naming every one of them.
    pub fn new(
        roles: impl IntoIterator<Item = Role>,
        agents: impl IntoIterator<Item = (AgentId, Agent)>,
    ) -> Result<Org, Vec<(AgentId, RoleId)>> {
        let roles: BTreeMap<_, _> = roles.into_iter().map(|it| (it.id.clone(), it)).collect();
        let agents: BTreeMap<_, _> = agents.into_iter().collect();
        let lost: Vec<_> = agents
            .iter()
            .filter(|(_, agent)| !roles.contains_key(&agent.role))
            .map(|(id, agent)| (id.clone(), agent.role.clone()))
            .collect();
        if lost.is_empty() { Ok(Org { roles, agents, ..Org::default() }) } else { Err(lost) }
    }

    pub fn role(&self, id: &RoleId) -> Option<&Role> {
        self.roles.get(id)
    }

    pub fn role_of(&self, agent: &AgentId) -> Option<&Role> {
        self.agent(agent).and_then(|agent| self.roles.get(&agent.role))
    }

    /// The role of an agent that is at work.
    pub fn active_role_of(&self, agent: &AgentId) -> Option<&Role> {
        self.agent(agent).filter(|it| it.active).and_then(|it| self.roles.get(&it.role))
    }

    /// The agent that people talk with as theirs.
    pub fn personal_agent(&self) -> Option<&AgentId> {
        self.agents().find(|(_, it)| it.personal && it.active).map(|(id, _)| id)
    }

    pub fn agent(&self, id: &AgentId) -> Option<&Agent> {
        self.agents.get(id)
    }

    pub fn is_approver(&self, user: &UserId) -> bool {
        self.users.get(user).is_some_and(|it| it.approver)
    }

    pub fn has_approver(&self) -> bool {
        self.users.values().any(|it| it.approver)
    }

    /// The groups that have a member at work.
    pub fn groups_at_work(&self) -> impl Iterator<Item = (&GroupId, &Group)> {
        let works = |it: &Group| it.members.iter().any(|it| self.active_role_of(it).is_some());
        self.groups.iter().filter(move |(_, group)| works(group))
    }

    pub fn roles(&self) -> impl Iterator<Item = &Role> {
        self.roles.values()
    }

    pub fn agents(&self) -> impl Iterator<Item = (&AgentId, &Agent)> {
        self.agents.iter()
    }
}

impl Role {
    /// A role with no limits of its own.
    pub fn unlimited(id: &str) -> Role {
        Role {
            id: RoleId::from(id),
            display_name: id.to_owned(),
            level: 3,
            department: None,
            reports_to: Vec::new(),
            model_tier: "balanced".to_owned(),
            prompt: String::new(),
            tools: None,
            deny_tools: Vec::new(),
            expose: None,
            delegates: None,
            contacts: BTreeMap::new(),
            file_scope: None,
            git: None,
            place: None,
        }
    }

    /// Whether it lists a tool, and does not deny it; without a list it has them all.
    pub fn binds(&self, tool: &str) -> bool {
        let names = |list: &[Stated<String>]| list.iter().any(|it| glob(&it.value, tool));
        self.tools.as_deref().is_none_or(names) && !names(&self.deny_tools)
    }

    /// Whether what it may reach depends on contracts.
    pub fn works_under_contracts(&self) -> bool {
        let marked = |it: &Stated<String>| it.value.contains('{');
        let files = self.file_scope.as_ref();
        let branches = self.git.iter().flat_map(|it| &it.branches);
        files.is_some_and(|it| it.read.iter().chain(&it.write).any(marked))
            || branches.into_iter().any(|it| it.contains('{'))
    }

    /// What it may pass on: what `delegates` says, or its own tools.
    pub fn delegable(&self) -> Bounds {
        let names =
            |list: &[Stated<String>]| list.iter().map(|it| it.value.clone()).collect::<Vec<_>>();
        self.delegates.clone().unwrap_or_else(|| Bounds {
            allowed_tools: self.tools.as_deref().map(names),
            denied_tools: names(&self.deny_tools),
        })
    }
}

impl Agent {
    pub fn of(role: &str) -> Agent {
        Agent { role: RoleId::from(role), personal: false, active: true, place: None }
    }
}

impl<T> From<T> for Stated<T> {
    fn from(value: T) -> Stated<T> {
        Stated { value, place: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
