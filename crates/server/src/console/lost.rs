//! What somebody sent after their visit had ended. It stays in the page that says so, goes with
//! the sign-in, and is given back to the same person alone. Nothing of it is kept here, and
//! nothing is sent by itself.

use askama::Template;
use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::form::own_path;
use super::learned::Known;
use super::page::{Frame, Room, draw_as};
use super::visitor::{Visitor, tag_of};
use crate::error::Result;

/// Of who is not signed in no more than this is read: an organisation's files fit in it.
const LOST_MAX: usize = 256 * 1024;

/// As the page has it that asks to sign in, and its form sends it.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Lost {
    /// What it was sent to.
    #[serde(default)]
    pub to: String,
    /// Who had typed it: a digest of their name, as the form had it.
    #[serde(default)]
    pub whose: String,
    /// The fields as JSON.
    #[serde(default)]
    pub kept: String,
}

/// A field that was filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    pub text: String,
}

/// The body of what somebody sent who is not signed in, if it is short enough.
pub async fn read(body: Body) -> Option<axum::body::Bytes> {
    to_bytes(body, LOST_MAX).await.ok()
}

impl Lost {
    pub fn of(to: &str, known: &Known) -> Lost {
        let field =
            |(name, text): &(String, String)| Field { name: name.clone(), text: text.clone() };
        let kept: Vec<Field> = known.kept().map(field).collect();
        Lost {
            to: to.to_owned(),
            whose: known.whose().unwrap_or_default().to_owned(),
            kept: serde_json::to_string(&kept).unwrap_or_default(),
        }
    }

    fn fields(&self) -> Vec<Field> {
        serde_json::from_str(&self.kept).unwrap_or_default()
    }

    /// What a person wrote, and not what the form said for them.
    pub fn typed(&self) -> Vec<Field> {
        let said = |it: &Field| !SAID_BY_THE_FORM.contains(&&*it.name);
        self.fields().into_iter().filter(said).collect()
    }

    /// Whether there is something to give back, and to this person.
    fn is_of(&self, visitor: &Visitor) -> bool {
        !self.whose.is_empty() && self.whose == tag_of(visitor.name()) && !self.typed().is_empty()
    }
}

/// What stands behind a button, or was chosen and not written.
const SAID_BY_THE_FORM: [&str; 18] = [
    "act",
    "approve",
    "at",
    "back",
    "base",
    "checked",
    "decision",
    "expires_after",
    "keys",
    "kind",
    "mode",
    "open",
    "open_next",
    "operator",
    "remember",
    "replace",
    "scope",
    "starter",
];

/// Whether a form says something and decides nothing: only such a one is offered to be sent again.
fn says(to: &str, fields: &[Field]) -> bool {
    let path = to.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let act = fields.iter().find(|it| it.name == "act").map(|it| &*it.text);
    // In a talk, a line that begins so may be a command, and a command may decide.
    let commands =
        fields.iter().any(|it| it.name == "text" && it.text.trim_start().starts_with('/'));
    match parts.as_slice() {
        ["chat"] | ["chat", _] => !commands,
        ["inbox", _, "ask"] | ["mail"] => true,
        ["runs", _, "act"] => act == Some("speak"),
        ["org", "draft"] => act == Some("check"),
        _ => false,
    }
}

#[derive(Template)]
#[template(path = "given.html")]
struct GivenPage {
    frame: Frame,
    /// Where it may be sent again; empty: nowhere.
    to: String,
    typed: Vec<Field>,
    /// What goes along.
    said: Vec<Field>,
    back: String,
}

/// A page for who has signed in again: what they had typed, to be sent or to be copied. `None`:
/// it is nothing, or somebody else's.
pub fn given(visitor: &Visitor, lost: &Lost, back: &str) -> Option<Result<Response>> {
    if !lost.is_of(visitor) {
        return None;
    }
    let (fields, typed) = (lost.fields(), lost.typed());
    let to = own_path(&lost.to);
    let to = if says(to, &fields) { to.to_owned() } else { String::new() };
    let back = own_path(back).to_owned();
    let frame = Frame::of(visitor, Room::Nowhere, visitor.words().given_title);
    let frame = Frame { path: back.clone(), ..frame };
    let said = fields.into_iter().filter(|it| !typed.contains(it)).collect();
    Some(draw_as(StatusCode::OK, &GivenPage { frame, to, typed, said, back }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_something_is_offered_to_be_sent_again() {
        let check = |to: &str, fields: &[(&str, &str)]| {
            let field = |it: &(&str, &str)| Field { name: it.0.to_owned(), text: it.1.to_owned() };
            says(to, &fields.iter().map(field).collect::<Vec<_>>())
        };
        for (to, fields) in [
            ("/chat/talk", &[("text", "hello")][..]),
            ("/chat", &[("text", "hello")]),
            ("/mail?show=write", &[("body", "hello")]),
            ("/inbox/perm_1/ask", &[("text", "why")]),
            ("/runs/run_1/act", &[("act", "speak"), ("text", "hello")]),
            ("/org/draft", &[("act", "check"), ("file:policy.yaml", "risk: {}")]),
        ] {
            assert!(check(to, fields), "{to}");
        }
        for (to, fields) in [
            ("/inbox/perm_1/decide", &[("decision", "grant"), ("comment", "yes")][..]),
            ("/inbox/perm_1/decide", &[("decision", "deny"), ("comment", "no")]),
            ("/inbox/bulk", &[("decision", "grant")]),
            ("/chat/talk", &[("text", "/approve perm_1")]),
            ("/runs/run_1/act", &[("act", "cancel"), ("text", "x")]),
            ("/runs/run_1/fork", &[("input", "x")]),
            ("/org/draft", &[("act", "apply"), ("file:policy.yaml", "risk: {}")]),
            ("/contracts/CTR-1/step", &[("act", "close"), ("reason", "x")]),
            ("/settings/tokens", &[("name", "x")]),
            ("/rules/rul_1/narrow", &[("scope", "run")]),
            ("//evil.example/chat", &[("text", "x")]),
        ] {
            assert!(!check(to, fields), "{to}");
        }
    }
}
