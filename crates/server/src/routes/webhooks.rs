//! The delivery log: why a subscriber was told, or was not.

use axum::Json;
use axum::extract::State;
use chancery_api::webhook::Delivery;
use chancery_api::{Page, Problems};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Operator;
use crate::error::Result;
use crate::extract::{Params, bad_request};
use crate::router::App;
use crate::view;

const LIST_MAX: u32 = 200;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    /// At most 200; 50 unless said.
    #[param(maximum = 4294967295u32)]
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
    let limit = params.limit.unwrap_or(50).clamp(1, LIST_MAX);
    let mut found = app.store.deliveries(params.cursor, limit + 1).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| more).map(|it| it.id.to_string());
    let items = found.into_iter().map(view::delivery).collect();
    Ok(Json(Page { items, next_cursor }))
}
