//! The organisation's files, as far as runs need them: who there is and with which tools.

use std::collections::BTreeMap;
use std::path::Path;

use chancery_domain::id::AgentId;
use chancery_domain::org::{Agent, Org, Role};
use chancery_runtime::tool::config::ToolsConfig;
use serde::Deserialize;

use crate::start::StartError;

/// `roles.yaml`. What later layers will read of it is let through unread for now.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RolesFile {
    roles: BTreeMap<String, RoleEntry>,
    agents: BTreeMap<String, AgentEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RoleEntry {
    prompt: String,
    model_tier: Option<String>,
    tools: Option<Vec<String>>,
    deny_tools: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct AgentEntry {
    role: String,
}

const PERSONAL_PROMPT: &str = "You are the personal agent of the person you talk with. \
     Use the tools that you are given, say what you did, and say plainly what you could not do.";

/// Reads what there is in the directory; what is absent is built in.
pub fn load(dir: Option<&Path>) -> Result<(Org, ToolsConfig), StartError> {
    let Some(dir) = dir else { return Ok((built_in(), ToolsConfig::default())) };
    if !dir.is_dir() {
        return Err(StartError::Org(format!("`{}` is not a directory", dir.display())));
    }
    let org = match read(dir, "roles.yaml")? {
        None => built_in(),
        Some(text) => roles(&text)?,
    };
    let tools = match read(dir, "tools.yaml")? {
        None => ToolsConfig::default(),
        Some(text) => {
            ToolsConfig::parse("tools.yaml", &text).map_err(|it| StartError::Org(it.to_string()))?
        }
    };
    Ok((org, tools))
}

/// The organisation of a configuration.
pub fn of(config: &crate::config::Config) -> Result<Org, StartError> {
    load(config.org.as_deref()).map(|(org, _)| org)
}

/// Whether the organisation of a configuration can be used, and what is in it.
pub fn check(config: &crate::config::Config) -> Result<String, StartError> {
    let (org, tools) = load(config.org.as_deref())?;
    let agents = org.agents().count();
    let (commands, servers) = (tools.commands.len(), tools.mcp.len());
    Ok(format!("{agents} agents, {commands} commands, {servers} MCP servers"))
}

fn read(dir: &Path, name: &str) -> Result<Option<String>, StartError> {
    match std::fs::read_to_string(dir.join(name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StartError::Org(format!("`{name}` cannot be read: {error}"))),
    }
}

fn roles(text: &str) -> Result<Org, StartError> {
    let file: RolesFile = serde_saphyr::from_str(text)
        .map_err(|it| StartError::Org(format!("`roles.yaml`: {it}")))?;
    let roles = file.roles.into_iter().map(|(id, entry)| Role {
        prompt: entry.prompt,
        model_tier: entry.model_tier.unwrap_or_else(|| "balanced".to_owned()),
        tools: entry.tools.map(|it| it.into_iter().map(Into::into).collect()),
        deny_tools: entry.deny_tools.into_iter().map(Into::into).collect(),
        ..Role::unlimited(&id)
    });
    let agents = file.agents.into_iter().map(|(id, entry)| (AgentId(id), Agent::of(&entry.role)));
    Org::new(roles, agents).map_err(|lost| {
        let lost: Vec<String> = lost
            .iter()
            .map(|(agent, role)| format!("agent `{agent}` has role `{role}`, which does not exist"))
            .collect();
        StartError::Org(format!("`roles.yaml`: {}", lost.join("; ")))
    })
}

fn built_in() -> Org {
    let role = Role { prompt: PERSONAL_PROMPT.to_owned(), ..Role::unlimited("personal_agent") };
    let pa = (AgentId::from("pa"), Agent::of(role.id.as_str()));
    Org::new([role], [pa]).unwrap_or_default()
}
