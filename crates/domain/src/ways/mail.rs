//! What would let a mail through: another recipient, another type, the way up, a contract, or an
//! organisation that says otherwise.

use serde_json::Value;

use super::{Asker, Kind, Way, add, change, identity, in_order, names, raise};
use crate::contract::superiors;
use crate::id::{AgentId, RoleId};
use crate::mail::{BOARD, CONTRACT, Draft, Known, Step, check_direction, route};
use crate::org::{Org, Role};
use crate::policy::placed;
use crate::raise::ESCALATION;

/// What would let a mail through that was rejected at a step. The steps before it are looked at
/// once more, and so are those after it which the record does not name.
pub fn of_mail(who: &Asker<'_>, to: &str, kind: &str, rejected: Step) -> Vec<Way> {
    match rejected {
        Step::Attachments => {
            let text = "without the attachment, or with one that its sender may read";
            return vec![Way::new(Kind::Now, text)];
        }
        Step::Fields => return vec![Way::new(Kind::Now, "the same with its fields put right")],
        Step::Sender | Step::Recipient | Step::Contact | Step::Type | Step::Contract => {}
    }
    let from = who.agent;
    let mut ways = Vec::new();
    let may_send = from == BOARD || who.may("send_mail");
    if may_send {
        ways.extend(instead(who, to, kind));
    }
    let above = above(who);
    if kind != ESCALATION || above.as_deref() != Some(to) {
        ways.extend(raise(who));
    }
    let changes = changes(who, to, kind);
    if rejected == Step::Contract && !changes.iter().any(|it| it.kind == Kind::Agent) {
        ways.push(Way::new(Kind::Now, "the same about a contract that its sender is party to"));
    }
    ways.extend(changes);
    in_order(ways)
}

/// To whom a call would write, and what type of mail.
pub(super) fn posted(org: &Org, by: &str, tool: &str, arguments: &Value) -> (String, String) {
    let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let above = || superiors(org, by).into_iter().next().unwrap_or_default();
    let (to, kind) = match tool {
        "escalate" => (above(), ESCALATION),
        "request_budget" => (above(), "approval_request"),
        "approve_deployment" => (text("to"), "deployment_approval"),
        "assign_task" => (text("to"), "info"),
        "send_mail" => return (text("to"), text("type")),
        _ => (text("to"), CONTRACT),
    };
    (to, kind.to_owned())
}

/// The same to others, and something else to the same.
fn instead(who: &Asker<'_>, to: &str, kind: &str) -> Vec<Way> {
    let (org, from) = (who.org(), who.agent);
    let mut ways = Vec::new();
    let all = who.at_work().chain([BOARD]);
    let others = names(all.filter(|it| *it != from && *it != to && is_open(org, from, it, kind)));
    if !others.is_empty() {
        ways.push(Way::new(Kind::Now, format!("send `{kind}` to {others}")));
    }
    let kinds = org.mail.keys().map(String::as_str);
    let kinds = names(kinds.filter(|it| *it != kind && is_open(org, from, to, it)));
    if !kinds.is_empty() {
        ways.push(Way::new(Kind::Now, format!("send `{to}` another type: {kinds}")));
    }
    ways
}

/// Whether a mail of this type is delivered, with no contract to help it.
pub(super) fn is_open(org: &Org, from: &str, to: &str, kind: &str) -> bool {
    route(org, from, &Draft::bare(to, kind), &Known::default()).is_ok()
}

/// Whom a problem is handed up to, where that can be done.
pub(super) fn above(who: &Asker<'_>) -> Option<String> {
    let above = superiors(who.org(), who.agent).into_iter().next()?;
    let open = who.may("escalate") && is_open(who.org(), who.agent, &above, ESCALATION);
    open.then_some(above)
}

/// Everything in the organisation that stands between the two. All of it has to give way.
fn changes(who: &Asker<'_>, to: &str, kind: &str) -> Vec<Way> {
    let (org, from) = (who.org(), who.agent);
    let at_work = |name: &str| name == BOARD || org.active_role_of(&AgentId::from(name)).is_some();
    let mut ways: Vec<Way> =
        [from, to].into_iter().filter(|it| !at_work(it)).map(|it| identity(who, it)).collect();
    let (sender, recipient) = (role(org, from), role(org, to));
    if from == BOARD {
        ways.extend(recipient.and_then(|it| report(who, it, BOARD)));
    }
    if let Some(role) = sender {
        ways.extend(contact(org, role, to, kind));
        ways.extend(contract(org, role, from, to));
    }
    let Some(known) = org.mail.get(kind) else {
        ways.push(
            Way::new(Kind::Organisation, format!("add the mail type `{kind}`")).by("mail.yaml"),
        );
        return ways;
    };
    let placed = |what: &str| placed(&format!("{kind}.{what}"), known.place.as_ref());
    match (sender, &known.senders) {
        (Some(role), Some(senders)) if !senders.contains(&role.id) => {
            ways.push(add(role.id.as_str(), placed("senders")));
        }
        // The board sends what those who report to it do.
        (None, Some(senders)) if !senders.iter().any(|it| reports(org, it, BOARD)) => {
            ways.push(Way::new(Kind::Organisation, "another rule in").by(placed("senders")));
        }
        _ => {}
    }
    let level = |it: Option<&Role>| it.map_or(0, |it| it.level);
    if check_direction(known, level(sender), level(recipient)).is_err() {
        ways.push(Way::new(Kind::Organisation, "another direction in").by(placed("direction")));
    }
    if kind == CONTRACT
        && let Some(recipient) = recipient
    {
        ways.extend(report(who, recipient, sender.map_or(BOARD, |it| it.id.as_str())));
    }
    ways
}

fn role<'o>(org: &'o Org, name: &str) -> Option<&'o Role> {
    org.role_of(&AgentId::from(name))
}

/// That one may write to the other at all, and this.
fn contact(org: &Org, role: &Role, to: &str, kind: &str) -> Option<Way> {
    let rule = |list: &str| placed(&format!("{}.{list}", role.id), role.place.as_ref());
    match role.contact(org, to) {
        None => Some(add(to, rule("contacts"))),
        Some(it) if it.types.is_empty() || it.types.iter().any(|it| it == kind) => None,
        Some(_) => Some(add(kind, rule(&format!("contacts.{to}.types")))),
    }
}

/// Where the two write to one another only under a contract, the lower of them has to hold it.
fn contract(org: &Org, sender: &Role, from: &str, to: &str) -> Option<Way> {
    let needed = sender.contact(org, to)?.needs_active_contract;
    let lower = role(org, to).filter(|it| it.level > sender.level).map_or(from, |_| to);
    let text =
        format!("a contract that allows it across departments, given to `{lower}` by a superior");
    needed.then(|| Way::new(Kind::Agent, text))
}

fn reports(org: &Org, role: &RoleId, above: &str) -> bool {
    org.role(role).is_some_and(|it| it.reports_to.iter().any(|it| it.as_str() == above))
}

fn report(who: &Asker<'_>, role: &Role, above: &str) -> Option<Way> {
    if role.reports_to.iter().any(|it| it.as_str() == above) {
        return None;
    }
    let id = &role.id;
    let text = format!("let role `{id}` report to `{above}` in");
    let rule = placed(&format!("{id}.reports_to"), role.place.as_ref());
    Some(Way::new(Kind::Organisation, text).by(rule).or(change::reported(who, role, above)))
}
