//! `tools.yaml`: what the operator says about tools. The runtime's own reader makes tools of it;
//! this one finds every mistake in it, each with its place.

use std::collections::BTreeMap;

use chancery_domain::policy::{Risk, ToolFacts, glob, is_glob};
use chancery_runtime::tool::command::Template;
use chancery_runtime::tool::config::{CommandConfig, ToolsConfig, displaced};

use super::draft::{Draft, To};
use super::known;
use super::mistake::{At, Mistakes};
use super::policy::RISKS;
use super::read::{Table, boolean, expected, map, text, texts, word};
use super::tree::{Key, Node, Value};

const OVERRIDES: &[&str] = &["risk", "capabilities", "mutating", "idempotent", "supports_parallel"];
const COMMAND: &[&str] = &[
    "description",
    "command",
    "parameters",
    "risk",
    "capabilities",
    "mutating",
    "idempotent",
    "supports_parallel",
    "timeout",
    "network",
];
const SERVER: &[&str] = &["command", "env", "url", "headers", "timeout", "network"];

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolsDraft {
    pub config: ToolsConfig,
    /// Where each tool is spoken of.
    pub places: BTreeMap<String, At>,
    /// The commands and servers that are named, whatever else is wrong with them.
    commands: Vec<String>,
    servers: Vec<String>,
}

/// The tools that are known without asking anybody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    by_name: BTreeMap<String, ToolFacts>,
    servers: Vec<String>,
}

/// `given` is the file itself: what stands in it is read twice, and must be the same.
pub fn read(node: &Node, given: Option<&str>, draft: &mut Draft, mistakes: &mut Mistakes) {
    let mut own = Mistakes::default();
    walk(node, draft, &mut own);
    let sound = !own.has_errors();
    mistakes.extend(own);
    let Some(text) = given.filter(|_| sound) else { return };
    match ToolsConfig::parse("tools.yaml", text) {
        Ok(config) => {
            draft.tools.config = config;
            check_commands(draft, mistakes);
        }
        Err(error) => {
            let number = |it: u64| u32::try_from(it).unwrap_or(u32::MAX).max(1);
            let (line, column) = (number(error.line), number(error.column));
            mistakes.add(At { file: "tools.yaml", line, column }, "E110", error.detail);
        }
    }
}

fn walk(node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) {
    let keys = &["extends", "tools", "commands", "mcp"];
    let Some(file) = Table::read(node, "", keys, mistakes) else { return };
    let section = |name: &str, mistakes: &mut Mistakes| {
        file.get(name).and_then(|it| map(it, name, mistakes)).unwrap_or_default()
    };
    for (key, node) in section("tools", mistakes) {
        let path = format!("tools.{}", key.name);
        if let Some(table) = Table::read(node, &path, OVERRIDES, mistakes) {
            check_traits(table, &path, mistakes);
        }
        draft.refer(To::Tool, &key.name, key.at, "tools");
        draft.tools.places.insert(key.name.clone(), key.at);
    }
    for (key, node) in section("commands", mistakes) {
        check_command(key, node, mistakes);
        draft.tools.commands.push(key.name.clone());
        draft.tools.places.insert(key.name.clone(), key.at);
    }
    for (key, node) in section("mcp", mistakes) {
        check_server(key, node, mistakes);
        draft.tools.servers.push(key.name.clone());
    }
}

fn check_traits(table: Table<'_>, path: &str, mistakes: &mut Mistakes) {
    let at = |name: &str| format!("{path}.{name}");
    if let Some(it) = table.get("risk") {
        word(it, &at("risk"), &RISKS.map(Risk::as_str), mistakes);
    }
    if let Some(it) = table.get("capabilities") {
        texts(it, &at("capabilities"), mistakes);
    }
    for name in ["mutating", "idempotent", "supports_parallel", "network"] {
        if let Some(it) = table.get(name) {
            boolean(it, &at(name), mistakes);
        }
    }
    if let Some(it) = table.get("timeout")
        && !matches!(it.value, Value::Scalar { .. } if !it.is_null())
    {
        expected(it, &at("timeout"), "a length of time", mistakes);
    }
}

fn check_command(key: &Key, node: &Node, mistakes: &mut Mistakes) {
    let path = format!("commands.{}", key.name);
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let name = &key.name;
    let fits = (1..=64).contains(&name.len()) && name.chars().all(plain);
    if !fits || name.starts_with("mcp__") {
        let hint = "at most 64 letters, digits, `-` and `_`, not beginning with `mcp__`".to_owned();
        let detail = format!("`{name}` cannot be a command's name");
        mistakes.add_with(key.at, "E108", detail, Some(hint));
    } else if known::BUILT_IN.contains(&&**name) {
        let detail = format!("`{name}` is a built-in tool, and cannot be a command too");
        mistakes.add(key.at, "E108", detail);
    }
    let Some(table) = Table::read(node, &path, COMMAND, mistakes) else { return };
    check_traits(table, &path, mistakes);
    if let Some(it) = table.need("description", &path, mistakes) {
        text(it, &format!("{path}.description"), mistakes);
    }
    if let Some(it) = table.need("command", &path, mistakes) {
        check_argv(it, &format!("{path}.command"), mistakes);
    }
    if let Some(it) = table.get("parameters") {
        map(it, &format!("{path}.parameters"), mistakes);
    }
}

/// A number among the arguments of a program is a text too.
fn check_argv(node: &Node, path: &str, mistakes: &mut Mistakes) {
    let Value::List(items) = &node.value else {
        return expected(node, path, "a list", mistakes);
    };
    if items.is_empty() {
        mistakes.add(node.at, "E107", format!("`{path}` names no program"));
    }
    for (place, item) in items.iter().enumerate() {
        if !matches!(item.value, Value::Scalar { .. }) || item.is_null() {
            expected(item, &format!("{path}[{place}]"), "text", mistakes);
        }
    }
}

fn check_server(key: &Key, node: &Node, mistakes: &mut Mistakes) {
    let path = format!("mcp.{}", key.name);
    let name = &key.name;
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let fits = (1..=32).contains(&name.len()) && name.chars().all(plain);
    if !fits || name.contains("__") || name.starts_with('_') || name.ends_with('_') {
        let hint = "at most 32 letters, digits, `-` and single `_`, none of these at its ends";
        let detail = format!("`{name}` cannot be an MCP server's name");
        mistakes.add_with(key.at, "E108", detail, Some(hint.to_owned()));
    }
    let Some(table) = Table::read(node, &path, SERVER, mistakes) else { return };
    check_traits(table, &path, mistakes);
    let (command, url) = (table.get("command"), table.get("url"));
    if command.is_some() == url.is_some() {
        let detail = format!("`{path}` has either a `command` or a `url`");
        mistakes.add(key.at, "E106", detail);
    }
    if let Some(it) = command {
        check_argv(it, &format!("{path}.command"), mistakes);
    }
    if let Some(it) = url {
        text(it, &format!("{path}.url"), mistakes);
    }
    for (name, with, there) in
        [("env", "command", command), ("network", "command", command), ("headers", "url", url)]
    {
        let Some(it) = table.get(name) else { continue };
        if there.is_none() {
            let detail = format!("`{path}.{name}` is only for a server with a `{with}`");
            mistakes.add(it.at, "E107", detail);
        }
        if name != "network" {
            map(it, &format!("{path}.{name}"), mistakes);
        }
    }
}

/// What only shows when a command is put together.
fn check_commands(draft: &Draft, mistakes: &mut Mistakes) {
    let config = &draft.tools.config;
    let place = |name: &str| draft.tools.places.get(name).copied();
    for name in displaced(config) {
        let detail = format!(
            "command `{name}` is in the place of the tool of that name that is built in, and \
             holds to nothing of what that one holds to"
        );
        mistakes.add(place(&name).unwrap_or(At::file("tools.yaml")), "W111", detail);
    }
    for (name, command) in &config.commands {
        let at = place(name).unwrap_or(At::file("tools.yaml"));
        if let Err(error) = Template::new(&command.command, &command.parameters) {
            mistakes.add(at, "E111", format!("`commands.{name}`: {error}"));
        }
        if let Err(error) = jsonschema::validator_for(&command.parameters) {
            let detail =
                format!("the parameters of `commands.{name}` are not a JSON Schema: {error}");
            mistakes.add(at, "E111", detail);
        }
    }
}

impl ToolsDraft {
    pub fn facts(&self) -> Facts {
        let known = known::TOOLS.iter().map(|(name, risk, capabilities)| ToolFacts {
            name: (*name).to_owned(),
            risk: *risk,
            capabilities: capabilities.iter().map(|it| (*it).to_owned()).collect(),
            place: None,
        });
        let commands = self.commands.iter().map(|name| {
            let config = self.config.commands.get(name);
            ToolFacts {
                name: name.clone(),
                risk: config.map_or(Risk::High, |it| it.risk.unwrap_or_else(|| default_risk(it))),
                capabilities: config.map(|it| it.capabilities.clone()).unwrap_or_default(),
                place: self.places.get(name).map(|it| it.place()),
            }
        });
        let mut by_name: BTreeMap<String, ToolFacts> =
            known.chain(commands).map(|it| (it.name.clone(), it)).collect();
        // What is said of a tool does not make it one; of a server's tools nothing else is known,
        // and what nobody classifies is of high risk.
        for name in self.config.tools.0.keys().filter(|it| it.starts_with("mcp__") && !is_glob(it))
        {
            let (name, risk) = (name.clone(), Risk::High);
            let facts = ToolFacts { name: name.clone(), risk, capabilities: vec![], place: None };
            by_name.insert(name, facts);
        }
        for facts in by_name.values_mut() {
            let Some((entry, over)) = self.config.tools.over(&facts.name) else { continue };
            facts.risk = over.risk.unwrap_or(facts.risk);
            if let Some(capabilities) = &over.capabilities {
                facts.capabilities.clone_from(capabilities);
            }
            facts.place = self.places.get(entry).map(|it| it.place());
        }
        Facts { by_name, servers: self.servers.clone() }
    }
}

fn default_risk(command: &CommandConfig) -> Risk {
    if command.mutating { Risk::Medium } else { Risk::Low }
}

impl Facts {
    pub fn iter(&self) -> impl Iterator<Item = &ToolFacts> {
        self.by_name.values()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    pub fn get(&self, name: &str) -> Option<&ToolFacts> {
        self.by_name.get(name)
    }

    /// Whether an entry names a tool that is there, or may come with a server.
    pub fn may_match(&self, entry: &str) -> bool {
        let known = if is_glob(entry) {
            self.names().any(|it| glob(entry, it))
        } else {
            self.by_name.contains_key(entry) && !entry.starts_with("mcp__")
        };
        known || self.servers.iter().any(|it| meets(entry, &format!("mcp__{it}__")))
    }
}

/// Whether some name that begins so could match the entry.
fn meets(entry: &str, beginning: &str) -> bool {
    match entry.split_once('*') {
        None => entry.starts_with(beginning),
        Some((head, _)) => head.starts_with(beginning) || beginning.starts_with(head),
    }
}
