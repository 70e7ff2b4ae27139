//! Those who are told things: who they are, whether they hear it, and the log that says so.

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::webhook::{Delivery, Subscriber, Tried};
use chancery_api::{Page, Problems};
use chancery_runtime::courier;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Operator;
use crate::error::{ApiError, Result};
use crate::extract::{Params, bad_request};
use crate::paging;
use crate::router::App;
use crate::view;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    /// At most 200; 50 unless said.
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(maximum = 9223372036854775807u64)]
    cursor: Option<u64>,
}

/// Every attempt to tell a subscriber something, the newest first.
#[utoipa::path(get, path = "/api/webhooks/deliveries", params(ListParams),
    responses((status = 200, body = Page<Delivery>), Problems))]
pub async fn deliveries(
    State(app): State<App>,
    _: Operator,
    Params(params): Params<ListParams>,
) -> Result<Json<Page<Delivery>>> {
    if params.cursor.is_some_and(|it| i64::try_from(it).is_err()) {
        return Err(bad_request(format!("`cursor` is at most {}", i64::MAX)));
    }
    let limit = paging::limit(params.limit);
    let found = app.store.deliveries(params.cursor, limit + 1).await?;
    Ok(paging::page(found, limit, |it| it.id.to_string(), view::delivery))
}

/// Everybody who is told things: webhooks, letters, a collector of traces.
#[utoipa::path(get, path = "/api/webhooks",
    responses((status = 200, body = Page<Subscriber>), Problems))]
pub async fn list(State(app): State<App>, _: Operator) -> Result<Json<Page<Subscriber>>> {
    let subscriber = |(name, it): (&String, &courier::Subscriber)| Subscriber {
        name: name.clone(),
        kind: it.kind().to_owned(),
    };
    let items = app.subscribers.by_name.iter().map(subscriber).collect();
    Ok(Json(Page { items, next_cursor: None }))
}

/// Tells a subscriber something now, so that a wrong address or secret shows before it matters.
#[utoipa::path(post, path = "/api/webhooks/{name}/test", params(("name" = String, Path)),
    responses((status = 200, body = Tried), Problems))]
pub async fn test(
    State(app): State<App>,
    Operator(caller): Operator,
    Path(name): Path<String>,
) -> Result<Json<Tried>> {
    let tried = courier::try_out(&app.store, &app.subscribers, &name, caller.name()).await?;
    let missing = || ApiError::NotFound { what: "subscriber", id: name.chars().take(64).collect() };
    let courier::Tried { delivery, error } = tried.ok_or_else(missing)?;
    Ok(Json(Tried { subscriber: name, delivery, error }))
}
