//! More time for a question, by one press: as long again as it had at first.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::permission::Extend;
use serde::Deserialize;

use crate::console::form::{Signed, back_or};
use crate::error::Result;
use crate::extract::Body;
use crate::router::App;
use crate::routes::permissions;

#[derive(Debug, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    back: String,
}

pub async fn extend(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Wanted>,
) -> Result<Response> {
    let back = back_or(&form.back, &format!("/inbox/{id}")).to_owned();
    let longer = Body(Extend::default());
    let Json(_) = permissions::extend(State(app), visitor.caller, Path(id), longer).await?;
    Ok(Redirect::to(&back).into_response())
}
