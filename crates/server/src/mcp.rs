//! `/mcp`: agents outside reach the tools of their role, over streamable HTTP.
//!
//! With `mcp/*`, the only place that knows the server's side of `rmcp`. Decides nothing: what is
//! listed is what the authority offers, and a call is a run of its own whose one call meets the
//! gate like a model's. Keeps nothing in memory either: there are no sessions, and any server of
//! several answers any request.

mod answer;
mod call;
mod follow;
mod resources;
mod standing;
mod tools;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any};
use chancery_domain::id::PermissionId;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::access::Outsider;
use crate::config::OnAsk;
use crate::error::ApiError;
use crate::extract;
use crate::router::App;

/// A sentence of rmcp's is no longer than this.
const SENTENCE_MAX: usize = 4096;

/// On which terms agents outside call tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    pub on_ask: OnAsk,
    /// How long a call is waited for before it is answered as pending.
    pub wait: Duration,
    /// Where people reach this server.
    pub url: String,
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
}

impl Terms {
    /// Where a person answers a question.
    fn link(&self, permission: PermissionId) -> String {
        format!("{}/inbox/{permission}", self.url)
    }
}

/// What is served at `/mcp`.
pub fn door(app: &App) -> MethodRouter<App> {
    let terms = &app.mcp;
    // Sessions would be in this process's memory alone; nothing here needs one.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_max_request_body_bytes(app.body_bytes)
        .with_allowed_hosts(terms.hosts.clone())
        .with_allowed_origins(terms.origins.clone())
        .enforce_origin_validation();
    let (made_for, limit) = (app.clone(), app.body_bytes);
    let service = StreamableHttpService::new(
        move || Ok(Door { app: made_for.clone() }),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    any(async move |outsider: Outsider, request: Request| {
        let (mut parts, body) = request.into_parts();
        parts.extensions.insert(outsider);
        let body = extract::whole(body, limit).await?;
        if parts.method == Method::POST && serde_json::from_slice::<IgnoredAny>(&body).is_err() {
            return Ok(unreadable());
        }
        let answered = service.handle(Request::from_parts(parts, Body::from(body))).await;
        Ok::<Response, ApiError>(said(answered.map(Body::new)).await)
    })
}

/// What is no JSON is told in the protocol's own words: clients look for them there.
fn unreadable() -> Response {
    let error = json!({"code": ErrorCode::PARSE_ERROR.0, "message": "the body is not JSON"});
    let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// What rmcp refuses in plain words is a problem like any other; what it says in JSON is the
/// protocol's own, and is left as it is.
async fn said(response: Response) -> Response {
    let status = response.status();
    let json = response.headers().get(CONTENT_TYPE).is_some_and(|it| it == "application/json");
    if json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let text = to_bytes(response.into_body(), SENTENCE_MAX).await.unwrap_or_default();
    let detail = String::from_utf8_lossy(&text).into_owned();
    ApiError::Protocol { status, detail }.into_response()
}

/// One request's side of the protocol.
#[derive(Debug)]
struct Door {
    app: App,
}

type Answered<T> = std::result::Result<T, ErrorData>;

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("chancery", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Answered<ListToolsResult> {
        let outsider = outsider(&context)?;
        tools::list(&self.app, &outsider).map_err(told)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Answered<CallToolResponse> {
        let outsider = outsider(&context)?;
        call::call(&self.app, &outsider, params, &context).await.map_err(told)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Answered<ListResourcesResult> {
        resources::list(&self.app, &outsider(&context)?).await.map_err(told)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Answered<ListResourceTemplatesResult> {
        outsider(&context)?;
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Answered<ReadResourceResponse> {
        resources::read(&self.app, &outsider(&context)?, params.uri).await.map_err(told)
    }
}

const INSTRUCTIONS: &str = "These are the tools of your role. Every call is ruled on by the \
    organisation's rules before it runs: it may be refused, or wait until a person has answered. \
    A refusal says which rule it stands on; to make the same call again changes nothing. Give a \
    call a key of your own in `_meta`, `chancery/idempotency_key`, and to make it again with that \
    key gives its result instead of running it twice.";

/// Who calls: put there by [`door`], which nothing passes without a token.
fn outsider(context: &RequestContext<RoleServer>) -> Answered<Outsider> {
    let parts = context.extensions.get::<Parts>();
    let found = parts.and_then(|it| it.extensions.get::<Outsider>()).cloned();
    found.ok_or_else(|| ErrorData::internal_error("nobody is calling", None))
}

/// The sentence of an error, in the protocol's form.
fn told(error: ApiError) -> ErrorData {
    let (problem, message) = (error.problem(), Cow::Owned(error.problem().detail));
    match problem.status {
        404 => ErrorData::resource_not_found(message, None),
        400..500 => ErrorData::invalid_params(message, None),
        _ => {
            error.log();
            ErrorData::internal_error(message, None)
        }
    }
}
