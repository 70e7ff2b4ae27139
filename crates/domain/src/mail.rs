//! Mail: the only way in which agents talk. [`route`] is where mail is routed: ordered steps, of
//! which the first that fails rejects. Pure: what it has to know it is told, and [`needs`] says
//! what that is.

mod draft;
mod hand;
mod matrix;

use std::fmt;

use serde_json::Value;

use crate::contract::{self, Contract, Warrant};
use crate::id::AgentId;
use crate::org::{Contact, Direction, MailType, Org, Role};
use crate::policy::{Access, Looked, Ruling, Said, rule_on_protected, scope_components};

pub use draft::{Attachment, Draft, NOT_THE_SENDERS, Priority};
pub use hand::{HANDED_MAX, Waiting, handed_together};
pub use matrix::triples;

/// The people above every agent, as a name that mail goes to and comes from.
pub const BOARD: &str = "board";
/// Whom alerts come from. No agent is called so: see `organisation`'s names.
pub const SYSTEM: &str = "system";
/// The type of mail that carries work, and becomes a contract.
pub const CONTRACT: &str = "contract";

/// The type of mail that says what was done. With a contract and [`OUTCOME`] `completed`, it hands
/// the work of the contract in.
pub const REPORT: &str = "report";
pub const OUTCOME: &str = "outcome";

pub const SUBJECT_MAX: usize = 200;
pub const BODY_MAX: usize = 10_000;
pub const ATTACHMENTS_MAX: usize = 10;
/// Of a path or a description of an attachment, in characters.
pub const ATTACHMENT_TEXT_MAX: usize = 1_000;
/// What is said beside subject and body, in bytes of JSON.
pub const FIELDS_MAX: usize = 20_000;

/// The steps, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Sender,
    Recipient,
    Contact,
    Type,
    Contract,
    Attachments,
    Fields,
}

impl Step {
    pub const ALL: [Step; 7] = [
        Step::Sender,
        Step::Recipient,
        Step::Contact,
        Step::Type,
        Step::Contract,
        Step::Attachments,
        Step::Fields,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Step::Sender => "sender",
            Step::Recipient => "recipient",
            Step::Contact => "contact",
            Step::Type => "type",
            Step::Contract => "contract",
            Step::Attachments => "attachments",
            Step::Fields => "fields",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a mail is not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Rejection {
    pub step: Step,
    pub reason: String,
    /// Whom the sender may write to.
    pub contacts: Vec<String>,
    /// The recipient is there, but not at work: the sender's superior is told.
    pub deactivated: bool,
}

/// All steps in their order, of a mail that one of them rejected, or none. Those after it were not
/// asked: unlike the layers over a call, the first that fails ends it.
pub fn steps_looked_at(rejected: Option<(Step, &str)>) -> Vec<Looked> {
    let after = "the step before it had rejected the mail";
    Step::ALL
        .into_iter()
        .map(|step| {
            let (said, detail) = match rejected {
                Some((at, why)) if step == at => (Said::Objects(Ruling::Deny), why),
                Some((at, _)) if step > at => (Said::NotLookedAt, after),
                _ => (Said::Passes, "had nothing against it"),
            };
            let (at, decides) = (step.as_str(), matches!(said, Said::Objects(_)));
            Looked { at, said, rule: String::new(), detail: detail.to_owned(), decides }
        })
        .collect()
}

/// What has to be known before a mail can be routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The active contracts of the two.
    pub contracts: bool,
    /// What the sender may reach under its own contracts.
    pub warrant: bool,
}

/// What was found out for [`route`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Active contracts that were given to either of the two.
    pub contracts: Vec<Contract>,
    pub warrant: Warrant,
    /// Whether the mail that is replied to, and the contract that is referred to, are there for
    /// the sender to refer to.
    pub lost_reply: bool,
    pub lost_contract: bool,
}

pub fn needs(org: &Org, from: &str, draft: &Draft) -> Needs {
    let contact = || org.role_of(&AgentId::from(from))?.contact(org, &draft.to);
    Needs {
        contracts: contact().is_some_and(|it| it.needs_active_contract),
        warrant: !draft.attachments.is_empty(),
    }
}

/// Whether a mail may be sent. `from` is who calls: an agent, or the board.
pub fn route(org: &Org, from: &str, draft: &Draft, known: &Known) -> Result<(), Rejection> {
    let sender = Sender::of(org, from)?;
    let reject = |step, reason: String| {
        Err(Rejection { step, reason, contacts: sender.contacts(org), deactivated: false })
    };
    let recipient = match recipient(org, &draft.to) {
        Ok(recipient) => recipient,
        Err((reason, deactivated)) => {
            let contacts = sender.contacts(org);
            return Err(Rejection { step: Step::Recipient, reason, contacts, deactivated });
        }
    };
    let Some(contact) = sender.contact(org, &draft.to, recipient) else {
        let names = sender.contacts(org).join(", ");
        let names = if names.is_empty() { "nobody".to_owned() } else { names };
        return reject(
            Step::Contact,
            format!("`{from}` may not write to `{}`: it writes to {names}", draft.to),
        );
    };
    if let Err(reason) = check_type(org, sender, recipient, &contact, draft) {
        return reject(Step::Type, reason);
    }
    if let Err(reason) = check_contract(org, from, &contact, draft, known) {
        return reject(Step::Contract, reason);
    }
    for attachment in &draft.attachments {
        if let Err(reason) = check_attachment(sender, &attachment.path, &known.warrant) {
            // How long a path may be is for the next step to say, and this one names it.
            let reason: String = reason.chars().take(ATTACHMENT_TEXT_MAX).collect();
            return reject(Step::Attachments, format!("attachment {reason}"));
        }
    }
    if let Err(reason) = check_fields(org, draft, known) {
        return reject(Step::Fields, reason);
    }
    Ok(())
}

/// Whom somebody may write to at all.
pub fn contacts(org: &Org, from: &str) -> Vec<String> {
    Sender::of(org, from).map(|it| it.contacts(org)).unwrap_or_default()
}

#[derive(Debug, Clone, Copy)]
enum Sender<'o> {
    Board,
    Agent(&'o Role),
}

impl<'o> Sender<'o> {
    fn of(org: &'o Org, from: &str) -> Result<Sender<'o>, Rejection> {
        if from == BOARD {
            return Ok(Sender::Board);
        }
        let role = org.active_role_of(&AgentId::from(from));
        role.map(Sender::Agent).ok_or_else(|| Rejection {
            step: Step::Sender,
            reason: format!("there is no agent `{from}` at work"),
            contacts: Vec::new(),
            deactivated: false,
        })
    }

    fn role(self) -> Option<&'o Role> {
        match self {
            Sender::Board => None,
            Sender::Agent(role) => Some(role),
        }
    }

    fn level(self) -> u8 {
        self.role().map_or(0, |it| it.level)
    }

    /// The board writes to whoever reports to it, about anything that goes down.
    fn contact(self, org: &Org, to: &str, recipient: Option<&Role>) -> Option<Contact> {
        match self {
            Sender::Agent(role) => role.contact(org, to).cloned(),
            Sender::Board => recipient
                .filter(|it| it.reports_to.iter().any(|it| it.as_str() == BOARD))
                .map(|_| Contact { types: Vec::new(), needs_active_contract: false }),
        }
    }

    fn contacts(self, org: &Org) -> Vec<String> {
        match self {
            Sender::Agent(role) => role.contacts.keys().cloned().collect(),
            Sender::Board => org
                .agents()
                .filter(|(id, _)| {
                    let role = org.role_of(id);
                    role.is_some_and(|it| contract::reports_to(org, it, BOARD))
                })
                .map(|(id, _)| id.to_string())
                .collect(),
        }
    }
}

impl Role {
    /// On which terms the role writes to an agent or to the board: by the agent's own name, or
    /// by that of its role.
    pub fn contact(&self, org: &Org, to: &str) -> Option<&Contact> {
        self.contacts.get(to).or_else(|| {
            let role = org.role_of(&AgentId::from(to))?;
            self.contacts.get(role.id.as_str())
        })
    }
}

/// `None`: the board. Otherwise why there is nobody to write to, and whether there was.
fn recipient<'o>(org: &'o Org, to: &str) -> Result<Option<&'o Role>, (String, bool)> {
    if to == BOARD {
        return Ok(None);
    }
    let id = AgentId::from(to);
    match org.agent(&id) {
        None => Err((format!("there is no agent `{to}`"), false)),
        Some(agent) if !agent.active => Err((format!("agent `{to}` is not active"), true)),
        Some(_) => Ok(org.role_of(&id)),
    }
}

fn check_type(
    org: &Org,
    sender: Sender<'_>,
    recipient: Option<&Role>,
    contact: &Contact,
    draft: &Draft,
) -> Result<(), String> {
    let name = &draft.kind;
    let Some(kind) = org.mail.get(name) else {
        let there: Vec<&str> = org.mail.keys().map(String::as_str).collect();
        return Err(format!("there is no mail type `{name}`: there are {}", there.join(", ")));
    };
    if let Some(senders) = &kind.senders {
        // The board sends what those who report to it do.
        let may = match sender {
            Sender::Agent(role) => senders.contains(&role.id),
            Sender::Board => senders
                .iter()
                .filter_map(|it| org.role(it))
                .any(|it| it.reports_to.iter().any(|it| it.as_str() == BOARD)),
        };
        if !may {
            let who = sender.role().map_or(BOARD, |it| it.id.as_str());
            return Err(format!("`{who}` may not send `{name}`"));
        }
    }
    if !contact.types.is_empty() && !contact.types.contains(name) {
        let types = contact.types.join(", ");
        return Err(format!("`{name}` may not be sent to `{}`: only {types}", draft.to));
    }
    check_direction(kind, sender.level(), recipient.map_or(0, |it| it.level)).map_err(|goes| {
        format!("`{name}` goes {goes} the chain of command, not to `{}`", draft.to)
    })?;
    let from = sender.role().map_or(BOARD, |it| it.id.as_str());
    if name == CONTRACT
        && !recipient.is_some_and(|it| it.reports_to.iter().any(|it| it.as_str() == from))
    {
        return Err(format!(
            "a contract goes to a direct report alone, and `{}` does not report to `{from}`",
            draft.to
        ));
    }
    Ok(())
}

pub(crate) fn check_direction(kind: &MailType, from: u8, to: u8) -> Result<(), &'static str> {
    match kind.direction {
        Direction::Up if to >= from => Err("up"),
        Direction::Down if to <= from => Err("down"),
        Direction::Across if to != from => Err("across"),
        _ => Ok(()),
    }
}

fn check_contract(
    org: &Org,
    from: &str,
    contact: &Contact,
    draft: &Draft,
    known: &Known,
) -> Result<(), String> {
    if known.lost_contract {
        let id = draft.contract_ref.as_ref().map_or("", |it| it.as_str());
        return Err(format!("there is no contract `{id}` of yours"));
    }
    if contact.needs_active_contract && !links(org, from, &draft.to, &known.contracts) {
        return Err(format!(
            "writing to `{}` needs an active contract that allows it across departments",
            draft.to
        ));
    }
    Ok(())
}

/// Whether an active contract opens the way between two: given to the lower of them by one of
/// its superiors, and, where they are of different departments, saying so. Where neither is lower,
/// either may hold it.
fn links(org: &Org, one: &str, other: &str, contracts: &[Contract]) -> bool {
    let role = |name: &str| org.role_of(&AgentId::from(name));
    // Who has no role is the board, above everyone.
    let level = |name: &str| role(name).map_or(0, |it| it.level);
    let lower = level(one).max(level(other));
    let across = role(one).map(|it| &it.department) != role(other).map(|it| &it.department);
    contracts.iter().any(|it| {
        let to = it.to.as_str();
        let given_to_lower = [one, other].contains(&to) && level(to) == lower;
        let superior =
            role(to).is_some_and(|role| contract::reports_to(org, role, it.from.as_str()));
        it.state.is_active() && given_to_lower && superior && (!across || it.cross_department)
    })
}

/// The board has no file scope, but it reads nothing outside of the workspace and no secrets
/// either.
fn check_attachment(sender: Sender<'_>, path: &str, warrant: &Warrant) -> Result<(), String> {
    if scope_components(path).is_none() {
        return Err(format!("`{path}` is no path beneath the workspace"));
    }
    if let Some(reason) = rule_on_protected(path) {
        return Err(reason.detail);
    }
    match sender.role().and_then(|it| it.rule_on_path(Access::Read, path, warrant)) {
        None => Ok(()),
        Some(reason) => Err(reason.detail),
    }
}

fn check_fields(org: &Org, draft: &Draft, known: &Known) -> Result<(), String> {
    let long = |text: &str, most: usize| text.chars().count() > most;
    if draft.subject.trim().is_empty() {
        return Err("`subject` is empty".to_owned());
    }
    if long(&draft.subject, SUBJECT_MAX) {
        return Err(format!("`subject` has at most {SUBJECT_MAX} characters"));
    }
    if draft.subject.chars().any(char::is_control) {
        return Err("`subject` is one line, without control characters".to_owned());
    }
    if long(&draft.body, BODY_MAX) {
        return Err(format!("`body` has at most {BODY_MAX} characters"));
    }
    if draft.body.contains('\0') {
        return Err("`body` has a NUL character".to_owned());
    }
    if draft.attachments.len() > ATTACHMENTS_MAX {
        return Err(format!("there are at most {ATTACHMENTS_MAX} attachments"));
    }
    for it in &draft.attachments {
        if it.path.is_empty() || long(&it.path, ATTACHMENT_TEXT_MAX) {
            return Err("an attachment's path is empty or too long".to_owned());
        }
        if long(&it.description, ATTACHMENT_TEXT_MAX) || it.description.contains('\0') {
            return Err("an attachment's description is too long".to_owned());
        }
    }
    if known.lost_reply {
        let id = draft.reply_to.as_ref().map_or("", |it| it.as_str());
        return Err(format!("there is no mail `{id}` of yours to reply to"));
    }
    let taken = org.mail.get(&draft.kind).map_or(&[][..], |it| &it.fields);
    let known_fields = |name: &String| {
        taken.contains(name)
            || (draft.kind == CONTRACT && CONTRACT_FIELDS.contains(&&**name))
            || (draft.kind == REPORT && name == OUTCOME)
    };
    if let Some(name) = draft.fields.keys().find(|it| !known_fields(it)) {
        return Err(format!("mail of type `{}` has no field `{name}`", draft.kind));
    }
    if draft.kind == CONTRACT {
        contract::Terms::of(org, draft)?;
    }
    if Value::Object(draft.fields.clone()).to_string().len() > FIELDS_MAX {
        return Err(format!("the fields have at most {FIELDS_MAX} bytes together"));
    }
    Ok(())
}

/// What a contract says beside what `mail.yaml` names.
pub const CONTRACT_FIELDS: [&str; 6] = [
    "deadline",
    "deliverables",
    "acceptance_criteria",
    "workspace_scope",
    "assigned_branch",
    "cross_department",
];
