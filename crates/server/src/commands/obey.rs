//! What commands come to. Each does what a JSON route does, with the same rights; what is said of
//! it here is English, and a page puts it in its reader's words.

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::permission::Decide;
use chancery_api::run::Speak;
use chancery_domain::id::{MemoryId, PermissionId, RunId};
use chancery_domain::text::visible_line;
use chancery_store::permission::PermissionRow;
use chancery_store::read::RunRow;

use super::Command;
use crate::access::Caller;
use crate::error::Result;
use crate::extract::{Body, Params};
use crate::pause::{self, NotHere, TREE_MAX, link, not_here};
use crate::router::App;
use crate::routes::{memories, permissions, steer};

/// Nobody follows a chain further, and no run may have one.
const CHAIN_MAX: usize = 32;

/// What a command came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Done {
    Answered {
        id: PermissionId,
        tool: String,
        grants: bool,
    },
    /// A program's token does not decide through a chat.
    NoPerson,
    /// The question is decided elsewhere.
    NotHere {
        why: NotHere,
        link: String,
        id: PermissionId,
    },
    Spoke {
        run: RunId,
        to: String,
    },
    Pauses {
        run: RunId,
        who: String,
    },
    WrapsUp {
        run: RunId,
        who: String,
    },
    Forgot {
        id: MemoryId,
    },
    /// Nothing is under way in the talk, or no group is.
    Nobody,
}

impl Done {
    pub fn text(&self) -> String {
        match self {
            Done::Answered { id, tool, grants: true } => format!("Approved: {tool} ({id})."),
            Done::Answered { id, tool, grants: false } => format!("Denied: {tool} ({id})."),
            Done::NoPerson => "Not decided: through this door only a person decides, and this \
                               token is a program's. `POST /api/permissions/{id}/decision` is \
                               for programs."
                .to_owned(),
            Done::NotHere { why, link, .. } => {
                format!("Not decided in this chat: {}. Decide here: {link}", why.as_str())
            }
            Done::Spoke { run, to } => format!("Said into {to} ({run})."),
            Done::Pauses { run, who } => {
                format!("{who} ({run}) rests before its next step, until somebody resumes it.")
            }
            Done::WrapsUp { run, who } => {
                format!("{who} ({run}) comes to an end with what it has.")
            }
            Done::Forgot { id } => format!("Forgotten: {id}."),
            Done::Nobody => "Nothing was done: nobody works for this thread.".to_owned(),
        }
    }
}

/// What came of an answer.
#[derive(Debug)]
pub struct Decided {
    pub done: Done,
    /// The run that a person started, of which the question is part, as it was before.
    pub root: Option<RunRow>,
}

impl Decided {
    pub fn is_done(&self) -> bool {
        matches!(self.done, Done::Answered { .. })
    }
}

/// Answers a question, if this door may: a person's own word, on what was shown here whole.
pub async fn decide(
    app: &App,
    caller: &Caller,
    id: PermissionId,
    grants: bool,
    comment: Option<String>,
) -> Result<Decided> {
    if !caller.is_person() {
        return Ok(Decided { done: Done::NoPerson, root: None });
    }
    let row = permissions::visible(app, caller, &id.to_string()).await?;
    let root = root(app, &row).await?;
    if let Some(why) = not_here(&row) {
        let link = link(&app.public_url, &row);
        return Ok(Decided { done: Done::NotHere { why, link, id }, root });
    }
    let tool = visible_line(&row.call.tool);
    let word = if grants { "grant" } else { "deny" };
    let body = Decide {
        decision: word.to_owned(),
        comment,
        arguments: None,
        remember: None,
        result: None,
    };
    permissions::answer(app, caller, row, body).await?;
    Ok(Decided { done: Done::Answered { id, tool, grants }, root })
}

/// The question that is meant: the one that is named, or what a run waits for first.
pub async fn question(
    app: &App,
    caller: &Caller,
    id: Option<PermissionId>,
    last: Option<&RunRow>,
) -> Result<Option<PermissionRow>> {
    if let Some(id) = id {
        return permissions::visible(app, caller, &id.to_string()).await.map(Some);
    }
    let pause = match last {
        Some(run) => pause::of(app, run).await?,
        None => None,
    };
    Ok(pause.and_then(|it| it.open().next().cloned()))
}

/// Does what is neither an answer nor a question, to what works for a talk. `last` is the talk's
/// newest run. `None`: the command is of another kind.
pub async fn obey(
    app: &App,
    caller: &Caller,
    last: Option<&RunRow>,
    command: &Command,
) -> Result<Option<Done>> {
    let here = || (State(app.clone()), caller.clone());
    if let Command::Forget(id) = command {
        let ((state, caller), none) = (here(), Params(memories::OneParams::default()));
        let Json(_) = memories::forget(state, caller, Path(id.to_string()), none).await?;
        return Ok(Some(Done::Forgot { id: *id }));
    }
    if !matches!(command, Command::Room(_) | Command::Pause | Command::Wrapup) {
        return Ok(None);
    }
    let Some(at_work) = at_work(app, last, matches!(command, Command::Room(_))).await? else {
        return Ok(Some(Done::Nobody));
    };
    let (run, at) = (at_work.id, Path(at_work.id.to_string()));
    let who = visible_line(at_work.group.as_ref().map_or(at_work.agent.as_str(), |it| it.as_str()));
    let (state, caller) = here();
    Ok(Some(match command {
        Command::Room(text) => {
            let body = Body(Speak { text: text.clone(), to: None });
            let Json(_) = steer::speak(state, caller, at, body).await?;
            Done::Spoke { run, to: who }
        }
        Command::Pause => {
            let Json(_) = steer::pause(state, caller, at).await?;
            Done::Pauses { run, who }
        }
        _ => {
            let Json(_) = steer::wrapup(state, caller, at).await?;
            Done::WrapsUp { run, who }
        }
    }))
}

/// Who works for a talk: the group that was called last and has not ended; where none is asked
/// for, else the talk's own run.
async fn at_work(app: &App, last: Option<&RunRow>, in_group: bool) -> Result<Option<RunRow>> {
    let Some(last) = last.filter(|it| it.ended_at.is_none()) else { return Ok(None) };
    let tree = app.store.tree(last.id, TREE_MAX).await?;
    let groups = tree.into_iter().filter(|it| it.group.is_some() && it.ended_at.is_none());
    let group = groups.max_by_key(|it| it.id);
    Ok(group.or_else(|| (!in_group).then(|| last.clone())))
}

/// The run that a person started, of which a question is part.
async fn root(app: &App, row: &PermissionRow) -> Result<Option<RunRow>> {
    let mut found = app.store.run(row.run).await?;
    for _ in 0..CHAIN_MAX {
        let Some(parent) = found.as_ref().and_then(|it| it.parent) else { break };
        found = app.store.run(parent).await?;
    }
    Ok(found)
}
