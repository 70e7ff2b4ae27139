//! Runs: ask for one, look at it. What can be done to one under way is in `steer`, and how one
//! goes on from another in `forks`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chancery_api::run::{CreateRun, Event, Run, Tree};
use chancery_api::{Page, Problems};
use chancery_domain::command::{self, Effect};
use chancery_domain::escalation::Refusal;
use chancery_domain::event::{Created, Member, Recorded, Room};
use chancery_domain::history::History;
use chancery_domain::id::{AgentId, GroupId, ProjectId, RunId, SessionKey, UserId};
use chancery_domain::org::Org;
use chancery_runtime::clock;
use chancery_runtime::escalation::room_of;
use chancery_store::log::{Amendment, CreateOutcome, IdempotencyKey};
use chancery_store::read::{RunFilter, RunRow};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params, asked, bad_request, check_name, check_text};
use crate::router::App;
use crate::{paging, stream, view};

/// The one organisation that there is so far.
pub const ORG: &str = "default";
/// Every entry is held against every tool, again and again.
const TOOLS_MAX: usize = 1000;
/// A tree of more runs than this is not looked at as one.
pub const TREE_MAX: u32 = 10_000;
/// The store counts with 63 bits; no log is longer.
const SEQ_MAX: u64 = i64::MAX as u64;

/// Asks for a run.
#[utoipa::path(post, path = "/api/runs", request_body = CreateRun,
    params(("Idempotency-Key" = Option<String>, Header, description = "the same key and body make the same run",
        min_length = 1, max_length = 255, pattern = "^[ -~]+$")),
    responses((status = 201, body = Run), Problems))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<CreateRun>,
) -> Result<(StatusCode, Json<Run>)> {
    let id = make(&app, &caller, &headers, &body).await?;
    Ok((StatusCode::CREATED, Json(one(&app, id).await?)))
}

/// Makes a run, or finds the one that the same request has made before.
pub async fn make(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    body: &CreateRun,
) -> Result<RunId> {
    let created = created(app, caller, body)?;
    put(app, created, idempotency_key(caller, headers, body)?).await
}

/// Makes a run of what somebody was allowed to ask for.
pub(super) async fn put(app: &App, created: Created, key: Option<IdempotencyKey>) -> Result<RunId> {
    let id = clock::new_run_id();
    let mut history = History::create(id, created);
    let change = history.change().ok_or_else(|| ApiError::Internal("no event".to_owned()))?;
    match app.store.create(&change, key, clock::now()).await? {
        CreateOutcome::Created => Ok(id),
        CreateOutcome::Existed(before) => Ok(before),
        CreateOutcome::KeyReused => Err(ApiError::Unprocessable {
            code: "idempotency_key_reused",
            detail: "this `Idempotency-Key` was used for another request".to_owned(),
        }),
    }
}

/// On whose behalf the caller may talk with whom a request names, and with which agent first.
pub fn addressed(app: &App, caller: &Caller, body: &CreateRun) -> Result<(UserId, AgentId)> {
    let user = caller.acts_for(body.user.as_deref())?;
    let (member, _, _) = whose(app.authority.get().org(), body)?;
    Ok((user, member.agent))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    #[param(pattern = "^(pending|running|waiting|completed|failed|cancelled)?$")]
    status: Option<String>,
    #[param(pattern = "^(run_[0-9a-f]{32})?$")]
    parent: Option<String>,
    #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    agent: Option<String>,
    #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    group: Option<String>,
    /// At most 200; 50 unless said.
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(pattern = "^(run_[0-9a-f]{32})?$")]
    cursor: Option<String>,
}

/// The newest runs first.
#[utoipa::path(get, path = "/api/runs", params(ListParams),
    responses((status = 200, body = Page<Run>), Problems))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Page<Run>>> {
    let run_id = |name: &str, given: Option<String>| -> Result<Option<RunId>> {
        given.map(|it| it.parse()).transpose().map_err(|it| bad_request(format!("`{name}`: {it}")))
    };
    // `?status=` asks for no status in particular.
    let said = |given: Option<String>| given.filter(|it| !it.is_empty());
    let filter = RunFilter {
        user: caller.sees()?,
        status: said(params.status).map(known_status).transpose()?,
        parent: run_id("parent", said(params.parent))?,
        agent: asked("agent", params.agent)?.map(AgentId),
        group: asked("group", params.group)?.map(GroupId),
        session_key: None,
        before: run_id("cursor", said(params.cursor))?,
        ..RunFilter::default()
    };
    let limit = paging::limit(params.limit);
    let rows = app.store.runs(&filter, limit + 1).await?;
    Ok(paging::page(rows, limit, |it| it.id.to_string(), view::run))
}

/// One run.
#[utoipa::path(get, path = "/api/runs/{id}", params(("id" = String, Path)),
    responses((status = 200, body = Run), Problems))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Run>> {
    let row = caller.run(&app, &id).await?;
    let first = app.store.events(row.id, 0, 1).await?;
    let forked_from = view::forked(&first).map(view::forked_from);
    Ok(Json(Run { forked_from, ..shown(&app, row).await? }))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventParams {
    /// Only events after this place in the log.
    #[param(maximum = 9223372036854775807i64)]
    after: Option<u64>,
    /// The `next_cursor` of the page before, which is a place in the log too.
    #[param(maximum = 9223372036854775807i64)]
    cursor: Option<u64>,
    /// At most 1000, which is the default.
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
}

/// The run's log: as JSON, or live with `Accept: text/event-stream`, resumable by `Last-Event-ID`.
#[utoipa::path(get, path = "/api/runs/{id}/events", params(("id" = String, Path), EventParams,
        ("Last-Event-ID" = Option<u64>, Header, description = "for a live stream: only events after this one", maximum = 9223372036854775807i64)),
    responses(
        (status = 200, content((Page<Event> = "application/json"), (String = "text/event-stream"))),
        Problems
    ))]
pub async fn events(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Params(params): Params<EventParams>,
) -> Result<Response> {
    let row = caller.run(&app, &id).await?;
    let live = headers
        .get(header::ACCEPT)
        .and_then(|it| it.to_str().ok())
        .is_some_and(|it| it.contains("text/event-stream"));
    let last = place("Last-Event-ID", stream::last_event_id(&headers)?)?;
    let after = place("after", params.after)?;
    let after = place("cursor", params.cursor)?.or(after).unwrap_or(0);
    if live {
        return Ok(stream::live(app, row.id, caller.token(), last.unwrap_or(after)));
    }
    let limit = params.limit.unwrap_or(1000).clamp(1, 1000);
    let found = app.store.events(row.id, after, limit).await?;
    let full = found.len() == limit as usize;
    let next_cursor = found.last().filter(|_| full).map(|it| it.seq.to_string());
    let items = found.into_iter().map(view::event).collect::<Result<Vec<Event>>>()?;
    Ok(Json(Page { items, next_cursor }).into_response())
}

/// A place that a log can have: a larger number would wrap around in the store.
pub(super) fn place(name: &str, given: Option<u64>) -> Result<Option<u64>> {
    match given {
        Some(given) if given > SEQ_MAX => {
            Err(bad_request(format!("`{name}` is at most {SEQ_MAX}")))
        }
        given => Ok(given),
    }
}

/// The run with its children, recursively.
#[utoipa::path(get, path = "/api/runs/{id}/tree", params(("id" = String, Path)),
    responses((status = 200, body = Tree), Problems))]
pub async fn tree(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Tree>> {
    let row = caller.run(&app, &id).await?;
    let rows = app.store.tree(row.id, TREE_MAX).await?;
    let tree = view::tree(row.id, rows);
    tree.map(Json).ok_or(ApiError::NotFound { what: "run", id })
}

/// Changes a run from outside and answers with what it is then.
pub async fn amend(
    app: &App,
    id: RunId,
    decide: impl Fn(History, &[Recorded]) -> std::result::Result<Effect, command::Refusal>,
) -> Result<Json<Run>> {
    record(app, id, decide).await?;
    Ok(Json(one(app, id).await?))
}

/// Changes a run from outside.
pub async fn record(
    app: &App,
    id: RunId,
    decide: impl Fn(History, &[Recorded]) -> std::result::Result<Effect, command::Refusal>,
) -> Result<()> {
    let amended = app
        .store
        .amend(id, clock::now(), |history, events| {
            decide(history, events).map(|effect| match effect {
                Effect::Record(history) => Amendment::Record(history),
                Effect::Already => Amendment::Nothing(()),
            })
        })
        .await?;
    amended?;
    Ok(())
}

/// What a run is made with, if the caller may ask for it.
pub(super) fn created(app: &App, caller: &Caller, body: &CreateRun) -> Result<Created> {
    let user = caller.acts_for(body.user.as_deref())?;
    check_text("input", &body.input)?;
    for (name, given) in
        [("user", &body.user), ("project", &body.project), ("session_key", &body.session_key)]
    {
        given.as_deref().map_or(Ok(()), |it| check_name(name, it))?;
    }
    check_delegated(body)?;
    let authority = app.authority.get();
    let (member, group, room) = whose(authority.org(), body)?;
    Ok(Created {
        org: ORG.to_owned(),
        role: member.role,
        agent: member.agent,
        user,
        project: body.project.clone().map(ProjectId),
        group,
        session_key: body.session_key.clone().map(SessionKey),
        parent: None,
        ancestors: Vec::new(),
        room: room.map(Arc::new),
        persons_words: Vec::new(),
        delegated: body
            .delegated_permissions
            .clone()
            .map(|it| authority.policy().given(&view::bounds(it))),
        input: body.input.clone(),
        by: caller.actor(),
        org_version: authority.org().version,
        contract: None,
        mails: Vec::new(),
        call: None,
        forked: None,
    })
}

/// The agent whose run it is, or the group, which begins with its first member.
fn whose(org: &Org, body: &CreateRun) -> Result<(Member, Option<GroupId>, Option<Room>)> {
    match (&body.agent, &body.group) {
        (Some(agent), None) => {
            let agent = AgentId(agent.clone());
            let role = org.active_role_of(&agent).ok_or_else(|| ApiError::BadRequest {
                code: "unknown_agent",
                detail: format!("there is no agent `{agent}`"),
            })?;
            Ok((Member { role: role.id.clone(), agent }, None, None))
        }
        (None, Some(group)) => {
            let group = GroupId(group.clone());
            let unknown = |it: Refusal| ApiError::BadRequest {
                code: "unknown_group",
                detail: it.to_string(),
            };
            let room = room_of(org, &group).map_err(unknown)?;
            let first = room.members.first().cloned();
            let first = first.ok_or_else(|| unknown(Refusal::NobodyAtWork(group.clone())))?;
            Ok((first, Some(group), Some(room)))
        }
        _ => Err(bad_request("a run is for an `agent` or for a `group`".to_owned())),
    }
}

/// A name with a blank too many matches nothing, which where something is denied is too little.
fn check_delegated(body: &CreateRun) -> Result<()> {
    let Some(given) = &body.delegated_permissions else { return Ok(()) };
    let lists = [("allowed_tools", &given.allowed_tools), ("denied_tools", &given.denied_tools)];
    for (name, list) in lists {
        let list = list.as_deref().unwrap_or_default();
        if list.len() > TOOLS_MAX {
            return Err(bad_request(format!("`{name}` has at most {TOOLS_MAX} entries")));
        }
        list.iter().try_for_each(|it| check_name(name, it))?;
    }
    Ok(())
}

pub(super) fn idempotency_key(
    caller: &Caller,
    headers: &HeaderMap,
    body: &impl Serialize,
) -> Result<Option<IdempotencyKey>> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|it| (1..=255).contains(&it.len())).ok_or_else(|| {
        bad_request("`Idempotency-Key` has 1 to 255 visible characters".to_owned())
    })?;
    let request = serde_json::to_vec(body).map_err(|it| ApiError::Internal(it.to_string()))?;
    Ok(Some(IdempotencyKey {
        caller: caller.scope(),
        key: key.to_owned(),
        request_sha256: Sha256::digest(request).into(),
    }))
}

fn known_status(given: String) -> Result<String> {
    match &*given {
        "pending" | "running" | "waiting" | "completed" | "failed" | "cancelled" => Ok(given),
        _ => Err(bad_request(format!("`status`: there is no status `{given}`"))),
    }
}

pub async fn one(app: &App, id: RunId) -> Result<Run> {
    let row = app.store.run(id).await?;
    let row = row.ok_or_else(|| ApiError::NotFound { what: "run", id: id.to_string() })?;
    shown(app, row).await
}

/// A row with what would end its wait, which only the log knows.
async fn shown(app: &App, row: RunRow) -> Result<Run> {
    let id = row.id;
    let waits = row.status == "waiting";
    let mut run = view::run(row);
    if waits {
        let events = app.store.events(id, 0, u32::MAX).await?;
        let history =
            History::fold(id, &events).map_err(|it| ApiError::Internal(it.to_string()))?;
        run.wait = view::wait(&history);
    }
    Ok(run)
}
