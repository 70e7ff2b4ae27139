//! Several questions with one answer: those of one tool and one agent, of low or medium risk, and
//! after each of them was shown. Every one is answered by itself, as anywhere.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::permission::Decide;
use chancery_domain::event::RequestKind;
use chancery_domain::policy::Ruling;
use chancery_store::permission::PermissionRow;

use super::is_high;
use crate::console::card::{Field, fields};
use crate::console::form::Signed;
use crate::console::html::line;
use crate::console::page::{Frame, Room, draw};
use crate::console::visitor::Visitor;
use crate::error::{ApiError, Result};
use crate::extract::bad_request;
use crate::router::App;
use crate::routes::permissions;

/// Nobody reads more calls before a press.
const MAX: usize = 50;

#[derive(Template)]
#[template(path = "bulk.html")]
struct BulkPage {
    frame: Frame,
    tool: String,
    agent: String,
    picked: Vec<Picked>,
}

#[derive(Debug)]
struct Picked {
    id: String,
    digest: String,
    arguments: Vec<Field>,
}

/// By the question's id, the digest of what was shown; and what is to be done with them.
type Picks = BTreeMap<String, String>;

/// Shows what was picked; with a decision, answers each.
pub async fn decide(
    State(app): State<App>,
    Signed { visitor, form }: Signed<Picks>,
) -> Result<Response> {
    let w = visitor.words();
    let mut rows = Vec::new();
    for (id, digest) in form.iter().filter(|(id, _)| id.starts_with("perm_")) {
        let row = permissions::visible(&app, &visitor.caller, id).await?;
        if row.request.arguments_sha256 != *digest {
            let detail = w.not_what_was_shown.to_owned();
            return Err(ApiError::Conflict { code: "not_what_was_shown", detail });
        }
        rows.push(row);
    }
    if !are_alike(&rows) {
        return Err(bad_request(w.bulk_unlike.to_owned()));
    }
    let Some(decision) = form.get("decision") else { return shown(&visitor, &rows) };
    // None is answered where one cannot be.
    for row in &rows {
        visitor.caller.check_decides(&app, row).await?;
        if row.status != "pending" {
            let detail = w.bulk_late.to_owned();
            return Err(ApiError::Conflict { code: "already_decided", detail });
        }
    }
    let comment = form.get("comment").map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    for row in rows {
        let body = Decide {
            decision: decision.clone(),
            comment: comment.clone(),
            arguments: None,
            remember: None,
            result: None,
        };
        permissions::answer(&app, &visitor.caller, row, body).await?;
    }
    Ok(Redirect::to("/inbox").into_response())
}

/// Whether one answer may do for all of them.
fn are_alike(rows: &[PermissionRow]) -> bool {
    let Some(first) = rows.first() else { return false };
    rows.len() <= MAX
        && rows.iter().all(|it| {
            it.call.tool == first.call.tool
                && it.agent == first.agent
                && !is_high(it)
                && it.ruling != Ruling::RequireHuman
                && it.request.kind != RequestKind::Recover
        })
}

fn shown(visitor: &Visitor, rows: &[PermissionRow]) -> Result<Response> {
    let w = visitor.words();
    let picked = |it: &PermissionRow| Picked {
        id: it.id.to_string(),
        digest: it.request.arguments_sha256.clone(),
        arguments: fields(&it.call.arguments, w),
    };
    let first = rows.first();
    draw(&BulkPage {
        frame: Frame::of(visitor, Room::Inbox, w.bulk_title),
        tool: first.map(|it| line(&it.call.tool)).unwrap_or_default(),
        agent: first.map(|it| line(it.agent.as_str())).unwrap_or_default(),
        picked: rows.iter().map(picked).collect(),
    })
}
