//! The rules of authority once more, from the words of their design alone: lists of names, no
//! sets of bits, nothing compiled, and not a line shared with what is tested.

use std::collections::BTreeMap;

/// Allowed and denied tools, as somebody wrote them down.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Absent: no limit. Empty: nothing.
    pub allowed: Option<Vec<String>>,
    pub denied: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub struct Role {
    pub tools: Option<Vec<String>>,
    pub deny_tools: Vec<String>,
    pub delegates: Option<Limits>,
}

#[derive(Debug, Clone)]
pub struct Agent {
    pub role: String,
    pub active: bool,
}

#[derive(Debug, Clone)]
pub struct Tool {
    pub risk: String,
    pub capabilities: Vec<String>,
}

/// An organisation, its tools and its policy, as plain as can be.
#[derive(Debug, Clone, Default)]
pub struct Company {
    pub roles: BTreeMap<String, Role>,
    pub agents: BTreeMap<String, Agent>,
    pub users: BTreeMap<String, Limits>,
    pub tools: BTreeMap<String, Tool>,
    /// `policy.yaml`: rulings by risk, by capability, by tool.
    pub risk: BTreeMap<String, String>,
    pub capabilities: BTreeMap<String, String>,
    pub entries: BTreeMap<String, String>,
}

/// One call, as the design's table looks at it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub agent: String,
    pub user: String,
    pub tool: String,
    pub delegated: Option<Limits>,
    pub arguments_fit: bool,
    /// What the rules over arguments and the budgets said.
    pub arguments: Vec<String>,
    pub limits: Vec<String>,
}

pub const RULINGS: [&str; 4] = ["allow", "require_approval", "require_human", "deny"];

pub fn strictness(ruling: &str) -> usize {
    let at = RULINGS.iter().position(|it| *it == ruling);
    at.unwrap_or_else(|| panic!("no ruling: {ruling}"))
}

fn strictest<'r>(rulings: impl IntoIterator<Item = &'r String>) -> String {
    let mut all: Vec<&String> = rulings.into_iter().collect();
    all.sort_by_key(|it| strictness(it));
    all.last().map_or("allow".to_owned(), |it| (*it).clone())
}

/// A name, or a pattern in which `*` stands for anything: letter by letter.
pub fn matches(pattern: &str, name: &str) -> bool {
    fn from(pattern: &[char], name: &[char]) -> bool {
        match pattern {
            [] => name.is_empty(),
            ['*', rest @ ..] => (0..=name.len()).any(|skip| from(rest, &name[skip..])),
            [letter, rest @ ..] => name.first() == Some(letter) && from(rest, &name[1..]),
        }
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    from(&pattern, &name)
}

fn any(list: &[String], tool: &str) -> bool {
    list.iter().any(|entry| matches(entry, tool))
}

impl Limits {
    pub fn permit(&self, tool: &str) -> bool {
        if any(&self.denied, tool) {
            return false;
        }
        match &self.allowed {
            None => true,
            Some(list) => any(list, tool),
        }
    }

    pub fn says_something(&self) -> bool {
        self.allowed.is_some() || !self.denied.is_empty()
    }
}

/// Every layer that has something to say, in the order of the design's table, with its ruling.
pub fn layers(company: &Company, asked: &Asked) -> Vec<(&'static str, String)> {
    let ruling = |allowed: bool| if allowed { "allow" } else { "deny" }.to_owned();
    let mut said = Vec::new();
    let agent = company.agents.get(&asked.agent);
    said.push(("identity", ruling(agent.is_some_and(|it| it.active))));
    let tool = company.tools.get(&asked.tool);
    said.push(("tool", ruling(tool.is_some() && asked.arguments_fit)));

    // What the run was given, and what binds the person behind it.
    let user = company.users.get(&asked.user).filter(|it| it.says_something());
    let limits: Vec<&Limits> = asked.delegated.iter().chain(user).collect();
    if !limits.is_empty() {
        said.push(("delegation", ruling(limits.iter().all(|it| it.permit(&asked.tool)))));
    }

    let role = agent.map(|it| &company.roles[&it.role]);
    if let Some(role) = role {
        let denied = any(&role.deny_tools, &asked.tool);
        let bound = match &role.tools {
            None => true,
            Some(list) => any(list, &asked.tool),
        };
        said.push(("role", ruling(!denied && bound)));
    }

    if let Some(tool) = tool {
        let default = if tool.risk == "high" { "require_approval" } else { "allow" };
        let stated = company.risk.get(&tool.risk).cloned().unwrap_or(default.to_owned());
        let by_name =
            role.and_then(|it| it.tools.as_ref()).is_some_and(|list| list.contains(&asked.tool));
        said.push(("risk", if by_name { "allow".to_owned() } else { stated }));

        let mut policies: Vec<&String> =
            tool.capabilities.iter().filter_map(|it| company.capabilities.get(it)).collect();
        let entries = company.entries.iter().filter(|(entry, _)| matches(entry, &asked.tool));
        policies.extend(entries.map(|(_, ruling)| ruling));
        if !policies.is_empty() {
            said.push(("capability", strictest(policies)));
        }
    }
    if !asked.arguments.is_empty() {
        said.push(("arguments", strictest(&asked.arguments)));
    }
    if !asked.limits.is_empty() {
        said.push(("limits", strictest(&asked.limits)));
    }
    said
}

/// The strictest wins.
pub fn ruling(company: &Company, asked: &Asked) -> String {
    strictest(layers(company, asked).iter().map(|(_, ruling)| ruling))
}

/// All that bounds a child: what its parent has, what the parent's role delegates, what binds the
/// person, what the call asked for.
pub fn sides(
    company: &Company,
    parent: Option<&Limits>,
    agent: &str,
    user: &str,
    asked: Option<&Limits>,
) -> Vec<Limits> {
    let role = match company.agents.get(agent) {
        // Nobody delegates nothing.
        None => Limits { allowed: Some(vec![]), denied: vec![] },
        Some(agent) => {
            let role = &company.roles[&agent.role];
            let own = Limits { allowed: role.tools.clone(), denied: role.deny_tools.clone() };
            role.delegates.clone().unwrap_or(own)
        }
    };
    let user = company.users.get(user);
    [Some(&role), parent, user, asked].into_iter().flatten().cloned().collect()
}

/// Whether a tool that was not there when something was delegated may be used under it: only
/// where nobody has drawn a line that it could be on the wrong side of.
pub fn permits_later(sides: &[Limits], tool: &str) -> bool {
    sides.iter().all(|side| {
        let globs = side.denied.iter().any(|entry| entry.contains('*'));
        side.allowed.is_none() && !globs && !side.denied.iter().any(|entry| entry == tool)
    })
}
