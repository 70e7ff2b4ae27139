//! What a remembered answer would have matched: the questions of the last days that it would have
//! answered, before anybody gives it. Judged by what judges at the gate; decides nothing.

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::Problems;
use chancery_api::permission::{Matched, Matches};
use chancery_domain::batch::Pattern;
use chancery_domain::event::RuleScope;
use chancery_domain::id::PermissionId;
use chancery_store::permission::{PermissionFilter, PermissionRow};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::error::Result;
use crate::extract::{Params, bad_request};
use crate::router::App;
use crate::routes::{permissions, rules};
use crate::view;

/// As far back as a card looks, and as a draft of the organisation is tried.
pub const DAYS: i64 = 30;
/// So many of the newest questions about a tool are looked at: each is read whole, and somebody
/// waits for the sentence.
pub const LOOKED_AT_MAX: u32 = 500;
/// Nobody reads more of them before they answer.
const SHOWN_MAX: usize = 50;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ScopeParams {
    /// `run`, `agent` or `always`; of a rule also none: as it is.
    #[param(pattern = "^(run|agent|always)?$")]
    scope: Option<String>,
}

impl From<String> for ScopeParams {
    fn from(scope: String) -> ScopeParams {
        ScopeParams { scope: Some(scope) }
    }
}

/// The questions of the last 30 days that an answer to this one would have answered too, were it
/// remembered.
#[utoipa::path(get, path = "/api/permissions/{id}/matches",
    params(("id" = String, Path), ScopeParams),
    responses((status = 200, body = Matches), Problems))]
pub async fn of_question(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<ScopeParams>,
) -> Result<Json<Matches>> {
    let row = permissions::visible(&app, &caller, &id).await?;
    let scope = params.scope.unwrap_or_default().parse::<RuleScope>();
    let scope = scope.map_err(|it| bad_request(format!("`scope`: {it}")))?;
    let pattern = permissions::pattern(&row, scope)?;
    Ok(Json(look(&app, &caller, &pattern, Some(row.id)).await?))
}

/// The questions of the last 30 days that a rule would have answered, were it narrowed to this
/// scope.
#[utoipa::path(get, path = "/api/rules/{id}/matches",
    params(("id" = String, Path), ScopeParams),
    responses((status = 200, body = Matches), Problems))]
pub async fn of_rule(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<ScopeParams>,
) -> Result<Json<Matches>> {
    let rule = rules::visible(&app, &caller, &id).await?;
    let said = params.scope.filter(|it| !it.is_empty());
    let scope = rules::narrowed(&rule, said.as_deref())?;
    let is_over = rule.revoked_at.is_some() || rule.expires_at <= app.store.now().await?;
    if is_over || scope > rule.scope {
        return Err(rules::not_narrower());
    }
    let pattern = Pattern { scope, ..rule.pattern() };
    Ok(Json(look(&app, &caller, &pattern, None).await?))
}

/// `but`: the question that is about to be answered.
async fn look(
    app: &App,
    caller: &Caller,
    pattern: &Pattern,
    but: Option<PermissionId>,
) -> Result<Matches> {
    let since = app.store.now().await? - SignedDuration::from_hours(DAYS * 24);
    let filter = PermissionFilter {
        user: Some(pattern.user.clone()),
        tool: Some(pattern.tool.clone()),
        since: Some(since),
        newest_first: true,
        ..PermissionFilter::default()
    };
    let mut rows = app.store.permissions(&filter, LOOKED_AT_MAX + 1).await?;
    let cut_off = rows.len() > LOOKED_AT_MAX as usize;
    rows.truncate(LOOKED_AT_MAX as usize);
    let looked_at = rows.len() as u64;
    rows.retain(|it| Some(it.id) != but && pattern.answers(it.question()));
    Ok(counted(rows, caller, pattern.scope, Matches { looked_at, cut_off, ..none(since) }))
}

fn none(since: Timestamp) -> Matches {
    Matches {
        scope: String::new(),
        since,
        asked: 0,
        granted: 0,
        denied: 0,
        granted_by_you: 0,
        denied_by_you: 0,
        looked_at: 0,
        cut_off: false,
        questions: Vec::new(),
    }
}

fn counted(rows: Vec<PermissionRow>, you: &Caller, scope: RuleScope, of: Matches) -> Matches {
    let you = you.actor();
    let count = |status: &str, by_you: bool| {
        let fits = |it: &&PermissionRow| {
            it.status == status && (!by_you || it.decided_by.as_ref() == Some(&you))
        };
        rows.iter().filter(fits).count() as u64
    };
    Matches {
        scope: scope.as_str().to_owned(),
        asked: rows.len() as u64,
        granted: count("granted", false),
        denied: count("denied", false),
        granted_by_you: count("granted", true),
        denied_by_you: count("denied", true),
        questions: rows.into_iter().take(SHOWN_MAX).map(matched).collect(),
        ..of
    }
}

fn matched(row: PermissionRow) -> Matched {
    Matched {
        id: row.id.to_string(),
        run_id: row.run.to_string(),
        agent: row.agent.0,
        arguments: row.call.arguments,
        status: row.status,
        created_at: row.request.asked_at,
        decided_by: row.decided_by.as_ref().map(view::actor),
    }
}
