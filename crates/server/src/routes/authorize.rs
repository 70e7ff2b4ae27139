//! `POST /api/authorize`: the gate's word on a call that runs elsewhere. Executes nothing, and
//! answers only when the answer is in the audit.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use chancery_api::Problems;
use chancery_api::permission::{Authorize, Authorized};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::{Actor, Call, Created, Event};
use chancery_domain::id::{AgentId, CallId, RunId, UserId};
use chancery_domain::policy::{Delegation, Reason, Ruling};
use chancery_domain::ways::{self, Asker, Giver, Way};
use chancery_runtime::authority::{Authority, Case, Given, Judgment};
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

/// Runs above one another, and mail that answers mail, are looked through so far and no further:
/// goals are handed on less deep, and mail goes on for ever.
const GIVERS_MAX: usize = 16;

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
    let (tool, aside) = (body.tool, arguments.is_none());
    let user = run.as_ref().map_or(user, |it| it.1.created.user.clone());
    let asked = Asked { agent: AgentId(body.agent), user, tool, arguments, run };
    let ruled = rule(&app, &asked).await?;
    let Judgment { ruling, reasons } = ruled.judgment.clone();
    let id = clock::new_audit_id();
    if ruling == Ruling::Allow {
        counter!("chancery_rulings_allowed_total").increment(1);
    }
    let org = ruled.authority.org();
    // An agent that asks is told what it would be told: not whom it could turn to.
    let is_agent = matches!(caller.actor(), Actor::Agent(_));
    let ways = if is_agent { Vec::new() } else { view::ways(ruled.ways(&asked, &reasons)) };
    let entry = Entry {
        user: Some(asked.user.clone()),
        role: org.role_of(&asked.agent).map(|it| it.id.clone()),
        agent: Some(asked.agent.clone()),
        tool: Some(asked.tool.clone()),
        ruling: Some(ruling),
        run: asked.run.as_ref().map(|it| it.0),
        reasons: reasons.clone(),
        detail: json!({
            "asked": "authorize",
            "arguments_sha256": sha256(asked.arguments.as_ref().unwrap_or(&json!({}))),
            "arguments_aside": aside,
            "org_version": org.version,
        }),
        ..Entry::new(id, kind::RULING, caller.actor())
    };
    app.store.audit(vec![entry], clock::now()).await?;
    Ok(Json(Authorized {
        ruling: ruling.as_str().to_owned(),
        id: id.to_string(),
        reasons: view::reasons(reasons),
        layers: view::reasons(ruled.layers),
        ways,
    }))
}

/// A call that nobody makes.
#[derive(Debug)]
pub struct Asked {
    pub agent: AgentId,
    pub user: UserId,
    pub tool: String,
    /// Absent: they are left aside.
    pub arguments: Option<Value>,
    /// Under this run's delegation and words.
    pub run: Option<(RunId, Said)>,
}

/// What the rules in force say of it.
#[derive(Debug)]
pub struct Ruled {
    pub judgment: Judgment,
    /// Every layer's word.
    pub layers: Vec<Reason>,
    pub authority: Arc<Authority>,
    delegated: Option<Delegation>,
    /// Who gave the run that, where it stands against the call.
    givers: Vec<Giver>,
}

impl Ruled {
    /// What would let the call through that these stand against.
    pub fn ways(&self, asked: &Asked, reasons: &[Reason]) -> Vec<Way> {
        let who = Asker {
            policy: self.authority.policy(),
            agent: asked.agent.as_str(),
            user: asked.user.as_str(),
            delegated: self.delegated.as_ref(),
            givers: &self.givers,
        };
        ways::of_call(&who, &asked.tool, asked.arguments.as_ref().unwrap_or(&Value::Null), reasons)
    }
}

/// Rules on a call that nobody makes. Nothing is recorded by that.
pub async fn rule(app: &App, asked: &Asked) -> Result<Ruled> {
    let given = if asked.arguments.is_some() { Given::Whole } else { Given::Aside };
    let arguments = asked.arguments.clone().unwrap_or_else(|| json!({}));
    let call = Call { id: CallId::from("call"), tool: asked.tool.clone(), arguments };
    let authority = app.authority.get();
    let Asked { agent, user, .. } = asked;
    let run = asked.run.as_ref();
    let delegated = run.and_then(|it| authority.delegation(&it.1.created));
    let limits = limits(app, &authority, agent, &call.tool, run.map(|it| (it.0, &it.1))).await?;
    let under = run.and_then(|it| it.1.created.contract.as_ref());
    let warrant = app.store.warrant(agent, under).await?;
    let prospect = Prospect { agent, user, org: authority.org(), contract: under };
    let record = authority.tools().foreseen(&call, &prospect).await?;
    let (judgment, layers) = authority.explain(Case {
        agent: agent.as_str(),
        user: user.as_str(),
        delegated: delegated.as_ref(),
        call: &call,
        given,
        task: run.and_then(|it| it.1.literals(&authority)).as_ref(),
        now: clock::now(),
        warrant: &warrant,
        record: record.as_ref(),
        limits: &limits,
    });
    let refuses = delegated.as_ref().is_some_and(|it| !it.bounds().permits(&call.tool));
    let givers = match run.filter(|_| refuses) {
        Some((_, said)) => givers(app, &said.created).await?,
        None => Vec::new(),
    };
    Ok(Ruled { judgment, layers, authority, delegated, givers })
}

/// Who gave a run what it has, the nearest first, up to whoever started the first of them.
async fn givers(app: &App, created: &Created) -> Result<Vec<Giver>> {
    let (mut created, mut found) = (created.clone(), Vec::new());
    for _ in 0..GIVERS_MAX {
        let by = std::mem::replace(&mut created.by, Actor::System);
        if let (Some(run), Actor::Agent(agent)) = (created.parent, &by) {
            created = beginning(app, run).await?;
            found.push(Giver::Above { agent: agent.clone(), run, had: created.delegated.clone() });
            continue;
        }
        // What goes on from another run, or answers its mail, has what that one was given.
        let mail = match created.mails.first() {
            Some(id) => app.store.mail(id).await?.and_then(|it| it.run),
            None => None,
        };
        match created.forked.as_ref().map(|it| it.run).or(mail) {
            Some(run) => created = beginning(app, run).await?,
            None => {
                found.push(Giver::Starter(view::actor(&by)));
                break;
            }
        }
    }
    Ok(found)
}

async fn beginning(app: &App, run: RunId) -> Result<Created> {
    let first = app.store.events(run, 0, 1).await?.into_iter().next();
    match first.map(|it| it.event) {
        Some(Event::Created(created)) => Ok(created),
        _ => Err(ApiError::Internal(format!("{run} has no beginning"))),
    }
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
