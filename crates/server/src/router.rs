//! Every route on one screen: the table of contents.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
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

use crate::answer;
use crate::config::PermissionsConfig;
use crate::console::{self, About, Oidc};
use crate::document;
use crate::error::ApiError;
use crate::mcp;
use crate::metrics::Metrics;
use crate::organisation::Organisation;
use crate::routes::{
    audit, authorize, contracts, forks, health, inquiries, mail, matches, memories, openai, org,
    permissions, rules, runs, signals, steer, tokens, webhooks,
};
use crate::surface::surface;
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

// Each line is a path, with one handler for each method.
surface! {
    health::healthz;
    health::readyz;
    health::metrics;
    runs::create, runs::list;
    runs::show;
    runs::events;
    runs::tree;
    forks::fork;
    steer::cancel;
    steer::pause;
    steer::resume;
    steer::wrapup;
    steer::speak;
    signals::signal;
    // The same under seed 004's name.
    signals::job_signal;
    steer::job_message;
    permissions::list;
    permissions::show;
    permissions::decide;
    permissions::extend;
    matches::of_question;
    inquiries::ask;
    org::show, org::change;
    org::impact;
    org::versions;
    org::version;
    org::roles;
    org::agents;
    org::groups;
    org::tools;
    org::mcp_servers;
    authorize::authorize;
    memories::create, memories::list;
    memories::search;
    memories::export;
    memories::show, memories::forget;
    mail::send;
    mail::rejections;
    mail::rejection;
    mail::check;
    mail::show;
    mail::inbox;
    mail::sent;
    contracts::issue, contracts::list;
    contracts::show;
    contracts::transition;
    rules::list;
    rules::show, rules::revoke;
    rules::narrow;
    matches::of_rule;
    tokens::make, tokens::list;
    tokens::revoke;
    webhooks::list;
    webhooks::deliveries;
    webhooks::test;
    audit::list;
    audit::export;
    audit::verify;
    audit::anchor;
    audit::show;
}

/// Everything that is served.
pub fn router(app: App) -> Router {
    let limit = app.body_bytes;
    let mcp = mcp::door(&app);
    let here = app.public_url.clone();
    surface()
        .merge(document::page())
        .merge(openai::router())
        .merge(console::router(&here))
        .route("/mcp", mcp)
        .fallback(async |State(app): State<App>, request: Request| {
            let drawn = console::absent(&app, request).await;
            drawn.unwrap_or_else(|| ApiError::NoRoute.into_response())
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
