//! One call on a card.

use chancery_api::permission::{Permission, Reason};
use chancery_domain::command::INQUIRIES_MAX;
use chancery_domain::event::{Proposal, Recorded};
use chancery_domain::policy::Ruling;
use chancery_runtime::digest::sha256;
use chancery_store::permission::Before;
use jiff::Timestamp;
use serde_json::Value;

use crate::console::html::{line, shown, ticked};
use crate::console::ruling::sentence;
use crate::console::time;
use crate::console::wire::actor;
use crate::console::words::{Words, fill};
use crate::view;

/// A value longer than this is folded: all of it is there, and how much is said.
const LINES_OPEN: usize = 12;
const CHARACTERS_OPEN: usize = 900;

/// A call. All text in it is ready for a page.
#[derive(Debug)]
pub struct Call {
    pub number: usize,
    pub call_id: String,
    /// Empty: nobody is asked about it.
    pub permission: String,
    pub tool: String,
    /// `pending`, `granted`, `denied`, `expired`, `cancelled`; `allowed` or `refused` by policy.
    pub state: String,
    pub risk: String,
    /// What became of it, by whom.
    pub outcome: String,
    pub comment: String,
    pub arguments: Vec<Field>,
    /// What was granted instead.
    pub granted_as: Vec<Field>,
    pub digest: String,
    pub digest_holds: bool,
    pub facts: Vec<Fact>,
    pub diff: Vec<DiffLine>,
    pub diff_cut_off: bool,
    pub capabilities: String,
    pub reasons: Vec<Why>,
    pub words: String,
    pub before: String,
    /// Whether it may be given more time.
    pub expires: bool,
    pub human: bool,
    pub high: bool,
    pub recovers: bool,
    pub rememberable: bool,
    pub signature: String,
    /// The arguments as somebody would edit them.
    pub editable: String,
    /// What the agent was asked about it before.
    pub inquiries: Vec<Heard>,
}

/// What somebody wanted to know of the agent, and what it said. Empty: nothing.
#[derive(Debug)]
pub struct Heard {
    pub by: String,
    pub text: String,
    pub explanation: String,
}

/// An argument, or whatever else is said of a call.
#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub kind: &'static str,
    pub value: String,
    /// The value is a word of the console's: there is none.
    pub ours: bool,
    /// How much is folded away: `+412 lines`. Empty: nothing.
    pub folded: String,
}

#[derive(Debug)]
pub struct Fact {
    pub name: String,
    pub value: String,
}

#[derive(Debug)]
pub struct DiffLine {
    pub class: &'static str,
    pub text: String,
}

/// One layer's word.
#[derive(Debug, Clone)]
pub struct Why {
    pub layer: String,
    pub rule: String,
    pub outcome: String,
    /// The outcome as it is read.
    pub word: String,
    pub detail: String,
}

impl Call {
    pub fn of(it: &Permission, before: Before, now: Timestamp, w: &'static Words) -> Call {
        let by = it.decided_by.as_deref().map(|it| line(&actor(it, w))).unwrap_or_default();
        let when = it.decided_at.map(|at| time::ago(at, now, w));
        let outcome = match &*it.status {
            "pending" => String::new(),
            _ => [Some(by), when].into_iter().flatten().collect::<Vec<_>>().join(" · "),
        };
        let payload = &it.payload;
        let text = |name: &str| payload[name].as_str().unwrap_or_default().to_owned();
        let signature = text("command_signature");
        Call {
            number: 0,
            call_id: it.tool_call_id.clone(),
            permission: it.id.clone(),
            tool: line(&it.tool),
            state: it.status.clone(),
            risk: it.risk.clone().unwrap_or_else(|| "none".to_owned()),
            outcome,
            comment: it.comment.as_deref().map(shown).unwrap_or_default(),
            arguments: fields(&it.arguments, w),
            granted_as: it.decided_arguments.as_ref().map(|it| fields(it, w)).unwrap_or_default(),
            digest_holds: sha256(&it.arguments) == it.arguments_sha256,
            digest: it.arguments_sha256.clone(),
            facts: facts(payload, w),
            diff: diff(&text("diff")),
            diff_cut_off: payload["diff_cut_off"] == true,
            capabilities: line(&it.capabilities.join(", ")),
            reasons: whys(&it.reasons, w),
            words: shown(it.words.trim()),
            before: told(before, w),
            expires: it.expires_at.is_some(),
            human: it.ruling == Ruling::RequireHuman.as_str(),
            high: !matches!(it.risk.as_deref(), Some("low" | "medium")),
            recovers: it.kind == "recover",
            rememberable: payload["rememberable"] == true
                && it.ruling == Ruling::RequireApproval.as_str(),
            signature: line(&signature),
            editable: serde_json::to_string_pretty(&it.arguments).unwrap_or_default(),
            inquiries: Vec::new(),
        }
    }

    /// One that nobody is asked about: it waits with the others, and is named.
    pub fn silent(it: &Proposal, w: &'static Words) -> Call {
        let refused = it.ruling == Ruling::Deny;
        let (state, outcome) =
            if refused { ("refused", w.refused_by_policy) } else { ("allowed", w.allowed_waits) };
        Call {
            number: 0,
            call_id: it.call.id.as_str().to_owned(),
            permission: String::new(),
            tool: line(&it.call.tool),
            state: state.to_owned(),
            risk: "none".to_owned(),
            outcome: outcome.to_owned(),
            comment: String::new(),
            arguments: fields(&it.call.arguments, w),
            granted_as: Vec::new(),
            digest: String::new(),
            digest_holds: true,
            facts: Vec::new(),
            diff: Vec::new(),
            diff_cut_off: false,
            capabilities: String::new(),
            reasons: whys(&view::reasons(it.reasons.clone()), w),
            words: String::new(),
            before: String::new(),
            expires: false,
            human: false,
            high: false,
            recovers: false,
            rememberable: false,
            signature: String::new(),
            editable: String::new(),
            inquiries: Vec::new(),
        }
    }

    /// With what the agent was asked about it.
    pub fn heard(&mut self, log: &[Recorded]) {
        let Ok(permission) = self.permission.parse() else { return };
        let inquiries = view::inquiries(log, permission).into_iter().map(|it| Heard {
            by: line(&it.by),
            text: shown(&it.text),
            explanation: it.explanation.as_deref().map(shown).unwrap_or_default(),
        });
        self.inquiries = inquiries.collect();
    }

    /// Whether the agent may be asked once more.
    pub fn may_be_inquired(&self) -> bool {
        self.pending() && self.inquiries.len() < INQUIRIES_MAX
    }

    pub fn pending(&self) -> bool {
        self.state == "pending"
    }
}

pub fn whys(reasons: &[Reason], w: &'static Words) -> Vec<Why> {
    let why = |it: &Reason| Why {
        layer: w.layer_word(&it.layer).to_owned(),
        rule: line(&it.rule),
        outcome: it.outcome.clone(),
        word: w.ruling_word(&it.outcome).to_owned(),
        detail: ticked(&sentence(&it.detail, w)),
    };
    reasons.iter().map(why).collect()
}

fn told(before: Before, w: &'static Words) -> String {
    // The one that is open is among them.
    if before.asked <= 1 {
        return w.never_before.to_owned();
    }
    let [asked, granted, denied, expired] =
        [before.asked, before.granted, before.denied, before.expired].map(|it| it.to_string());
    fill(w.before_counts, &[("n", &asked), ("g", &granted), ("d", &denied), ("x", &expired)])
}

/// Each argument on its own, in full.
pub fn fields(arguments: &Value, w: &'static Words) -> Vec<Field> {
    match arguments {
        Value::Object(map) => map.iter().map(|(name, it)| field(name, it, w)).collect(),
        other => vec![field("", other, w)],
    }
}

fn field(name: &str, value: &Value, w: &'static Words) -> Field {
    let (kind, text) = match value {
        Value::String(text) => ("text", text.clone()),
        Value::Number(it) => ("number", it.to_string()),
        Value::Bool(it) => ("yes/no", it.to_string()),
        Value::Null => ("null", "null".to_owned()),
        Value::Array(_) => ("list", serde_json::to_string_pretty(value).unwrap_or_default()),
        Value::Object(_) => ("object", serde_json::to_string_pretty(value).unwrap_or_default()),
    };
    let (lines, characters) = (text.lines().count(), text.chars().count());
    let folded = match () {
        () if lines > LINES_OPEN => fill(w.lines_folded, &[("n", &lines.to_string())]),
        () if characters > CHARACTERS_OPEN => {
            fill(w.characters_folded, &[("n", &characters.to_string())])
        }
        () => String::new(),
    };
    let ours = text.is_empty();
    let value = if ours { w.empty_text.to_owned() } else { shown(&text) };
    Field { name: line(name), kind, value, ours, folded }
}

/// What the gate and the tool said of the call. What is not known here is shown as it came.
fn facts(payload: &Value, w: &'static Words) -> Vec<Fact> {
    let Some(payload) = payload.as_object() else { return Vec::new() };
    let mut facts = Vec::new();
    let mut say = |name: &str, value: String| {
        facts.push(Fact { name: line(name), value });
    };
    for (key, value) in payload {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match &**key {
            "argv" | "rememberable" | "bytes_before" | "bytes_after" | "diff" | "diff_cut_off" => {}
            "command" => say(w.fact_command, format!("<code>{}</code>", shown(&text))),
            "command_signature" => say(w.fact_signature, format!("<code>{}</code>", line(&text))),
            "command_info" => {
                if let Some(why) = value["why"].as_str() {
                    say(w.fact_what, format!("<span lang=\"\">{}</span>", shown(why)));
                }
                let touches = &value["touches"];
                let changes =
                    if touches["mutating"] == false { w.changes_nothing } else { w.changes_things };
                let reaches = if touches["network"] == true { w.may_leave } else { w.stays_here };
                say(w.fact_touches, format!("{changes} · {reaches}"));
            }
            "paths" => {
                let paths = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for it in paths {
                    say(
                        w.fact_path,
                        format!("<code>{}</code>", line(it.as_str().unwrap_or_default())),
                    );
                }
            }
            "annotations" if value.is_null() => say(w.fact_hints, w.no_hints.to_owned()),
            "annotations" => {
                say(w.fact_hints, format!("<code>{}</code> · {}", shown(&text), w.servers_word))
            }
            "server" => say(w.fact_server, format!("<code>{}</code>", line(&text))),
            "server_tool" => say(w.fact_server_tool, format!("<code>{}</code>", line(&text))),
            other => say(other, shown(&text)),
        }
    }
    facts
}

pub fn diff(text: &str) -> Vec<DiffLine> {
    let class = |line: &str| match line.as_bytes().first() {
        Some(b'+') => "plus",
        Some(b'-') => "minus",
        Some(b'@') => "place",
        _ => "same",
    };
    text.lines().map(|it| DiffLine { class: class(it), text: shown(it) }).collect()
}
