//! Changes of the organisation from within: what may be asked for, and by whom. Pure. The
//! operator's own changes do not come here.

use crate::contract::{Contract, reports_to};
use crate::id::{AgentId, RoleId};
use crate::org::{Org, Role};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Amendment {
    /// Somebody comes, or comes back.
    Hire { agent: AgentId, role: RoleId },
    /// Somebody stops working, and stays in the record.
    Deactivate { agent: AgentId },
    /// Somebody gets another role.
    Move { agent: AgentId, role: RoleId },
    /// A role's line leads elsewhere.
    Report { role: RoleId, to: Vec<RoleId> },
}

impl Amendment {
    /// The tool that an agent makes it with.
    pub fn tool(&self) -> &'static str {
        match self {
            Amendment::Hire { .. } => "create_agent_jd",
            Amendment::Deactivate { .. } => "deactivate_agent",
            Amendment::Move { .. } | Amendment::Report { .. } => "update_org_chart",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error(
        "the organisation is changed under an active contract from your superior, and you hold none"
    )]
    NoWarrant,
    #[error("there is no agent `{0}`")]
    NoAgent(AgentId),
    #[error("there is no role `{0}`")]
    NoRole(RoleId),
    #[error("there is an agent `{0}` already")]
    Taken(AgentId),
    #[error("`{0}` is no name for an agent: it has at most 64 small letters, digits and `_`")]
    BadName(String),
    #[error("`{0}` is not beneath you: nobody changes their own place, or one above")]
    NotBeneath(String),
}

/// Whether an agent may make a change, given the active contracts that it holds.
pub fn check(
    org: &Org,
    by: &AgentId,
    amendment: &Amendment,
    held: &[Contract],
) -> Result<(), Refusal> {
    let own = org.active_role_of(by).ok_or_else(|| Refusal::NoAgent(by.clone()))?;
    let warrants = |it: &Contract| {
        it.to == *by && it.state.is_active() && reports_to(org, own, it.from.as_str())
    };
    if !held.iter().any(warrants) {
        return Err(Refusal::NoWarrant);
    }
    let role = |id: &RoleId| org.role(id).ok_or_else(|| Refusal::NoRole(id.clone()));
    let role_of =
        |agent: &AgentId| org.role_of(agent).ok_or_else(|| Refusal::NoAgent(agent.clone()));
    match amendment {
        Amendment::Hire { agent, role: given } => {
            check_name(agent)?;
            if org.agent(agent).is_some_and(|it| it.active) {
                return Err(Refusal::Taken(agent.clone()));
            }
            beneath(own, role(given)?)
        }
        Amendment::Deactivate { agent } => beneath(own, role_of(agent)?),
        Amendment::Move { agent, role: given } => {
            beneath(own, role_of(agent)?)?;
            beneath(own, role(given)?)
        }
        Amendment::Report { role: moved, to } => {
            beneath(own, role(moved)?)?;
            // Whoever is put above somebody stands above them.
            let moved = role(moved)?;
            for above in to {
                if role(above)?.level >= moved.level {
                    return Err(Refusal::NotBeneath(above.to_string()));
                }
            }
            Ok(())
        }
    }
}

fn beneath(own: &Role, other: &Role) -> Result<(), Refusal> {
    if other.level > own.level && other.id != own.id {
        return Ok(());
    }
    Err(Refusal::NotBeneath(other.id.to_string()))
}

fn check_name(agent: &AgentId) -> Result<(), Refusal> {
    let name = agent.as_str();
    let plain = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let well = !name.is_empty()
        && name.len() <= 64
        && name.starts_with(|it: char| it.is_ascii_lowercase())
        && name.chars().all(plain)
        && ![crate::mail::BOARD, crate::mail::SYSTEM].contains(&name);
    if well { Ok(()) } else { Err(Refusal::BadName(name.chars().take(64).collect())) }
}
