//! Standing rules: answers that are remembered, to be looked at and taken back.

use askama::Template;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::permission::StandingRule;
use serde::Deserialize;

use super::form::Signed;
use super::html::line;
use super::page::{Frame, Room, draw};
use super::visitor::Visitor;
use super::words::{Words, fill, span};
use crate::error::Result;
use crate::extract::Params;
use crate::router::App;
use crate::routes::rules;

#[derive(Template)]
#[template(path = "rules.html")]
struct RulesPage {
    frame: Frame,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    id: String,
    tool: String,
    covers: String,
    scope: &'static str,
    agent: String,
    user: String,
    by: String,
    ago: String,
    permission: String,
    /// How long it still holds; empty: no longer.
    left: String,
    over: String,
}

pub async fn list(State(app): State<App>, visitor: Visitor) -> Result<Response> {
    let w = visitor.words();
    let none = Params(rules::ListParams::default());
    let Json(page) = rules::list(State(app), visitor.caller.clone(), none).await?;
    let rows = page.items.iter().map(|it| row(it, w)).collect();
    draw(&RulesPage { frame: Frame::of(&visitor, Room::Rules, w.rules), rows })
}

fn row(it: &StandingRule, w: &'static Words) -> Row {
    let now = chancery_runtime::clock::now();
    let holds = it.revoked_at.is_none() && it.expires_at > now;
    let over = match &it.revoked_by {
        Some(by) => fill(w.rule_taken_back, &[("name", &line(by))]),
        None => w.state_expired.to_owned(),
    };
    let covers = match it.signature.strip_prefix("sha256:") {
        Some(_) => w.remember_same.to_owned(),
        None => format!("<code>{}</code>", line(&it.signature)),
    };
    Row {
        id: it.id.clone(),
        tool: line(&it.tool),
        covers,
        scope: match &*it.scope {
            "run" => w.remember_run,
            "agent" => w.remember_agent,
            _ => w.remember_always,
        },
        agent: line(&it.agent),
        user: line(&it.user),
        by: line(&it.made_by),
        ago: fill(w.ago, &[("t", &span(w, it.made_at, now))]),
        permission: it.permission_id.clone(),
        left: if holds { span(w, now, it.expires_at) } else { String::new() },
        over: if holds { String::new() } else { over },
    }
}

#[derive(Debug, Deserialize)]
pub struct Nothing {}

pub async fn revoke(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, .. }: Signed<Nothing>,
) -> Result<Response> {
    let Json(_) = rules::revoke(State(app), visitor.caller, Path(id)).await?;
    Ok(Redirect::to("/rules").into_response())
}
