//! Settings: what this server is told by its files, to be looked at and tried; and its tokens.

pub mod tokens;
mod trial;

use askama::Template;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use chancery_api::org::Tool;
use chancery_api::token::Token;
use chancery_api::webhook::{self, Delivery, Subscriber};
use chancery_domain::id::UserId;
use chancery_domain::org as domain;
use chancery_runtime::clock;
use chancery_runtime::sandbox::Isolation;
use serde::Deserialize;
use trial::Tried;

use super::audit::operator;
use super::form::Signed;
use super::page::{Frame, Room, draw};
use super::visitor::Visitor;
use super::visits::{self, Seen};
use crate::access::Operator;
use crate::config::{Config, ModelConfig, Provider};
use crate::error::Result;
use crate::extract::Params;
use crate::router::App;
use crate::routes::{self, org, webhooks};

/// What a server is, in words that were put together when it started.
#[derive(Debug, Clone, Default)]
pub struct About {
    pub version: &'static str,
    pub store: &'static str,
    /// Where an embedded store lies; empty: it is elsewhere.
    pub data: String,
    /// Where the organisation's files lie; empty: it is built in.
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

impl Model {
    /// Whether anything is ever said through it.
    pub fn is_used(&self) -> bool {
        self.name == "default" || !self.tiers.is_empty()
    }
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
                Some(_) => "PostgreSQL",
                None => "SQLite",
            },
            data: match &config.database {
                Some(_) => String::new(),
                None => config.data.display().to_string(),
            },
            organisation: config
                .org
                .as_ref()
                .map(|it| it.display().to_string())
                .unwrap_or_default(),
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
    /// The id that a token made here will have.
    mark: String,
    /// The secret of one that was made; empty: it was shown before.
    made: Option<String>,
    visits: Vec<Seen>,
    servers: Vec<Connected>,
    agents: Vec<String>,
    people: Vec<Person>,
    /// Of those who are told something, what became of it; for operators alone.
    deliveries: Option<Vec<Delivery>>,
    tried: Option<Tried>,
    /// Those who are told something; for operators alone.
    subscribers: Vec<Subscriber>,
    told: Option<webhook::Tried>,
}

/// An MCP server.
#[derive(Debug)]
struct Connected {
    name: String,
    away: bool,
    tools: Vec<Tool>,
}

/// Somebody whom the organisation names.
#[derive(Debug)]
struct Person {
    name: String,
    approver: bool,
    /// What of the tools they may have called for them.
    allowed: String,
    denied: String,
}

pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response> {
    let page = page(&app, &visitor).await?;
    let frame = page.frame.watching("settings");
    draw(&SettingsPage { frame, ..page })
}

/// What answers a form stays as it is: it says something once.
async fn page(app: &App, visitor: &Visitor) -> Result<SettingsPage> {
    let (mut tokens, mut deliveries, mut subscribers) = (None, None, Vec::new());
    if let Ok(operator) = operator(visitor) {
        let caller = Operator(operator.0.clone());
        let all = routes::tokens::list(State(app.clone()), caller).await?.0.items;
        tokens = Some(all);
        let caller = Operator(operator.0.clone());
        subscribers = webhooks::list(State(app.clone()), caller).await?.0.items;
        let newest = Params(webhooks::ListParams::default());
        let found = webhooks::deliveries(State(app.clone()), operator, newest).await?;
        deliveries = Some(found.0.items);
    }
    // The one that was made last is looked for first.
    let tokens = tokens.map(|mut all| {
        all.reverse();
        all
    });
    let authority = app.authority.get();
    Ok(SettingsPage {
        frame: Frame::of(visitor, Room::Settings, visitor.words().settings),
        about: (*app.about).clone(),
        agents: authority.org().agents().map(|(id, _)| id.to_string()).collect(),
        people: people(authority.org()),
        servers: servers(app, visitor).await?,
        visits: visits::list(app, visitor).await?,
        tokens,
        deliveries,
        subscribers,
        mark: clock::new_token_id().to_string(),
        made: None,
        tried: None,
        told: None,
    })
}

fn people(org: &domain::Org) -> Vec<Person> {
    let person = |(id, it): (&UserId, &domain::User)| Person {
        name: id.to_string(),
        approver: it.approver,
        allowed: it.bounds.allowed_tools.as_deref().unwrap_or_default().join(", "),
        denied: it.bounds.denied_tools.join(", "),
    };
    org.users.iter().map(person).collect()
}

async fn servers(app: &App, visitor: &Visitor) -> Result<Vec<Connected>> {
    let caller = || visitor.caller.clone();
    let Json(found) = org::mcp_servers(State(app.clone()), caller()).await?;
    let Json(tools) = org::tools(State(app.clone()), caller()).await?;
    let server = |it: chancery_api::org::McpServer| Connected {
        away: it.state != "connected",
        tools: tools.items.iter().filter(|tool| it.tools.contains(&tool.name)).cloned().collect(),
        name: it.name,
    };
    Ok(found.items.into_iter().map(server).collect())
}

#[derive(Debug, Deserialize)]
pub struct Nothing {}

/// Asks a model for a word, so that a wrong key shows now and not in the first talk.
pub async fn test(
    State(app): State<App>,
    Path(name): Path<String>,
    Signed { visitor, .. }: Signed<Nothing>,
) -> Result<Response> {
    operator(&visitor)?;
    let tried = trial::of(&app, &name, visitor.words()).await?;
    let page = page(&app, &visitor).await?;
    draw(&SettingsPage { tried: Some(tried), ..page })
}

/// Tells a subscriber something, so that somebody sees whether they are told.
pub async fn notify(
    State(app): State<App>,
    Path(name): Path<String>,
    Signed { visitor, .. }: Signed<Nothing>,
) -> Result<Response> {
    let told = webhooks::test(State(app.clone()), operator(&visitor)?, Path(name)).await?;
    let page = page(&app, &visitor).await?;
    draw(&SettingsPage { told: Some(told.0), ..page })
}
