//! What a run was given stands against a call: what that was and by whom, and what another run
//! would have to be given. That is asked of the rules, with the run as it would be then.

use super::{Asker, Kind, NAMES_MAX, Way, add, take_out};
use crate::id::{AgentId, RunId, UserId};
use crate::policy::{Bounds, Layer, Reason, Ruling, glob, placed};

/// Somebody who gave a run what it has, fixed as it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Giver {
    /// Whoever started it, in one word. Nobody is above them.
    Starter(String),
    /// An agent that handed a goal on, out of what its own run had.
    Above { agent: AgentId, run: RunId, had: Option<Bounds> },
}

/// What a run was given, and what binds its person: both may stand in the way.
pub(super) fn delegation(who: &Asker<'_>, tool: &str, reasons: &[Reason], rule: &str) -> Vec<Way> {
    let mut ways = Vec::new();
    match who.delegated.map(|it| it.bounds()) {
        Some(given) if !given.permits(tool) => ways.extend(anew(who, tool, given, reasons)),
        // The record says so of a run that cannot be looked at.
        None if ["allowed_tools", "denied_tools"].contains(&rule) => {
            let text = format!(
                "a new run that is given `{tool}`: what a run was given is fixed when it starts"
            );
            ways.push(Way::new(Kind::Run, text));
        }
        _ => {}
    }
    let Some(own) = who.org().users.get(&UserId::from(who.user)) else { return ways };
    let rule = |list: &str| placed(&format!("{}.{list}", who.user), own.place.as_ref());
    ways.extend(both(tool, &own.bounds, rule));
    ways
}

/// Another run, which is given the tool, and what it takes that it can be.
fn anew(who: &Asker<'_>, tool: &str, given: &Bounds, reasons: &[Reason]) -> Vec<Way> {
    let listed = objecting(given, tool);
    let run = |text: String| Way::new(Kind::Run, text).by(&*listed);
    let above = from_above(who, tool);
    let alone = above.is_empty() && would_pass(who, tool, given, reasons);
    let Some(giver) = who.givers.first() else {
        let text = match alone {
            true => format!("a new run that is given `{tool}`: what this one has is fixed:"),
            false => format!(
                "a new run that is given `{tool}`, all else put right: what this one has is fixed:"
            ),
        };
        return vec![run(text)];
    };
    let name = giver.name();
    let mut ways = vec![run(match alone {
        true => format!(
            "a new run that is given `{tool}`: `{name}` fixed what this one has as it started:"
        ),
        false => format!(
            "a new run that is given `{tool}`, all else put right: `{name}` fixed what this one has as it started:"
        ),
    })];
    ways.extend(above);
    ways
}

/// Nobody hands on what they have not got themselves: then it begins further up.
fn from_above(who: &Asker<'_>, tool: &str) -> Vec<Way> {
    let (mut ways, mut above) = (Vec::new(), who.givers.iter());
    while let Some(Giver::Above { agent, run, had }) = above.next() {
        ways.extend(handed_on(who, tool, agent));
        let Some(had) = had.as_ref().filter(|it| !it.permits(tool)) else { break };
        let Some(giver) = above.as_slice().first() else { break };
        let name = giver.name();
        let text = format!(
            "before it, one in place of `{run}` that is given `{tool}`: `{name}` fixed what that has as it started:"
        );
        ways.push(Way::new(Kind::Run, text).by(objecting(had, tool)));
    }
    ways
}

/// Whether the rules would let the call through in a run that is given the tool, too.
fn would_pass(who: &Asker<'_>, tool: &str, given: &Bounds, reasons: &[Reason]) -> bool {
    let mut given = given.clone();
    given.denied_tools.retain(|it| !glob(it, tool));
    if let Some(allowed) = &mut given.allowed_tools {
        allowed.push(tool.to_owned());
    }
    let given = who.policy.delegation(&who.policy.given(&given));
    let offered = who.policy.offers(who.agent, who.user, Some(&given), tool);
    // What is offered is asked without its arguments, and before anything is counted.
    let over = [Layer::Tool, Layer::Arguments, Layer::Limits];
    let denies = |it: &Reason| {
        it.outcome == Ruling::Deny && over.into_iter().any(|at| it.layer == at.as_str())
    };
    offered && !reasons.iter().any(denies)
}

/// What an agent's role would have to hand on for a run beneath to be given a tool.
fn handed_on(who: &Asker<'_>, tool: &str, agent: &AgentId) -> Vec<Way> {
    if who.policy.delegate(None, agent, &UserId::from(""), None).permits(tool) {
        return Vec::new();
    }
    let Some(role) = who.org().role_of(agent) else { return Vec::new() };
    let prefix = if role.delegates.is_some() { "delegates." } else { "" };
    let name = |list: &str| match (prefix, list) {
        ("", "allowed_tools") => "tools".to_owned(),
        ("", _) => "deny_tools".to_owned(),
        (prefix, list) => format!("{prefix}{list}"),
    };
    let rule = |list: &str| placed(&format!("{}.{}", role.id, name(list)), role.place.as_ref());
    both(tool, &role.delegable(), rule)
}

/// What has to change in both lists for a tool to be among them.
fn both(tool: &str, bounds: &Bounds, rule: impl Fn(&str) -> String) -> Vec<Way> {
    let mut ways = Vec::new();
    if bounds.denied_tools.iter().any(|it| glob(it, tool)) {
        ways.push(take_out(tool, rule("denied_tools")));
    }
    let allowed = bounds.allowed_tools.as_ref();
    if allowed.is_some_and(|it| !it.iter().any(|it| glob(it, tool))) {
        ways.push(add(tool, rule("allowed_tools")));
    }
    ways
}

/// The lists that stand against a tool: what of it is denied, and what alone is allowed.
fn objecting(given: &Bounds, tool: &str) -> String {
    let denied: Vec<&String> = given.denied_tools.iter().filter(|it| glob(it, tool)).collect();
    let allowed = given.allowed_tools.as_ref().filter(|it| !it.iter().any(|it| glob(it, tool)));
    let denied = (!denied.is_empty()).then(|| listed("denied_tools", denied.into_iter()));
    let allowed = allowed.map(|it| listed("allowed_tools", it.iter()));
    denied.into_iter().chain(allowed).collect::<Vec<_>>().join("; ")
}

fn listed<'e>(list: &str, entries: impl Iterator<Item = &'e String>) -> String {
    let mut all: Vec<&str> = entries.map(String::as_str).take(NAMES_MAX + 1).collect();
    if all.len() > NAMES_MAX {
        all[NAMES_MAX] = "…";
    }
    format!("{list}: [{}]", all.join(", "))
}

impl Giver {
    fn name(&self) -> &str {
        match self {
            Giver::Starter(name) => name,
            Giver::Above { agent, .. } => agent.as_str(),
        }
    }
}
