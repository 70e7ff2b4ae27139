//! Signals: the outside facts that end a wait, whether for a signal or for a person's word.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use chancery_api::Problems;
use chancery_api::run::{Signal, Signalled};
use chancery_domain::command;
use chancery_domain::id::WaitKey;

use crate::access::Caller;
use crate::error::Result;
use crate::extract::{Body, check_depth};
use crate::router::App;
use crate::routes::permissions;
use crate::routes::runs::{one, record};

/// Ends the wait that the key names. Delivered again, it answers the same and changes nothing.
/// Whoever may read the run is shown all of it.
#[utoipa::path(post, path = "/api/runs/{id}/signal", params(("id" = String, Path)), request_body = Signal,
    responses((status = 200, body = Signalled), Problems))]
pub async fn signal(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<Signal>,
) -> Result<Response> {
    check_depth("payload", &body.payload)?;
    let (key, by) = (WaitKey(body.correlation_key), caller.actor());
    // Whoever may answer a question may do it through this door too, and nobody else.
    let run = match key.is_reserved() {
        false => caller.run_to_signal(&app, &id).await?.id,
        true => permissions::decidable(&app, &caller, &id, &key).await?,
    };
    record(&app, run, |history, events| {
        command::signal(history, events, &key, body.payload.clone(), by.clone())
    })
    .await?;
    let run = one(&app, run).await?;
    // What was said and done in a run is not for everyone who may answer it.
    Ok(match caller.sees()? {
        Some(own) if own.as_str() != run.user => {
            let (id, status, waiting_for) = (run.id, run.status, run.waiting_for);
            Json(Signalled { id, status, waiting_for }).into_response()
        }
        _ => Json(run).into_response(),
    })
}

/// `/api/runs/{id}/signal` under its other name.
#[utoipa::path(post, path = "/api/jobs/{id}/signal", params(("id" = String, Path)), request_body = Signal,
    responses((status = 200, body = Signalled), Problems))]
pub async fn job_signal(
    app: State<App>,
    caller: Caller,
    id: Path<String>,
    body: Body<Signal>,
) -> Result<Response> {
    signal(app, caller, id, body).await
}
