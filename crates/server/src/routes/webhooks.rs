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
