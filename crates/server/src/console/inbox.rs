//! The inbox: what waits for a person's word. A decision goes through the same function as
//! `POST /api/permissions/{id}/decision`.

pub mod again;
pub mod ask;
pub mod bulk;
pub mod extend;

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::permission::{Decide, Permission, Remember, RememberFor};
use chancery_domain::id::PermissionId;
use chancery_store::permission::PermissionFilter;
use serde::Deserialize;
use serde_json::Value;
use similar::TextDiff;

use super::card::{self, Card, Row};
use super::form::{Signed, back_or};
use super::page::{Frame, Room, draw, draw_as};
use super::ruling::told;
use super::visitor::Visitor;
use super::words::Words;
use crate::error::{ApiError, Result};
use crate::extract::{Body, bad_request};
use crate::router::App;
use crate::routes::permissions;

/// Who has more than this waiting is shown these first.
const LIST_MAX: u32 = 200;
const DECIDED_MAX: u32 = 60;
/// Finding the shortest difference may take long; a longer one is good enough then.
const DIFF_TIME_MAX: std::time::Duration = std::time::Duration::from_millis(500);

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxPage {
    frame: Frame,
    shows: Shows,
    rows: Vec<Row>,
    /// The message id of the batch that is open.
    open: String,
    card: Option<Card>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Pending,
    /// Of those, what nobody answered in time, so that others were told.
    Escalated,
    Decided,
    Expired,
}

impl Shows {
    const ALL: [Shows; 4] = [Shows::Pending, Shows::Escalated, Shows::Decided, Shows::Expired];

    /// As an address says it.
    fn key(self) -> &'static str {
        match self {
            Shows::Pending => "",
            Shows::Escalated => "escalated",
            Shows::Decided => "decided",
            Shows::Expired => "expired",
        }
    }

    fn waits(self) -> bool {
        matches!(self, Shows::Pending | Shows::Escalated)
    }

    fn name(self, w: &'static Words) -> &'static str {
        match self {
            Shows::Pending => w.needs_you,
            Shows::Escalated => w.escalated_tab,
            Shows::Decided => w.decided_tab,
            Shows::Expired => w.expired_tab,
        }
    }

    fn nothing(self, w: &'static Words) -> &'static str {
        match self {
            Shows::Pending => w.nothing_waits,
            Shows::Escalated => w.nothing_escalated,
            Shows::Decided => w.nothing_decided,
            Shows::Expired => w.nothing_expired,
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct Params {
    #[serde(default)]
    show: String,
}

pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(params): Query<Params>,
) -> Result<Response> {
    let shows = Shows::ALL.into_iter().find(|it| it.key() == params.show);
    let shows = shows.unwrap_or(Shows::Pending);
    let asked = asked(&app, &visitor, shows).await?;
    // What is most urgent is open, but only where it waits.
    let rows = rows(&asked, shows, &visitor);
    let first = rows.first().filter(|_| shows.waits());
    let first = first.and_then(|row| asked.iter().find(|it| it.id == row.id));
    let card = match first {
        Some(it) => Some(card::of(&app, &visitor, it).await?),
        None => None,
    };
    draw(&page(&visitor, shows, rows, card))
}

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let pending = asked(&app, &visitor, Shows::Pending).await?;
    let chosen = match id.parse::<PermissionId>() {
        Ok(_) => {
            let row = permissions::visible(&app, &visitor.caller, &id).await?;
            permissions::shown(&app, row).await?
        }
        // A batch is found by its message while it waits.
        Err(_) => pending.iter().find(|it| it.message_id == id).cloned().ok_or_else(|| {
            ApiError::NotFound { what: "permission", id: id.chars().take(64).collect() }
        })?,
    };
    let card = card::of(&app, &visitor, &chosen).await?;
    let rows = rows(&pending, Shows::Pending, &visitor);
    draw(&page(&visitor, Shows::Pending, rows, Some(card)))
}

fn page(visitor: &Visitor, shows: Shows, rows: Vec<Row>, card: Option<Card>) -> InboxPage {
    let frame = Frame::of(visitor, Room::Inbox, visitor.words().inbox).watching("inbox");
    let open = card.as_ref().map(|it| it.message.clone()).unwrap_or_default();
    InboxPage { frame, shows, rows, open, card }
}

fn rows(asked: &[Permission], shows: Shows, visitor: &Visitor) -> Vec<Row> {
    let w = visitor.words();
    if shows.waits() {
        return card::rows(asked, w);
    }
    let now = chancery_runtime::clock::now();
    asked.iter().map(|it| card::row(it, now, w)).collect()
}

fn has_picks(rows: &[Row]) -> bool {
    rows.iter().any(|it| it.pick.is_some())
}

async fn asked(app: &App, visitor: &Visitor, shows: Shows) -> Result<Vec<Permission>> {
    let (status, limit) = match shows {
        Shows::Pending | Shows::Escalated => (Some("pending"), LIST_MAX),
        Shows::Expired => (Some("expired"), DECIDED_MAX),
        Shows::Decided => (None, DECIDED_MAX),
    };
    let filter = PermissionFilter {
        status: status.map(str::to_owned),
        newest_first: !shows.waits(),
        user: visitor.caller.asked_for(app)?,
        ..PermissionFilter::default()
    };
    let mut found = Vec::new();
    for row in app.store.permissions(&filter, limit).await? {
        let fits = match shows {
            Shows::Pending | Shows::Expired => true,
            Shows::Escalated => row.escalated_at.is_some(),
            Shows::Decided => !matches!(&*row.status, "pending" | "expired"),
        };
        if fits {
            found.push(permissions::shown(app, row).await?);
        }
    }
    Ok(found)
}

/// What somebody filled in on a card.
#[derive(Debug, Default, Deserialize)]
pub struct Answer {
    decision: String,
    /// Of the arguments that were on the page.
    #[serde(default)]
    digest: String,
    #[serde(default)]
    comment: String,
    /// The second step that a call of high risk takes.
    #[serde(default)]
    confirmed: String,
    #[serde(default)]
    arguments: String,
    #[serde(default)]
    remember: String,
    #[serde(default)]
    expires_after: String,
    /// Only where a call's outcome is unknown: what it did.
    #[serde(default)]
    result: String,
    #[serde(default)]
    back: String,
}

/// Answers one question, and goes back to where it was asked.
pub async fn decide(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Answer>,
) -> Result<Response> {
    let row = permissions::visible(&app, &visitor.caller, &id).await?;
    check(&visitor, &form, &row.request.arguments_sha256, is_high(&row))?;
    let back = back_or(&form.back, &format!("/inbox/{id}")).to_owned();
    let body = Body(as_asked(form)?);
    let Json(_) = permissions::decide(State(app), visitor.caller, Path(id), body).await?;
    Ok(Redirect::to(&back).into_response())
}

pub fn is_high(row: &chancery_store::permission::PermissionRow) -> bool {
    // What nobody has said anything of may be anything.
    !matches!(row.request.risk.map(|it| it.as_str()), Some("low" | "medium"))
}

/// What the console asks for beyond the rules: that the call was looked at, and where its risk is
/// high a reason and a second step.
fn check(visitor: &Visitor, form: &Answer, digest: &str, high: bool) -> Result<()> {
    let w = visitor.words();
    if form.digest != digest {
        let detail = w.not_what_was_shown.to_owned();
        return Err(ApiError::Conflict { code: "not_what_was_shown", detail });
    }
    let grants = form.decision == "grant";
    if grants && high && (form.comment.trim().is_empty() || form.confirmed != "yes") {
        return Err(bad_request(w.high_needs_reason.to_owned()));
    }
    Ok(())
}

fn as_asked(form: Answer) -> Result<Decide> {
    let said = |text: String| Some(text.trim().to_owned()).filter(|it| !it.is_empty());
    let arguments = said(form.arguments).map(|it| json(&it)).transpose()?;
    let remember = said(form.remember)
        .filter(|it| it != "once")
        .map(|scope| Remember::For(RememberFor { scope, expires_after: said(form.expires_after) }));
    let result = said(form.result).map(Value::String);
    Ok(Decide { decision: form.decision, comment: said(form.comment), arguments, remember, result })
}

fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text)
        .map_err(|it| bad_request(format!("the arguments are not JSON: {it}")))
}

#[derive(Template)]
#[template(path = "edit.html")]
struct EditPage {
    frame: Frame,
    id: String,
    tool: String,
    digest: String,
    high: bool,
    arguments: String,
    diff: Vec<card::DiffLine>,
    /// What stands against the edited call.
    problem: Option<Refused>,
    same: bool,
}

#[derive(Debug)]
pub struct Refused {
    pub detail: String,
    pub reasons: Vec<card::Why>,
}

#[derive(Debug, Deserialize)]
pub struct Edit {
    arguments: String,
    #[serde(default)]
    digest: String,
}

/// Shows what an edit changes and what the rules say of it. Decides nothing.
pub async fn edit(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Edit>,
) -> Result<Response> {
    let row = permissions::visible(&app, &visitor.caller, &id).await?;
    let pretty = |it: &Value| serde_json::to_string_pretty(it).unwrap_or_default() + "\n";
    let before = pretty(&row.call.arguments);
    let refused = |error: ApiError| -> Refused {
        let problem = error.problem();
        Refused {
            detail: told(&problem.detail, visitor.words()),
            reasons: card::whys(&problem.reasons, visitor.words()),
        }
    };
    let (after, problem) = match json(&form.arguments) {
        Err(error) => (form.arguments.clone(), Some(refused(error))),
        Ok(value) => {
            let ruled = permissions::rule_on_edit(&app, &row, &value).await;
            (pretty(&value), ruled.err().map(refused))
        }
    };
    let same = before == after;
    let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(&before, &after);
    let text = diff.unified_diff().context_radius(50).to_string();
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let page = EditPage {
        frame: Frame::of(&visitor, Room::Inbox, visitor.words().edit_title),
        tool: super::html::line(&row.call.tool),
        digest: form.digest,
        high: is_high(&row),
        arguments: form.arguments,
        diff: card::diff(&text),
        problem,
        same,
        id,
    };
    draw_as(status, &page)
}
