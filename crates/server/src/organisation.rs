//! The organisation's files: read and checked as a whole, with every mistake at once.
//!
//! Says who there is and what they may do; what that means for a call is the policy's to say.

mod amend;
mod check;
pub mod difference;
mod draft;
pub mod files;
mod groups;
pub mod impact;
mod known;
mod mail;
pub mod mistake;
mod policy;
pub mod reach;
mod read;
pub mod reload;
mod roles;
mod rules;
pub mod starter;
mod switch;
mod tools;
mod tree;

use std::path::Path;

use chancery_domain::org::Org;
use chancery_runtime::tool::config::ToolsConfig;

use draft::Draft;
use files::{NAMES, built_in};
use read::word;
use tree::{Node, Value};

use crate::config::Config;
use crate::start::StartError;

pub use files::Files;
pub use mistake::{Mistake, Mistakes, Severity};
pub use reload::Organisation;
pub use tools::Facts;

/// An organisation that can be used, with what there is to warn of.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its version is yet to be given.
    pub org: Org,
    pub tools: ToolsConfig,
    /// The tools that are known without asking anybody, as the files have them.
    pub facts: Facts,
    pub files: Files,
    pub warnings: Vec<Mistake>,
}

/// Reads and checks everything. `mistakes` are those that were made in getting the files.
pub fn load(files: Files, mut mistakes: Mistakes) -> Result<Loaded, Vec<Mistake>> {
    let mut draft = Draft::default();
    for name in NAMES {
        let Some(node) = part(name, &files, &mut mistakes) else {
            draft.unread.insert(name);
            continue;
        };
        match name {
            "roles.yaml" => roles::read(&node, &mut draft, &mut mistakes),
            "groups.yaml" => groups::read(&node, &mut draft, &mut mistakes),
            "policy.yaml" => policy::read(&node, &mut draft, &mut mistakes),
            "tools.yaml" => tools::read(&node, files.get(name), &mut draft, &mut mistakes),
            _ => mail::read(&node, &mut draft, &mut mistakes),
        }
    }
    check::check(&mut draft, &mut mistakes);
    rules::check(&files, &draft.tools.config, &mut mistakes);
    if mistakes.has_errors() {
        return Err(mistakes.sorted());
    }
    let facts = draft.facts();
    let Draft { roles, agents, users, groups, policy, mail, tools, .. } = draft;
    // The checks have named every agent without a role.
    let Ok(mut org) = Org::new(roles.into_values(), agents) else { return Err(mistakes.sorted()) };
    (org.users, org.groups, org.policy, org.mail) = (users, groups, policy, mail);
    Ok(Loaded { org, tools: tools.config, facts, files, warnings: mistakes.sorted() })
}

/// The files of a directory; without one, none: all is built in.
pub fn read_files(dir: Option<&Path>) -> (Files, Mistakes) {
    let mut mistakes = Mistakes::default();
    let files = dir.map(|it| Files::read(it, &mut mistakes)).unwrap_or_default();
    (files, mistakes)
}

/// The organisation of a configuration, as its directory has it.
pub fn of(config: &Config) -> Result<Loaded, StartError> {
    let (files, mistakes) = read_files(config.org.as_deref());
    load(files, mistakes).map_err(|it| StartError::Org(reload::summary(&it)))
}

/// Whether the organisation of a configuration can be used, and what is in it.
pub fn check(config: &Config) -> Result<String, StartError> {
    let loaded = of(config)?;
    let agents = loaded.org.agents().count();
    let (commands, servers) = (loaded.tools.commands.len(), loaded.tools.mcp.len());
    Ok(format!("{agents} agents, {commands} commands, {servers} MCP servers"))
}

/// One file's tree: the built-in one, or the given one, alone or over the built-in one.
fn part(name: &'static str, files: &Files, mistakes: &mut Mistakes) -> Option<Node> {
    let base = || {
        let (name, text) = built_in(name);
        tree::parse(name, text, &mut Mistakes::default())
    };
    let Some(given) = files.get(name) else { return base() };
    let given = tree::parse(name, given, mistakes)?;
    if !matches!(given.value, Value::Map(_)) {
        read::expected(&given, "", "a mapping", mistakes);
        return None;
    }
    match given.get("extends") {
        None => Some(given),
        Some(it) => {
            word(it, "extends", &["builtin"], mistakes)?;
            Some(given.over(base()?))
        }
    }
}
