//! `POST /api/authorize`: the gate's word on a call that runs elsewhere. Executes nothing, and
//! answers only when the answer is in the audit.

use axum::Json;
use axum::extract::State;
use chancery_api::Problems;
use chancery_api::permission::{Authorize, Authorized};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::{Call, Created, Event};
use chancery_domain::id::{AgentId, CallId, RunId};
use chancery_domain::policy::{Fitness, Ruling};
use chancery_runtime::authority::Case;
use chancery_runtime::clock;
use chancery_runtime::gate::arguments_sha256;
use metrics::counter;
use serde_json::{Value, json};

use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::{Body, bad_request, check_depth, check_name};
use crate::router::App;
use crate::view;

/// What would be ruled on a call, with every layer's word.
#[utoipa::path(post, path = "/api/authorize", request_body = Authorize,
    responses((status = 200, body = Authorized), Problems))]
pub async fn authorize(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<Authorize>,
) -> Result<Json<Authorized>> {
    check_name("agent", &body.agent)?;
    check_name("tool", &body.tool)?;
    let user = caller.asks_for(body.user.as_deref(), &AgentId(body.agent.clone()))?;
    let run = match &body.run {
        Some(run) => Some(beginning(&app, caller.run(&app, run).await?.id).await?),
        None => None,
    };
    let arguments = match &body.arguments {
        Some(given @ Value::Object(_)) => {
            check_depth("arguments", given)?;
            Some(given.clone())
        }
        Some(_) => return Err(bad_request("`arguments` is an object".to_owned())),
        None => None,
    };
    // Arguments that nobody gave are not held against the schema.
    let aside = arguments.is_none().then_some(Fitness::Fits);
    let arguments = arguments.unwrap_or_else(|| json!({}));
    let call = Call { id: CallId::from("call"), tool: body.tool, arguments };
    let authority = app.authority.get();
    let user = run.as_ref().map_or(user, |it| it.1.user.clone());
    let delegated = run.as_ref().and_then(|it| authority.delegation(&it.1));
    let (judgment, layers) = authority.explain(Case {
        agent: &body.agent,
        user: user.as_str(),
        delegated: delegated.as_ref(),
        call: &call,
        unfit: aside.as_ref().filter(|_| authority.tools().spec(&call.tool).is_some()),
        limits: &[],
    });
    let id = clock::new_audit_id();
    if judgment.ruling == Ruling::Allow {
        counter!("chancery_rulings_allowed_total").increment(1);
    }
    let entry = Entry {
        user: Some(user),
        role: authority.org().role_of(&AgentId(body.agent.clone())).map(|it| it.id.clone()),
        agent: Some(AgentId(body.agent)),
        tool: Some(call.tool.clone()),
        ruling: Some(judgment.ruling),
        run: run.map(|it| it.0),
        reasons: judgment.reasons.clone(),
        detail: json!({
            "asked": "authorize",
            "arguments_sha256": arguments_sha256(&call.arguments),
            "org_version": authority.org().version,
        }),
        ..Entry::new(id, kind::RULING, caller.actor())
    };
    app.store.audit(vec![entry], clock::now()).await?;
    Ok(Json(Authorized {
        ruling: judgment.ruling.as_str().to_owned(),
        id: id.to_string(),
        reasons: view::reasons(judgment.reasons),
        layers: view::reasons(layers),
    }))
}

async fn beginning(app: &App, run: RunId) -> Result<(RunId, Created)> {
    let events = app.store.events(run, 0, 1).await?;
    match events.into_iter().next().map(|it| it.event) {
        Some(Event::Created(created)) => Ok((run, created)),
        _ => Err(ApiError::Internal(format!("{run} has no beginning"))),
    }
}
