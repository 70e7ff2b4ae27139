//! Every route on one screen: the table of contents.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware;
use axum::response::IntoResponse;
use chancery_runtime::authority::InForce;
use chancery_runtime::courier::Subscribers;
use chancery_runtime::embedding::Memories;
use chancery_runtime::mailroom::Mailroom;
use chancery_runtime::model::Models;
use chancery_store::Store;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer;
use crate::config::PermissionsConfig;
use crate::console::{self, About, Oidc};
use crate::document::{self, Document};
use crate::error::ApiError;
use crate::mcp;
use crate::metrics::Metrics;
use crate::organisation::Organisation;
use crate::routes::{
    audit, authorize, contracts, forks, health, inquiries, mail, memories, openai, org,
    permissions, rules, runs, signals, steer, tokens, webhooks,
};
use crate::turnstile::Turnstile;

/// What handlers work with.
#[derive(Debug, Clone)]
pub struct App {
    pub store: Store,
    pub memories: Memories,
    pub authority: InForce,
    pub organisation: Organisation,
    pub mailroom: Mailroom,
    /// On which terms people are asked.
    pub permissions: PermissionsConfig,
    pub models: Arc<Models>,
    /// How long OpenAI's clients are kept waiting for a person.
    pub pause_hold: Duration,
    /// Where people reach this server.
    pub public_url: String,
    /// Those who are told things.
    pub subscribers: Arc<Subscribers>,
    /// On which terms agents outside call tools.
    pub mcp: mcp::Terms,
    pub metrics: Metrics,
    /// How often somebody may come.
    pub turnstile: Turnstile,
    /// Who vouches for people, if somebody does.
    pub oidc: Option<Arc<Oidc>>,
    /// What this server is, for people to read.
    pub about: Arc<About>,
    /// Fires when the server stops: open streams end then.
    pub stop: CancellationToken,
    pub body_bytes: usize,
}

impl App {
    /// Whether people reach this server over TLS, whatever it speaks itself.
    pub fn is_tls(&self) -> bool {
        self.public_url.starts_with("https://")
    }

    /// Whether anybody is there to answer what others' agents ask.
    pub fn has_approver(&self) -> bool {
        let vouched = self.oidc.as_ref().is_some_and(|it| it.config.names_approvers());
        vouched || self.authority.get().org().has_approver()
    }
}

/// Everything that is served.
pub fn router(app: App) -> Router {
    let limit = app.body_bytes;
    let mcp = mcp::door(&app);
    let here = app.public_url.clone();
    let (router, document) = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(runs::create, runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(runs::events))
        .routes(routes!(runs::tree))
        .routes(routes!(forks::fork))
        .routes(routes!(steer::cancel))
        .routes(routes!(steer::pause))
        .routes(routes!(steer::resume))
        .routes(routes!(steer::wrapup))
        .routes(routes!(steer::speak))
        .routes(routes!(signals::signal))
        // The same under seed 004's name.
        .routes(routes!(signals::job_signal))
        .routes(routes!(steer::job_message))
        .routes(routes!(permissions::list))
        .routes(routes!(permissions::show))
        .routes(routes!(permissions::decide))
        .routes(routes!(permissions::extend))
        .routes(routes!(inquiries::ask))
        .routes(routes!(org::show, org::change))
        .routes(routes!(org::versions))
        .routes(routes!(org::version))
        .routes(routes!(org::roles))
        .routes(routes!(org::agents))
        .routes(routes!(org::groups))
        .routes(routes!(org::tools))
        .routes(routes!(org::mcp_servers))
        .routes(routes!(authorize::authorize))
        .routes(routes!(memories::create, memories::list))
        .routes(routes!(memories::search))
        .routes(routes!(memories::export))
        .routes(routes!(memories::show, memories::forget))
        .routes(routes!(mail::send))
        .routes(routes!(mail::rejections))
        .routes(routes!(mail::check))
        .routes(routes!(mail::show))
        .routes(routes!(mail::inbox))
        .routes(routes!(mail::sent))
        .routes(routes!(contracts::issue, contracts::list))
        .routes(routes!(contracts::show))
        .routes(routes!(contracts::transition))
        .routes(routes!(rules::list))
        .routes(routes!(rules::show, rules::revoke))
        .routes(routes!(rules::narrow))
        .routes(routes!(tokens::make, tokens::list))
        .routes(routes!(tokens::revoke))
        .routes(routes!(webhooks::list))
        .routes(routes!(webhooks::deliveries))
        .routes(routes!(webhooks::test))
        .routes(routes!(audit::list))
        .routes(routes!(audit::export))
        .routes(routes!(audit::verify))
        .routes(routes!(audit::anchor))
        .routes(routes!(audit::show))
        .split_for_parts();
    router
        .merge(document::page(document))
        .merge(openai::router())
        .merge(console::router(&here))
        .route("/mcp", mcp)
        .fallback(async |request: Request| {
            console::absent(&request).unwrap_or_else(|| ApiError::NoRoute.into_response())
        })
        .method_not_allowed_fallback(async |request: Request| {
            ApiError::Method(request.method().to_string())
        })
        .layer(DefaultBodyLimit::max(limit))
        .layer(CatchPanicLayer::custom(|_| {
            ApiError::Internal("a handler panicked".to_owned()).into_response()
        }))
        .layer(middleware::from_fn(answer::finish))
        .with_state(app)
}
