//! `policy matrix`: what the rules say of every tool for every role, arguments aside. It is the
//! one function that rules which is asked here too.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_domain::id::AgentId;
use chancery_domain::org::{Agent, Org, Role};
use chancery_domain::policy::{Fitness, Policy, Question, Risk, Ruling, ToolFacts};
use chancery_server::organisation::Loaded;

use crate::Global;
use crate::cmd::org::side::{self, Side};
use crate::outcome::Outcome;
use crate::output;
use crate::server::client;

pub async fn print(global: &Global, which: Option<Side>) -> anyhow::Result<Outcome> {
    // Tools of MCP servers are known to whoever runs them alone.
    let running = match &which {
        None | Some(Side::Running) => client(global).ok(),
        _ => None,
    };
    let loaded = side::of(global, which).await?;
    let mut tools: BTreeMap<String, ToolFacts> =
        loaded.facts.iter().map(|it| (it.name.clone(), it.clone())).collect();
    if let Some(client) = running {
        for tool in client.tools().await?.items {
            let facts = facts(tool);
            tools.entry(facts.name.clone()).or_insert(facts);
        }
    }
    let names: Vec<String> = tools.keys().cloned().collect();
    let policy = Policy::new(Arc::new(each_role(&loaded)), tools.into_values());
    let roles: Vec<&Role> = loaded.org.roles().collect();
    if global.json {
        let row = |role: &Role| -> BTreeMap<&str, &str> {
            names.iter().map(|it| (&**it, ruling(&policy, role, it).as_str())).collect()
        };
        let rows: BTreeMap<&str, _> = roles.iter().map(|it| (it.id.as_str(), row(it))).collect();
        output::json(&rows)?;
        return Ok(Outcome::Done);
    }
    let mut head = vec!["TOOL"];
    head.extend(roles.iter().map(|it| it.id.as_str()));
    let rows = names.iter().map(|tool| {
        let cells = roles.iter().map(|role| match ruling(&policy, role, tool) {
            Ruling::Allow => "✔",
            Ruling::RequireApproval | Ruling::RequireHuman => "◐",
            Ruling::Deny => "✕",
        });
        std::iter::once(&**tool).chain(cells).map(str::to_owned).collect()
    });
    output::table(&head, rows.collect())?;
    output::line(format_args!("✔ allowed   ◐ asked about   ✕ denied"))?;
    Ok(Outcome::Done)
}

/// The same roles under the same policy, with one agent of its name for each.
fn each_role(loaded: &Loaded) -> Org {
    let agents = loaded.org.roles().map(|role| {
        let agent = Agent { role: role.id.clone(), personal: false, active: true, place: None };
        (AgentId::from(role.id.as_str()), agent)
    });
    // Every role that is named is one of them.
    let mut org = Org::new(loaded.org.roles().cloned(), agents).unwrap_or_default();
    org.policy = loaded.org.policy.clone();
    org
}

fn ruling(policy: &Policy, role: &Role, tool: &str) -> Ruling {
    let (fitness, nothing): (_, &[_]) = (&Fitness::Fits, &[]);
    let question = Question {
        agent: role.id.as_str(),
        user: "",
        tool,
        delegated: None,
        fitness,
        arguments: nothing,
        limits: nothing,
    };
    policy.rule(question).outcome()
}

fn facts(tool: chancery_api::org::Tool) -> ToolFacts {
    let risk = match &*tool.risk {
        "low" => Risk::Low,
        "medium" => Risk::Medium,
        _ => Risk::High,
    };
    ToolFacts { name: tool.name, risk, capabilities: tool.capabilities, place: None }
}
