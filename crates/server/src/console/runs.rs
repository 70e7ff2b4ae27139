//! Runs: the list, one run's trace, and what a person may do to it. Steering goes through the
//! same functions as the JSON routes do.

use std::collections::BTreeMap;

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::run::{Event, Speak, Tree};
use chancery_runtime::clock;
use chancery_store::read::{RunFilter, RunRow};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::forks::{self, Origin};
use super::form::{Signed, back_or};
use super::html::line;
use super::page::{Frame, Room, draw};
use super::time;
use super::trace::{self, Trace};
use super::visitor::Visitor;
use super::waits::Waits;
use super::words::{Words, span};
use crate::error::{ApiError, Result};
use crate::extract::Body;
use crate::router::App;
use crate::routes::{runs, steer};
use crate::view;

const LIST: u32 = 50;

#[derive(Template)]
#[template(path = "runs.html")]
struct RunsPage {
    frame: Frame,
    rows: Vec<Row>,
    status: String,
    statuses: [&'static str; 6],
    next: Option<String>,
}

/// A run in a list.
#[derive(Debug)]
pub struct Row {
    pub id: String,
    pub status: String,
    pub waits: &'static str,
    pub state: String,
    pub who: String,
    pub goal: String,
    pub user: String,
    pub ago: String,
    /// Ready for a page; goes on by itself while the run does.
    pub took: String,
    pub tokens: u64,
    /// In the operator's money; absent where nothing was charged.
    pub cost: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Params {
    #[serde(default)]
    status: String,
    #[serde(default)]
    before: String,
}

const STATUSES: [&str; 6] = ["pending", "running", "waiting", "completed", "failed", "cancelled"];

pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(params): Query<Params>,
) -> Result<Response> {
    let w = visitor.words();
    let status = STATUSES.iter().find(|it| **it == params.status);
    let filter = RunFilter {
        user: visitor.caller.sees()?,
        status: status.map(|it| (*it).to_owned()),
        roots: true,
        before: params.before.parse().ok(),
        ..RunFilter::default()
    };
    let mut found = app.store.runs(&filter, LIST + 1).await?;
    let more = found.len() > LIST as usize;
    found.truncate(LIST as usize);
    let next = found.last().filter(|_| more).map(|it| it.id.to_string());
    let frame = Frame::of(&visitor, Room::Runs, w.runs);
    // What is older stays as it is.
    let newest = params.before.is_empty();
    let frame = if newest { frame.watching("runs") } else { frame };
    let waits = Waits::of(&app, &found).await?;
    let mut rows: Vec<Row> = found.iter().map(|it| row(it, &waits, w)).collect();
    if !newest {
        // Nobody is told there that a run has ended: what it took stands still.
        let now = clock::now();
        for (row, run) in rows.iter_mut().zip(&found) {
            row.took = span(w, run.created_at, run.ended_at.unwrap_or(now));
        }
    }
    let status = status.copied().unwrap_or_default().to_owned();
    draw(&RunsPage { frame, rows, status, statuses: STATUSES, next })
}

/// The first line of a goal, as much as fits.
pub fn goal(text: &str) -> String {
    const CHARACTERS: usize = 140;
    let first = text.trim().lines().next().unwrap_or_default();
    match first.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}…", line(&first[..end])),
        None => line(first),
    }
}

pub fn row(run: &RunRow, waits: &Waits, w: &'static Words) -> Row {
    let (now, stands) = (clock::now(), waits.stands(run, w));
    let who = match &run.group {
        Some(group) => line(group.as_str()),
        None => line(run.agent.as_str()),
    };
    Row {
        id: run.id.to_string(),
        status: run.status.clone(),
        waits: stands.waits,
        state: stands.word,
        who,
        goal: goal(&run.input),
        user: line(run.user.as_str()),
        ago: time::ago(run.created_at, now, w),
        took: took(run, now, w),
        tokens: run.usage.input_tokens.saturating_add(run.usage.output_tokens),
        cost: run.usage.cost().map(|it| it.to_string()),
    }
}

/// How long a run took, or has taken so far.
pub fn took(run: &RunRow, now: Timestamp, w: &'static Words) -> String {
    match run.ended_at {
        Some(ended) => span(w, run.created_at, ended),
        None => time::taken(run.created_at, now, w),
    }
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    frame: Frame,
    run: Row,
    trace: Trace,
    /// The runs above it, from the first.
    above: Vec<(String, String)>,
    waits_pause: bool,
    failed: bool,
    ended: bool,
    is_group: bool,
    members: Vec<String>,
    session: String,
    only: bool,
    /// What it goes on from.
    origin: Option<Origin>,
}

#[derive(Debug, Deserialize)]
pub struct Shown {
    /// `trouble`: only what was refused, waits or failed.
    #[serde(default)]
    only: String,
}

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    Query(params): Query<Shown>,
) -> Result<Response> {
    let w = visitor.words();
    let run = visitor.caller.run(&app, &id).await?;
    let only = params.only == "trouble";
    let trace = trace::of(&app, &run, w).await?;
    let trace = if only { trace.trouble() } else { trace };
    let origin = match &trace.forked {
        Some(forked) => Some(forks::origin(&app, forked, w).await?),
        None => None,
    };
    let mut above = Vec::new();
    let mut next = run.parent;
    while let Some(id) = next.take() {
        let Some(parent) = app.store.run(id).await? else { break };
        next = parent.parent;
        let name = parent.group.as_ref().map_or(parent.agent.as_str(), |it| it.as_str());
        above.insert(0, (id.to_string(), line(name)));
    }
    let waits_pause = run.waiting_for.as_deref() == Some("pause");
    let title = format!("{} {}", w.run, run.id);
    let frame = Frame::of(&visitor, Room::Runs, &title).watching(run.id.to_string());
    let session = run.session_key.as_ref().filter(|_| run.parent.is_none());
    let session = session.map(|it| super::page::segment(&it.0)).unwrap_or_default();
    draw(&RunPage {
        waits_pause,
        failed: run.status == "failed",
        ended: run.ended_at.is_some(),
        is_group: run.group.is_some(),
        members: trace.members.clone(),
        run: row(&run, &Waits::of(&app, [&run]).await?, w),
        above,
        trace,
        frame,
        session,
        only,
        origin,
    })
}

/// The run and all beneath it in one file, with every event of theirs.
#[derive(Debug, Serialize)]
struct Exported {
    run: Tree,
    /// By run, as `GET /api/runs/{id}/events` has them.
    events: BTreeMap<String, Vec<Event>>,
}

pub async fn export(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let root = visitor.caller.run(&app, &id).await?.id;
    let path = Path(id.clone());
    let Json(tree) = runs::tree(State(app.clone()), visitor.caller, path).await?;
    let mut events = BTreeMap::new();
    for row in app.store.tree(root, runs::TREE_MAX).await? {
        let log = app.store.events(row.id, 0, u32::MAX).await?;
        let log = log.into_iter().map(view::event).collect::<Result<Vec<Event>>>()?;
        events.insert(row.id.to_string(), log);
    }
    let named = format!("attachment; filename=\"{root}.json\"");
    let headers = [(header::CONTENT_DISPOSITION, named)];
    Ok((headers, Json(Exported { run: tree, events })).into_response())
}

/// What somebody wants of a run.
#[derive(Debug, Deserialize)]
pub struct Steer {
    act: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    to: String,
    #[serde(default)]
    back: String,
}

pub async fn act(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Steer>,
) -> Result<Response> {
    let (caller, at) = (visitor.caller, Path(id.clone()));
    let said = |text: String| Some(text).filter(|it| !it.is_empty());
    let Json(_) = match &*form.act {
        "cancel" => steer::cancel(State(app), caller, at).await?,
        "pause" => steer::pause(State(app), caller, at).await?,
        "resume" => steer::resume(State(app), caller, at).await?,
        "wrapup" => steer::wrapup(State(app), caller, at).await?,
        "speak" => {
            let body = Speak { text: form.text, to: said(form.to) };
            steer::speak(State(app), caller, at, Body(body)).await?
        }
        _ => return Err(ApiError::NoRoute),
    };
    Ok(Redirect::to(back_or(&form.back, &format!("/runs/{id}"))).into_response())
}
