//! An organisation for people to look at.

use chancery_domain::id::RoleId;
use chancery_domain::mail::triples;
use chancery_domain::org::{Org, Role};
use chancery_domain::policy::glob;
use chancery_server::organisation::Loaded;
use serde_json::json;

use crate::Global;
use crate::output::{self, visible};

pub fn people(global: &Global, org: &Org) -> anyhow::Result<()> {
    let rows = org.agents().filter_map(|(id, agent)| Some((id, agent, org.role(&agent.role)?)));
    if global.json {
        let items = rows.map(|(id, agent, role)| {
            json!({
                "agent": id, "role": role.id, "level": role.level, "active": agent.active,
                "reports_to": role.reports_to,
                "tools": role.tools.as_ref().map(|it| it.iter().map(|it| &it.value).collect::<Vec<_>>()),
            })
        });
        return output::json(
            &json!({ "version": org.version, "agents": items.collect::<Vec<_>>() }),
        );
    }
    let rows = rows.map(|(id, agent, role)| {
        let superiors: Vec<&str> = role.reports_to.iter().map(|it| it.as_str()).collect();
        let state = if agent.active { "" } else { "deactivated" };
        vec![
            id.to_string(),
            role.id.to_string(),
            format!("L{}", role.level),
            count(role),
            superiors.join(", "),
            state.to_owned(),
        ]
    });
    let head = &["AGENT", "ROLE", "LEVEL", "TOOLS", "REPORTS TO", ""];
    output::table(head, rows.collect())
}

fn count(role: &Role) -> String {
    role.tools.as_ref().map_or("no limit".to_owned(), |it| it.len().to_string())
}

/// Which role has which tool; whether a call is asked about is the policy's to say.
pub fn matrix(global: &Global, loaded: &Loaded) -> anyhow::Result<()> {
    let roles: Vec<&Role> = loaded.org.roles().collect();
    let bound = |role: &Role, tool: &str| {
        role.tools.as_ref().is_none_or(|it| it.iter().any(|it| glob(&it.value, tool)))
            && !role.deny_tools.iter().any(|it| glob(&it.value, tool))
    };
    if global.json {
        let rows = roles.iter().map(|role| {
            let tools: Vec<&str> = loaded.facts.names().filter(|tool| bound(role, tool)).collect();
            (role.id.to_string(), json!(tools))
        });
        return output::json(&rows.collect::<serde_json::Map<_, _>>());
    }
    let mut head = vec!["TOOL"];
    head.extend(roles.iter().map(|it| it.id.as_str()));
    let rows = loaded.facts.names().map(|tool| {
        let cells = roles.iter().map(|role| if bound(role, tool) { "✔" } else { "-" });
        std::iter::once(tool).chain(cells).map(str::to_owned).collect()
    });
    output::table(&head, rows.collect())
}

/// Who writes what to whom, and what of it only under an active contract.
pub fn mail(global: &Global, org: &Org) -> anyhow::Result<()> {
    let open = triples(org);
    if global.json {
        let items = open.iter().map(|((from, to, kind), contract)| {
            json!({ "from": from, "to": to, "type": kind, "needs_contract": contract })
        });
        return output::list(&items.collect::<Vec<_>>());
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for ((from, to, kind), contract) in open {
        let needs = if contract { "an active contract" } else { "" };
        match rows.last_mut() {
            Some(row) if row[0] == from && row[1] == to && row[3] == needs => {
                row[2].push_str(&format!(", {kind}"));
            }
            _ => rows.push(vec![from, to, kind, needs.to_owned()]),
        }
    }
    output::table(&["FROM", "TO", "TYPES", "NEEDS"], rows)
}

/// Who reports to whom, from the board downwards.
pub fn chart(global: &Global, org: &Org) -> anyhow::Result<()> {
    if global.json {
        let reports = org.roles().map(|it| (it.id.to_string(), json!(it.reports_to)));
        return output::json(&reports.collect::<serde_json::Map<_, _>>());
    }
    let people: Vec<&str> = org.users.keys().map(|it| it.as_str()).collect();
    let named = if people.is_empty() { String::new() } else { format!(": {}", people.join(", ")) };
    output::line(format_args!("board (people){}", visible(&named)))?;
    let tops = org.roles().filter(|it| !it.reports_to.iter().any(|it| org.role(it).is_some()));
    let tops: Vec<&Role> = tops.collect();
    for (place, role) in tops.iter().enumerate() {
        branch(org, role, "", place + 1 == tops.len())?;
    }
    Ok(())
}

// A circle in the chain of command is refused when the files are read.
fn branch(org: &Org, role: &Role, indent: &str, last: bool) -> anyhow::Result<()> {
    let corner = if last { "└" } else { "├" };
    let managers = role.reports_to.len();
    let shared = if managers > 1 { format!("  ({managers} managers)") } else { String::new() };
    let (id, level, tools) = (role.id.as_str(), role.level, count(role));
    let label = visible(&format!("{id}  L{level}  {tools} tools{shared}"));
    output::line(format_args!("{indent}{corner} {label}"))?;
    let under = |it: &&Role| it.reports_to.contains(&RoleId::from(id));
    let below: Vec<&Role> = org.roles().filter(under).collect();
    let indent = format!("{indent}{} ", if last { " " } else { "│" });
    for (place, role) in below.iter().enumerate() {
        branch(org, role, &indent, place + 1 == below.len())?;
    }
    Ok(())
}
