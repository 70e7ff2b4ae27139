//! Random companies, and the same ones as the code under test knows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_domain::id::{AgentId, UserId};
use chancery_domain::org::{Agent, Org, PolicyRules, Role, Stated, User};
use chancery_domain::policy::{Bounds, Policy, Reason, Risk, Ruling, ToolFacts};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::reference::{self, Asked, Company, Limits};

/// Tools that there may be. A company knows some of them; the others come later or never.
pub const TOOLS: [&str; 12] = [
    "git_pull",
    "git_push",
    "git_push_force",
    "git",
    "read_file",
    "write_file",
    "pay",
    "payroll",
    "mcp__hub__list",
    "mcp__hub__push",
    "deploy",
    "工资",
];
const GLOBS: [&str; 14] = [
    "*",
    "git*",
    "git_*",
    "*_file",
    "mcp__*",
    "mcp__*__push",
    "pay*",
    "p*l",
    "*push*",
    "**",
    "*l*l*",
    "g*t",
    "nothing_*",
    "工*",
];
const ROLES: [&str; 4] = ["lead", "worker", "clerk", "guest"];
pub const AGENTS: [&str; 6] = ["ann", "bob", "cid", "dot", "eve", "nobody"];
pub const USERS: [&str; 4] = ["lin", "mei", "tom", "stranger"];
const CAPABILITIES: [&str; 4] = ["payment", "deploy", "write_db", "unheard_of"];

fn entry() -> impl Strategy<Value = String> {
    prop_oneof![3 => select(&TOOLS[..]), 2 => select(&GLOBS[..]), 1 => Just("no_such_tool"), 1 => Just("")]
        .prop_map(str::to_owned)
}

fn list(longest: usize) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(entry(), 0..=longest)
}

fn maybe(longest: usize) -> impl Strategy<Value = Option<Vec<String>>> {
    prop_oneof![2 => Just(None), 1 => Just(Some(vec![])), 5 => list(longest).prop_map(Some)]
}

pub fn limits() -> impl Strategy<Value = Limits> {
    let denied = prop_oneof![2 => Just(vec![]), 3 => list(3)];
    (maybe(6), denied).prop_map(|(allowed, denied)| Limits { allowed, denied })
}

fn maybe_limits() -> impl Strategy<Value = Option<Limits>> {
    prop_oneof![2 => Just(None), 1 => Just(Some(Limits::default())), 5 => limits().prop_map(Some)]
}

fn ruling() -> impl Strategy<Value = String> {
    select(&reference::RULINGS[..]).prop_map(str::to_owned)
}

fn named<V: std::fmt::Debug + Clone>(
    names: Vec<String>,
    value: impl Strategy<Value = V>,
) -> impl Strategy<Value = BTreeMap<String, V>> {
    let all = names.len();
    (subsequence(names, 0..=all), proptest::collection::vec(value, all))
        .prop_map(|(names, values)| names.into_iter().zip(values).collect())
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|it| (*it).to_owned()).collect()
}

pub fn company() -> impl Strategy<Value = Company> {
    let role = (maybe(6), prop_oneof![2 => Just(vec![]), 3 => list(3)], maybe_limits()).prop_map(
        |(tools, deny_tools, delegates)| reference::Role { tools, deny_tools, delegates },
    );
    let agent = (select(&ROLES[..]), proptest::bool::weighted(0.85))
        .prop_map(|(role, active)| reference::Agent { role: role.to_owned(), active });
    let capabilities = subsequence(strings(&CAPABILITIES), 0..=CAPABILITIES.len());
    let tool = (select(&["low", "medium", "high"][..]), capabilities)
        .prop_map(|(risk, capabilities)| reference::Tool { risk: risk.to_owned(), capabilities });
    let entries: Vec<String> = TOOLS.iter().chain(&GLOBS).map(|it| (*it).to_owned()).collect();
    let some_entries = subsequence(entries.clone(), 0..=3);
    (
        proptest::collection::vec(role, ROLES.len()),
        named(strings(&AGENTS[..5]), agent),
        named(strings(&USERS[..3]), limits()),
        named(strings(&TOOLS), tool),
        named(strings(&["low", "medium", "high"]), ruling()),
        named(strings(&CAPABILITIES), ruling()),
        (some_entries, proptest::collection::vec(ruling(), 3)),
    )
        .prop_map(|(roles, agents, users, tools, risk, capabilities, entries)| Company {
            roles: strings(&ROLES).into_iter().zip(roles).collect(),
            agents,
            users,
            tools,
            risk,
            capabilities,
            entries: entries.0.into_iter().zip(entries.1).collect(),
        })
}

/// A small generator of our own for what is asked of a company: a seed says everything, and it
/// costs nothing.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    pub fn entry(&mut self) -> String {
        match self.roll(9) {
            0..=4 => self.pick(&TOOLS),
            5..=7 => self.pick(&GLOBS),
            _ => self.pick(&["no_such_tool", ""]),
        }
        .to_owned()
    }

    fn list(&mut self, longest: usize) -> Vec<String> {
        (0..self.roll(longest + 1)).map(|_| self.entry()).collect()
    }

    pub fn limits(&mut self) -> Limits {
        let allowed = match self.roll(8) {
            0..=1 => None,
            2 => Some(vec![]),
            _ => Some(self.list(8)),
        };
        let denied = if self.roll(5) < 2 { vec![] } else { self.list(3) };
        Limits { allowed, denied }
    }

    pub fn maybe_limits(&mut self) -> Option<Limits> {
        match self.roll(8) {
            0..=1 => None,
            2 => Some(Limits::default()),
            _ => Some(self.limits()),
        }
    }

    fn said(&mut self) -> Vec<String> {
        let count = if self.roll(4) == 0 { 1 + self.roll(2) } else { 0 };
        (0..count).map(|_| self.pick(&reference::RULINGS).to_owned()).collect()
    }

    pub fn asked(&mut self) -> Asked {
        let odd = self.roll(12) == 0;
        let tool = if odd { self.pick(&["no_such_tool", "", "*"]) } else { self.pick(&TOOLS) };
        Asked {
            agent: self.pick(&AGENTS).to_owned(),
            user: self.pick(&USERS).to_owned(),
            tool: tool.to_owned(),
            delegated: self.maybe_limits(),
            arguments_fit: self.roll(10) > 0,
            arguments: self.said(),
            limits: self.said(),
        }
    }
}

pub fn bounds(limits: &Limits) -> Bounds {
    Bounds { allowed_tools: limits.allowed.clone(), denied_tools: limits.denied.clone() }
}

pub fn limits_of(bounds: &Bounds) -> Limits {
    Limits { allowed: bounds.allowed_tools.clone(), denied: bounds.denied_tools.clone() }
}

pub fn to_ruling(word: &str) -> Ruling {
    let all = [Ruling::Allow, Ruling::RequireApproval, Ruling::RequireHuman, Ruling::Deny];
    all[reference::strictness(word)]
}

fn risk(word: &str) -> Risk {
    match word {
        "low" => Risk::Low,
        "medium" => Risk::Medium,
        _ => Risk::High,
    }
}

pub fn reasons(layer: &str, rulings: &[String]) -> Vec<Reason> {
    let reason = |it: &String| Reason {
        layer: layer.to_owned(),
        rule: "a rule".to_owned(),
        outcome: to_ruling(it),
        detail: "so it is".to_owned(),
    };
    rulings.iter().map(reason).collect()
}

/// The company as the code under test has it.
pub fn policy(company: &Company) -> Policy {
    let stated = |list: &[String]| list.iter().cloned().map(Stated::from).collect::<Vec<_>>();
    let roles = company.roles.iter().map(|(id, it)| Role {
        tools: it.tools.as_deref().map(stated),
        deny_tools: stated(&it.deny_tools),
        delegates: it.delegates.as_ref().map(bounds),
        ..Role::unlimited(id)
    });
    let agents = company
        .agents
        .iter()
        .map(|(id, it)| (AgentId::from(&**id), Agent { active: it.active, ..Agent::of(&it.role) }));
    let mut org = Org::new(roles, agents).unwrap();
    let user = |it: &Limits| User { bounds: bounds(it), ..User::default() };
    org.users = company.users.iter().map(|(id, it)| (UserId::from(&**id), user(it))).collect();
    let rulings = |from: &BTreeMap<String, String>| {
        from.iter().map(|(name, it)| (name.clone(), Stated::from(to_ruling(it)))).collect()
    };
    org.policy = PolicyRules {
        risk: company
            .risk
            .iter()
            .map(|(it, ruling)| (risk(it), to_ruling(ruling).into()))
            .collect(),
        capabilities: rulings(&company.capabilities),
        tools: rulings(&company.entries),
        ..PolicyRules::default()
    };
    let facts = company.tools.iter().map(|(name, it)| ToolFacts {
        name: name.clone(),
        risk: risk(&it.risk),
        capabilities: it.capabilities.clone(),
        place: None,
    });
    Policy::new(Arc::new(org), facts)
}
