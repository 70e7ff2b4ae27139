//! What is remembered: to be looked through, searched as an agent would, and forgotten.

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::memory::{Memory, MemoryScope, MemorySource};
use serde::Deserialize;

use super::form::{Signed, back_or};
use super::html::{line, shown};
use super::page::{Frame, Room, draw};
use super::ruling::sentence;
use super::time;
use super::visitor::Visitor;
use super::wire::{Of, actor, word};
use super::words::{Words, fill};
use crate::error::Result;
use crate::extract::Params;
use crate::router::App;
use crate::routes::memories;

#[derive(Template)]
#[template(path = "memory.html")]
struct MemoryPage {
    frame: Frame,
    q: String,
    mode: String,
    kind: String,
    rows: Vec<Row>,
    next: Option<String>,
    back: String,
}

#[derive(Debug)]
struct Row {
    id: String,
    content: String,
    kind: String,
    scope: String,
    ago: String,
    by: String,
    tier: String,
    why: String,
    superseded: bool,
    /// The runs that it comes from, and how.
    sources: Vec<(String, String)>,
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    #[serde(default)]
    q: String,
    #[serde(default)]
    mode: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    cursor: String,
}

pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(asked): Query<Asked>,
) -> Result<Response> {
    let w = visitor.words();
    let caller = visitor.caller.clone();
    // What is older stays as it is, and so does what was found: to search again costs the words
    // that a model reads.
    let newest = asked.q.trim().is_empty() && asked.cursor.is_empty();
    let frame = Frame::of(&visitor, Room::Memory, w.memory);
    let (rows, next) = if asked.q.trim().is_empty() {
        let params = memories::ListParams::of(&asked.kind, &asked.cursor);
        let Json(page) = memories::list(State(app), caller, Params(params)).await?;
        let rows = page.items.iter().map(|it| row(it, w)).collect();
        (rows, page.next_cursor)
    } else {
        // Whoever asks as their agent would is answered as the agent: with its own memories, too.
        let authority = app.authority.get();
        let own = authority.org().personal_agent().filter(|_| asked.mode == "personal");
        let agent = own.map(ToString::to_string);
        let params = memories::SearchParams::of(&asked.q, &asked.mode, &asked.kind, agent);
        let Json(page) = memories::search(State(app), caller, Params(params)).await?;
        let found = page.items.iter().map(|it| {
            let tier = line(word(Of::Tier, &it.tier_name, w));
            let why = line(&sentence(&it.why, w));
            Row { tier, why, ..row(&it.memory, w) }
        });
        (found.collect(), None)
    };
    draw(&MemoryPage {
        frame: if newest { frame.watching("memory") } else { frame },
        back: visitor.path.clone(),
        q: asked.q,
        mode: asked.mode,
        kind: asked.kind,
        rows,
        next,
    })
}

fn row(it: &Memory, w: &'static Words) -> Row {
    let now = chancery_runtime::clock::now();
    let sources = it.sources.iter().map(|it| (it.run_id.clone(), origin(it, w)));
    Row {
        id: it.id.clone(),
        content: shown(&it.content),
        kind: it.kind.clone(),
        scope: scope(&it.scope, w),
        ago: time::ago(it.created_at, now, w),
        by: line(&actor(&it.created_by, w)),
        tier: String::new(),
        why: String::new(),
        superseded: it.superseded_by.is_some(),
        sources: sources.collect(),
    }
}

/// How a memory came of a run, in words. Runs of one minute begin alike: the end tells them apart.
fn origin(it: &MemorySource, w: &'static Words) -> String {
    let words = match it.source.as_str() {
        "group_run" => w.source_group,
        "group_run_output" => w.source_output,
        _ => w.source_call,
    };
    let end = it.run_id.len().saturating_sub(6);
    let run = format!("run_…{}", it.run_id.get(end..).unwrap_or_default());
    fill(words, &[("run", &run)])
}

/// Whom a memory belongs to, in words.
fn scope(it: &MemoryScope, w: &'static Words) -> String {
    let parts = [
        (w.scope_user, &it.user),
        (w.scope_project, &it.project),
        (w.scope_group, &it.group),
        (w.scope_agent, &it.agent),
    ];
    let named: Vec<String> = parts
        .into_iter()
        .filter_map(|(name, it)| Some(format!("{name} {}", line(it.as_deref()?))))
        .collect();
    if named.is_empty() { w.scope_org.to_owned() } else { named.join(" · ") }
}

#[derive(Debug, Deserialize)]
pub struct Forget {
    #[serde(default)]
    back: String,
}

pub async fn forget(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Forget>,
) -> Result<Response> {
    let none = Params(memories::OneParams::default());
    let Json(_) = memories::forget(State(app), visitor.caller, Path(id), none).await?;
    Ok(Redirect::to(back_or(&form.back, "/memory")).into_response())
}
