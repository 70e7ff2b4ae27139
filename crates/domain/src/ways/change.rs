//! Who may make a change of the organisation: an operator any, and an agent those that the
//! organisation in force lets it make under a contract of its superior. Asked of the rules, and
//! never known by a name.

use super::{Asker, mail, names};
use crate::chart::{self, Amendment};
use crate::contract::{Contract, State, superiors};
use crate::id::{AgentId, ContractId, RoleId};
use crate::mail::{BOARD, CONTRACT};
use crate::org::Role;

/// May make any.
pub(super) const OPERATOR: &str = "an operator";
/// The tools that a contract is handed down with.
const HANDING_DOWN: [&str; 2] = ["generate_contract", "create_contract"];

/// Who may take somebody on, or on again: under this role, or under any.
pub(super) fn hired(who: &Asker<'_>, agent: &str, role: Option<&RoleId>) -> Vec<String> {
    let agent = AgentId::from(agent);
    let roles = who.org().roles().map(|it| &it.id).filter(|it| role.is_none_or(|own| own == *it));
    let mut found = Vec::new();
    for role in roles {
        for it in made(who, &Amendment::Hire { agent: agent.clone(), role: role.clone() }) {
            if !found.contains(&it) {
                found.push(it);
            }
        }
    }
    found
}

/// Who may let a role report to another, too.
pub(super) fn reported(who: &Asker<'_>, role: &Role, above: &str) -> Vec<String> {
    let to = role.reports_to.iter().cloned().chain([RoleId::from(above)]).collect();
    made(who, &Amendment::Report { role: role.id.clone(), to })
}

/// Agents that could make a change if their superior gave them a contract, and whose it takes.
fn made(who: &Asker<'_>, amendment: &Amendment) -> Vec<String> {
    let org = who.org();
    let under = |agent: &str| {
        let gives = |above: &&str| {
            let has = *above == BOARD || HANDING_DOWN.iter().any(|it| may(who, above, it));
            let contract = in_progress(above, agent);
            has && mail::is_open(org, above, agent, CONTRACT)
                && chart::check(org, &AgentId::from(agent), amendment, &[contract]).is_ok()
        };
        let above = superiors(org, agent);
        names(above.iter().map(String::as_str).filter(gives))
    };
    let makers = who.at_work().filter(|it| may(who, it, amendment.tool()));
    let makers = makers.map(|it| (it, under(it))).filter(|(_, under)| !under.is_empty());
    makers.map(|(it, under)| format!("agent `{it}`, with a contract of {under}")).collect()
}

/// In a run of its own, and not in the one that was refused.
fn may(who: &Asker<'_>, agent: &str, tool: &str) -> bool {
    Asker { agent, delegated: None, givers: &[], ..*who }.may(tool)
}

/// A contract as it would be while it is worked under.
fn in_progress(from: &str, to: &str) -> Contract {
    Contract {
        id: ContractId::from(""),
        from: AgentId::from(from),
        to: AgentId::from(to),
        state: State::InProgress,
        failures: 0,
        cross_department: false,
    }
}
