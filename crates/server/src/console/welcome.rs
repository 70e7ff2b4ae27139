//! The first visit in four steps: who one is, an organisation, a model, and a first answer. Each
//! can be left out, and all of it is done elsewhere, too.

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::org::{Mistake, NewOrg};
use chancery_domain::policy::{Fitness, Question, Ruling};
use chancery_store::read::RunFilter;
use serde::Deserialize;

use super::audit::operator;
use super::finding::{Finding, findings};
use super::form::Signed;
use super::look::cookie;
use super::page::{Frame, Room, draw, set_cookie};
use super::settings::Model;
use super::visitor::Visitor;
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params, bad_request};
use crate::organisation::starter::Starter;
use crate::router::App;
use crate::routes::org;

const OVER: &str = "chancery_welcome";
const KEPT_SECONDS: u32 = 365 * 24 * 60 * 60;
/// What the first answer is practised on: of low risk, and it can be thrown away.
const PRACTISED: (&str, &str) = ("pa", "write_note");

#[derive(Template)]
#[template(path = "welcome.html")]
struct WelcomePage {
    frame: Frame,
    version: u64,
    agents: usize,
    tools: usize,
    /// An organisation of one's own is in force already.
    own_org: bool,
    findings: Vec<Finding>,
    models: Vec<Model>,
    /// Whether the organisation in force asks before the practised call.
    asks: bool,
    practised: bool,
}

/// Whether somebody begins here: an operator of a server where nothing has happened yet.
pub async fn is_due(app: &App, visitor: &Visitor, headers: &HeaderMap) -> Result<bool> {
    if !visitor.caller.is_operator() || cookie(headers, OVER).is_some() {
        return Ok(false);
    }
    Ok(app.store.runs(&RunFilter::default(), 1).await?.is_empty())
}

pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response> {
    operator(&visitor)?;
    let state = app.organisation.state();
    let authority = app.authority.get();
    let (agent, tool) = PRACTISED;
    let question = Question {
        agent,
        user: visitor.name(),
        tool,
        delegated: None,
        fitness: &Fitness::Fits,
        arguments: &[],
        limits: &[],
    };
    let asks = authority.policy().rule(question).outcome() == Ruling::RequireApproval;
    let warnings = state.loaded.warnings.iter().filter(|it| !it.file.starts_with("builtin/"));
    let warnings: Vec<Mistake> = warnings.map(crate::view::org::mistake).collect();
    draw(&WelcomePage {
        frame: Frame::of(&visitor, Room::Nowhere, visitor.words().welcome),
        version: state.version.number,
        agents: authority.org().agents().filter(|(_, it)| it.active).count(),
        tools: authority.tools().specs().count(),
        own_org: has_own(&app),
        findings: findings(&warnings, visitor.words()),
        models: app.about.models.clone(),
        practised: !app.store.runs(&RunFilter::default(), 1).await?.is_empty(),
        asks,
    })
}

/// Whether an organisation of one's own is in force.
fn has_own(app: &App) -> bool {
    app.organisation.state().loaded.files.iter().next().is_some()
}

#[derive(Debug, Deserialize)]
pub struct Chosen {
    /// The name of an organisation to begin with; nothing: it is enough.
    #[serde(default)]
    starter: String,
    /// `yes`: also where an organisation of one's own is in force.
    #[serde(default)]
    replace: String,
}

/// Puts an organisation to begin with in force, or leaves the first visit behind.
pub async fn choose(
    State(app): State<App>,
    Signed { visitor, form }: Signed<Chosen>,
) -> Result<Response> {
    let operator = operator(&visitor)?;
    if form.starter.is_empty() {
        let mut response = Redirect::to("/").into_response();
        let over =
            format!("{OVER}=over; Path=/; Max-Age={KEPT_SECONDS}; HttpOnly; SameSite=Strict");
        set_cookie(&mut response, &over)?;
        return Ok(response);
    }
    let starter = Starter::of(&form.starter).ok_or(ApiError::NoRoute)?;
    if has_own(&app) && form.replace != "yes" {
        return Err(bad_request(visitor.words().starter_untold.to_owned()));
    }
    let body = Body(NewOrg { files: starter.files() });
    let params = Params(org::ChangeParams::default());
    let Json(_) = org::change(State(app), operator, params, body).await?;
    Ok(Redirect::to("/welcome#organisation").into_response())
}
