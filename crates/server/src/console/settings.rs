//! Settings: what this server is told by its files, to be looked at; and the tokens, which are
//! made and taken back here.

use askama::Template;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::org::Tool;
use chancery_api::token::{MadeToken, NewToken, Token};
use chancery_runtime::sandbox::Isolation;
use serde::Deserialize;

use super::audit::operator;
use super::form::Signed;
use super::page::{Frame, Room, draw};
use super::visitor::Visitor;
use super::visits::{self, Seen};
use crate::config::{Config, ModelConfig, Provider};
use crate::error::Result;
use crate::extract::Body;
use crate::router::App;
use crate::routes::{org, tokens};

/// What a server is, in words that were put together when it started.
#[derive(Debug, Clone, Default)]
pub struct About {
    pub version: &'static str,
    pub store: String,
    pub organisation: String,
    pub isolation: Isolated,
    pub models: Vec<Model>,
}

#[derive(Debug, Clone, Default)]
pub enum Isolated {
    #[default]
    Off,
    On,
    Lacking(String),
}

#[derive(Debug, Clone)]
pub struct Model {
    pub name: String,
    pub provider: &'static str,
    pub model: String,
    pub base_url: String,
    /// The tiers of roles that mean it.
    pub tiers: Vec<String>,
}

impl About {
    pub fn of(config: &Config, isolation: &Isolation) -> About {
        let model = |(name, it): (&String, &ModelConfig)| Model {
            name: name.clone(),
            provider: match it.provider {
                Provider::Openai => "openai",
                Provider::Anthropic => "anthropic",
                Provider::Scripted => "scripted",
            },
            model: it.model.clone().unwrap_or_default(),
            base_url: it.base_url.clone().unwrap_or_default(),
            tiers: config.tiers.iter().filter(|it| it.1 == name).map(|it| it.0.clone()).collect(),
        };
        About {
            version: env!("CARGO_PKG_VERSION"),
            store: match &config.database {
                Some(_) => "PostgreSQL".to_owned(),
                None => format!("SQLite, {}", config.data.display()),
            },
            organisation: match &config.org {
                Some(dir) => dir.display().to_string(),
                None => "built in".to_owned(),
            },
            isolation: match isolation {
                Isolation::Off => Isolated::Off,
                Isolation::On(_) => Isolated::On,
                Isolation::Lacking(why) => Isolated::Lacking(why.to_string()),
            },
            models: config.models.iter().map(model).collect(),
        }
    }
}

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsPage {
    frame: Frame,
    about: About,
    /// Absent: for operators alone.
    tokens: Option<Vec<Token>>,
    made: Option<MadeToken>,
    visits: Vec<Seen>,
    servers: Vec<(String, Vec<Tool>)>,
    agents: Vec<String>,
}

pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response> {
    let page = page(&app, &visitor, None).await?;
    draw(&page)
}

async fn page(app: &App, visitor: &Visitor, made: Option<MadeToken>) -> Result<SettingsPage> {
    let tokens = match operator(visitor) {
        Ok(operator) => Some(tokens::list(State(app.clone()), operator).await?.0.items),
        Err(_) => None,
    };
    // The one that was made last is looked for first.
    let tokens = tokens.map(|mut all| {
        all.reverse();
        all
    });
    let Json(tools) = org::tools(State(app.clone()), visitor.caller.clone()).await?;
    let mut servers: Vec<(String, Vec<Tool>)> = Vec::new();
    for tool in tools.items {
        let Some(rest) = tool.name.strip_prefix("mcp__") else { continue };
        let server = rest.split_once("__").map_or(rest, |it| it.0).to_owned();
        match servers.iter_mut().find(|it| it.0 == server) {
            Some(known) => known.1.push(tool),
            None => servers.push((server, vec![tool])),
        }
    }
    let authority = app.authority.get();
    Ok(SettingsPage {
        frame: Frame::of(visitor, Room::Settings, visitor.words().settings),
        about: (*app.about).clone(),
        agents: authority.org().agents().map(|(id, _)| id.to_string()).collect(),
        visits: visits::list(app, visitor).await?,
        tokens,
        made,
        servers,
    })
}

#[derive(Debug, Deserialize)]
pub struct Wanted {
    kind: String,
    name: String,
    /// A box that is ticked says `yes`.
    #[serde(default)]
    operator: String,
    #[serde(default)]
    approve: String,
}

/// Makes a token. Its secret is on the page that answers, and nowhere else.
pub async fn make(
    State(app): State<App>,
    Signed { visitor, form }: Signed<Wanted>,
) -> Result<Response> {
    let new = NewToken {
        kind: form.kind,
        name: form.name.trim().to_owned(),
        operator: form.operator == "yes",
        approve: form.approve == "yes",
    };
    let made = tokens::make(State(app.clone()), operator(&visitor)?, Body(new)).await?;
    let (_, Json(made)) = made;
    let page = page(&app, &visitor, Some(made)).await?;
    draw(&page)
}

#[derive(Debug, Deserialize)]
pub struct Nothing {}

pub async fn revoke(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, .. }: Signed<Nothing>,
) -> Result<Response> {
    let Json(_) = tokens::revoke(State(app), operator(&visitor)?, Path(id)).await?;
    Ok(Redirect::to("/settings").into_response())
}
