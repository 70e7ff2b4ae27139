//! What somebody wants to know of the agent before they decide: asked from the card, and answered
//! on it.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::permission::Inquire;
use serde::Deserialize;

use crate::console::form::{Signed, back_or};
use crate::error::Result;
use crate::extract::Body;
use crate::router::App;
use crate::routes::inquiries;

#[derive(Debug, Deserialize)]
pub struct Wanted {
    text: String,
    #[serde(default)]
    back: String,
}

pub async fn ask(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Wanted>,
) -> Result<Response> {
    let back = back_or(&form.back, &format!("/inbox/{id}")).to_owned();
    let wanted = Body(Inquire { text: form.text });
    let Json(_) = inquiries::ask(State(app), visitor.caller, Path(id), wanted).await?;
    Ok(Redirect::to(&back).into_response())
}
