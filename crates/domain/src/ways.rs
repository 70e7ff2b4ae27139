//! What would let something through that the rules stand against: something else at once, an
//! answer, a change of the organisation. It is found by asking the functions that rule, so that
//! nothing is promised which they would refuse.
//!
//! For people. What an agent is told of a refusal is less, and is never made here: whoever maps
//! the organisation by being refused is not to be handed the map.

mod change;
mod given;
mod mail;

use serde_json::Value;

use crate::id::AgentId;
use crate::mail::Step;
use crate::org::{Org, Role};
use crate::policy::{Delegation, Layer, Policy, Reason, Ruling, glob, placed};

pub use given::Giver;
pub use mail::of_mail;

/// Names beyond this many are not read.
const NAMES_MAX: usize = 8;

/// What a way takes. In the order in which people would try them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The agent can do it as things are. One of these is enough.
    Now,
    /// Time has to pass.
    Later,
    /// Another run has to be started.
    Run,
    /// Another agent has to do something first: give a contract, approve a deployment.
    Agent,
    /// A person has to approve it.
    Person,
    /// The organisation has to be changed. All of these are needed together.
    Organisation,
}

/// One way. What has to be changed, or kept within, is named by its rule with file and line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    pub kind: Kind,
    pub text: String,
    /// Follows the text; empty where the text says it all.
    pub rule: String,
    /// Who may change the organisation so: one of them is enough. Empty for every other kind.
    pub who: Vec<String>,
}

/// Who was refused something, under which rules.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    pub policy: &'a Policy,
    pub agent: &'a str,
    pub user: &'a str,
    pub delegated: Option<&'a Delegation>,
    /// Who gave the run that, the nearest first. Empty: nobody knows.
    pub givers: &'a [Giver],
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Now => "now",
            Kind::Later => "later",
            Kind::Run => "run",
            Kind::Agent => "agent",
            Kind::Person => "person",
            Kind::Organisation => "organisation",
        }
    }
}

impl Way {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Way {
        let changes = kind == Kind::Organisation;
        let who = changes.then(|| change::OPERATOR.to_owned()).into_iter().collect();
        Way { kind, text: text.into(), rule: String::new(), who }
    }

    pub(crate) fn by(self, rule: impl Into<String>) -> Way {
        Way { rule: rule.into(), ..self }
    }

    /// Beside an operator, these may make the change.
    fn or(mut self, others: Vec<String>) -> Way {
        self.who.extend(others);
        self
    }

    /// That nothing stands in the way any longer.
    pub fn open() -> Way {
        Way::new(Kind::Now, "the same again: the rules in force allow it")
    }
}

/// What would let a call through that these reasons stand against. Every one of them is answered:
/// nobody is to mend one only to meet the next.
pub fn of_call(who: &Asker<'_>, tool: &str, arguments: &Value, reasons: &[Reason]) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    let denies: Vec<&Reason> = reasons.iter().filter(|it| it.outcome == Ruling::Deny).collect();
    for reason in &denies {
        ways.extend(against(who, tool, arguments, reason, reasons));
    }
    let of = |layer: Layer| denies.iter().any(|it| it.layer == layer.as_str());
    // Whose call it is, is the role's to say; all else holds for whoever makes it.
    if of(Layer::Role) && ![Layer::Tool, Layer::Arguments, Layer::Limits].into_iter().any(of) {
        ways.extend(others(who, tool));
    }
    if !denies.is_empty() && !of(Layer::Identity) {
        ways.extend(raise(who));
    }
    let asks = reasons.iter().map(|it| it.outcome).filter(|it| it.asks()).max();
    ways.extend(asks.map(person));
    in_order(ways)
}

/// Each once, in the order in which they would be tried.
fn in_order(ways: Vec<Way>) -> Vec<Way> {
    let mut each: Vec<Way> = Vec::new();
    for way in ways {
        if !each.contains(&way) {
            each.push(way);
        }
    }
    each.sort_by_key(|it| it.kind);
    each
}

fn person(asks: Ruling) -> Way {
    let each_time = asks == Ruling::RequireHuman;
    let text = if each_time { "a person approves it, each time" } else { "someone approves it" };
    Way::new(Kind::Person, text)
}

fn against(
    who: &Asker<'_>,
    tool: &str,
    arguments: &Value,
    reason: &Reason,
    reasons: &[Reason],
) -> Vec<Way> {
    let rule = &*reason.rule;
    let layer = Layer::ALL.into_iter().find(|it| it.as_str() == reason.layer);
    let Some(layer) = layer else { return Vec::new() };
    let found = match layer {
        Layer::Identity => vec![identity(who, who.agent)],
        Layer::Tool if rule == "INVALID_ARGUMENTS" => {
            vec![Way::new(Kind::Now, format!("arguments that fit what `{tool}` takes"))]
        }
        Layer::Tool => {
            vec![Way::new(Kind::Organisation, format!("add the tool `{tool}`")).by("tools.yaml")]
        }
        Layer::Delegation => given::delegation(who, tool, reasons, rule),
        Layer::Role => role(who, tool),
        Layer::Risk | Layer::Capability => {
            vec![Way::new(Kind::Organisation, "something other than `deny` in").by(rule)]
        }
        Layer::Arguments => on_arguments(who, tool, arguments, reason),
        Layer::Limits => limits(rule),
    };
    // A record may name a rule that is not there any more.
    let gone = || vec![Way::new(Kind::Organisation, "another rule in").by(rule)];
    if found.is_empty() { gone() } else { found }
}

/// An agent that is not there, or not at work.
fn identity(who: &Asker<'_>, agent: &str) -> Way {
    let found = who.org().agent(&AgentId::from(agent));
    let others = change::hired(who, agent, found.map(|it| &it.role));
    match found {
        None => {
            let way = Way::new(Kind::Organisation, format!("add the agent `{agent}`"));
            way.by("roles.yaml").or(others)
        }
        Some(it) => {
            let rule = placed(&format!("agents.{agent}"), it.place.as_ref());
            Way::new(Kind::Organisation, "make it active again:").by(rule).or(others)
        }
    }
}

/// A role may deny a tool, and not list it either.
fn role(who: &Asker<'_>, tool: &str) -> Vec<Way> {
    let Some(role) = who.role() else { return Vec::new() };
    let mut ways = Vec::new();
    let denying = role.deny_tools.iter().filter(|it| glob(&it.value, tool));
    ways.extend(
        denying.map(|it| {
            take_out(tool, placed(&format!("{}.deny_tools", role.id), it.place.as_ref()))
        }),
    );
    if let Some(tools) = &role.tools
        && !tools.iter().any(|it| glob(&it.value, tool))
    {
        let place = tools.first().and_then(|it| it.place.as_ref()).or(role.place.as_ref());
        ways.push(add(tool, placed(&format!("{}.tools", role.id), place)));
    }
    ways
}

fn on_arguments(who: &Asker<'_>, tool: &str, arguments: &Value, reason: &Reason) -> Vec<Way> {
    let (agent, rule) = (who.agent, &*reason.rule);
    if let Some(step) = rule.strip_prefix("mail.") {
        let step = Step::ALL.into_iter().find(|it| it.as_str() == step);
        let (to, kind) = mail::posted(who.org(), agent, tool, arguments);
        return step.map(|it| of_mail(who, &to, &kind, it)).unwrap_or_default();
    }
    let held = who.role().is_some_and(Role::works_under_contracts).then(|| {
        let text = format!("a contract whose workspace or branch covers it, given to `{agent}`");
        Way::new(Kind::Agent, text)
    });
    let now = |text: &str| Way::new(Kind::Now, text);
    let change = || Way::new(Kind::Organisation, "another rule in").by(rule);
    match rule {
        "deployment_approval" => vec![approval(who)],
        "staff" if reason.detail.contains("contract") => {
            let text = format!("an active contract from a superior of `{agent}`");
            vec![Way::new(Kind::Agent, text)]
        }
        "staff" => vec![now("other arguments")],
        it if it.split(' ').next() == Some("protected") => {
            vec![now("another path: this one is denied to everyone")]
        }
        it if it.contains(".file_scope.") => {
            let ways = [now("a path within").by(rule), change()];
            ways.into_iter().chain(held).collect()
        }
        it if it.contains(".git.branches") => {
            let ways = [now("a branch within").by(rule), change()];
            ways.into_iter().chain(held).collect()
        }
        it if it.contains(".git.") => vec![now("another branch: this one is protected")],
        _ => vec![now("other arguments, that this rule lets through:").by(rule), change()],
    }
}

/// Whoever may approve a deployment, and may write so to the agent.
fn approval(who: &Asker<'_>) -> Way {
    let agent = who.agent;
    let approves = |it: &&str| {
        let of = Asker { agent: it, ..*who };
        of.may("approve_deployment") && mail::is_open(who.org(), it, agent, "deployment_approval")
    };
    let names = names(who.at_work().filter(approves));
    let names = if names.is_empty() { "nobody".to_owned() } else { names };
    let text = format!("a live approval of this deployment, sent to `{agent}` by {names}");
    Way::new(Kind::Agent, text)
}

fn limits(rule: &str) -> Vec<Way> {
    if rule.starts_with("limits.calls_per_minute") {
        return vec![Way::new(Kind::Later, "a minute later: it is counted anew")];
    }
    if rule.starts_with("limits.") {
        let budget = Way::new(Kind::Run, "a new run, which has a budget of its own");
        return vec![budget, Way::new(Kind::Organisation, "a higher limit in").by(rule)];
    }
    vec![Way::new(Kind::Run, "a run that is less deep: goals are handed on only so far")]
}

/// Those whom the agent may write to and who may make the call.
fn others(who: &Asker<'_>, tool: &str) -> Option<Way> {
    let org = who.org();
    let reached = |it: &&str| {
        // Whoever answers a mail acts within what was delegated to the run that wrote it.
        let may = Asker { agent: it, ..*who }.may(tool);
        may && *it != who.agent
            && org.mail.keys().any(|kind| mail::is_open(org, who.agent, it, kind))
    };
    let names = names(who.at_work().filter(reached));
    let text = format!("write to {names}: their role has `{tool}`");
    (who.may("send_mail") && !names.is_empty()).then(|| Way::new(Kind::Now, text))
}

/// A problem can be handed up, where the role has the tool for it.
fn raise(who: &Asker<'_>) -> Option<Way> {
    let above = mail::above(who)?;
    let text = format!("raise it with `escalate`: it goes to `{above}`");
    Some(Way::new(Kind::Now, text))
}

fn add(what: &str, rule: String) -> Way {
    Way::new(Kind::Organisation, format!("add `{what}` to")).by(rule)
}

fn take_out(tool: &str, rule: String) -> Way {
    Way::new(Kind::Organisation, format!("take what matches `{tool}` out of")).by(rule)
}

/// The first of them, each in quotation.
fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    let mut all: Vec<String> = all.take(NAMES_MAX + 1).map(|it| format!("`{it}`")).collect();
    if all.len() > NAMES_MAX {
        all[NAMES_MAX] = "…".to_owned();
    }
    all.join(", ")
}

impl<'a> Asker<'a> {
    fn org(&self) -> &'a Org {
        self.policy.org()
    }

    fn role(&self) -> Option<&'a Role> {
        self.org().role_of(&AgentId::from(self.agent))
    }

    /// Whether a call of a tool would not be denied, arguments aside.
    fn may(&self, tool: &str) -> bool {
        self.policy.offers(self.agent, self.user, self.delegated, tool)
    }

    fn at_work(&self) -> impl Iterator<Item = &'a str> {
        self.org().agents().filter(|(_, it)| it.active).map(|(id, _)| id.as_str())
    }
}

#[cfg(test)]
mod tests;
