//! Who may send what to whom, all of it at once.

use std::collections::BTreeMap;

use super::{BOARD, Draft, Known, needs, route};
use crate::contract::{self, Contract};
use crate::id::{AgentId, ContractId};
use crate::org::Org;

/// Everything that agents may send one another, as `(from, to, type)`: what `org show --mail` and
/// the matrix are made of. Those that need an active contract are said to.
pub fn triples(org: &Org) -> BTreeMap<(String, String, String), bool> {
    let mut open = BTreeMap::new();
    let mut names: Vec<&str> =
        org.agents().filter(|(_, it)| it.active).map(|(id, _)| id.as_str()).collect();
    names.push(BOARD);
    for from in &names {
        for to in names.iter().filter(|it| *it != from) {
            for kind in org.mail.keys() {
                let draft = Draft::bare(to, kind);
                let asked = needs(org, from, &draft).contracts;
                // With a contract that would do, so that only the rest speaks.
                let known = Known { contracts: link(org, from, to), ..Known::default() };
                if route(org, from, &draft, &known).is_ok() {
                    open.insert(((*from).to_owned(), (*to).to_owned(), kind.clone()), asked);
                }
            }
        }
    }
    open
}

fn link(org: &Org, one: &str, other: &str) -> Vec<Contract> {
    let given = |to: &str| {
        let id = AgentId::from(to);
        let role = org.role_of(&id)?;
        let above = org.agents().find(|(_, it)| role.reports_to.contains(&it.role))?;
        Some(Contract {
            id: ContractId::from(""),
            from: above.0.clone(),
            to: id,
            state: contract::State::InProgress,
            failures: 0,
            cross_department: true,
        })
    };
    [one, other].into_iter().filter_map(given).collect()
}
