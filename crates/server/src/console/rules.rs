//! Standing rules: answers that are remembered, to be looked at, narrowed and taken back.

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::permission::{Narrow, StandingRule};
use chancery_domain::audit::kind;
use chancery_domain::id::UserId;
use chancery_domain::policy::Ruling;
use chancery_runtime::clock;
use chancery_store::audit::AuditFilter;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::form::Signed;
use super::html::line;
use super::page::{Frame, Room, draw};
use super::time;
use super::visitor::Visitor;
use super::wire::actor;
use super::words::{Words, fill, span};
use crate::error::Result;
use crate::extract::{Body, Params};
use crate::router::App;
use crate::routes::rules;

/// So many of the newest rulings on a rule's tool are looked through for its hits.
const LOOKED_THROUGH: u32 = 1_000;

#[derive(Template)]
#[template(path = "rules.html")]
struct RulesPage {
    frame: Frame,
    rows: Vec<Row>,
    /// What was done to one of them a moment ago, ready for a page.
    did: String,
    next: Option<String>,
}

#[derive(Debug)]
pub struct Row {
    pub id: String,
    pub tool: String,
    covers: String,
    scope: &'static str,
    agent: String,
    user: String,
    by: String,
    ago: String,
    permission: String,
    /// How often it has answered, and when it last did.
    hits: String,
    /// How long it still holds; empty: no longer.
    left: String,
    over: String,
    /// What it may be narrowed to: less than it covers, and shorter than it holds.
    pub scopes: Vec<(&'static str, &'static str)>,
    pub times: Vec<(&'static str, &'static str)>,
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    /// The rule that something was done to.
    #[serde(default)]
    did: String,
    #[serde(default)]
    cursor: String,
}

pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(asked): Query<Asked>,
) -> Result<Response> {
    let (w, now) = (visitor.words(), clock::now());
    // What is older stays as it was when it was looked for.
    let watch = if asked.cursor.is_empty() { "rules" } else { "" };
    let params = Params(rules::ListParams::from(asked.cursor));
    let Json(page) = rules::list(State(app.clone()), visitor.caller.clone(), params).await?;
    let mut rows = Vec::with_capacity(page.items.len());
    for it in &page.items {
        rows.push(Row { hits: hits(&app, it, w, now).await?, ..row(it, w, now) });
    }
    // What is said of it stands in the record: a link that claims more says nothing.
    let did = rules::show(State(app), visitor.caller.clone(), Path(asked.did)).await;
    let did = did.map(|Json(it)| told(&it, w, now)).unwrap_or_default();
    let frame = Frame::of(&visitor, Room::Rules, w.rules).watching(watch);
    draw(&RulesPage { frame, rows, did, next: page.next_cursor })
}

pub fn row(it: &StandingRule, w: &'static Words, now: Timestamp) -> Row {
    let holds = it.revoked_at.is_none() && it.expires_at > now;
    let over = match &it.revoked_by {
        Some(by) => fill(w.rule_taken_back, &[("name", &line(&actor(by, w)))]),
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
        scope: scope_word(&it.scope, w),
        agent: line(&it.agent),
        user: line(&it.user),
        by: line(&actor(&it.made_by, w)),
        ago: time::ago(it.made_at, now, w),
        permission: it.permission_id.clone(),
        hits: String::new(),
        left: if holds { time::left(it.expires_at, now, w) } else { String::new() },
        over: if holds { String::new() } else { over },
        scopes: narrower(&it.scope).iter().map(|it| (*it, scope_word(it, w))).collect(),
        times: shorter(it.expires_at.duration_since(now), w),
    }
}

fn scope_word(scope: &str, w: &'static Words) -> &'static str {
    match scope {
        "run" => w.remember_run,
        "agent" => w.remember_agent,
        _ => w.remember_always,
    }
}

/// The scopes that cover less than this one.
fn narrower(scope: &str) -> &'static [&'static str] {
    match scope {
        "always" => &["agent", "run"],
        "agent" => &["run"],
        _ => &[],
    }
}

/// The times that end before what is left does.
fn shorter(left: SignedDuration, w: &'static Words) -> Vec<(&'static str, &'static str)> {
    let all = [(1, "1h", w.hour_1), (24, "1d", w.day_1), (7 * 24, "7d", w.days_7)];
    let fits = |it: &(i64, &str, &str)| SignedDuration::from_hours(it.0) < left;
    all.into_iter().filter(fits).map(|(_, value, word)| (value, word)).collect()
}

/// How often a rule has answered, by the audit, which names it for each call that it cleared.
async fn hits(app: &App, rule: &StandingRule, w: &'static Words, now: Timestamp) -> Result<String> {
    let filter = AuditFilter {
        tool: Some(rule.tool.clone()),
        user: Some(UserId(rule.user.clone())),
        kind: Some(kind::RULING.to_owned()),
        ruling: Some(Ruling::RequireApproval),
        since: Some(rule.made_at),
        ..AuditFilter::default()
    };
    let kept = app.store.audit_page(&filter, None, LOOKED_THROUGH).await?;
    let cut_off = kept.len() >= LOOKED_THROUGH as usize;
    let links = kept.iter().filter_map(|it| it.link().ok());
    let mut of_it = links.filter(|it| it.entry.reference.as_deref() == Some(&*rule.id));
    let Some(newest) = of_it.next() else {
        return Ok(if cut_off { w.rule_hits_old } else { w.rule_hits_none }.to_owned());
    };
    let count = format!("{}{}", 1 + of_it.count(), if cut_off { "+" } else { "" });
    let last = time::ago(newest.at, now, w);
    Ok(fill(w.rule_hits, &[("n", &count), ("t", &last)]))
}

/// How a rule stands that somebody has just done something to.
fn told(it: &StandingRule, w: &'static Words, now: Timestamp) -> String {
    let tool = format!("<code>{}</code>", line(&it.tool));
    if it.revoked_at.is_some() {
        return fill(w.rule_did_revoke, &[("tool", &tool)]);
    }
    let left = span(w, now, it.expires_at);
    fill(w.rule_did_narrow, &[("tool", &tool), ("scope", scope_word(&it.scope, w)), ("t", &left)])
}

#[derive(Debug, Deserialize)]
pub struct Less {
    #[serde(default)]
    pub scope: String,
    #[serde(default)]
    pub expires_after: String,
}

pub async fn narrow(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Less>,
) -> Result<Response> {
    let said = |it: String| Some(it).filter(|it| !it.is_empty());
    let body = Narrow { scope: said(form.scope), expires_after: said(form.expires_after) };
    let Json(it) = rules::narrow(State(app), visitor.caller, Path(id), Body(body)).await?;
    Ok(Redirect::to(&format!("/rules?did={}", it.id)).into_response())
}

#[derive(Debug, Deserialize)]
pub struct Nothing {}

pub async fn revoke(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, .. }: Signed<Nothing>,
) -> Result<Response> {
    let Json(it) = rules::revoke(State(app), visitor.caller, Path(id)).await?;
    Ok(Redirect::to(&format!("/rules?did={}", it.id)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::words::EN;

    #[test]
    fn a_rule_is_offered_only_what_is_less() {
        assert_eq!(narrower("always"), ["agent", "run"]);
        assert_eq!(narrower("agent"), ["run"]);
        assert_eq!(narrower("run"), [""; 0]);
        let times = |hours: i64| -> Vec<&str> {
            shorter(SignedDuration::from_hours(hours), &EN).iter().map(|it| it.0).collect()
        };
        assert_eq!(times(30 * 24), ["1h", "1d", "7d"]);
        assert_eq!(times(24), ["1h"]);
        assert_eq!(times(1), [""; 0]);
    }
}
