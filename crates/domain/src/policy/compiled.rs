//! The rules, compiled once per version of the organisation: a ruling is a few look-ups, and
//! allocates nothing.

use std::collections::HashMap;
use std::sync::Arc;

use super::explain::{Verdict, Why, Word};
use super::{Bounds, Fitness, Layer, Question, Risk, Ruling, glob};
use crate::id::{AgentId, UserId};
use crate::org::{Org, Place};

/// What the rules know of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFacts {
    pub name: String,
    pub risk: Risk,
    pub capabilities: Vec<String>,
    /// Where its risk or capabilities were stated, if an operator did.
    pub place: Option<Place>,
}

/// The organisation's rules over the tools that there are.
#[derive(Debug)]
pub struct Policy {
    pub(super) org: Arc<Org>,
    pub(super) tools: Vec<Tool>,
    by_name: HashMap<String, u32>,
    agents: HashMap<String, Agent>,
    users: HashMap<String, Within>,
    roles: Vec<Role>,
}

#[derive(Debug)]
pub(super) struct Tool {
    pub facts: ToolFacts,
    risk: Ruling,
    capability: Ruling,
}

#[derive(Debug)]
struct Agent {
    active: bool,
    role: u32,
}

#[derive(Debug)]
struct Role {
    bound: ToolSet,
    denied: ToolSet,
    /// Listed by the exact name, which waives the risk layer.
    named: ToolSet,
}

/// Limits as sets of the tools that are known, and as they were written for the others.
#[derive(Debug, Clone)]
struct Within {
    permitted: ToolSet,
    bounds: Bounds,
}

/// What a run was given, ready to be asked. Made for one [`Policy`]; stale with it.
#[derive(Debug, Clone)]
pub struct Delegation(Within);

#[derive(Debug, Clone, Default)]
struct ToolSet(Vec<u64>);

impl Policy {
    /// Of two tools of one name the first counts.
    pub fn new(org: Arc<Org>, facts: impl IntoIterator<Item = ToolFacts>) -> Policy {
        let mut tools: Vec<Tool> = Vec::new();
        let mut by_name = HashMap::new();
        for facts in facts {
            if !by_name.contains_key(&facts.name) {
                by_name.insert(facts.name.clone(), tools.len() as u32);
                tools.push(Tool::new(&org, facts));
            }
        }
        let names = || tools.iter().map(|it| &*it.facts.name);
        let roles: Vec<Role> = org
            .roles()
            .map(|role| {
                let any = |list: &[crate::org::Stated<String>], name: &str| {
                    list.iter().any(|it| glob(&it.value, name))
                };
                let exact = |name: &str| {
                    role.tools.as_ref().is_some_and(|it| it.iter().any(|it| it.value == name))
                };
                Role {
                    bound: ToolSet::of(names(), |name| {
                        role.tools.as_ref().is_none_or(|list| any(list, name))
                    }),
                    denied: ToolSet::of(names(), |name| any(&role.deny_tools, name)),
                    named: ToolSet::of(names(), exact),
                }
            })
            .collect();
        let places: HashMap<_, u32> = org.roles().map(|it| it.id.clone()).zip(0..).collect();
        let agents = org.agents().filter_map(|(id, agent)| {
            let role = *places.get(&agent.role)?;
            Some((id.0.clone(), Agent { active: agent.active, role }))
        });
        let agents = agents.collect();
        let users = org.users.iter().filter(|(_, user)| !user.bounds.is_unlimited());
        let users = users
            .map(|(id, user)| (id.0.clone(), Within::new(user.bounds.clone(), names())))
            .collect();
        Policy { org, tools, by_name, agents, users, roles }
    }

    pub fn org(&self) -> &Arc<Org> {
        &self.org
    }

    pub fn facts(&self, tool: &str) -> Option<&ToolFacts> {
        self.by_name.get(tool).map(|at| &self.tools[*at as usize].facts)
    }

    pub fn tools(&self) -> impl Iterator<Item = &ToolFacts> {
        self.tools.iter().map(|it| &it.facts)
    }

    /// Makes what a run was given ready to be asked.
    pub fn delegation(&self, bounds: &Bounds) -> Delegation {
        Delegation(Within::new(bounds.clone(), self.tools.iter().map(|it| &*it.facts.name)))
    }

    /// What a person gives a run, as it is kept: by name, so that a tool which comes later is
    /// not given by accident.
    pub fn given(&self, asked: &Bounds) -> Bounds {
        asked.named(self.tools.iter().map(|it| &*it.facts.name).collect::<Vec<_>>())
    }

    /// What a run passes on to a child: what it has itself, what its agent's role delegates,
    /// what binds its person, and what was asked for. Never more than any of them.
    pub fn delegate(
        &self,
        parent: Option<&Bounds>,
        agent: &AgentId,
        user: &UserId,
        asked: Option<&Bounds>,
    ) -> Bounds {
        let known = || self.tools.iter().map(|it| &*it.facts.name).collect::<Vec<_>>();
        // An agent that is gone passes nothing on.
        let nothing = || Bounds { allowed_tools: Some(Vec::new()), denied_tools: Vec::new() };
        let role = self.org.role_of(agent).map_or_else(nothing, |it| it.delegable());
        let user = self.org.users.get(user).map(|it| &it.bounds);
        let mut met = role.meet(&Bounds::default(), known());
        for side in [parent, user, asked].into_iter().flatten() {
            met = met.meet(side, known());
        }
        met
    }

    /// Rules on one call. Every layer is asked, whatever the others say.
    pub fn rule<'q>(&'q self, question: Question<'q>) -> Verdict<'q> {
        let tool = self.by_name.get(question.tool).copied();
        let agent = self.agents.get(question.agent);
        let words = [
            identity(agent),
            fitness(tool, question.fitness),
            self.delegation_word(tool, &question),
            self.role_word(tool, agent, question.tool),
            self.risk_word(tool, agent),
            match tool {
                Some(at) => Word(self.tools[at as usize].capability, Why::Capability),
                None => Word(Ruling::Allow, Why::Silent),
            },
            said(question.arguments),
            said(question.limits),
        ];
        Verdict::new(self, question, words)
    }

    /// Whether a model is shown a tool: its ruling, arguments aside, is not Deny.
    pub fn offers(
        &self,
        agent: &str,
        user: &str,
        delegated: Option<&Delegation>,
        tool: &str,
    ) -> bool {
        let fitness = &Fitness::Fits;
        let (arguments, limits): (&[_], &[_]) = (&[], &[]);
        let question = Question { agent, user, tool, delegated, fitness, arguments, limits };
        self.rule(question).outcome() != Ruling::Deny
    }

    fn delegation_word(&self, tool: Option<u32>, question: &Question<'_>) -> Word {
        if let Some(Delegation(given)) = question.delegated
            && !given.permits(tool, question.tool)
        {
            return Word(Ruling::Deny, Why::NotDelegated);
        }
        match self.users.get(question.user) {
            Some(own) if !own.permits(tool, question.tool) => Word(Ruling::Deny, Why::NotTheUsers),
            None if question.delegated.is_none() => Word(Ruling::Allow, Why::Silent),
            _ => Word(Ruling::Allow, Why::Delegated),
        }
    }

    fn role_word(&self, tool: Option<u32>, agent: Option<&Agent>, name: &str) -> Word {
        let Some(agent) = agent else { return Word(Ruling::Allow, Why::Silent) };
        let role = &self.roles[agent.role as usize];
        let (denied, bound) = match tool {
            Some(at) => (role.denied.has(at), role.bound.has(at)),
            // A tool that is not there has no bit: the lists are read as they were written.
            None => match self.org.roles().nth(agent.role as usize) {
                Some(it) => (
                    it.deny_tools.iter().any(|entry| glob(&entry.value, name)),
                    it.tools.as_ref().is_none_or(|it| it.iter().any(|it| glob(&it.value, name))),
                ),
                None => (true, false),
            },
        };
        match (denied, bound) {
            (true, _) => Word(Ruling::Deny, Why::RoleDenies),
            (false, false) => Word(Ruling::Deny, Why::NotBound),
            (false, true) => Word(Ruling::Allow, Why::Bound),
        }
    }

    fn risk_word(&self, tool: Option<u32>, agent: Option<&Agent>) -> Word {
        let Some(at) = tool else { return Word(Ruling::Allow, Why::Silent) };
        let named = agent.is_some_and(|it| self.roles[it.role as usize].named.has(at));
        match self.tools[at as usize].risk {
            Ruling::Allow => Word(Ruling::Allow, Why::Risk),
            _ if named => Word(Ruling::Allow, Why::RiskWaived),
            asks => Word(asks, Why::Risk),
        }
    }
}

fn identity(agent: Option<&Agent>) -> Word {
    match agent {
        None => Word(Ruling::Deny, Why::UnknownAgent),
        Some(agent) if !agent.active => Word(Ruling::Deny, Why::Deactivated),
        Some(_) => Word(Ruling::Allow, Why::Known),
    }
}

fn fitness(tool: Option<u32>, fitness: &Fitness) -> Word {
    match (tool, fitness) {
        (None, _) | (_, Fitness::UnknownTool) => Word(Ruling::Deny, Why::UnknownTool),
        (_, Fitness::BadArguments(_)) => Word(Ruling::Deny, Why::BadArguments),
        (Some(_), Fitness::Fits) => Word(Ruling::Allow, Why::Fits),
    }
}

fn said(reasons: &[super::Reason]) -> Word {
    match reasons.iter().map(|it| it.outcome).max() {
        None => Word(Ruling::Allow, Why::Silent),
        Some(strictest) => Word(strictest, Why::Said),
    }
}

impl Tool {
    fn new(org: &Org, facts: ToolFacts) -> Tool {
        let default =
            if facts.risk == Risk::High { Ruling::RequireApproval } else { Ruling::Allow };
        let risk = org.policy.risk.get(&facts.risk).map_or(default, |it| it.value);
        let own = org.policy.tools.iter().filter(|(entry, _)| glob(entry, &facts.name));
        let own = own.map(|(_, it)| it.value);
        let stated = facts.capabilities.iter().filter_map(|it| org.policy.capabilities.get(it));
        let capability = stated.map(|it| it.value).chain(own).max().unwrap_or(Ruling::Allow);
        Tool { facts, risk, capability }
    }
}

impl Within {
    fn new<'t>(bounds: Bounds, names: impl Iterator<Item = &'t str>) -> Within {
        Within { permitted: ToolSet::of(names, |name| bounds.permits(name)), bounds }
    }

    fn permits(&self, tool: Option<u32>, name: &str) -> bool {
        match tool {
            Some(at) => self.permitted.has(at),
            None => self.bounds.permits(name),
        }
    }
}

impl Delegation {
    pub fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }
}

impl ToolSet {
    fn of<'t>(names: impl Iterator<Item = &'t str>, has: impl Fn(&str) -> bool) -> ToolSet {
        let mut bits = Vec::new();
        for (at, name) in names.enumerate() {
            if at % 64 == 0 {
                bits.push(0);
            }
            if let Some(last) = bits.last_mut()
                && has(name)
            {
                *last |= 1 << (at % 64);
            }
        }
        ToolSet(bits)
    }

    /// A tool that the set was not made for is not in it.
    fn has(&self, tool: u32) -> bool {
        self.0.get(tool as usize / 64).is_some_and(|bits| bits >> (tool % 64) & 1 == 1)
    }
}

impl Layer {
    pub(super) fn of(place: usize) -> Layer {
        Layer::ALL[place]
    }
}
