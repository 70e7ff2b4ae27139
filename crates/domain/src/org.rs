//! Who there is: roles and the agents that act under them.

use std::collections::BTreeMap;

use crate::id::{AgentId, RoleId};
use crate::policy::Bounds;

#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    pub id: RoleId,
    pub prompt: String,
    /// Which of the configured models it talks through: `capable`, `balanced` or `fast`.
    pub model_tier: String,
    pub bounds: Bounds,
}

impl Role {
    pub fn unlimited(id: &str) -> Role {
        Role {
            id: RoleId::from(id),
            prompt: String::new(),
            model_tier: "balanced".to_owned(),
            bounds: Bounds::default(),
        }
    }
}

// Invariant: every agent's role is among the roles.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Org {
    roles: BTreeMap<RoleId, Role>,
    agents: BTreeMap<AgentId, RoleId>,
}

impl Org {
    /// Refuses the agents whose role does not exist, naming every one of them.
    pub fn new(
        roles: impl IntoIterator<Item = Role>,
        agents: impl IntoIterator<Item = (AgentId, RoleId)>,
    ) -> Result<Org, Vec<(AgentId, RoleId)>> {
        let roles: BTreeMap<_, _> = roles.into_iter().map(|it| (it.id.clone(), it)).collect();
        let agents: BTreeMap<_, _> = agents.into_iter().collect();
        let lost: Vec<_> = agents
            .iter()
            .filter(|(_, role)| !roles.contains_key(*role))
            .map(|(agent, role)| (agent.clone(), role.clone()))
            .collect();
        if lost.is_empty() { Ok(Org { roles, agents }) } else { Err(lost) }
    }

    pub fn role_of(&self, agent: &AgentId) -> Option<&Role> {
        self.agents.get(agent).and_then(|role| self.roles.get(role))
    }

    pub fn agents(&self) -> impl Iterator<Item = (&AgentId, &RoleId)> {
        self.agents.iter()
    }
}
