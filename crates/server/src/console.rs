//! The console: pages that the server draws. Every page asks the same functions as the JSON
//! routes do, so there is no second rule here; what agents wrote is quoted, never drawn.

mod assets;
mod audit;
mod badge;
mod card;
mod chat;
mod cookie;
mod door;
mod finding;
mod forks;
mod form;
mod help;
mod html;
mod inbox;
mod jump;
mod learned;
mod live;
mod look;
mod lost;
mod mail;
mod matches;
mod meaning;
mod memory;
mod oidc;
mod organisation;
mod page;
mod pattern;
mod refusal;
mod rules;
mod ruling;
mod runs;
mod settings;
mod time;
mod trace;
mod visitor;
mod visits;
mod vouched;
mod waits;
mod welcome;
mod why;
mod wire;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{self, Next};
use axum::response::Redirect;
use axum::routing::{get, post};
use tower_http::compression::CompressionLayer;

use crate::config::CALLBACK;
use crate::error::Result;
use crate::router::App;
use visitor::Visitor;

#[cfg(feature = "fuzz")]
pub use html::{line, markdown, shown};
pub use look::Language;
pub use oidc::Oidc;
pub use page::{Drawn, absent};
pub use settings::About;

/// Everything that a browser is served. `here` is where people reach it.
pub fn router(here: &str) -> Router<App> {
    let here: Arc<str> = here.into();
    Router::new()
        .route("/", get(home))
        .route("/setup", get(door::setup).post(door::enter))
        .route("/signin", get(door::sign_in).post(door::admit))
        .route("/signin/oidc", get(oidc::depart))
        .route(CALLBACK, get(oidc::come_back))
        .route("/signout", post(door::sign_out))
        .route("/welcome", get(welcome::show).post(welcome::choose))
        .route("/inbox", get(inbox::list))
        .route("/inbox/bulk", post(inbox::bulk::decide))
        .route("/inbox/{id}", get(inbox::show))
        .route("/inbox/{id}/again", post(inbox::again::ask))
        .route("/inbox/{id}/decide", post(inbox::decide))
        .route("/inbox/{id}/edit", post(inbox::edit))
        .route("/inbox/{id}/extend", post(inbox::extend::extend))
        .route("/inbox/{id}/ask", post(inbox::ask::ask))
        .route("/inbox/{id}/matches", post(matches::of_question))
        .route("/chat", get(chat::list).post(chat::begin))
        .route("/chat/{key}", get(chat::show).post(chat::say))
        .route("/runs", get(runs::list))
        .route("/runs/{id}", get(runs::show))
        .route("/runs/{id}/export", get(runs::export))
        .route("/runs/{id}/act", post(runs::act))
        .route("/runs/{id}/fork", post(forks::make))
        .route("/mail", get(mail::list).post(mail::send))
        .route("/mail/rejections/{id}", get(mail::rejection))
        .route("/mail/{id}", get(mail::show))
        .route("/contracts", get(mail::all_contracts))
        .route("/contracts/{id}", get(mail::show_contract))
        .route("/contracts/{id}/step", post(mail::transition))
        .route("/org", get(organisation::show))
        .route("/org/history", get(organisation::history::list))
        .route("/org/history/compare", get(organisation::history::compare))
        .route("/org/draft", get(organisation::draft::show).post(organisation::draft::act))
        .route("/memory", get(memory::list))
        .route("/memory/{id}/forget", post(memory::forget))
        .route("/audit", get(audit::list))
        .route("/audit/verify", get(audit::verify))
        .route("/audit/export", get(audit::export))
        .route("/audit/{id}", get(audit::show))
        .route("/rules", get(rules::list))
        .route("/rules/{id}/narrow", post(rules::narrow))
        .route("/rules/{id}/matches", post(matches::of_rule))
        .route("/rules/{id}/revoke", post(rules::revoke))
        .route("/settings", get(settings::show))
        .route("/settings/models/{name}/test", post(settings::test))
        .route("/settings/webhooks/{name}/test", post(settings::notify))
        .route("/settings/visits/end", post(visits::end_others))
        .route("/settings/visits/{id}/end", post(visits::end))
        .route("/settings/tokens", post(settings::tokens::make))
        .route("/settings/tokens/made", get(settings::tokens::made))
        .route("/settings/tokens/{id}/revoke", post(settings::tokens::revoke))
        .route("/help", get(help::show))
        .route("/jump", get(jump::show))
        .route("/ui/look", post(look::change))
        .route("/ui/badge", get(badge::show))
        .route("/ui/events", get(live::events))
        .route("/ui/{file}", get(assets::serve))
        .layer(middleware::from_fn(move |request: Request, next: Next| {
            form::own_origin(here.clone(), request, next)
        }))
        .layer(middleware::from_fn(page::dress))
        .layer(CompressionLayer::new())
}

/// Where something waits, there; on a first visit, where one begins; else where one talks.
async fn home(State(app): State<App>, visitor: Visitor, headers: HeaderMap) -> Result<Redirect> {
    Ok(Redirect::to(match visitor.waiting {
        0 if welcome::is_due(&app, &visitor, &headers).await? => "/welcome",
        0 => "/chat",
        _ => "/inbox",
    }))
}
