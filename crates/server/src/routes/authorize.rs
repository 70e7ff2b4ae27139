//! `POST /api/authorize`: the gate's word on a call that runs elsewhere. Executes nothing, and
//! answers only when the answer is in the audit.

use axum::Json;
use axum::extract::State;
use chancery_api::Problems;
use chancery_api::permission::{Authorize, Authorized};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::{Call, Created, Event};
use chancery_domain::id::{AgentId, CallId, RunId};
use chancery_domain::policy::{Reason, Ruling};
use chancery_runtime::authority::{Authority, Case, Given};
use chancery_runtime::clock;
use chancery_runtime::context::Context;
use chancery_runtime::digest::sha256;
use chancery_runtime::gate::{on_budget, on_rate};
use chancery_runtime::rules::Literals;
use chancery_runtime::tool::Prospect;
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
        Some(run) => {
            let id = caller.run(&app, run).await?.id;
            Some((id, Said::of(&app, id).await?))
        }
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
    let given = if arguments.is_some() { Given::Whole } else { Given::Aside };
    let arguments = arguments.unwrap_or_else(|| json!({}));
    let call = Call { id: CallId::from("call"), tool: body.tool, arguments };
    let authority = app.authority.get();
    let user = run.as_ref().map_or(user, |it| it.1.created.user.clone());
    let delegated = run.as_ref().and_then(|it| authority.delegation(&it.1.created));
    let agent = AgentId(body.agent.clone());
    let limits =
        limits(&app, &authority, &agent, &call.tool, run.as_ref().map(|it| (it.0, &it.1))).await?;
    let under = run.as_ref().and_then(|it| it.1.created.contract.as_ref());
    let warrant = app.store.warrant(&agent, under).await?;
    let prospect = Prospect { agent: &agent, user: &user, org: authority.org(), contract: under };
    let record = authority.tools().foreseen(&call, &prospect).await?;
    let (judgment, layers) = authority.explain(Case {
        agent: &body.agent,
        user: user.as_str(),
        delegated: delegated.as_ref(),
        call: &call,
        given,
        task: run.as_ref().and_then(|it| it.1.literals(&authority)).as_ref(),
        now: clock::now(),
        warrant: &warrant,
        record: record.as_ref(),
        limits: &limits,
    });
    let id = clock::new_audit_id();
    if judgment.ruling == Ruling::Allow {
        counter!("chancery_rulings_allowed_total").increment(1);
    }
    let entry = Entry {
        user: Some(user),
        role: authority.org().role_of(&agent).map(|it| it.id.clone()),
        agent: Some(agent),
        tool: Some(call.tool.clone()),
        ruling: Some(judgment.ruling),
        run: run.map(|it| it.0),
        reasons: judgment.reasons.clone(),
        detail: json!({
            "asked": "authorize",
            "arguments_sha256": sha256(&call.arguments),
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

/// What budgets and rates say of one more call. Looking takes no turn.
pub async fn limits(
    app: &App,
    authority: &Authority,
    agent: &AgentId,
    tool: &str,
    run: Option<(RunId, &Said)>,
) -> Result<Vec<Reason>> {
    let limits = &authority.org().policy.limits;
    let mut said = match run {
        Some((run, it)) => on_budget(&app.store, limits, run, it.context.spent()).await?,
        None => Vec::new(),
    };
    said.extend(on_rate(&app.store, limits, agent, tool, 0).await?);
    Ok(said)
}

/// What a run was made with, and what its person said in it.
#[derive(Debug)]
pub struct Said {
    pub created: Created,
    context: Context,
}

impl Said {
    pub async fn of(app: &App, run: RunId) -> Result<Said> {
        let events = app.store.events(run, 0, u32::MAX).await?;
        let Some(Event::Created(created)) = events.first().map(|it| it.event.clone()) else {
            return Err(ApiError::Internal(format!("{run} has no beginning")));
        };
        let mut context = Context::new(created.clone(), Vec::new());
        events.iter().for_each(|it| context.follow(&it.event));
        Ok(Said { created, context })
    }

    /// Absent where no rule asks for them.
    pub fn literals(&self, authority: &Authority) -> Option<Literals> {
        authority.has_rules().then(|| Literals::of(self.context.persons_words()))
    }
}
