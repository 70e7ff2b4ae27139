//! Standing rules: decisions that are remembered, to be looked at and taken back.

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::permission::{Narrow, StandingRule};
use chancery_api::{Page, Problems};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::RuleScope;
use chancery_domain::id::RuleId;
use chancery_runtime::clock;
use chancery_runtime::tool::config::Span;
use chancery_store::rule;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params, bad_request};
use crate::paging;
use crate::router::App;
use crate::view;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    /// At most 200; 50 unless said.
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(pattern = "^(rul_[0-9a-f]{32})?$")]
    cursor: Option<String>,
}

impl From<String> for ListParams {
    /// From a place on.
    fn from(cursor: String) -> ListParams {
        ListParams { cursor: Some(cursor), ..ListParams::default() }
    }
}

/// The newest first, those that have ended too.
#[utoipa::path(get, path = "/api/rules", params(ListParams),
    responses((status = 200, body = Page<StandingRule>), Problems))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Page<StandingRule>>> {
    let user = caller.asked_for(&app)?;
    let before = params.cursor.filter(|it| !it.is_empty()).map(|it| it.parse::<RuleId>());
    let before = before.transpose().map_err(|it| bad_request(format!("`cursor`: {it}")))?;
    let limit = paging::limit(params.limit);
    let rules = app.store.rules(user.as_ref(), before, limit + 1).await?;
    Ok(paging::page(rules, limit, |it| it.id.to_string(), view::standing_rule))
}

#[utoipa::path(get, path = "/api/rules/{id}", params(("id" = String, Path)),
    responses((status = 200, body = StandingRule), Problems))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<StandingRule>> {
    let rule = visible(&app, &caller, &id).await?;
    Ok(Json(view::standing_rule(rule)))
}

/// Takes a rule back. Calls that it has cleared and that have not begun are asked about again.
#[utoipa::path(delete, path = "/api/rules/{id}", params(("id" = String, Path)),
    responses((status = 200, body = StandingRule), Problems))]
pub async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<StandingRule>> {
    let rule = visible(&app, &caller, &id).await?;
    let (by, at) = (caller.actor(), clock::now());
    let entry = Entry {
        user: Some(rule.user.clone()),
        agent: Some(rule.agent.clone()),
        tool: Some(rule.tool.clone()),
        reference: Some(rule.id.to_string()),
        ..Entry::new(clock::new_audit_id(), kind::RULE_REVOKED, by.clone())
    };
    app.store.revoke_rule(rule.id, &by, at, entry).await?;
    let rule = visible(&app, &caller, &id).await?;
    Ok(Json(view::standing_rule(rule)))
}

/// Lets a rule cover less, or hold for less time: never more.
#[utoipa::path(post, path = "/api/rules/{id}/narrow", params(("id" = String, Path)),
    request_body = Narrow, responses((status = 200, body = StandingRule), Problems))]
pub async fn narrow(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<Narrow>,
) -> Result<Json<StandingRule>> {
    let rule = visible(&app, &caller, &id).await?;
    let now = app.store.now().await?;
    let scope = narrowed(&rule, body.scope.as_deref())?;
    let expires_at = match body.expires_after {
        None => rule.expires_at,
        Some(given) => {
            let wrong = |it: &dyn std::fmt::Display| bad_request(format!("`expires_after`: {it}"));
            let span = Span::try_from(Value::String(given)).map_err(|it| wrong(&it))?;
            now.checked_add(span.0).map_err(|it| wrong(&it))?
        }
    };
    let entry = Entry {
        user: Some(rule.user.clone()),
        agent: Some(rule.agent.clone()),
        tool: Some(rule.tool.clone()),
        reference: Some(rule.id.to_string()),
        detail: json!({ "scope": scope.as_str(), "expires_at": expires_at }),
        ..Entry::new(clock::new_audit_id(), kind::RULE_NARROWED, caller.actor())
    };
    if !app.store.narrow_rule(rule.id, scope.as_str(), expires_at, now, entry).await? {
        return Err(not_narrower());
    }
    let rule = visible(&app, &caller, &id).await?;
    Ok(Json(view::standing_rule(rule)))
}

/// The scope that somebody names for a rule, or the one that it has.
pub fn narrowed(rule: &rule::StandingRule, given: Option<&str>) -> Result<RuleScope> {
    let wrong = |it| bad_request(format!("`scope`: {it}"));
    given.map_or(Ok(rule.scope), |it| it.parse().map_err(wrong))
}

pub fn not_narrower() -> ApiError {
    let detail = "the rule does not hold any more, or would cover more than it does".to_owned();
    ApiError::Conflict { code: "not_narrower", detail }
}

pub async fn visible(app: &App, caller: &Caller, id: &str) -> Result<rule::StandingRule> {
    let missing = || ApiError::NotFound { what: "rule", id: id.chars().take(64).collect() };
    let user = caller.asked_for(app)?;
    let parsed: RuleId = id.parse().map_err(|_| missing())?;
    let rule = app.store.rule(parsed).await?.ok_or_else(missing)?;
    if user.is_some_and(|it| it != rule.user) { Err(missing()) } else { Ok(rule) }
}
