//! `roles.yaml`: roles, the agents that act under them, and people.

use std::collections::BTreeMap;

use chancery_domain::id::{AgentId, RoleId, UserId};
use chancery_domain::org::{Agent, Contact, FileScope, GitScope, Role, Stated, User};

use super::draft::{Draft, To};
use super::mistake::{At, Mistakes, meant};
use super::read::{
    Table, boolean, bounds, expected, is_name, listed, map, patterns, text, texts, whole, word,
};
use super::tree::{Key, Node, Value};

/// People, at the top: not a role, and nobody's agent.
pub const BOARD: &str = "board";

const ROLE_KEYS: &[&str] = &[
    "display_name",
    "level",
    "department",
    "reports_to",
    "model_tier",
    "prompt",
    "tools",
    "deny_tools",
    "expose",
    "delegates",
    "contacts",
    "file_scope",
    "git",
];
const TIERS: &[&str] = &["capable", "balanced", "fast"];
/// What a scope may say that only a contract knows.
const PLACEHOLDERS: &[&str] = &["{contract.workspace_scope}", "{contract.assigned_branch}"];

pub fn read(node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) {
    let keys = &["extends", "roles", "agents", "users"];
    let Some(file) = Table::read(node, "", keys, mistakes) else { return };
    for (key, node) in entries(file, "roles", mistakes) {
        if key.name == BOARD {
            let detail = format!("`{BOARD}` is the people at the top, and cannot be a role");
            mistakes.add(key.at, "E109", detail);
        } else {
            let role = role(key, node, draft, mistakes);
            draft.roles.insert(role.id.clone(), role);
        }
    }
    for (key, node) in entries(file, "agents", mistakes) {
        if let Some(agent) = agent(key, node, draft, mistakes) {
            draft.agents.insert(AgentId::from(&*key.name), agent);
        }
    }
    for (key, node) in entries(file, "users", mistakes) {
        if let Some(user) = user(key, node, draft, mistakes) {
            draft.users.insert(UserId::from(&*key.name), user);
        }
    }
}

/// The named things of one section.
pub fn entries<'n>(
    file: Table<'n>,
    section: &str,
    mistakes: &mut Mistakes,
) -> Vec<&'n (Key, Node)> {
    let found = file.get(section).and_then(|it| map(it, section, mistakes)).unwrap_or_default();
    found.iter().filter(|(key, _)| is_name(key, section, mistakes)).collect()
}

fn role(key: &Key, node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) -> Role {
    let path = format!("roles.{}", key.name);
    let at = |name: &str| format!("{path}.{name}");
    let mut role = Role { place: Some(key.at.place()), ..Role::unlimited(&key.name) };
    // One that cannot be read is still there for those who name it.
    let Some(table) = Table::read(node, &path, ROLE_KEYS, mistakes) else { return role };
    if let Some(it) = table.get("display_name")
        && let Some(name) = text(it, &at("display_name"), mistakes)
    {
        role.display_name = name;
    }
    if let Some(it) = table.get("level")
        && let Some(level) = whole(it, &at("level"), 0..=u8::MAX.into(), mistakes)
    {
        role.level = u8::try_from(level).unwrap_or(u8::MAX);
        if level == 0 {
            let detail = format!("`{path}` is of level 0, which is the board: people");
            mistakes.add(it.at, "E107", detail);
        }
    }
    role.department = table.get("department").and_then(|it| text(it, &at("department"), mistakes));
    if let Some(it) = table.get("model_tier")
        && let Some(tier) = word(it, &at("model_tier"), TIERS, mistakes)
    {
        role.model_tier = tier;
    }
    if let Some(it) = table.get("prompt") {
        role.prompt = text(it, &at("prompt"), mistakes).unwrap_or_default();
    }
    if let Some(it) = table.get("reports_to") {
        for (name, place) in texts(it, &at("reports_to"), mistakes).unwrap_or_default() {
            draft.refer(To::Superior, &name, place, at("reports_to"));
            role.reports_to.push(RoleId(name));
        }
    }
    let list = |name: &str, draft: &mut Draft, mistakes: &mut Mistakes| {
        let found = patterns(table.get(name)?, &at(name), mistakes).unwrap_or_default();
        for (entry, place) in &found {
            draft.refer(To::Tool, &entry.value, *place, at(name));
        }
        Some(found.into_iter().map(|(it, _)| it).collect::<Vec<_>>())
    };
    role.tools = list("tools", draft, mistakes);
    role.deny_tools = list("deny_tools", draft, mistakes).unwrap_or_default();
    let exposed = list("expose", draft, mistakes);
    role.expose = exposed.map(|it| it.into_iter().map(|it| it.value).collect());
    if let Some(it) = table.get("delegates") {
        let keys = &["allowed_tools", "denied_tools"];
        if let Some(table) = Table::read(it, &at("delegates"), keys, mistakes) {
            let mut named = Vec::new();
            role.delegates = Some(bounds(table, &at("delegates"), &mut named, mistakes));
            named.iter().for_each(|(it, place)| draft.refer(To::Tool, it, *place, at("delegates")));
        }
    }
    if let Some(it) = table.get("contacts") {
        role.contacts = contacts(it, &at("contacts"), draft, mistakes);
    }
    role.file_scope = table.get("file_scope").and_then(|it| scope(it, &at("file_scope"), mistakes));
    role.git = table.get("git").and_then(|it| git(it, &at("git"), mistakes));
    role
}

fn contacts(
    node: &Node,
    path: &str,
    draft: &mut Draft,
    mistakes: &mut Mistakes,
) -> BTreeMap<String, Contact> {
    let mut contacts = BTreeMap::new();
    for (key, node) in map(node, path, mistakes).unwrap_or_default() {
        draft.refer(To::Contact, &key.name, key.at, path);
        let path = format!("{path}.{}", key.name);
        if let Some(contact) = contact(node, &path, draft, mistakes) {
            contacts.insert(key.name.clone(), contact);
        }
    }
    contacts
}

fn contact(node: &Node, path: &str, draft: &mut Draft, mistakes: &mut Mistakes) -> Option<Contact> {
    if let Value::Scalar { .. } = node.value {
        return match text(node, path, mistakes)?.as_str() {
            "always" => Some(Contact { types: Vec::new(), needs_active_contract: false }),
            other => {
                let detail = format!("`{path}` is `{other}`");
                let hint = "`always`, or `{types: […], needs: active_contract}`".to_owned();
                mistakes.add_with(node.at, "E107", detail, Some(hint));
                None
            }
        };
    }
    let table = Table::read(node, path, &["types", "needs"], mistakes)?;
    let types = match table.get("types") {
        None => Vec::new(),
        Some(it) => {
            let path = format!("{path}.types");
            let types = texts(it, &path, mistakes)?;
            if types.is_empty() && matches!(&it.value, Value::List(items) if items.is_empty()) {
                let detail = format!("`{path}` is empty: no mail could be sent");
                let hint = "leave `types` out for every type, or leave the contact out".to_owned();
                mistakes.add_with(it.at, "E205", detail, Some(hint));
            }
            types.iter().for_each(|(it, place)| draft.refer(To::MailType, it, *place, &*path));
            types.into_iter().map(|(it, _)| it).collect()
        }
    };
    let needs = table.get("needs").map(|it| word(it, path, &["active_contract"], mistakes));
    Some(Contact { types, needs_active_contract: needs.is_some() })
}

fn scope(node: &Node, path: &str, mistakes: &mut Mistakes) -> Option<FileScope> {
    let table = Table::read(node, path, &["read", "write"], mistakes)?;
    let mut list = |name: &str| -> Vec<Stated<String>> {
        let path = format!("{path}.{name}");
        let found = table.get(name).and_then(|it| texts(it, &path, mistakes)).unwrap_or_default();
        for (entry, at) in &found {
            check_path(entry, *at, &path, mistakes);
        }
        let stated = |(value, at): (String, At)| Stated { value, place: Some(at.place()) };
        found.into_iter().map(stated).collect()
    };
    Some(FileScope { read: list("read"), write: list("write") })
}

/// A scope is a beginning of a path beneath the workspace.
fn check_path(entry: &str, at: At, path: &str, mistakes: &mut Mistakes) {
    check_placeholders(entry, at, path, mistakes);
    let outside = entry.starts_with('/') || entry.split('/').any(|it| it == "..");
    if entry.is_empty() || outside || entry.contains('\0') {
        let detail = format!("`{entry}` in `{path}` is not a path beneath the workspace");
        let hint = "no `/` in front, and no `..`; the workspace itself is `./`".to_owned();
        mistakes.add_with(at, "E107", detail, Some(hint));
    }
}

fn check_placeholders(entry: &str, at: At, path: &str, mistakes: &mut Mistakes) {
    if entry.contains(['{', '}']) && !PLACEHOLDERS.contains(&entry) {
        let detail =
            format!("`{entry}` in `{path}` has braces, but is none of what they stand for");
        let likely = meant(entry, PLACEHOLDERS.iter().copied());
        let hint = likely.unwrap_or_else(|| format!("known are {}", listed(PLACEHOLDERS)));
        mistakes.add_with(at, "E107", detail, Some(hint));
    }
}

fn git(node: &Node, path: &str, mistakes: &mut Mistakes) -> Option<GitScope> {
    let table = Table::read(node, path, &["branches", "protected"], mistakes)?;
    let mut list = |name: &str| -> Vec<String> {
        let path = format!("{path}.{name}");
        let found = table.get(name).and_then(|it| texts(it, &path, mistakes)).unwrap_or_default();
        found.iter().for_each(|(it, at)| check_placeholders(it, *at, &path, mistakes));
        found.into_iter().map(|(it, _)| it).collect()
    };
    Some(GitScope { branches: list("branches"), protected: list("protected") })
}

fn agent(key: &Key, node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) -> Option<Agent> {
    let path = format!("agents.{}", key.name);
    let table = Table::read(node, &path, &["role", "kind", "active"], mistakes)?;
    let kind = table.get("kind");
    let personal = kind.map(|it| word(it, &format!("{path}.kind"), &["personal"], mistakes));
    let active = table.get("active").map(|it| boolean(it, &format!("{path}.active"), mistakes));
    let node = table.need("role", &path, mistakes)?;
    let role = text(node, &format!("{path}.role"), mistakes)?;
    draft.refer(To::Role, &role, node.at, format!("{path}.role"));
    Some(Agent {
        role: RoleId(role),
        personal: personal.is_some(),
        active: active.flatten().unwrap_or(true),
        place: Some(key.at.place()),
    })
}

fn user(key: &Key, node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) -> Option<User> {
    let path = format!("users.{}", key.name);
    let keys = &["allowed_tools", "denied_tools", "approver"];
    if let Value::Scalar { .. } = node.value {
        expected(node, &path, "a mapping", mistakes);
        return None;
    }
    let table = Table::read(node, &path, keys, mistakes)?;
    let mut named = Vec::new();
    let bounds = bounds(table, &path, &mut named, mistakes);
    named.iter().for_each(|(it, at)| draft.refer(To::Tool, it, *at, &*path));
    let approver = table.get("approver");
    let approver = approver.and_then(|it| boolean(it, &format!("{path}.approver"), mistakes));
    Some(User { bounds, approver: approver.unwrap_or(false), place: Some(key.at.place()) })
}
