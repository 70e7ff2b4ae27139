//! One run of a thread, as what was said in it.

use std::collections::HashMap;

use chancery_domain::event::{CallResult, Event, Recorded};
use chancery_domain::id::{CallId, RunId};
use chancery_domain::policy::Ruling;
use chancery_runtime::clock;
use chancery_store::permission::PermissionFilter;
use chancery_store::read::RunRow;
use jiff::Timestamp;
use serde_json::Value;

use super::members::{Presence, presences};
use crate::console::card::{self, Card, Why, whys};
use crate::console::html::{line, markdown, shown, ticked};
use crate::console::ruling::{sentence, told as as_told};
use crate::console::runs::took;
use crate::console::trace::extended;
use crate::console::visitor::Visitor;
use crate::console::waits::Waits;
use crate::console::why::{Kept, MAIL_REJECTED};
use crate::console::wire::{Of, who as by, word};
use crate::error::Result;
use crate::router::App;
use crate::routes::permissions;
use crate::view;

/// Something in a talk. All text in it is ready for a page.
#[derive(Debug)]
pub enum Said {
    Person {
        id: String,
        who: String,
        text: String,
        at: Timestamp,
    },
    Agent {
        id: String,
        who: String,
        /// Of one who acts without a word: empty.
        text: String,
        at: Timestamp,
    },
    /// A call, in one line.
    Call {
        id: String,
        /// Ids of calls come again in a group's run: each member counts its own.
        call: String,
        tool: String,
        state: &'static str,
        word: String,
        href: String,
        /// Of one that came to nothing: who said so, and what the agent was told.
        why: Option<Box<Refused>>,
    },
    Recalled {
        id: String,
        /// Each with its id.
        memories: Vec<(String, String)>,
    },
    Asked {
        card: Box<Card>,
    },
    Group {
        room: Box<Room>,
    },
    Failed {
        id: String,
        run: String,
        error: String,
    },
    Note {
        id: String,
        /// Ready for a page.
        text: String,
    },
}

/// Why a call came to nothing.
#[derive(Debug, Default)]
pub struct Refused {
    pub reasons: Vec<Why>,
    pub told: String,
    /// Where it stands in the audit.
    pub audit: String,
}

/// A group that was called, with what its members said.
#[derive(Debug)]
pub struct Room {
    pub run: String,
    pub group: String,
    pub status: String,
    pub waits: &'static str,
    pub state: String,
    /// How long it took, or has taken so far.
    pub took: String,
    pub said: Vec<Said>,
    pub members: Vec<Seated>,
    pub ended: bool,
    pub paused: bool,
}

/// A member of a room, and how it stands.
#[derive(Debug)]
pub struct Seated {
    pub name: String,
    pub presence: Presence,
    pub word: &'static str,
}

/// Deeper groups are looked at in their traces.
const DEPTH: usize = 4;

pub async fn of(app: &App, visitor: &Visitor, run: &RunRow, said: &mut Vec<Said>) -> Result<()> {
    if run.group.is_some() {
        let text = shown(&run.input);
        let (id, who) = (format!("in-{}", run.id), line(run.user.as_str()));
        said.push(Said::Person { id, who, text, at: run.created_at });
        said.push(room(app, visitor, run, 1).await?);
        return Ok(());
    }
    within(app, visitor, run, said, 0).await
}

async fn room(app: &App, visitor: &Visitor, run: &RunRow, depth: usize) -> Result<Said> {
    let mut said = Vec::new();
    Box::pin(within(app, visitor, run, &mut said, depth)).await?;
    let log = app.store.events(run.id, 0, u32::MAX).await?;
    let members = log.first().and_then(|it| match &it.event {
        Event::Created(created) => created.room.as_ref(),
        _ => None,
    });
    let waits = run.waiting_for.as_deref() == Some("permission");
    let members = members.map(|it| presences(it, &log, waits)).unwrap_or_default();
    let w = visitor.words();
    let members = members.into_iter().map(|(agent, presence)| Seated {
        name: agent.to_string(),
        presence,
        word: w.presence_word(presence),
    });
    let group = run.group.as_ref().map_or(run.agent.as_str(), |it| it.as_str());
    let stands = Waits::of(app, [run]).await?.stands(run, w);
    let room = Room {
        run: run.id.to_string(),
        group: line(group),
        status: run.status.clone(),
        waits: stands.waits,
        state: stands.word,
        took: took(run, clock::now(), w),
        said,
        members: members.collect(),
        ended: run.ended_at.is_some(),
        paused: run.waiting_for.as_deref() == Some("pause"),
    };
    Ok(Said::Group { room: Box::new(room) })
}

async fn within(
    app: &App,
    visitor: &Visitor,
    run: &RunRow,
    said: &mut Vec<Said>,
    depth: usize,
) -> Result<()> {
    let w = visitor.words();
    let log = app.store.events(run.id, 0, u32::MAX).await?;
    let mut speaker = line(run.agent.as_str());
    let mut ruled: HashMap<CallId, Vec<Why>> = HashMap::new();
    let mut kept = Kept::of(run.id);
    for Recorded { seq, at, event } in log {
        let id = format!("{}-{seq}", run.id);
        kept.follow(seq, &event);
        match event {
            Event::Created(created) if depth == 0 => {
                let who = line(&by(&created.by, w));
                said.push(Said::Person { id, who, text: shown(&created.input), at });
            }
            Event::UserSpoke(spoke) => {
                let to = spoke.to.map(|it| format!(" → {}", line(it.as_str())));
                let who = format!("{}{}", line(&by(&spoke.by, w)), to.unwrap_or_default());
                said.push(Said::Person { id, who, text: shown(&spoke.text), at });
            }
            Event::MemoryRecalled(recalled) if !recalled.memories.is_empty() => {
                let memories = recalled.memories.iter();
                let memories = memories.map(|it| (it.memory.to_string(), shown(&it.content)));
                let memories = memories.collect();
                said.push(Said::Recalled { id, memories });
            }
            Event::TurnBegan(turn) => speaker = line(turn.member.agent.as_str()),
            Event::BatchProposed(batch) => {
                // In a room it is not plain whose calls these are, unless somebody is named.
                let silent = batch.text.trim().is_empty();
                if !silent || run.group.is_some() && last_named(said) != Some(&speaker) {
                    let text = if silent { String::new() } else { markdown(&batch.text) };
                    said.push(Said::Agent { id: id.clone(), who: speaker.clone(), text, at });
                }
                for (n, it) in batch.calls.iter().enumerate() {
                    said.push(Said::Call {
                        id: format!("{id}-{n}"),
                        call: format!("{}-{}", run.id, it.call.id.as_str()),
                        tool: line(&it.call.tool),
                        state: "pending",
                        word: String::new(),
                        href: format!("/runs/{}", run.id),
                        why: None,
                    });
                    if it.ruling == Ruling::Deny {
                        ruled.insert(
                            it.call.id.clone(),
                            whys(&view::reasons(it.reasons.clone()), w),
                        );
                    }
                }
            }
            Event::CallEnded(ended) => {
                let code = ended.result.code.as_deref();
                let (state, word) = match (ended.result.is_error, code) {
                    // Mail is routed by the call itself; that it was blocked is a refusal too.
                    (true, Some(MAIL_REJECTED)) => ("refused", w.mail_no),
                    (true, _) => ("failed", w.status_failed),
                    (false, _) => ("completed", w.status_completed),
                };
                let why = ended.result.is_error.then(|| Refused {
                    reasons: Vec::new(),
                    told: as_told(&told(&ended.result), w),
                    audit: kept.entry(&ended.call, code),
                });
                settle(said, run.id, ended.call.as_str(), state, word, why);
            }
            Event::ChildEnded(ended) => {
                settle(said, run.id, ended.call.as_str(), "completed", w.status_completed, None);
            }
            Event::PermissionInquired(asked) => {
                let who = line(&by(&asked.by, w));
                said.push(Said::Person { id, who, text: shown(&asked.text), at });
            }
            Event::PermissionExplained(it) => {
                let text = markdown(&it.text);
                said.push(Said::Agent { id, who: speaker.clone(), text, at });
            }
            Event::PermissionExtended(more) => {
                let tool = tool_of(said, run.id, more.call.as_str());
                let (what, by) = (extended(w, &tool, more.expires_at), by(&more.by, w));
                said.push(Said::Note { id, text: format!("{what} · <b>{}</b>", line(&by)) });
            }
            Event::CallRefused(refused) => {
                let code = refused.result.code.as_deref().unwrap_or_default();
                let why = Refused {
                    reasons: ruled.remove(&refused.call).unwrap_or_default(),
                    told: as_told(&told(&refused.result), w),
                    audit: kept.entry(&refused.call, None),
                };
                let said_of_it = word(Of::Code, code, w);
                settle(said, run.id, refused.call.as_str(), "refused", said_of_it, Some(why));
            }
            Event::ChildSpawned(child) if depth < DEPTH => {
                if let Some(row) = app.store.run(child.child).await? {
                    said.push(room(app, visitor, &row, depth + 1).await?);
                }
            }
            Event::TurnEnded(turn) => {
                let text = markdown(&turn.text);
                said.push(Said::Agent { id, who: speaker.clone(), text, at });
            }
            Event::Concluded(it) => {
                settle(said, run.id, it.call.as_str(), "completed", w.status_completed, None);
            }
            // In a room it is what the last one said, or what the lead concluded with.
            Event::Completed(done) => {
                let text = markdown(&done.output);
                said.push(Said::Agent { id, who: speaker.clone(), text, at });
            }
            Event::Failed(failed) => {
                let (run, error) = (run.id.to_string(), ticked(&sentence(&failed.error, w)));
                said.push(Said::Failed { id, run, error });
            }
            Event::Cancelled(_) => {
                said.push(Said::Note { id, text: w.status_cancelled.to_owned() });
            }
            _ => {}
        }
    }
    asked(app, visitor, run.id, said).await
}

/// Under whose name the last line stands.
fn last_named(said: &[Said]) -> Option<&String> {
    said.iter().rev().find_map(|it| match it {
        Said::Agent { who, .. } | Said::Person { who, .. } => Some(who),
        _ => None,
    })
}

/// What the run asks now stands where the talk has come to.
async fn asked(app: &App, visitor: &Visitor, run: RunId, said: &mut Vec<Said>) -> Result<()> {
    let filter = PermissionFilter {
        status: Some("pending".to_owned()),
        run: Some(run),
        user: visitor.caller.asked_for(app)?,
        ..PermissionFilter::default()
    };
    let Some(first) = app.store.permissions(&filter, 1).await?.into_iter().next() else {
        return Ok(());
    };
    let first = permissions::shown(app, first).await?;
    said.push(Said::Asked { card: Box::new(card::of(app, visitor, &first).await?) });
    Ok(())
}

/// What an agent was told: the sentence in it, where it is more than one.
fn told(result: &CallResult) -> String {
    let parsed: Option<Value> = serde_json::from_str(&result.text).ok();
    let reason = parsed.as_ref().and_then(|it| it["reason"].as_str());
    reason.map_or_else(|| result.text.clone(), str::to_owned)
}

/// The tool of a call, ready for a page.
fn tool_of(said: &[Said], run: RunId, call: &str) -> String {
    let of = format!("{run}-{call}");
    let tool = said.iter().rev().find_map(|it| match it {
        Said::Call { call, tool, .. } if *call == of => Some(tool.clone()),
        _ => None,
    });
    tool.unwrap_or_default()
}

fn settle(
    said: &mut [Said],
    run: RunId,
    call: &str,
    now: &'static str,
    as_word: &str,
    refused: Option<Refused>,
) {
    let of = format!("{run}-{call}");
    for it in said.iter_mut().rev() {
        if let Said::Call { call, state, word, why, .. } = it
            && *call == of
        {
            *why = refused.map(Box::new);
            *state = now;
            as_word.clone_into(word);
            return;
        }
    }
}
