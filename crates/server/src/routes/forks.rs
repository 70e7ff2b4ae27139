//! A run that goes on from another one's log. It is asked for as every run is, of the same agent,
//! for the same person and within the same delegation; what it begins with is folded by
//! `chancery_runtime::fork`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use chancery_api::Problems;
use chancery_api::run::{CarriedCall, CreateRun, DroppedCall, Fork, ForkRun, Run};
use chancery_domain::event::Created;
use chancery_domain::history::History;
use chancery_runtime::fork::{self, Beginning, Known, Wanted};
use chancery_runtime::journal::SESSION_MAX;

use super::runs::{created, idempotency_key, one, place, put};
use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::{Body, bad_request, check_text};
use crate::router::App;
use crate::view;

/// Goes on from a run's log as a run of its own. What had ended there is not done again; nothing
/// that was granted there counts here.
#[utoipa::path(post, path = "/api/runs/{id}/fork", request_body = ForkRun,
    params(("id" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "the same key and body make the same run",
            min_length = 1, max_length = 255, pattern = "^[ -~]+$")),
    responses((status = 201, body = Fork), Problems))]
pub async fn fork(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(body): Body<ForkRun>,
) -> Result<(StatusCode, Json<Fork>)> {
    let at = place("at", body.at)?;
    if at == Some(0) {
        return Err(bad_request("`at` is at least 1, the first event".to_owned()));
    }
    body.input.as_deref().map_or(Ok(()), |it| check_text("input", it))?;
    let row = caller.run(&app, &id).await?;
    let log = app.store.events(row.id, 0, u32::MAX).await?;
    let before = app.store.session_before(&row, SESSION_MAX).await?;
    let by = caller.actor();
    let says = body.input.as_deref().map(|text| (text, &by));
    let begins = fork::begin(row.id, &log, before, Wanted { at, says })?;
    let origin = History::fold(row.id, &log).map_err(|it| ApiError::Internal(it.to_string()))?;
    let created = gone_on(&app, &caller, origin.created(), begins)?;
    let key = idempotency_key(&caller, &headers, &(row.id.to_string(), &body))?;
    let made = put(&app, created, key).await?;
    // The same request may have made it before, from a shorter log.
    let first = app.store.events(made, 0, 1).await?;
    let forked = view::forked(&first);
    let forked =
        forked.ok_or_else(|| ApiError::Internal(format!("{made} goes on from nothing")))?;
    let (carried, dropped) = told(fork::known(&log, forked.at));
    let forked_from = Some(view::forked_from(forked));
    let run = Run { forked_from, ..one(&app, made).await? };
    Ok((StatusCode::CREATED, Json(Fork { run, carried, dropped })))
}

/// What the new run is made with: the caller may ask for such a run today, and it is given no more
/// than the other one was.
fn gone_on(
    app: &App,
    caller: &Caller,
    origin: &Created,
    Beginning { input, persons_words, forked }: Beginning,
) -> Result<Created> {
    let asked = CreateRun {
        agent: Some(origin.agent.0.clone()),
        input,
        user: Some(origin.user.0.clone()),
        project: origin.project.as_ref().map(|it| it.0.clone()),
        ..CreateRun::default()
    };
    Ok(Created {
        // Invariant: as it stands. To resolve it anew could find tools that have come since.
        delegated: origin.delegated.clone(),
        // Without it, all that its agent holds would be open.
        contract: origin.contract.clone(),
        persons_words,
        forked: Some(Arc::new(forked)),
        ..created(app, caller, &asked)?
    })
}

pub fn told(known: Vec<Known>) -> (Vec<CarriedCall>, Vec<DroppedCall>) {
    let (carried, dropped): (Vec<_>, Vec<_>) = known.into_iter().partition(|it| it.carried);
    let carried = carried
        .into_iter()
        .map(|it| CarriedCall { tool_call_id: it.call.id.0.clone(), tool: it.call.tool.clone() });
    let dropped = dropped.into_iter().map(|it| DroppedCall {
        tool_call_id: it.call.id.0.clone(),
        tool: it.call.tool.clone(),
        ran: it.ran,
        asked: it.asked,
    });
    (carried.collect(), dropped.collect())
}
