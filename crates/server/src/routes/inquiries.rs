//! What somebody wants to know of the agent before they decide. What they ask is recorded first;
//! then the run's model is asked, with no tool in its hand, and what it says is recorded. The run
//! goes on waiting as it waits.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use chancery_api::Problems;
use chancery_api::permission::{Inquire, Permission};
use chancery_domain::command;
use chancery_domain::event::PermissionExplained;
use chancery_domain::history::History;
use chancery_domain::id::{CallId, MessageId, PermissionId, RunId};
use chancery_domain::policy::Spent;
use chancery_runtime::clock;
use chancery_runtime::consult;
use chancery_runtime::gate::on_budget;
use chancery_runtime::journal::SESSION_MAX;
use chancery_store::permission::PermissionRow;

use super::permissions::{visible, whole};
use super::runs::record;
use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::{Body, bad_request, check_text};
use crate::router::App;

/// In characters: something to know before a decision, and not a goal.
const TEXT_MAX: usize = 2000;
/// How long somebody is kept waiting for what the agent says. Proxies give up after a minute; what
/// comes later stands on the card all the same.
const HOLD: Duration = Duration::from_secs(50);

/// Asks the agent something about a call that waits. Decides nothing.
#[utoipa::path(post, path = "/api/permissions/{id}/ask", params(("id" = String, Path)),
    request_body = Inquire, responses((status = 200, body = Permission), Problems))]
pub async fn ask(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<Inquire>,
) -> Result<Json<Permission>> {
    check_text("text", &body.text)?;
    if body.text.chars().count() > TEXT_MAX {
        return Err(bad_request(format!("`text` has at most {TEXT_MAX} characters")));
    }
    let row = visible(&app, &caller, &id).await?;
    // Who may speak into the run may ask, and so may a person who decides for it. A program that
    // decides for others reads no more of their runs than what it is asked, and its agent would tell.
    if caller.run(&app, &row.run.to_string()).await.is_err() {
        if !caller.is_person() {
            let why = "a program asks only agents whose runs it may read: it is a person's to ask";
            return Err(ApiError::Forbidden(why.to_owned()));
        }
        caller.check_decides(&app, &row).await?;
    }
    check_askable(&app, &row).await?;
    let inquiry = clock::new_message_id();
    let (permission, by) = (row.id, caller.actor());
    record(&app, row.run, |history, events| {
        command::inquire(history, events, permission, inquiry, body.text.clone(), by.clone())
    })
    .await?;
    // Whoever asked may go away; what was asked is answered.
    let about = About { run: row.run, permission, call: row.call.id, inquiry };
    let explained = tokio::spawn(explain(app.clone(), about));
    match tokio::time::timeout(HOLD, explained).await {
        Ok(Ok(told)) => told?,
        Ok(Err(_)) => return Err(ApiError::Internal("an agent could not be asked".to_owned())),
        // It stands on the card when it has come.
        Err(_) => {}
    }
    let row = app.store.permission(permission).await?;
    let row = row.ok_or(ApiError::NotFound { what: "permission", id })?;
    Ok(Json(whole(&app, row).await?))
}

/// Somebody is there to answer, and the run has not used up what it may.
async fn check_askable(app: &App, row: &PermissionRow) -> Result<()> {
    let log = app.store.events(row.run, 0, u32::MAX).await?;
    let history = History::fold(row.run, &log).map_err(|it| ApiError::Internal(it.to_string()))?;
    let authority = app.authority.get();
    consult::speaker(&authority, &history)?;
    let spent = log.iter().fold(Spent::default(), |spent, it| spent.after(&it.event));
    let over = on_budget(&app.store, &authority.org().policy.limits, row.run, spent).await?;
    match over.is_empty() {
        true => Ok(()),
        false => Err(ApiError::Denied(over)),
    }
}

/// Which inquiry is about what.
struct About {
    run: RunId,
    permission: PermissionId,
    call: CallId,
    inquiry: MessageId,
}

/// Asks the model and records what it says. A crash before that leaves what was asked without an
/// answer, which is what the card says then.
async fn explain(app: App, about: About) -> Result<()> {
    let About { run, permission, call, inquiry } = about;
    let log = app.store.events(run, 0, u32::MAX).await?;
    let row = app.store.run(run).await?;
    let row = row.ok_or_else(|| ApiError::NotFound { what: "run", id: run.to_string() })?;
    let before = app.store.session_before(&row, SESSION_MAX).await?;
    let authority = app.authority.get();
    let said = tokio::select! {
        biased;
        () = app.stop.cancelled() => return Ok(()),
        said = consult::explain(&authority, &app.models, (run, &log), before, inquiry) => said?,
    };
    let consult::Explanation { text, model, usage } = said;
    let explained = PermissionExplained { call, permission, inquiry, text, model, usage };
    record(&app, run, |history, events| command::explain(history, events, explained.clone())).await
}
