//! One version of an organisation, ready to rule: the same policy and the same rules as the gate's.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::anyhow;
use chancery_domain::contract::Warrant;
use chancery_domain::event::Call;
use chancery_domain::id::{AgentId, CallId};
use chancery_domain::org::Role;
use chancery_domain::policy::{Fitness, Policy, Question, Reason, Ruling, Verdict};
use chancery_runtime::rules::prove::Sketch;
use chancery_runtime::rules::{Contacts, Facts, Literals, Rules};
use chancery_runtime::tool::config::{Place, plan, schemas};
use chancery_runtime::tool::{Caller, Tools, fits};
use chancery_server::organisation::Loaded;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::Undecided;
use crate::cmd::scratch::Scratch;

#[derive(Debug)]
pub struct Version {
    pub loaded: Loaded,
    pub rules: Rules,
    /// The tools that are known without asking anybody, with the schemas of their arguments.
    pub schemas: BTreeMap<String, Value>,
    policy: Policy,
    /// Those that say which files and branches a call touches.
    local: Tools,
}

impl Version {
    pub fn of(loaded: Loaded) -> anyhow::Result<Version> {
        let schemas: BTreeMap<String, Value> = schemas(&loaded.tools).into_iter().collect();
        let files: Vec<(String, String)> =
            loaded.files.rules().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        let awaited: Vec<String> =
            loaded.tools.mcp.keys().map(|it| format!("mcp__{it}__")).collect();
        let awaited: Vec<&str> = awaited.iter().map(String::as_str).collect();
        let known = schemas.iter().map(|(name, it)| (&**name, it));
        let rules = Rules::load_awaiting(&files, known, &awaited).map_err(|mistakes| {
            let texts: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            anyhow!("{}", texts.join("; "))
        })?;
        let facts: Vec<_> = loaded.facts.iter().cloned().collect();
        let policy = Policy::new(Arc::new(loaded.org.clone()), facts);
        // Nothing of it is ever called: it is asked what a call would touch.
        let scratch = Scratch::new("prove", None)?;
        let place = Place::here(&scratch.dir, &scratch.dir);
        let local = plan(&loaded.tools, &place).map(|it| it.0).unwrap_or_default();
        Ok(Version { loaded, rules, schemas, policy, local })
    }

    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.loaded.facts.names()
    }

    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.loaded.org.agents().map(|(id, _)| id.as_str())
    }

    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.loaded.org.users.keys().map(|it| it.as_str())
    }

    pub fn role(&self, agent: &str) -> Option<&Role> {
        self.loaded.org.role_of(&AgentId::from(agent))
    }

    pub fn contacts(&self, agent: &str) -> Contacts {
        self.role(agent).map(|it| Contacts::of(it.contacts.keys())).unwrap_or_default()
    }

    pub fn capabilities(&self, tool: &str) -> &[String] {
        self.policy.facts(tool).map_or(&[], |it| &it.capabilities)
    }

    /// What all layers but those over arguments say.
    pub fn base(&self, agent: &str, user: &str, tool: &str) -> Ruling {
        let fitness = match self.policy.facts(tool) {
            Some(_) => Fitness::Fits,
            None => Fitness::UnknownTool,
        };
        self.ruled(agent, user, tool, &fitness, &[], |it| it.outcome())
    }

    /// The ruling on a call, with the sentence of what decides.
    pub fn play(&self, agent: &str, user: &str, tool: &str, sketch: &Sketch) -> (Ruling, String) {
        let fitness = match (self.policy.facts(tool), self.schemas.get(tool)) {
            (Some(_), Some(schema)) => fits(schema, &sketch.arguments),
            (Some(_), None) => Fitness::Fits,
            (None, _) => Fitness::UnknownTool,
        };
        let arguments = match fitness {
            Fitness::Fits => self.on_arguments(agent, user, tool, sketch),
            _ => Vec::new(),
        };
        self.ruled(agent, user, tool, &fitness, &arguments, told)
    }

    /// The ruling of what does not look at arguments, with its sentence.
    pub fn because(&self, agent: &str, user: &str, tool: &str) -> String {
        self.ruled(agent, user, tool, &Fitness::Fits, &[], told).1
    }

    fn ruled<T>(
        &self,
        agent: &str,
        user: &str,
        tool: &str,
        fitness: &Fitness,
        arguments: &[Reason],
        then: impl FnOnce(Verdict<'_>) -> T,
    ) -> T {
        let limits = &[];
        let question = Question { agent, user, tool, delegated: None, fitness, arguments, limits };
        then(self.policy.rule(question))
    }

    fn on_arguments(&self, agent: &str, user: &str, tool: &str, sketch: &Sketch) -> Vec<Reason> {
        let Some(role) = self.role(agent) else { return Vec::new() };
        let (org, warrant) = (&self.loaded.org, &Warrant::default());
        let caller = Caller { agent, role, org, warrant };
        let call = Call {
            id: CallId::from("prove"),
            tool: tool.to_owned(),
            arguments: sketch.arguments.clone(),
        };
        let touched = self.local.touches(&call, caller);
        let mut said: Vec<Reason> = touched.iter().filter_map(|it| it.rule(caller)).collect();
        said.extend(self.rules.speak(&Facts {
            agent,
            role: role.id.as_str(),
            user,
            tool,
            capabilities: self.capabilities(tool),
            arguments: &sketch.arguments,
            task: &Literals::of(sketch.words.iter().map(String::as_str)),
            contacts: &self.contacts(agent),
            now: sketch.now,
            zone: &TimeZone::UTC,
        }));
        said
    }
}

fn told(verdict: Verdict<'_>) -> (Ruling, String) {
    let because = verdict.reasons().into_iter().next().map(|it| it.detail).unwrap_or_default();
    (verdict.outcome(), because)
}

/// What differs and cannot be compared call by call.
pub fn incomparable(old: &Version, new: &Version) -> Vec<Undecided> {
    let mut found = Vec::new();
    let mut add = |about: String, why: &str| {
        found.push(Undecided { about, why: why.to_owned() });
    };
    for (name, schema) in &new.schemas {
        if old.schemas.get(name).is_some_and(|it| it != schema) {
            add(name.clone(), "it takes other arguments than it did");
        }
    }
    let (before, after) = (&old.loaded.tools, &new.loaded.tools);
    for (name, command) in &after.commands {
        let other = before.commands.get(name).is_some_and(|it| it != command);
        if other && old.schemas.get(name) == new.schemas.get(name) {
            add(name.clone(), "it is another program, or runs under other terms");
        }
    }
    for (name, server) in &after.mcp {
        if before.mcp.get(name) != Some(server) {
            add(format!("mcp__{name}"), "what a server brings is known once it runs");
        }
    }
    let waiting = |it: &Version| it.rules.waiting().to_vec();
    if waiting(old) != waiting(new) || (!waiting(new).is_empty() && texts(old) != texts(new)) {
        add("rules".to_owned(), "some wait for tools of MCP servers, and cannot be compared");
    }
    found
}

fn texts(version: &Version) -> Vec<(String, String)> {
    let rules = version.loaded.files.rules();
    rules.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}
