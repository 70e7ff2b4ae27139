//! Permissions: what people are asked, and the door through which they answer.

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::permission::{Decide, Extend, Permission, Remember};
use chancery_api::{Page, Problems};
use chancery_domain::batch::Pattern;
use chancery_domain::command::{self, Extension, Refusal, Reply};
use chancery_domain::event::{
    Call, CallResult, Decision, Remember as Remembered, RequestKind, RuleScope,
};
use chancery_domain::id::{PermissionId, RunId, WaitKey};
use chancery_domain::policy::Ruling;
use chancery_runtime::authority::{Case, Given};
use chancery_runtime::clock;
use chancery_runtime::tool::Prospect;
use chancery_runtime::tool::config::Span;
use chancery_store::permission::{PermissionFilter, PermissionRow};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params, bad_request, check_depth, check_text};
use crate::paging;
use crate::router::App;
use crate::routes::authorize::{Said, limits};
use crate::routes::runs::record;
use crate::view;

const COMMENT_MAX: usize = 4000;
/// Nobody follows a chain further, and no run may have one.
const CHAIN_MAX: usize = 32;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    #[param(pattern = "^(pending|granted|denied|expired|cancelled)?$")]
    status: Option<String>,
    #[param(pattern = "^(run_[0-9a-f]{32})?$")]
    run: Option<String>,
    /// At most 200; 50 unless said.
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(pattern = "^(perm_[0-9a-f]{32})?$")]
    cursor: Option<String>,
}

/// What was asked, the oldest first.
#[utoipa::path(get, path = "/api/permissions", params(ListParams),
    responses((status = 200, body = Page<Permission>), Problems))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Page<Permission>>> {
    let said = |given: Option<String>| given.filter(|it| !it.is_empty());
    let wrong = |name: &str, it: &dyn std::fmt::Display| bad_request(format!("`{name}`: {it}"));
    let run = said(params.run).map(|it| it.parse::<RunId>()).transpose();
    let after = said(params.cursor).map(|it| it.parse::<PermissionId>()).transpose();
    let filter = PermissionFilter {
        status: said(params.status).map(known_status).transpose()?,
        run: run.map_err(|it| wrong("run", &it))?,
        user: caller.asked_for(&app)?,
        after: after.map_err(|it| wrong("cursor", &it))?,
        ..PermissionFilter::default()
    };
    let limit = paging::limit(params.limit);
    let rows = app.store.permissions(&filter, limit + 1).await?;
    let Json(Page { items: rows, next_cursor }) =
        paging::page(rows, limit, |it| it.id.to_string(), |it| it);
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        items.push(shown(&app, row).await?);
    }
    Ok(Json(Page { items, next_cursor }))
}

#[utoipa::path(get, path = "/api/permissions/{id}", params(("id" = String, Path)),
    responses((status = 200, body = Permission), Problems))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Permission>> {
    let row = visible(&app, &caller, &id).await?;
    Ok(Json(whole(&app, row).await?))
}

/// Answers one question. The same answer again is no news; another one comes too late.
#[utoipa::path(post, path = "/api/permissions/{id}/decision", params(("id" = String, Path)),
    request_body = Decide, responses((status = 200, body = Permission), Problems))]
pub async fn decide(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<Decide>,
) -> Result<Json<Permission>> {
    caller.check_decides_at_all()?;
    let row = visible(&app, &caller, &id).await?;
    let permission = row.id;
    answer(&app, &caller, row, body).await?;
    let row = app.store.permission(permission).await?;
    let row = row.ok_or(ApiError::NotFound { what: "permission", id })?;
    Ok(Json(shown(&app, row).await?))
}

/// Gives a question more time, if it is the caller's to answer. Decides nothing.
#[utoipa::path(post, path = "/api/permissions/{id}/extend", params(("id" = String, Path)),
    request_body = Extend, responses((status = 200, body = Permission), Problems))]
pub async fn extend(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<Extend>,
) -> Result<Json<Permission>> {
    let row = visible(&app, &caller, &id).await?;
    caller.check_decides(&app, &row).await?;
    let by = body.by.map(|it| span("by", it)).transpose()?.unwrap_or(app.permissions.expire_after);
    let longer = Extension { by: by.0, at_most: app.permissions.extend_up_to.0 };
    let (permission, by) = (row.id, caller.actor());
    record(&app, row.run, |history, events| {
        command::extend(history, events, permission, longer, by.clone())
    })
    .await?;
    let row = app.store.permission(permission).await?;
    let row = row.ok_or(ApiError::NotFound { what: "permission", id })?;
    Ok(Json(shown(&app, row).await?))
}

/// Answers a question that the caller knows of, if it is theirs to answer.
pub async fn answer(
    app: &App,
    caller: &Caller,
    mut row: PermissionRow,
    body: Decide,
) -> Result<()> {
    caller.check_decides(app, &row).await?;
    // What is remembered ends by the clock that is asked whether it holds.
    let now = app.store.now().await?;
    let reply = reply(app, &row, body, now)?;
    if let Some(arguments) = &reply.arguments {
        row.ruling = row.ruling.max(rule_on_edit(app, &row, arguments).await?);
        // What was asked about may have been theirs to grant, and what they made of it not.
        caller.check_decides(app, &row).await?;
    }
    let (permission, by) = (row.id, caller.actor());
    let decided = record(app, row.run, |history, events| {
        command::decide(history, events, permission, reply.clone(), by.clone())
    })
    .await;
    match decided {
        Err(ApiError::Conflict { code: "already_decided", detail }) => {
            Err(before(app, permission, detail).await)
        }
        other => other,
    }
}

/// That a question was answered before: by whom and when, where the record says so.
async fn before(app: &App, permission: PermissionId, detail: String) -> ApiError {
    let row = app.store.permission(permission).await.ok().flatten();
    let answered = row.and_then(|it| it.decided_by.zip(it.decided_at));
    let detail = match answered {
        Some((by, at)) => format!("{detail}, by {} at {at:.0}", view::actor(&by)),
        None => detail,
    };
    ApiError::Conflict { code: "already_decided", detail }
}

/// A request that the caller may know of. What is somebody else's is not there.
pub async fn visible(app: &App, caller: &Caller, id: &str) -> Result<PermissionRow> {
    let missing = || ApiError::NotFound { what: "permission", id: id.chars().take(64).collect() };
    let user = caller.asked_for(app)?;
    let parsed: PermissionId = id.parse().map_err(|_| missing())?;
    let row = app.store.permission(parsed).await?.ok_or_else(missing)?;
    if user.is_some_and(|it| it != row.user) { Err(missing()) } else { Ok(row) }
}

/// The run whose question a key names, if the caller may answer it.
pub async fn decidable(app: &App, caller: &Caller, run: &str, key: &WaitKey) -> Result<RunId> {
    let seen = caller.run(app, run).await;
    let id = match &seen {
        Ok(row) => row.id,
        // Those who approve answer for runs that they do not otherwise see.
        Err(_) => match run.parse::<RunId>() {
            Ok(id) => id,
            Err(_) => return seen.map(|row| row.id),
        },
    };
    let events = app.store.events(id, 0, u32::MAX).await?;
    let asked = events.iter().flat_map(|it| command::requests(&it.event));
    let asked = asked.map(|(_, request)| request).find(|it| it.correlation_key == *key);
    match asked {
        Some(request) => {
            let row = visible(app, caller, &request.id.to_string()).await?;
            caller.check_decides(app, &row).await?;
            Ok(row.run)
        }
        // It may be asked a moment later, and is then not for everyone who reads the run.
        None => seen.and_then(|_| Err(Refusal::UnknownKey(key.clone()).into())),
    }
}

fn reply(app: &App, row: &PermissionRow, body: Decide, now: Timestamp) -> Result<Reply> {
    if let Some(comment) = &body.comment {
        check_text("comment", comment)?;
        if comment.chars().count() > COMMENT_MAX {
            return Err(bad_request(format!("`comment` has at most {COMMENT_MAX} characters")));
        }
    }
    let grants = match &*body.decision {
        "grant" => true,
        "deny" => false,
        _ => return Err(bad_request("`decision` is `grant` or `deny`".to_owned())),
    };
    let recovers = row.request.kind == RequestKind::Recover;
    if body.result.is_some() && !(grants && recovers) {
        let detail = "`result` says what a call of unknown outcome did, and goes with `grant`";
        return Err(bad_request(detail.to_owned()));
    }
    if body.arguments.is_some() && (!grants || recovers) {
        return Err(bad_request("`arguments` go with `grant`".to_owned()));
    }
    let decision = match (grants, body.result) {
        (false, _) => Decision::Denied,
        (true, None) => Decision::Granted,
        (true, Some(result)) => {
            let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
            Decision::Supplied(CallResult::ok(text))
        }
    };
    let remember = body.remember.map(|it| remembered(app, row, it, now)).transpose()?.flatten();
    if remember.is_some() && !grants {
        return Err(bad_request("a denial is not remembered: deny the tool instead".to_owned()));
    }
    if remember.is_some() && body.arguments.is_some() {
        let detail = "what is remembered is what was asked for: grant it unedited";
        return Err(bad_request(detail.to_owned()));
    }
    Ok(Reply { decision, comment: body.comment, arguments: body.arguments, remember })
}

fn span(name: &str, given: String) -> Result<Span> {
    Span::try_from(Value::String(given)).map_err(|it| bad_request(format!("`{name}`: {it}")))
}

fn remembered(
    app: &App,
    row: &PermissionRow,
    given: Remember,
    now: Timestamp,
) -> Result<Option<Remembered>> {
    let (scope, expires_after) = match given {
        Remember::Scope(scope) => (scope, None),
        Remember::For(it) => (it.scope, it.expires_after),
    };
    let scope = match &*scope {
        "once" => return Ok(None),
        "this_run" => RuleScope::Run,
        "this_agent" => RuleScope::Agent,
        other => other.parse().map_err(|_| {
            bad_request("`remember` is `once`, `run`, `agent` or `always`".to_owned())
        })?,
    };
    let Pattern { tool, signature, .. } = pattern(row, scope)?;
    let longest = app.permissions.remember_for;
    let expires_after = match expires_after {
        None => longest,
        Some(given) => span("expires_after", given)?,
    };
    let expires_at = now
        .checked_add(expires_after.0.min(longest.0))
        .map_err(|it| bad_request(format!("`expires_after`: {it}")))?;
    Ok(Some(Remembered { rule: clock::new_rule_id(), scope, tool, signature, expires_at }))
}

/// What an answer to a question would be remembered for.
pub fn pattern(row: &PermissionRow, scope: RuleScope) -> Result<Pattern> {
    row.pattern(scope).ok_or_else(|| ApiError::Unprocessable {
        code: "not_rememberable",
        detail: "this is asked each time: the answer cannot be remembered".to_owned(),
    })
}

/// Edited arguments are ruled on like any others, before they are granted. Deny still denies;
/// otherwise the answer is what they need.
pub async fn rule_on_edit(app: &App, row: &PermissionRow, arguments: &Value) -> Result<Ruling> {
    if !arguments.is_object() {
        return Err(bad_request("`arguments` is an object".to_owned()));
    }
    check_depth("arguments", arguments)?;
    let authority = app.authority.get();
    let said = Said::of(app, row.run).await?;
    let created = &said.created;
    let call = Call { arguments: arguments.clone(), ..row.call.clone() };
    let limits = limits(app, &authority, &row.agent, &call.tool, Some((row.run, &said))).await?;
    let warrant = app.store.warrant(&row.agent, created.contract.as_ref()).await?;
    let contract = created.contract.as_ref();
    let who = Prospect { agent: &row.agent, user: &row.user, org: authority.org(), contract };
    let record = authority.tools().denied(&call, &who).await?;
    let judgment = authority.judge(Case {
        agent: row.agent.as_str(),
        user: row.user.as_str(),
        delegated: authority.delegation(created).as_ref(),
        call: &call,
        given: Given::Whole,
        task: said.literals(&authority).as_ref(),
        now: clock::now(),
        warrant: &warrant,
        record: record.as_ref(),
        limits: &limits,
    });
    if judgment.ruling == Ruling::Deny {
        return Err(ApiError::Denied(judgment.reasons));
    }
    Ok(judgment.ruling)
}

/// A row as the wire shows it, with the runs that led to it.
pub async fn shown(app: &App, row: PermissionRow) -> Result<Permission> {
    let mut chain = Vec::new();
    let mut next = Some(row.run);
    while let Some(id) = next.filter(|_| chain.len() < CHAIN_MAX) {
        let Some(run) = app.store.run(id).await? else { break };
        next = run.parent;
        chain.push(view::link(run));
    }
    // In a group, it is the member that asks.
    if let Some(asking) = chain.first_mut() {
        (asking.agent, asking.role) = (row.agent.0.clone(), row.role.clone());
    }
    Ok(view::permission(row, chain))
}

/// The same with what the agent was asked about it, which only the log knows.
pub async fn whole(app: &App, row: PermissionRow) -> Result<Permission> {
    let log = app.store.events(row.run, 0, u32::MAX).await?;
    let inquiries = view::inquiries(&log, row.id);
    Ok(Permission { inquiries, ..shown(app, row).await? })
}

fn known_status(given: String) -> Result<String> {
    match &*given {
        "pending" | "granted" | "denied" | "expired" | "cancelled" => Ok(given),
        _ => Err(bad_request(format!("`status`: there is no status `{given}`"))),
    }
}
