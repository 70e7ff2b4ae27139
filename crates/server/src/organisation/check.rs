//! Whether what the files name is there, and whether the whole makes sense.

use std::collections::BTreeSet;

use chancery_domain::id::{AgentId, RoleId};
use chancery_domain::org::Role;
use chancery_domain::policy::{Risk, Ruling, ToolFacts, glob};

use super::draft::{Draft, Reference, To};
use super::known;
use super::mistake::{At, Mistakes, meant};
use super::roles::BOARD;
use super::tools::Facts;

pub fn check(draft: &mut Draft, mistakes: &mut Mistakes) {
    leave_out_built_in_groups(draft);
    let facts = draft.facts();
    for reference in &draft.references {
        check_reference(reference, draft, &facts, mistakes);
    }
    check_cycles(draft, mistakes);
    check_levels(draft, mistakes);
    check_mail(draft, mistakes);
    for role in draft.roles.values() {
        check_both_lists(role, draft, mistakes);
    }
    check_escalation(draft, mistakes);
    check_approvers(draft, &facts, mistakes);
    check_reach(draft, mistakes);
}

/// The built-in groups are examples: whoever replaces the agents has no use for them.
fn leave_out_built_in_groups(draft: &mut Draft) {
    let Draft { groups, agents, references, .. } = draft;
    groups.retain(|id, group| {
        let built_in = group.place.as_ref().is_some_and(|it| it.file.starts_with("builtin/"));
        let whole = group.members.iter().all(|it| agents.contains_key(it));
        let by = format!("groups.{id}.members");
        if built_in && !whole {
            references.retain(|it| it.by != by);
        }
        whole || !built_in
    });
}

fn check_reference(it: &Reference, draft: &Draft, facts: &Facts, mistakes: &mut Mistakes) {
    let Reference { name, at, by, .. } = it;
    let is_role = || draft.roles.contains_key(&RoleId::from(&**name));
    let is_agent = || draft.agents.contains_key(&AgentId::from(&**name));
    let roles = || draft.roles.keys().map(RoleId::as_str);
    let agents = || draft.agents.keys().map(AgentId::as_str);
    let lost = |file: &str| draft.unread.contains(file);
    // A part that is built in may speak of parts that the operator has replaced.
    let spared = at.is_built_in();
    let mut missing = |code, what: &str, hint: Option<String>| {
        mistakes.add_with(*at, code, format!("`{by}` names {what} `{name}`"), hint);
    };
    match it.to {
        To::Role if !is_role() && !lost("roles.yaml") => {
            missing("E201", "a role that does not exist:", meant(name, roles()));
        }
        To::Superior if name != BOARD && !is_role() => {
            missing("E202", "a role that does not exist:", meant(name, roles().chain([BOARD])));
        }
        To::Contact if name != BOARD && !is_role() && !is_agent() => {
            let known = roles().chain(agents()).chain([BOARD]);
            missing("E206", "neither a role nor an agent:", meant(name, known));
        }
        To::Sender if !is_role() && !spared && !lost("roles.yaml") => {
            missing("E201", "a role that does not exist:", meant(name, roles()));
        }
        To::Member if !is_agent() && !spared && !lost("roles.yaml") => {
            missing("E207", "an agent that does not exist:", meant(name, agents()));
        }
        To::MailType if !draft.mail.contains_key(name) && !lost("mail.yaml") => {
            let known = draft.mail.keys().map(String::as_str);
            missing("E204", "a type of mail that does not exist:", meant(name, known));
        }
        To::Tool if !facts.may_match(name) && !spared && !lost("tools.yaml") => {
            missing("W102", "no tool that is known:", meant(name, facts.names()));
        }
        To::Capability if !spared && !lost("tools.yaml") => {
            let had = || facts.iter().flat_map(|it| &it.capabilities).map(String::as_str);
            let known = || had().chain(known::CAPABILITIES.iter().copied());
            if !had().any(|it| it == name) && !known::CAPABILITIES.contains(&&**name) {
                missing("W104", "a capability that no tool has:", meant(name, known()));
            }
        }
        _ => {}
    }
}

/// Follows the chain of command upwards from every role; each cycle is named once.
fn check_cycles(draft: &Draft, mistakes: &mut Mistakes) {
    let mut done: BTreeSet<&RoleId> = BTreeSet::new();
    for start in draft.roles.keys() {
        // Each with how many of its superiors have been looked at.
        let mut path: Vec<(&RoleId, usize)> = vec![(start, 0)];
        if done.contains(start) {
            continue;
        }
        while let Some((role, next)) = path.last_mut() {
            let superiors = draft.roles.get(*role).map_or(&[][..], |it| &it.reports_to);
            let Some(superior) = superiors.get(*next) else {
                done.insert(*role);
                path.pop();
                continue;
            };
            *next += 1;
            let role = *role;
            if let Some(from) = path.iter().position(|(it, _)| *it == superior) {
                let around =
                    path[from..].iter().map(|(it, _)| it.as_str()).chain([superior.as_str()]);
                let detail = format!(
                    "a circle in the chain of command: {}",
                    around.collect::<Vec<_>>().join(" → ")
                );
                let by = format!("roles.{role}.reports_to");
                let at = draft.place_of(&by, superior.as_str());
                mistakes.add(at.unwrap_or(At::file("roles.yaml")), "E203", detail);
            } else if !done.contains(superior) && draft.roles.contains_key(superior) {
                path.push((superior, 0));
            }
        }
    }
}

fn check_levels(draft: &Draft, mistakes: &mut Mistakes) {
    for role in draft.roles.values() {
        for superior in role.reports_to.iter().filter_map(|it| draft.roles.get(it)) {
            if superior.level < role.level || superior.id == role.id {
                continue;
            }
            let by = format!("roles.{}.reports_to", role.id);
            let Some(at) = draft.place_of(&by, superior.id.as_str()) else { continue };
            let detail = format!(
                "role `{}` of level {} reports to `{}` of level {}, which is not above it",
                role.id, role.level, superior.id, superior.level
            );
            mistakes.add(at, "W105", detail);
        }
    }
}

/// Contacts and the types of mail say the same from two sides.
fn check_mail(draft: &Draft, mistakes: &mut Mistakes) {
    if draft.unread.contains("mail.yaml") {
        return;
    }
    for role in draft.roles.values() {
        for (to, contact) in &role.contacts {
            let by = format!("roles.{}.contacts.{to}.types", role.id);
            for name in &contact.types {
                let Some(kind) = draft.mail.get(name) else { continue };
                let may = kind.senders.as_ref().is_none_or(|it| it.contains(&role.id));
                // The built-in types know only the built-in roles.
                let known = kind.place.as_ref().is_none_or(|it| !it.file.starts_with("builtin/"));
                if may || (!known && !is_built_in(role)) {
                    continue;
                }
                let detail = format!(
                    "`{}` may send `{name}` to `{to}`, but the type `{name}` is not for that role \
                     to send",
                    role.id
                );
                let at = draft.place_of(&by, name).unwrap_or(At::file("roles.yaml"));
                mistakes.add(at, "E209", detail);
            }
        }
        check_answers(role, draft, mistakes);
    }
}

/// Who is written to can answer.
fn check_answers(role: &Role, draft: &Draft, mistakes: &mut Mistakes) {
    for to in role.contacts.keys() {
        let Some(other) = role_named(to, draft) else { continue };
        let back = other.contacts.keys().filter_map(|it| role_named(it, draft));
        if other.id == role.id || back.into_iter().any(|it| it.id == role.id) {
            continue;
        }
        let by = format!("roles.{}.contacts", role.id);
        let Some(at) = draft.place_of(&by, to) else { continue };
        let detail = format!("`{}` may write to `{to}`, which may not answer", role.id);
        mistakes.add(at, "W108", detail);
    }
}

fn role_named<'d>(name: &str, draft: &'d Draft) -> Option<&'d Role> {
    let of_agent = || draft.agents.get(&AgentId::from(name)).map(|it| it.role.clone());
    let role = draft.roles.get(&RoleId::from(name));
    role.or_else(|| draft.roles.get(&of_agent()?))
}

fn is_built_in(role: &Role) -> bool {
    role.place.as_ref().is_some_and(|it| it.file.starts_with("builtin/"))
}

fn check_both_lists(role: &Role, draft: &Draft, mistakes: &mut Mistakes) {
    for entry in role.tools.iter().flatten() {
        let Some(denial) = role.deny_tools.iter().find(|it| glob(&it.value, &entry.value)) else {
            continue;
        };
        let by = format!("roles.{}.tools", role.id);
        let Some(at) = draft.place_of(&by, &entry.value) else { continue };
        let detail = format!(
            "role `{}` lists `{}` and denies it by `{}`: denied it is",
            role.id, entry.value, denial.value
        );
        mistakes.add(at, "W103", detail);
    }
}

/// A worker that is stuck needs a way up.
fn check_escalation(draft: &Draft, mistakes: &mut Mistakes) {
    let escalates = |role: &Role| {
        let bound = role.tools.as_ref();
        bound.is_none_or(|it| it.iter().any(|it| glob(&it.value, "escalate")))
            && !role.deny_tools.iter().any(|it| glob(&it.value, "escalate"))
    };
    // Nobody escalates where escalation is no part of the organisation.
    if !draft.roles.values().any(|it| it.tools.is_some() && escalates(it)) {
        return;
    }
    for role in draft.roles.values() {
        let under_agents = role.reports_to.iter().any(|it| draft.roles.contains_key(it));
        if under_agents && !escalates(role) {
            let at = place(role);
            let detail =
                format!("`{}` has no `escalate` tool: when it is stuck it has no way up", role.id);
            mistakes.add(at, "W101", detail);
        }
    }
}

fn place(role: &Role) -> At {
    let built_in = is_built_in(role);
    let line = role.place.as_ref().map_or(1, |it| it.line);
    At { file: if built_in { "builtin/roles.yaml" } else { "roles.yaml" }, line, column: 3 }
}

/// Where people are listed, one of them should be able to answer what is asked.
fn check_approvers(draft: &Draft, facts: &Facts, mistakes: &mut Mistakes) {
    if draft.users.is_empty() || draft.users.values().any(|it| it.approver) {
        return;
    }
    let asking = draft.roles.values().find_map(|role| {
        let tool = facts.iter().find(|it| asks(role, it, draft))?;
        Some((role, tool))
    });
    if let Some((role, tool)) = asking {
        let detail = format!(
            "role `{}` must ask for `{}`, but none of the users is an approver",
            role.id, tool.name
        );
        let hint = "give one of them `approver: true`".to_owned();
        mistakes.add_with(place(role), "W106", detail, Some(hint));
    }
}

fn asks(role: &Role, tool: &ToolFacts, draft: &Draft) -> bool {
    let entry = role.tools.as_ref().map(|it| it.iter().filter(|it| glob(&it.value, &tool.name)));
    let (bound, named) = match entry {
        None => (true, false),
        Some(mut matching) => {
            let all: Vec<_> = matching.by_ref().collect();
            (!all.is_empty(), all.iter().any(|it| it.value == tool.name))
        }
    };
    let denied = role.deny_tools.iter().any(|it| glob(&it.value, &tool.name));
    let policy = &draft.policy;
    let default = if tool.risk == Risk::High { Ruling::RequireApproval } else { Ruling::Allow };
    let risk = policy.risk.get(&tool.risk).map_or(default, |it| it.value);
    let own = policy.tools.iter().filter(|(entry, _)| glob(entry, &tool.name)).map(|(_, it)| it);
    let of = tool.capabilities.iter().filter_map(|it| policy.capabilities.get(it));
    let rulings = own.chain(of).map(|it| it.value).chain((!named).then_some(risk));
    bound && !denied && rulings.max().is_some_and(Ruling::asks)
}

/// Where agents write to each other, one that nobody may write to waits for ever.
fn check_reach(draft: &Draft, mistakes: &mut Mistakes) {
    if draft.agents.is_empty() && !draft.unread.contains("roles.yaml") {
        let hint = "`extends: builtin` adds to the built-in roles and agents".to_owned();
        let detail = "there are no agents".to_owned();
        mistakes.add_with(At::file("roles.yaml"), "W109", detail, Some(hint));
    }
    let written: BTreeSet<&RoleId> = draft
        .roles
        .values()
        .flat_map(|role| role.contacts.keys().filter(|it| **it != *role.id.as_str()))
        .filter_map(|it| role_named(it, draft).map(|it| &it.id))
        .collect();
    if written.is_empty() {
        return;
    }
    let grouped: BTreeSet<&AgentId> = draft.groups.values().flat_map(|it| &it.members).collect();
    for (id, agent) in &draft.agents {
        if agent.personal || !agent.active || grouped.contains(id) || written.contains(&agent.role)
        {
            continue;
        }
        let Some(at) = draft.place_of(&format!("agents.{id}.role"), agent.role.as_str()) else {
            continue;
        };
        let detail = format!("nobody may write to agent `{id}`, and it is in no group");
        mistakes.add(at, "W107", detail);
    }
}
