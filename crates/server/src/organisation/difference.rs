//! What another version would mean: who may do what then, and not which lines differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use chancery_domain::org::{Contact, MailType, Role, Stated, User};
use chancery_domain::policy::{Bounds, Risk, Ruling, ToolFacts, glob};

use super::Loaded;

/// One difference in meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What it is about: `role qa_worker`, `policy`.
    pub subject: String,
    pub detail: String,
    pub effect: Effect,
}

/// Whether agents may do more afterwards. What cannot be said to be either is a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Wider,
    Narrower,
    Changed,
}

impl Effect {
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Wider => "wider",
            Effect::Narrower => "narrower",
            Effect::Changed => "changed",
        }
    }
}

/// From one version to another.
pub fn difference(from: &Loaded, to: &Loaded) -> Vec<Difference> {
    let mut found = Found::default();
    // Every name that either side knows: a glob may mean other tools than it did.
    let tools: BTreeSet<&str> = from.facts.names().chain(to.facts.names()).collect();
    let roles = |it: &'_ Loaded| -> BTreeMap<String, Role> {
        it.org.roles().map(|it| (it.id.to_string(), it.clone())).collect()
    };
    pairs(&roles(from), &roles(to), |id, old, new| {
        found.about = format!("role {id}");
        match (old, new) {
            (Some(old), Some(new)) => found.role(old, new, &tools),
            (None, _) => found.add(Effect::Wider, "is new"),
            (_, None) => found.add(Effect::Narrower, "is gone"),
        }
    });
    found.agents(from, to);
    found.users(from, to);
    found.groups(from, to);
    found.policy(from, to);
    found.tools(from, to);
    pairs(&from.org.mail, &to.org.mail, |id, old, new| {
        found.about = format!("mail type {id}");
        let same = |a: &MailType, b: &MailType| {
            MailType { place: None, ..a.clone() } == MailType { place: None, ..b.clone() }
        };
        match (old, new) {
            (None, _) => found.add(Effect::Wider, "is new"),
            (_, None) => found.add(Effect::Narrower, "is gone"),
            (Some(a), Some(b)) if !same(a, b) => found.add(Effect::Changed, "is another"),
            _ => {}
        }
    });
    let rules = |it: &Loaded| -> BTreeMap<String, String> {
        it.files.rules().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
    };
    pairs(&rules(from), &rules(to), |name, old, new| {
        found.about = format!("rules {name}");
        match (old, new) {
            (None, _) => found.add(Effect::Narrower, "are new"),
            (_, None) => found.add(Effect::Wider, "are gone"),
            (Some(a), Some(b)) if a != b => found.add(Effect::Changed, "are others"),
            _ => {}
        }
    });
    found.all
}

/// Everything that either has, with what both have of it.
fn pairs<K: Ord, V>(
    from: &BTreeMap<K, V>,
    to: &BTreeMap<K, V>,
    mut each: impl FnMut(&K, Option<&V>, Option<&V>),
) {
    let names: BTreeSet<&K> = from.keys().chain(to.keys()).collect();
    for name in names {
        each(name, from.get(name), to.get(name));
    }
}

#[derive(Default)]
struct Found {
    about: String,
    all: Vec<Difference>,
}

impl Found {
    fn add(&mut self, effect: Effect, detail: impl Into<String>) {
        let (subject, detail) = (self.about.clone(), detail.into());
        self.all.push(Difference { subject, detail, effect });
    }

    fn value<T: PartialEq + Display>(&mut self, what: &str, old: T, new: T) {
        if old != new {
            self.add(Effect::Changed, format!("{what} {old} → {new}"));
        }
    }

    fn role(&mut self, old: &Role, new: &Role, tools: &BTreeSet<&str>) {
        for tool in tools {
            match (permits(old, tool), permits(new, tool)) {
                (false, true) => self.add(Effect::Wider, format!("gains tool {tool}")),
                (true, false) => self.add(Effect::Narrower, format!("loses tool {tool}")),
                _ => {}
            }
            // Listed by its name, a tool of high risk is not asked about.
            match (names(old, tool), names(new, tool)) {
                (false, true) if permits(old, tool) && permits(new, tool) => {
                    self.add(
                        Effect::Wider,
                        format!("lists {tool} by its name: its risk is waived"),
                    );
                }
                (true, false) if permits(old, tool) && permits(new, tool) => {
                    let detail = format!("lists {tool} by its name no more: its risk counts");
                    self.add(Effect::Narrower, detail);
                }
                _ => {}
            }
        }
        let globs = |it: &Role| {
            let entries = it.tools.iter().flatten().filter(|it| it.value.contains('*'));
            entries.map(|it| it.value.clone()).collect::<BTreeSet<_>>()
        };
        self.entries("tools", &globs(old), &globs(new), Effect::Wider);
        let denied = |it: &Role| it.deny_tools.iter().map(|it| it.value.clone()).collect();
        self.entries("deny_tools", &denied(old), &denied(new), Effect::Narrower);
        match (&old.tools, &new.tools) {
            (Some(_), None) => self.add(Effect::Wider, "has no limit of tools any more"),
            (None, Some(_)) => self.add(Effect::Narrower, "has a limit of tools now"),
            _ => {}
        }
        if old.delegable() != new.delegable() && old.delegates != new.delegates {
            self.add(Effect::Changed, "delegates other tools");
        }
        if old.expose != new.expose {
            self.add(Effect::Changed, "shows the model other tools");
        }
        pairs(&old.contacts, &new.contacts, |to, a, b| match (a, b) {
            (None, Some(b)) => self.add(Effect::Wider, format!("may write to {to} ({})", terms(b))),
            (Some(_), None) => self.add(Effect::Narrower, format!("may write to {to} no more")),
            (Some(a), Some(b)) if a != b => {
                let detail = format!("writes to {to} on other terms: {} → {}", terms(a), terms(b));
                self.add(Effect::Changed, detail);
            }
            _ => {}
        });
        let scopes = |it: &Role, write: bool| -> BTreeSet<String> {
            let scope = it.file_scope.clone().unwrap_or_default();
            let list = if write { scope.write } else { scope.read };
            list.into_iter().map(|it| it.value).collect()
        };
        for (what, write) in [("reads", false), ("writes", true)] {
            self.entries(what, &scopes(old, write), &scopes(new, write), Effect::Wider);
        }
        let list =
            |it: &Role| it.reports_to.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
        self.value("reports to", list(old), list(new));
        self.value("level", old.level, new.level);
        self.value("model tier", &old.model_tier, &new.model_tier);
        if old.prompt != new.prompt {
            self.add(Effect::Changed, "has another prompt");
        }
        if old.git != new.git {
            self.add(Effect::Changed, "has other branches");
        }
    }

    /// `added` is the effect of an entry that comes; one that goes has the other.
    fn entries(
        &mut self,
        what: &str,
        old: &BTreeSet<String>,
        new: &BTreeSet<String>,
        added: Effect,
    ) {
        let gone = if added == Effect::Wider { Effect::Narrower } else { Effect::Wider };
        for entry in new.difference(old) {
            self.add(added, format!("{what}: {entry} is new"));
        }
        for entry in old.difference(new) {
            self.add(gone, format!("{what}: {entry} is gone"));
        }
    }

    fn agents(&mut self, from: &Loaded, to: &Loaded) {
        let agents = |it: &Loaded| -> BTreeMap<_, _> {
            it.org.agents().map(|(id, it)| (id.clone(), it.clone())).collect()
        };
        let mut found = std::mem::take(self);
        pairs(&agents(from), &agents(to), |id, old, new| {
            found.about = format!("agent {id}");
            match (old, new) {
                (None, Some(new)) => found.add(Effect::Wider, format!("is new, role {}", new.role)),
                (Some(_), None) => found.add(Effect::Narrower, "is gone"),
                (Some(old), Some(new)) => {
                    found.value("role", &old.role, &new.role);
                    match (old.active, new.active) {
                        (true, false) => found.add(Effect::Narrower, "is deactivated"),
                        (false, true) => found.add(Effect::Wider, "is active again"),
                        _ => {}
                    }
                    if old.personal != new.personal {
                        found.add(Effect::Changed, "is of another kind");
                    }
                }
                (None, None) => {}
            }
        });
        *self = found;
    }

    fn users(&mut self, from: &Loaded, to: &Loaded) {
        let mut found = std::mem::take(self);
        pairs(&from.org.users, &to.org.users, |id, old, new| {
            found.about = format!("user {id}");
            let none = User::default();
            // Whoever is not listed has no limits, and no permission to approve.
            let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
            let allowed = |it: &Bounds| it.allowed_tools.clone();
            match (allowed(&old.bounds), allowed(&new.bounds)) {
                (None, Some(_)) => found.add(Effect::Narrower, "has a limit of tools now"),
                (Some(_), None) => found.add(Effect::Wider, "has no limit of tools any more"),
                (Some(a), Some(b)) => found.entries(
                    "allowed_tools",
                    &a.into_iter().collect(),
                    &b.into_iter().collect(),
                    Effect::Wider,
                ),
                (None, None) => {}
            }
            let denied = |it: &User| it.bounds.denied_tools.iter().cloned().collect();
            found.entries("denied_tools", &denied(old), &denied(new), Effect::Narrower);
            match (old.approver, new.approver) {
                (false, true) => found.add(Effect::Wider, "becomes an approver"),
                (true, false) => found.add(Effect::Narrower, "is an approver no more"),
                _ => {}
            }
        });
        *self = found;
    }

    fn groups(&mut self, from: &Loaded, to: &Loaded) {
        let mut found = std::mem::take(self);
        pairs(&from.org.groups, &to.org.groups, |id, old, new| {
            found.about = format!("group {id}");
            let (Some(old), Some(new)) = (old, new) else {
                let (effect, detail) = match old {
                    None => (Effect::Wider, "is new"),
                    Some(_) => (Effect::Narrower, "is gone"),
                };
                return found.add(effect, detail);
            };
            let members = |it: &[chancery_domain::id::AgentId]| {
                it.iter().map(ToString::to_string).collect::<BTreeSet<_>>()
            };
            found.entries("members", &members(&old.members), &members(&new.members), Effect::Wider);
            if old.lead != new.lead {
                found.add(Effect::Changed, "has another lead");
            }
            found.value("rounds", old.rounds, new.rounds);
        });
        *self = found;
    }

    fn policy(&mut self, from: &Loaded, to: &Loaded) {
        self.about = "policy".to_owned();
        let (old, new) = (&from.org.policy, &to.org.policy);
        let default = |risk: &Risk| {
            if *risk == Risk::High { Ruling::RequireApproval } else { Ruling::Allow }
        };
        pairs(&old.risk, &new.risk, |risk, a, b| {
            let name = format!("risk.{}", risk.as_str());
            self.ruling(&name, a, b, default(risk));
        });
        pairs(&old.capabilities, &new.capabilities, |name, a, b| {
            self.ruling(&format!("capabilities.{name}"), a, b, Ruling::Allow);
        });
        pairs(&old.tools, &new.tools, |name, a, b| {
            self.ruling(&format!("tools.{name}"), a, b, Ruling::Allow);
        });
        let (old, new) = (&old.limits, &new.limits);
        self.limit("run_tokens", old.run_tokens.as_ref(), new.run_tokens.as_ref());
        self.limit("run_steps", old.run_steps.as_ref(), new.run_steps.as_ref());
        pairs(&old.calls_per_minute, &new.calls_per_minute, |name, a, b| {
            self.limit(&format!("calls_per_minute.{name}"), a, b);
        });
    }

    fn limit(&mut self, name: &str, old: Option<&Stated<u32>>, new: Option<&Stated<u32>>) {
        // None is more than any.
        let number = |it: Option<&Stated<u32>>| it.map_or(u64::MAX, |it| it.value.into());
        let shown = |it: Option<&Stated<u32>>| {
            it.map_or_else(|| "no limit".to_owned(), |it| it.value.to_string())
        };
        let effect = if number(new) < number(old) { Effect::Narrower } else { Effect::Wider };
        if number(old) != number(new) {
            let detail = format!("limits.{name} becomes {} (was {})", shown(new), shown(old));
            self.add(effect, detail);
        }
    }

    fn ruling(
        &mut self,
        name: &str,
        old: Option<&Stated<Ruling>>,
        new: Option<&Stated<Ruling>>,
        default: Ruling,
    ) {
        let (old, new) = (old.map_or(default, |it| it.value), new.map_or(default, |it| it.value));
        let effect = if new > old { Effect::Narrower } else { Effect::Wider };
        if old != new {
            self.add(effect, format!("{name} becomes {} (was {})", new.as_str(), old.as_str()));
        }
    }

    fn tools(&mut self, from: &Loaded, to: &Loaded) {
        let facts = |it: &Loaded| -> BTreeMap<String, ToolFacts> {
            it.facts.iter().map(|it| (it.name.clone(), it.clone())).collect()
        };
        let mut found = std::mem::take(self);
        pairs(&facts(from), &facts(to), |name, old, new| {
            found.about = format!("tool {name}");
            let (Some(old), Some(new)) = (old, new) else {
                let detail = if old.is_none() { "is new" } else { "is gone" };
                let effect = if old.is_none() { Effect::Wider } else { Effect::Narrower };
                return found.add(effect, detail);
            };
            if old.risk != new.risk {
                let effect = if new.risk > old.risk { Effect::Narrower } else { Effect::Wider };
                let detail = format!("risk {} → {}", old.risk.as_str(), new.risk.as_str());
                found.add(effect, detail);
            }
            let set = |it: &ToolFacts| it.capabilities.iter().cloned().collect();
            found.entries("capabilities", &set(old), &set(new), Effect::Narrower);
            let config = |it: &Loaded| it.tools.commands.get(name).cloned();
            if config(from) != config(to) && config(from).is_some() && config(to).is_some() {
                found.add(Effect::Changed, "is called otherwise");
            }
        });
        pairs(&from.tools.mcp, &to.tools.mcp, |name, old, new| {
            found.about = format!("MCP server {name}");
            match (old, new) {
                (None, _) => found.add(Effect::Wider, "is new"),
                (_, None) => found.add(Effect::Narrower, "is gone"),
                (Some(a), Some(b)) if a != b => found.add(Effect::Changed, "is reached otherwise"),
                _ => {}
            }
        });
        *self = found;
    }
}

fn permits(role: &Role, tool: &str) -> bool {
    role.tools.as_ref().is_none_or(|it| it.iter().any(|it| glob(&it.value, tool)))
        && !role.deny_tools.iter().any(|it| glob(&it.value, tool))
}

fn names(role: &Role, tool: &str) -> bool {
    role.tools.iter().flatten().any(|it| it.value == tool)
}

fn terms(contact: &Contact) -> String {
    let types =
        if contact.types.is_empty() { "every type".to_owned() } else { contact.types.join(", ") };
    let needs = if contact.needs_active_contract { ", with an active contract" } else { "" };
    format!("{types}{needs}")
}
