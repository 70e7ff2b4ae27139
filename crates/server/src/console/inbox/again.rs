//! A question that nobody answered in time: the agent is told that it may ask again. It is said as
//! anybody in the talk would say it; the call is ruled on and asked about like any other.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::run::Speak;
use chancery_store::read::RunRow;
use serde::Deserialize;

use crate::console::chat;
use crate::console::form::Signed;
use crate::console::page::segment;
use crate::console::visitor::Visitor;
use crate::console::words::fill;
use crate::error::{ApiError, Result};
use crate::extract::Body;
use crate::router::App;
use crate::routes::{permissions, steer};

#[derive(Debug, Deserialize)]
pub struct Nothing {}

pub async fn ask(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, .. }: Signed<Nothing>,
) -> Result<Response> {
    let row = permissions::visible(&app, &visitor.caller, &id).await?;
    if row.status != "expired" {
        let detail = visitor.words().again_not_expired.to_owned();
        return Err(ApiError::Conflict { code: "not_expired", detail });
    }
    let run = visitor.caller.run(&app, &row.run.to_string()).await?;
    let text = fill(visitor.words().again_text, &[("tool", &row.call.tool)]);
    let back = say(&app, &visitor, run, text).await?;
    Ok(Redirect::to(&back).into_response())
}

/// Says it in the run if that goes on, else in what led to it, else in its thread.
async fn say(app: &App, visitor: &Visitor, run: RunRow, text: String) -> Result<String> {
    let mut run = run;
    while run.ended_at.is_some() {
        let Some(parent) = run.parent else { break };
        run = visitor.caller.run(app, &parent.to_string()).await?;
    }
    if run.ended_at.is_none() {
        let (at, body) = (Path(run.id.to_string()), Body(Speak { text, to: None }));
        let spoken = steer::speak(State(app.clone()), visitor.caller.clone(), at, body).await;
        let Json(_) = spoken?;
        return Ok(format!("/runs/{}", run.id));
    }
    let Some(key) = run.session_key.map(|it| it.0) else {
        let detail = visitor.words().again_over.to_owned();
        return Err(ApiError::Conflict { code: "run_ended", detail });
    };
    let back = format!("/chat/{}", segment(&key));
    chat::speak(app, visitor, key, text).await?;
    Ok(back)
}
