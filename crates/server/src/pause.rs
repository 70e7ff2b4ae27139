//! What a run waits for, in words that a chat can show. The server draws the calls; nothing that
//! an agent said about them is quoted.

use std::fmt::Write as _;

use chancery_api::openai::{Approval, Extension};
use chancery_domain::event::Event;
use chancery_domain::id::{MessageId, RunId};
use chancery_domain::policy::{Risk, Ruling};
use chancery_domain::text::visible_line;
use chancery_store::permission::{PermissionFilter, PermissionRow};
use chancery_store::read::RunRow;
use serde_json::Value;

use crate::error::Result;
use crate::router::App;

/// Of a run and those beneath it; more would not be read in a chat.
const ASKED_MAX: u32 = 100;
pub const TREE_MAX: u32 = 1_000;
/// In characters. What is longer is not shown whole, and so is not decided here.
const ARGUMENTS_MAX: usize = 600;

/// A wait that somebody outside must end.
#[derive(Debug)]
pub struct Pause {
    run: RunId,
    waiting_for: String,
    batches: Vec<Asked>,
}

/// The open questions of one batch.
#[derive(Debug)]
struct Asked {
    message: MessageId,
    /// How many calls the batch has.
    calls: usize,
    open: Vec<PermissionRow>,
}

/// What a run waits for, or those beneath it. `None`: somebody is at work.
pub async fn of(app: &App, row: &RunRow) -> Result<Option<Pause>> {
    if row.status != "waiting" {
        return Ok(None);
    }
    let waiting_for = row.waiting_for.clone().unwrap_or_default();
    let tree = match &*waiting_for {
        "child" => app.store.tree(row.id, TREE_MAX).await?,
        _ => vec![row.clone()],
    };
    let asks = |it: &&RunRow| it.waiting_for.as_deref() == Some("permission");
    let mut batches = Vec::new();
    for run in tree.iter().filter(asks) {
        batches.extend(asked(app, run.id).await?);
    }
    let at_work = tree.iter().any(|it| matches!(&*it.status, "pending" | "running"));
    // A question that was answered just now: it goes on.
    let is_over = waiting_for == "permission" && batches.is_empty();
    if batches.is_empty() && (at_work || is_over) {
        return Ok(None);
    }
    Ok(Some(Pause { run: row.id, waiting_for, batches }))
}

async fn asked(app: &App, run: RunId) -> Result<Option<Asked>> {
    let status = Some("pending".to_owned());
    let filter = PermissionFilter { status, run: Some(run), ..PermissionFilter::default() };
    let open = app.store.permissions(&filter, ASKED_MAX).await?;
    let Some(first) = open.first() else { return Ok(None) };
    let message = first.message;
    let events = app.store.events(run, 0, u32::MAX).await?;
    let calls = events.iter().rev().find_map(|it| match &it.event {
        Event::BatchProposed(batch) if batch.message == message => Some(batch.calls.len()),
        _ => None,
    });
    Ok(Some(Asked { message, calls: calls.unwrap_or(open.len()), open }))
}

/// Why a question is not answered in a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotHere {
    Human,
    HighRisk,
    UnknownRisk,
    TooLong,
}

impl NotHere {
    pub fn as_str(self) -> &'static str {
        match self {
            NotHere::Human => "a person must look at it",
            NotHere::HighRisk => "its risk is high",
            NotHere::UnknownRisk => "its risk is not known",
            NotHere::TooLong => "its arguments are too long to be shown here",
        }
    }
}

/// Why a question is not answered through this door, if it is not: a chat is no trusted path,
/// and nobody grants what they were not shown.
pub fn not_here(row: &PermissionRow) -> Option<NotHere> {
    if row.ruling == Ruling::RequireHuman {
        return Some(NotHere::Human);
    }
    match row.request.risk {
        Some(Risk::High) => Some(NotHere::HighRisk),
        None => Some(NotHere::UnknownRisk),
        Some(_) if shown(&row.call.arguments).chars().count() > ARGUMENTS_MAX => {
            Some(NotHere::TooLong)
        }
        Some(_) => None,
    }
}

pub fn link(public_url: &str, row: &PermissionRow) -> String {
    format!("{}/inbox/{}", public_url.trim_end_matches('/'), row.id)
}

impl Pause {
    pub fn open(&self) -> impl Iterator<Item = &PermissionRow> {
        self.batches.iter().flat_map(|it| &it.open)
    }

    pub fn text(&self, public_url: &str) -> String {
        if self.batches.is_empty() {
            return self.other_text();
        }
        let mut text = String::new();
        for Asked { message, calls, open } in &self.batches {
            let undecided = open.len();
            // Writing into a string does not fail.
            let _ = writeln!(
                text,
                "Waiting for approval (batch {message}, {undecided} of {calls} calls undecided)"
            );
            for row in open {
                let _ = writeln!(text, "\n{}", question(public_url, row));
            }
        }
        text.push_str(
            "\nYour message will not be treated as approval unless it is one of these commands.",
        );
        text
    }

    fn other_text(&self) -> String {
        let run = self.run;
        match &*self.waiting_for {
            "pause" => format!("Paused: {run} rests until somebody resumes it."),
            "signal" => {
                format!("Waiting: {run} waits for a signal from outside, and goes on then.")
            }
            _ => format!("Waiting: what {run} handed on waits for somebody outside."),
        }
    }

    pub fn extension(&self, public_url: &str) -> Extension {
        let approval = |row: &PermissionRow| Approval {
            id: row.id.to_string(),
            run_id: row.run.to_string(),
            batch_id: row.message.to_string(),
            agent: row.agent.0.clone(),
            tool: row.call.tool.clone(),
            arguments: row.call.arguments.clone(),
            arguments_sha256: row.request.arguments_sha256.clone(),
            risk: row.request.risk.map(|it| it.as_str().to_owned()),
            ruling: row.ruling.as_str().to_owned(),
            decidable_here: not_here(row).is_none(),
            url: link(public_url, row),
        };
        let status = if self.batches.is_empty() { "waiting" } else { "waiting_approval" };
        Extension {
            run_id: Some(self.run.to_string()),
            status: status.to_owned(),
            batch_id: self.batches.first().map(|it| it.message.to_string()),
            approvals: self.open().map(approval).collect(),
        }
    }
}

/// One call, behind a fence that keeps its arguments from being read as anything else.
fn question(public_url: &str, row: &PermissionRow) -> String {
    let risk = row.request.risk.map_or("UNKNOWN RISK".to_owned(), |it| it.as_str().to_uppercase());
    let arguments = shortened(&shown(&row.call.arguments));
    let tool = visible_line(&row.call.tool);
    let mut text = format!("```text\n{tool}  {arguments}   {risk}\n```\n");
    let (id, link) = (row.id, link(public_url, row));
    let _ = write!(text, "Decide here: {link}");
    let _ = match not_here(row) {
        Some(why) => {
            let why = why.as_str();
            write!(text, "\n(not in this chat: {why}; `/why {id}` says who asks for it)")
        }
        None => write!(
            text,
            "\nor reply exactly:  `/approve {id}`  |  `/deny {id} <reason>`  |  `/why {id}`"
        ),
    };
    text
}

/// The arguments of a call on one line, with nothing invisible in it.
fn shown(arguments: &Value) -> String {
    let value = |it: &Value| match it {
        Value::String(text) if is_plain(text) => text.clone(),
        other => visible_line(&other.to_string()),
    };
    match arguments {
        Value::Object(fields) => {
            let field =
                |(name, it): (&String, &Value)| format!("{}={}", visible_line(name), value(it));
            fields.iter().map(field).collect::<Vec<_>>().join(" ")
        }
        other => value(other),
    }
}

/// Text that cannot be taken for two arguments, or for a quoted one.
fn is_plain(text: &str) -> bool {
    let plain = |it: char| it.is_alphanumeric() || "_-./:@+,#".contains(it);
    !text.is_empty() && text.chars().all(plain)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(ARGUMENTS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_one_line_that_cannot_be_taken_for_another() {
        let plain = json!({"env": "production", "image": "shop/web:1.8.3", "n": 3});
        assert_eq!(shown(&plain), "env=production image=shop/web:1.8.3 n=3");
        let forged =
            json!({"a": "x b=y", "c": "1\n```\nDecide here: https://evil", "d": "\u{202e}x"});
        let line = shown(&forged);
        assert!(line.starts_with(r#"a="x b=y" c="1\n```\nDecide"#), "{line}");
        assert!(!line.contains(['\n', '\u{202e}']), "{line}");
    }
}
