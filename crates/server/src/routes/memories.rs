//! What is remembered: people read and write what is theirs and what belongs to nobody in
//! particular; agents remember through their tools.

use axum::Json;
use axum::body::{Body as Stream, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use chancery_api::memory::{FoundMemory, Memory, MemoryScope, NewMemory};
use chancery_api::{Page, Problems};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::id::{AgentId, GroupId, MemoryId, ProjectId, UserId};
use chancery_domain::memory::{Asked, MemoryKind, Mode, Partition, Party, Plan, Scope};
use chancery_runtime::clock;
use chancery_runtime::tool::memory::{RESULTS, RESULTS_MAX, check_content, check_metadata};
use chancery_store::memory;
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params, bad_request, check_asked, check_depth, check_name, check_text};
use crate::router::App;
use crate::view;

const LIST_MAX: u32 = 200;
/// Memories of an export that are in memory at once.
const EXPORT_PAGE: usize = 64;
const QUESTION_MAX: usize = 4000;

/// Keeps something. What is there already is not kept twice, and answered with 200.
#[utoipa::path(post, path = "/api/memories", request_body = NewMemory,
    responses((status = 201, body = Memory), (status = 200, body = Memory), Problems))]
pub async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<NewMemory>,
) -> Result<(StatusCode, Json<Memory>)> {
    let scope = body.scope.unwrap_or_default();
    let party = caller.remembers(scope.user.as_deref())?;
    check_scope(&scope)?;
    check_content(&body.content).map_err(|it| bad_request(it.to_owned()))?;
    let metadata = body.metadata.unwrap_or_default();
    check_metadata(&metadata).map_err(|it| bad_request(it.to_owned()))?;
    let preference = metadata.get("pa_preference") == Some(&true.into());
    let metadata = serde_json::Value::Object(metadata);
    check_depth("metadata", &metadata)?;
    let supersedes = body.supersedes.as_deref().map(str::parse::<MemoryId>).transpose();
    let supersedes = supersedes.map_err(|it| bad_request(format!("`supersedes`: {it}")))?;
    let partition = Partition {
        scope: Scope {
            user: scope.user.map(UserId),
            project: scope.project.map(ProjectId),
            group: scope.group.map(GroupId),
            agent: scope.agent.map(AgentId),
            ..Scope::org(party.org())
        },
        kind: known_kind(&body.kind)?,
        preference,
    };
    let home = party.person_home(partition)?;
    let now = clock::now();
    let new = memory::NewMemory {
        id: clock::new_memory_id(),
        content: body.content,
        metadata,
        at: body.at.unwrap_or(now),
        made_at: now,
        made_by: caller.actor(),
        provenance: None,
        seq: None,
        supersedes,
        not_from: None,
    };
    let written = app.store.write_memory(&home, new).await?;
    let written = written.map_err(|refusal| match refusal {
        memory::WriteRefusal::NothingToSupersede(id) => {
            ApiError::NotFound { what: "memory", id: id.to_string() }
        }
    })?;
    let status = match written {
        memory::Written::New { .. } => StatusCode::CREATED,
        memory::Written::Known(_) => StatusCode::OK,
    };
    let kept = visible(&app, &party, &written.id().to_string()).await?;
    Ok((status, Json(view::memory::memory(kept))))
}

/// A query that says which memories, with what it says before and after that.
macro_rules! asks_which {
    ($name:ident { $($before:tt)* } { $($after:tt)* }) => {
        #[derive(Debug, Default, Deserialize, IntoParams)]
        #[serde(deny_unknown_fields)]
        #[into_params(parameter_in = Query)]
        pub struct $name {
            $($before)*
            #[serde(rename = "type")]
            #[param(rename = "type", pattern = "^(core|episodic|archival)?$")]
            kind: Option<String>,
            /// For whom, where the caller may act for others.
            #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
            user: Option<String>,
            #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
            project: Option<String>,
            #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
            group: Option<String>,
            #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
            agent: Option<String>,
            $($after)*
        }

        impl $name {
            fn which(&self) -> Which<'_> {
                Which {
                    kind: said(&self.kind),
                    user: said(&self.user),
                    project: said(&self.project),
                    group: said(&self.group),
                    agent: said(&self.agent),
                }
            }
        }
    };
}

asks_which! {
    SearchParams {
        /// What is looked for, in any language.
        #[param(min_length = 1, max_length = 4000)]
        q: String,
        /// `flat` unless said: all that the caller may read.
        #[param(pattern = "^(flat|personal|group)?$")]
        mode: Option<String>,
        /// At most 50; 10 unless said.
        #[param(format = Int64, maximum = 4294967295u32)]
        limit: Option<u32>,
    } {}
}

/// Finds what has most in common with a question, in the order of the mode's tiers.
#[utoipa::path(get, path = "/api/memories/search", params(SearchParams),
    responses((status = 200, body = Page<FoundMemory>), Problems))]
pub async fn search(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<SearchParams>,
) -> Result<Json<Page<FoundMemory>>> {
    let (party, asked) = params.which().asked(&caller)?;
    check_text("q", &params.q)?;
    if params.q.chars().count() > QUESTION_MAX {
        return Err(bad_request(format!("`q` has at most {QUESTION_MAX} characters")));
    }
    let mode = match params.mode.as_deref() {
        None | Some("" | "flat") => Mode::Flat,
        Some("personal") => Mode::Personal,
        Some("group") => Mode::Group,
        Some(_) => return Err(bad_request("`mode` is `flat`, `personal` or `group`".to_owned())),
    };
    let limit = params.limit.map_or(RESULTS, |it| it as usize).clamp(1, RESULTS_MAX);
    let plan = party.search(mode, asked)?;
    let found = app.memories.search(&plan, &params.q, limit).await?;
    let items = found.into_iter().map(view::memory::found).collect();
    Ok(Json(Page { items, next_cursor: None }))
}

asks_which! {
    ListParams {} {
        /// At most 200; 50 unless said.
        #[param(format = Int64, maximum = 4294967295u32)]
        limit: Option<u32>,
        /// The `next_cursor` of the page before.
        #[param(pattern = "^(mem_[0-9a-f]{32})?$")]
        cursor: Option<String>,
    }
}

impl ListParams {
    pub fn of(kind: &str, cursor: &str) -> ListParams {
        let (kind, cursor) = (Some(kind.to_owned()), Some(cursor.to_owned()));
        ListParams { kind, cursor, ..ListParams::default() }
    }
}

impl SearchParams {
    pub fn of(q: &str, mode: &str, kind: &str, agent: Option<String>) -> SearchParams {
        let (mode, kind) = (Some(mode.to_owned()), Some(kind.to_owned()));
        SearchParams { q: q.to_owned(), mode, kind, agent, ..SearchParams::default() }
    }
}

/// What the caller may read, the newest first; what was corrected too.
#[utoipa::path(get, path = "/api/memories", params(ListParams),
    responses((status = 200, body = Page<Memory>), Problems))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Page<Memory>>> {
    let (party, asked) = params.which().asked(&caller)?;
    let before = said(&params.cursor).map(str::parse::<MemoryId>).transpose();
    let before = before.map_err(|it| bad_request(format!("`cursor`: {it}")))?;
    let limit = params.limit.unwrap_or(50).clamp(1, LIST_MAX) as usize;
    let plan = party.everything(false, asked);
    let mut rows = app.store.memories(&plan, before, limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| more).map(|it| it.id.to_string());
    Ok(Json(Page { items: rows.into_iter().map(view::memory::memory).collect(), next_cursor }))
}

/// All of it, for whoever wants to know whether it has changed.
pub fn readable(caller: &Caller) -> Result<Plan> {
    Ok(everything(&caller.remembers(None)?))
}

asks_which! { ExportParams {} {} }

/// All that the caller may read, the newest first, a line of JSON each.
#[utoipa::path(get, path = "/api/memories/export", params(ExportParams),
    responses((status = 200, body = String, content_type = "application/x-ndjson"), Problems))]
pub async fn export(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ExportParams>,
) -> Result<Response> {
    let (party, asked) = params.which().asked(&caller)?;
    let plan = party.everything(false, asked);
    // One that could not even begin is an error that can be read.
    let first = app.store.memories(&plan, None, EXPORT_PAGE).await?;
    let lines = stream::try_unfold((app, plan, Some(first)), |(app, plan, page)| async move {
        // An export that is broken off must not look like one that is whole.
        if app.stop.is_cancelled() {
            return Err(ApiError::Unavailable("the server stops".to_owned()));
        }
        let Some(page) = page else { return Ok(None) };
        let last = page.last().filter(|_| page.len() == EXPORT_PAGE).map(|it| it.id);
        let text = page.into_iter().map(line).collect::<Result<String>>()?;
        let next = match last {
            Some(last) => Some(app.store.memories(&plan, Some(last), EXPORT_PAGE).await?),
            None => None,
        };
        Ok::<_, ApiError>(Some((Bytes::from(text), (app, plan, next))))
    });
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((headers, Stream::from_stream(lines)).into_response())
}

fn line(memory: memory::Memory) -> Result<String> {
    let text = serde_json::to_string(&view::memory::memory(memory));
    text.map(|it| it + "\n").map_err(|it| ApiError::Internal(it.to_string()))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OneParams {
    /// For whom, where the caller may act for others.
    #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    user: Option<String>,
}

#[utoipa::path(get, path = "/api/memories/{id}", params(("id" = String, Path), OneParams),
    responses((status = 200, body = Memory), Problems))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<OneParams>,
) -> Result<Json<Memory>> {
    let party = caller.remembers(said(&params.user))?;
    Ok(Json(view::memory::memory(visible(&app, &party, &id).await?)))
}

/// Forgets a memory, and all that it had taken the place of. People forget what is their own,
/// what they wrote, and what their runs left behind.
#[utoipa::path(delete, path = "/api/memories/{id}", params(("id" = String, Path), OneParams),
    responses((status = 200, body = Memory), Problems))]
pub async fn forget(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<OneParams>,
) -> Result<Json<Memory>> {
    let party = caller.remembers(said(&params.user))?;
    let found = visible(&app, &party, &id).await?;
    let own = found.partition.scope.user.as_ref() == Some(party.user());
    if !own && found.owner != *party.user() && !caller.is_operator() {
        let detail = "somebody else wrote this: they, or an operator, can take it back";
        return Err(ApiError::Forbidden(detail.to_owned()));
    }
    let entry = Entry {
        org: Some(party.org().to_owned()),
        user: Some(found.partition.scope.user.clone().unwrap_or_else(|| found.owner.clone())),
        reference: Some(found.id.to_string()),
        ..Entry::new(clock::new_audit_id(), kind::MEMORY_FORGOTTEN, caller.actor())
    };
    let plan = everything(&party);
    if !app.store.forget_memory(&plan, found.id, entry, clock::now()).await? {
        return Err(missing(&id));
    }
    Ok(Json(view::memory::memory(found)))
}

/// Which memories, as a query says it.
struct Which<'q> {
    kind: Option<&'q str>,
    user: Option<&'q str>,
    project: Option<&'q str>,
    group: Option<&'q str>,
    agent: Option<&'q str>,
}

impl Which<'_> {
    fn asked(self, caller: &Caller) -> Result<(Party, Asked)> {
        let party = caller.remembers(self.user)?;
        let named = |name: &str, given: Option<&str>| -> Result<Option<String>> {
            given.map(|it| check_asked(name, it).map(|()| it.to_owned())).transpose()
        };
        let asked = Asked {
            project: named("project", self.project)?.map(ProjectId),
            group: named("group", self.group)?.map(GroupId),
            agent: named("agent", self.agent)?.map(AgentId),
            kind: self.kind.map(known_kind).transpose()?,
        };
        Ok((party, asked))
    }
}

fn everything(party: &Party) -> Plan {
    party.everything(false, Asked::default())
}

/// A memory that the caller may know of. What is somebody else's is not there.
async fn visible(app: &App, party: &Party, id: &str) -> Result<memory::Memory> {
    let parsed: MemoryId = id.parse().map_err(|_| missing(id))?;
    app.store.memory(&everything(party), parsed).await?.ok_or_else(|| missing(id))
}

fn missing(id: &str) -> ApiError {
    ApiError::NotFound { what: "memory", id: id.chars().take(64).collect() }
}

/// `?user=` asks for nobody in particular.
fn said(given: &Option<String>) -> Option<&str> {
    given.as_deref().filter(|it| !it.is_empty())
}

fn known_kind(given: &str) -> Result<MemoryKind> {
    let wrong = || bad_request("`type` is `core`, `episodic` or `archival`".to_owned());
    MemoryKind::parse(given).ok_or_else(wrong)
}

fn check_scope(scope: &MemoryScope) -> Result<()> {
    for (name, given) in [
        ("scope.user", &scope.user),
        ("scope.project", &scope.project),
        ("scope.group", &scope.group),
        ("scope.agent", &scope.agent),
    ] {
        given.as_deref().map_or(Ok(()), |it| check_name(name, it))?;
    }
    Ok(())
}
