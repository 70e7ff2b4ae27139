//! `groups.yaml`: agents that work as one.

use chancery_domain::id::{AgentId, GroupId};
use chancery_domain::org::Group;

use super::draft::{Draft, To};
use super::mistake::Mistakes;
use super::read::{Table, text, texts, whole};
use super::roles::entries;
use super::tree::{Key, Node};

const KEYS: &[&str] = &["name", "description", "tags", "members", "lead", "rounds"];
/// More rounds than this are no discussion any more.
const ROUNDS_MAX: u32 = 100;

pub fn read(node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) {
    let Some(file) = Table::read(node, "", &["extends", "groups"], mistakes) else { return };
    for (key, node) in entries(file, "groups", mistakes) {
        if let Some(group) = group(key, node, draft, mistakes) {
            draft.groups.insert(GroupId::from(&*key.name), group);
        }
    }
}

fn group(key: &Key, node: &Node, draft: &mut Draft, mistakes: &mut Mistakes) -> Option<Group> {
    let path = format!("groups.{}", key.name);
    let table = Table::read(node, &path, KEYS, mistakes)?;
    let at = |name: &str| format!("{path}.{name}");
    let named = |name: &str, mistakes: &mut Mistakes| {
        table.get(name).and_then(|it| text(it, &at(name), mistakes))
    };
    let tags = table.get("tags").and_then(|it| texts(it, &at("tags"), mistakes));
    let members = table.need("members", &path, mistakes);
    let members = members.and_then(|it| texts(it, &at("members"), mistakes)).unwrap_or_default();
    let mut agents: Vec<AgentId> = Vec::new();
    for (name, place) in &members {
        draft.refer(To::Member, name, *place, at("members"));
        let member = AgentId::from(&**name);
        if agents.contains(&member) {
            mistakes.add(*place, "E103", format!("`{name}` is a member of `{path}` twice"));
        } else {
            agents.push(member);
        }
    }
    if agents.is_empty() && table.get("members").is_some() {
        mistakes.add(key.at, "E107", format!("`{path}` has no members"));
    }
    let lead = named("lead", mistakes).map(AgentId);
    if let (Some(lead), Some(node)) = (&lead, table.get("lead"))
        && !agents.contains(lead)
    {
        let names = agents.iter().map(AgentId::as_str);
        let hint = super::mistake::meant(lead.as_str(), names);
        let detail = format!("`{lead}` leads `{path}`, but is none of its members");
        mistakes.add_with(node.at, "E208", detail, hint);
    }
    let rounds = table.get("rounds");
    let rounds = rounds.and_then(|it| whole(it, &at("rounds"), 1..=ROUNDS_MAX, mistakes));
    Some(Group {
        name: named("name", mistakes).unwrap_or_else(|| key.name.clone()),
        description: named("description", mistakes).unwrap_or_default(),
        tags: tags.unwrap_or_default().into_iter().map(|(it, _)| it).collect(),
        members: agents,
        lead,
        rounds: rounds.unwrap_or(1),
        place: Some(key.at.place()),
    })
}
