//! What a person may do to a run under way: speak into it, let it rest, let it come to an end.

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::Problems;
use chancery_api::run::{Run, Speak};
use chancery_domain::command::{self, Effect, Refusal};
use chancery_domain::event::{Actor, Recorded};
use chancery_domain::history::History;
use chancery_domain::id::AgentId;
use chancery_runtime::clock;
use chancery_runtime::escalation::cancel_orphans;

use super::runs::amend;
use crate::access::Caller;
use crate::error::Result;
use crate::extract::{Body, check_text};
use crate::router::App;

/// Changes a run that the caller may know of, in their name.
async fn steer(
    app: &App,
    caller: &Caller,
    id: &str,
    decide: impl Fn(History, &[Recorded], Actor) -> std::result::Result<Effect, Refusal>,
) -> Result<Json<Run>> {
    let row = caller.run(app, id).await?;
    amend(app, row.id, |history, events| decide(history, events, caller.actor())).await
}

/// Ends a run. One that is cancelled already stays so.
#[utoipa::path(post, path = "/api/runs/{id}/cancel", params(("id" = String, Path)),
    responses((status = 200, body = Run), Problems))]
pub async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Run>> {
    let cancelled = steer(&app, &caller, &id, |history, _, by| command::cancel(history, by)).await;
    // Those beneath it end, too: now, if nothing comes between, or a moment later.
    while matches!(cancel_orphans(&app.store).await, Ok(true)) {}
    cancelled
}

/// Goes on with a run that is paused, or that failed at the model.
#[utoipa::path(post, path = "/api/runs/{id}/resume", params(("id" = String, Path)),
    responses((status = 200, body = Run), Problems))]
pub async fn resume(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Run>> {
    steer(&app, &caller, &id, |history, _, by| command::resume(history, by)).await
}

/// Says something into a run; the model reads it before it speaks next.
#[utoipa::path(post, path = "/api/runs/{id}/messages", params(("id" = String, Path)), request_body = Speak,
    responses((status = 200, body = Run), Problems))]
pub async fn speak(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<Speak>,
) -> Result<Json<Run>> {
    check_text("text", &body.text)?;
    let (message, to) = (clock::new_message_id(), body.to.map(AgentId));
    steer(&app, &caller, &id, |history, _, by| {
        command::speak(history, message, body.text.clone(), to.clone(), by)
    })
    .await
}

/// `/api/runs/{id}/messages` under its other name.
#[utoipa::path(post, path = "/api/jobs/{id}/message", params(("id" = String, Path)), request_body = Speak,
    responses((status = 200, body = Run), Problems))]
pub async fn job_message(
    app: State<App>,
    caller: Caller,
    id: Path<String>,
    body: Body<Speak>,
) -> Result<Json<Run>> {
    speak(app, caller, id, body).await
}

/// Lets a run rest before its next step; `resume` goes on with it.
#[utoipa::path(post, path = "/api/runs/{id}/pause", params(("id" = String, Path)),
    responses((status = 200, body = Run), Problems))]
pub async fn pause(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Run>> {
    steer(&app, &caller, &id, |history, _, by| command::pause(history, by)).await
}

/// Asks a run to come to an end with what it has. In a group the lead has the last word.
#[utoipa::path(post, path = "/api/runs/{id}/wrapup", params(("id" = String, Path)),
    responses((status = 200, body = Run), Problems))]
pub async fn wrapup(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Run>> {
    steer(&app, &caller, &id, command::wrap_up).await
}
