//! The machine surface: is it alive, is it ready, what does it count.

use axum::Json;
use axum::extract::State;
use chancery_api::{Health, Problem};

use crate::access::Caller;
use crate::error::Result;
use crate::router::App;

fn healthy(status: &str) -> Json<Health> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Json(Health { status: status.to_owned(), version })
}

/// The process answers.
#[utoipa::path(get, path = "/healthz", security(()), responses((status = 200, body = Health)))]
pub async fn healthz() -> Json<Health> {
    healthy("ok")
}

/// The store answers too.
#[utoipa::path(get, path = "/readyz", security(()), responses(
    (status = 200, body = Health),
    (status = 503, body = Problem, content_type = "application/problem+json")
))]
pub async fn readyz(State(app): State<App>) -> Result<Json<Health>> {
    app.store.ping().await?;
    Ok(healthy("ready"))
}

/// Counters for Prometheus.
#[utoipa::path(get, path = "/metrics", responses(
    (status = 200, body = String, content_type = "text/plain"),
    (status = 401, body = Problem, content_type = "application/problem+json")
))]
pub async fn metrics(State(app): State<App>, _: Caller) -> Result<String> {
    app.metrics.render(&app.store).await.map_err(Into::into)
}
