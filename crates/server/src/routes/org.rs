//! The organisation: who there is, which version of it, and how it changes.

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::org::{
    Agent, Changed, Group, MailImpact, McpServer, NewOrg, Org, Role, Tool, Version, VersionFiles,
};
use chancery_api::{Page, Problems};
use chancery_domain::event::Actor;
use chancery_runtime::clock;
use chancery_store::org::OrgSource;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::{Caller, Operator};
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params};
use crate::organisation::difference::difference;
use crate::organisation::impact::{BACK, impact_on_mail};
use crate::organisation::reload;
use crate::organisation::{Files, Mistakes};
use crate::paging;
use crate::router::App;
use crate::routes::audit::moment;
use crate::view::org as view;

/// Which version is in force, and what is to be said about it.
#[utoipa::path(get, path = "/api/org", responses((status = 200, body = Org), Problems))]
pub async fn show(State(app): State<App>, caller: Caller) -> Result<Json<Org>> {
    check_reader(&caller)?;
    let state = app.organisation.state();
    let files = caller.is_operator().then(|| reload::texts(&state.loaded.files));
    Ok(Json(Org { files, ..view::org(&state, app.authority.get().tools()) }))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChangeParams {
    /// Only say what would be.
    #[serde(default)]
    check: bool,
}

/// Puts another version in force, whole, or says why it cannot be.
#[utoipa::path(put, path = "/api/org", params(ChangeParams), request_body = NewOrg,
    responses((status = 200, body = Changed), Problems))]
pub async fn change(
    State(app): State<App>,
    Operator(caller): Operator,
    Params(params): Params<ChangeParams>,
    Body(body): Body<NewOrg>,
) -> Result<Json<Changed>> {
    let mut mistakes = Mistakes::default();
    let files = Files::new(body.files, &mut mistakes);
    let before = app.organisation.state();
    let digest = files.digest();
    let (version, loaded) = if params.check {
        let checked = app.organisation.check(files, mistakes);
        (None, checked.map_err(ApiError::Organisation)?.into())
    } else {
        let state =
            app.organisation.change(files, mistakes, caller.actor(), OrgSource::Api).await?;
        (Some(state.version.number), state.loaded)
    };
    let differences = difference(&before.loaded, &loaded);
    Ok(Json(Changed {
        version,
        digest,
        mistakes: loaded.warnings.iter().map(view::mistake).collect(),
        differences: differences.into_iter().map(view::difference).collect(),
    }))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ImpactParams {
    /// Mail that was sent then or later: RFC 3339, or how long ago; 30 days unless said.
    #[param(
        pattern = "^([1-9][0-9]?[smhd]|[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?$"
    )]
    since: Option<String>,
}

/// What another version would have meant for the mail that somebody wanted to send. Nothing is
/// changed, and nothing recorded.
#[utoipa::path(post, path = "/api/org/impact", params(ImpactParams), request_body = NewOrg,
    responses((status = 200, body = MailImpact), Problems))]
pub async fn impact(
    State(app): State<App>,
    _: Operator,
    Params(params): Params<ImpactParams>,
    Body(body): Body<NewOrg>,
) -> Result<Json<MailImpact>> {
    let now = clock::now();
    let since = params.since.filter(|it| !it.is_empty());
    let since = since.map_or(Ok(now - BACK), |it| moment("since", &it, now))?;
    let mut mistakes = Mistakes::default();
    let files = Files::new(body.files, &mut mistakes);
    let draft = app.organisation.draft(files, mistakes).map_err(ApiError::Organisation)?.1;
    let authority = app.authority.get();
    let found = impact_on_mail(&app.store, [authority.org(), draft.org()], since).await?;
    Ok(Json(view::mail_impact(found)))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct VersionsParams {
    /// At most 200; 50 unless said.
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(pattern = "^[0-9]{0,18}$")]
    cursor: Option<String>,
}

impl VersionsParams {
    pub fn of(limit: u32, cursor: Option<String>) -> VersionsParams {
        VersionsParams { limit: Some(limit), cursor }
    }
}

/// Every version that was ever in force, the newest first.
#[utoipa::path(get, path = "/api/org/versions", params(VersionsParams),
    responses((status = 200, body = Page<Version>), Problems))]
pub async fn versions(
    State(app): State<App>,
    _: Operator,
    Params(params): Params<VersionsParams>,
) -> Result<Json<Page<Version>>> {
    let cursor = params.cursor.filter(|it| !it.is_empty());
    let before = cursor
        .map(|it| it.parse::<u64>())
        .transpose()
        .map_err(|_| crate::extract::bad_request("`cursor` is not one of ours".to_owned()))?;
    let limit = paging::limit(params.limit);
    let found = app.store.org_versions(before, limit as usize + 1).await?;
    Ok(paging::page(found, limit, |it| it.number.to_string(), view::version))
}

/// One version, with its files.
#[utoipa::path(get, path = "/api/org/versions/{number}", params(("number" = String, Path)),
    responses((status = 200, body = VersionFiles), Problems))]
pub async fn version(
    State(app): State<App>,
    _: Operator,
    Path(number): Path<String>,
) -> Result<Json<VersionFiles>> {
    let missing = || ApiError::NotFound { what: "version", id: number.chars().take(64).collect() };
    let parsed: u64 = number.parse().map_err(|_| missing())?;
    let (version, files) = app.store.org_version(parsed).await?.ok_or_else(missing)?;
    Ok(Json(VersionFiles { version: view::version(version), files }))
}

#[utoipa::path(get, path = "/api/roles", responses((status = 200, body = Page<Role>), Problems))]
pub async fn roles(State(app): State<App>, caller: Caller) -> Result<Json<Page<Role>>> {
    check_reader(&caller)?;
    let org = app.authority.get().org().clone();
    Ok(whole(org.roles().map(|it| view::role(&org, it)).collect()))
}

#[utoipa::path(get, path = "/api/agents", responses((status = 200, body = Page<Agent>), Problems))]
pub async fn agents(State(app): State<App>, caller: Caller) -> Result<Json<Page<Agent>>> {
    check_reader(&caller)?;
    let org = app.authority.get().org().clone();
    Ok(whole(org.agents().map(|(id, it)| view::agent(id, it)).collect()))
}

#[utoipa::path(get, path = "/api/groups", responses((status = 200, body = Page<Group>), Problems))]
pub async fn groups(State(app): State<App>, caller: Caller) -> Result<Json<Page<Group>>> {
    check_reader(&caller)?;
    let org = app.authority.get().org().clone();
    Ok(whole(org.groups.iter().map(|(id, it)| view::group(id, it)).collect()))
}

/// The tools that can be called now.
#[utoipa::path(get, path = "/api/tools", responses((status = 200, body = Page<Tool>), Problems))]
pub async fn tools(State(app): State<App>, caller: Caller) -> Result<Json<Page<Tool>>> {
    check_reader(&caller)?;
    let commands = &app.organisation.state().loaded.tools.commands;
    let authority = app.authority.get();
    let mut items: Vec<Tool> = authority
        .tools()
        .specs()
        .map(|it| view::tool(it, commands.contains_key(&it.name)))
        .collect();
    items.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(whole(items))
}

/// The MCP servers that tools come from, and whether they have come.
#[utoipa::path(get, path = "/api/mcp/servers", responses((status = 200, body = Page<McpServer>), Problems))]
pub async fn mcp_servers(State(app): State<App>, caller: Caller) -> Result<Json<Page<McpServer>>> {
    check_reader(&caller)?;
    let authority = app.authority.get();
    let (tools, state) = (authority.tools(), app.organisation.state());
    let server = |name: &String| {
        let prefix = format!("mcp__{name}__");
        let away = tools.awaited().contains(&&*prefix);
        let names = tools.specs().map(|it| it.name.clone());
        McpServer {
            name: name.clone(),
            state: if away { "unreachable" } else { "connected" }.to_owned(),
            tools: names.filter(|it| it.starts_with(&prefix)).collect(),
        }
    };
    Ok(whole(state.loaded.tools.mcp.keys().map(server).collect()))
}

fn whole<T>(items: Vec<T>) -> Json<Page<T>> {
    Json(Page { items, next_cursor: None })
}

/// An agent learns of others what its tools tell it.
fn check_reader(caller: &Caller) -> Result<()> {
    match caller.actor() {
        Actor::Agent(_) => {
            let detail = "an agent's token does not show the organisation";
            Err(ApiError::Forbidden(detail.to_owned()))
        }
        Actor::User(_) | Actor::Service(_) | Actor::System => Ok(()),
    }
}
