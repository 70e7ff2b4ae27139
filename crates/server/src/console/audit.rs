//! The audit: what was ruled, decided and changed, by which rule, and whether the chain holds.

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use chancery_api::audit::{Entry, Verified};
use serde::Deserialize;

use super::html::{line, shown, ticked};
use super::page::{Frame, Room, draw, escaped};
use super::ruling::sentence;
use super::time;
use super::visitor::Visitor;
use super::why::{Line, Now, Through, lines, through};
use super::wire::{Of, word};
use super::words::Words;
use crate::access::Operator;
use crate::error::{ApiError, Result};
use crate::extract::Params;
use crate::router::App;
use crate::routes::audit;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    given: Given,
    rows: Vec<Row>,
    next: Option<String>,
    /// The same narrowing, for links.
    query: String,
}

/// How the list is narrowed, as it was given.
#[derive(Debug, Default, Deserialize)]
pub struct Given {
    #[serde(default)]
    agent: String,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    ruling: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    run: String,
    #[serde(default)]
    since: String,
}

#[derive(Debug)]
struct Row {
    id: String,
    ago: String,
    who: String,
    kind: String,
    about: String,
    ruling: String,
    rule: String,
}

impl Given {
    fn query(&self) -> String {
        let pairs = [
            ("agent", &self.agent),
            ("tool", &self.tool),
            ("ruling", &self.ruling),
            ("kind", &self.kind),
            ("user", &self.user),
            ("run", &self.run),
            ("since", &self.since),
        ];
        let said = pairs.into_iter().filter(|(_, it)| !it.is_empty());
        said.map(|(name, it)| format!("{name}={}&", escaped(it))).collect()
    }
}

pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(given): Query<Given>,
    Params(params): Params<audit::ListParams>,
) -> Result<Response> {
    let w = visitor.words();
    let older = params.is_older();
    let Json(page) = audit::list(State(app), visitor.caller.clone(), Params(params)).await?;
    let rows = page.items.iter().map(|it| row(it, w)).collect();
    let frame = Frame::of(&visitor, Room::Audit, w.audit);
    // What is older stays as it is.
    let frame = if older { frame } else { frame.watching("audit") };
    let query = given.query();
    draw(&AuditPage { frame, given, rows, next: page.next_cursor, query })
}

fn row(it: &Entry, w: &'static Words) -> Row {
    let now = chancery_runtime::clock::now();
    let about = [it.agent.as_deref(), it.tool.as_deref()].into_iter().flatten();
    let about: Vec<String> = about.map(line).collect();
    Row {
        id: it.id.clone(),
        ago: time::ago(it.at, now, w),
        who: who(it, w),
        kind: line(word(Of::Entry, &it.kind, w)),
        about: about.join(" · "),
        ruling: it.ruling.clone().unwrap_or_default(),
        rule: it.reasons.first().map(|it| line(&it.rule)).unwrap_or_default(),
    }
}

fn who(it: &Entry, w: &'static Words) -> String {
    let kind = word(Of::Actor, &it.actor.kind, w);
    let id = it.actor.id.as_deref().map(line);
    match (&*it.actor.kind, id) {
        ("user", Some(id)) => id,
        (_, Some(id)) => format!("{kind}:{id}"),
        (_, None) => kind.to_owned(),
    }
}

#[derive(Template)]
#[template(path = "entry.html")]
struct EntryPage {
    frame: Frame,
    entry: Entry,
    who: String,
    /// What decided, as a sentence.
    lead: String,
    /// Every layer as it was then.
    lines: Vec<Line>,
    /// What the record lacks to name them.
    unnamed: bool,
    now: Option<Now>,
    through: Vec<Through>,
    detail: String,
    /// Where the same can be asked of the rules in force: an agent and a tool.
    ask: String,
}

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let w = visitor.words();
    let Json(entry) = audit::show(State(app), visitor.caller.clone(), Path(id)).await?;
    let detail = match &entry.detail {
        serde_json::Value::Null => String::new(),
        it => shown(&serde_json::to_string_pretty(it).unwrap_or_default()),
    };
    let ask = entry.agent.as_deref().zip(entry.tool.as_deref());
    let ask = ask.map(|(a, t)| format!("/org?agent={}&tool={}#cell", escaped(a), escaped(t)));
    // What was asked and granted may be so still.
    let now = entry.now.as_ref().map(|it| Now::of(it, entry.ruling.as_deref(), w));
    draw(&EntryPage {
        frame: Frame::of(&visitor, Room::Audit, w.audit),
        who: who(&entry, w),
        lead: entry.reasons.first().map(|it| ticked(&sentence(&it.detail, w))).unwrap_or_default(),
        lines: lines(&entry.layers, w),
        unnamed: entry.ruling.is_some() && entry.layers.is_empty(),
        now,
        through: through(&entry.ways, w, visitor.caller.is_operator()),
        ask: ask.unwrap_or_default(),
        detail,
        entry,
    })
}

#[derive(Template)]
#[template(path = "verify.html")]
struct VerifyPage {
    frame: Frame,
    verified: Verified,
}

/// Recomputes the chain and says what it came to, and what it cannot say.
pub async fn verify(State(app): State<App>, visitor: Visitor) -> Result<Response> {
    let operator = operator(&visitor)?;
    let params = Params(audit::VerifyParams::default());
    let Json(verified) = audit::verify(State(app), operator, params).await?;
    let frame = Frame::of(&visitor, Room::Audit, visitor.words().verify);
    draw(&VerifyPage { frame, verified })
}

/// The same entries, a line of JSON each.
pub async fn export(
    State(app): State<App>,
    visitor: Visitor,
    Params(params): Params<audit::ExportParams>,
) -> Result<Response> {
    let mut response = audit::export(State(app), visitor.caller, Params(params)).await?;
    let name = axum::http::HeaderValue::from_static("attachment; filename=\"audit.jsonl\"");
    response.headers_mut().insert(axum::http::header::CONTENT_DISPOSITION, name);
    Ok(response)
}

/// The proof that an operator's page asks for.
pub fn operator(visitor: &Visitor) -> Result<Operator> {
    if visitor.caller.is_operator() {
        Ok(Operator(visitor.caller.clone()))
    } else {
        Err(ApiError::Forbidden("this is for operators".to_owned()))
    }
}
