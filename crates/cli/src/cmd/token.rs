//! `token`: make, list, revoke. Through the running server where there is one, else on the store
//! itself.

use chancery_api::token::{MadeToken, NewToken};
use chancery_domain::event::Actor;
use chancery_runtime::clock;
use chancery_server::tokens;
use chancery_store::{OpenError, Store};
use clap::{Subcommand, ValueEnum};
use toml::Table;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output;
use crate::server::{client, settings};
use crate::window::Window;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A person
    Human,
    /// A program
    Service,
    /// Acts as one agent
    Agent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Permission {
    /// Answer permission requests
    Approve,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Makes a token and prints it, once
    New {
        #[arg(long, value_enum)]
        kind: Kind,
        /// For a human token: whose
        #[arg(long)]
        user: Option<String>,
        /// For a service token: its name
        #[arg(long)]
        name: Option<String>,
        /// For an agent token: which
        #[arg(long)]
        agent: Option<String>,
        /// For a service token: what it may do beside
        #[arg(long, value_enum)]
        permission: Option<Permission>,
        /// For a human token: may act for any user
        #[arg(long)]
        operator: bool,
    },
    /// Every token, without its secret
    Ls {
        #[command(flatten)]
        window: Window,
    },
    /// Makes a token worthless
    Revoke { id: String },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::New { kind, user, name, agent, permission, operator } => {
            let new = described(kind, user, name, agent, permission, operator)?;
            let made = make(global, &new).await?;
            if global.json {
                output::json(&made)?;
            } else {
                output::line(format_args!("{}", made.token))?;
            }
        }
        Command::Ls { window } => {
            let mut page = client(global)?.tokens().await?;
            window.cut(&mut page.items, |it| it.created_at)?;
            if global.json {
                output::json(&page)?;
            } else {
                let rows = page.items.into_iter().map(|it| {
                    let state = if it.revoked_at.is_some() { "revoked" } else { "valid" };
                    let mut rights = Vec::new();
                    rights.extend(it.operator.then_some("operator"));
                    rights.extend(it.approve.then_some("approve"));
                    vec![it.id, it.kind, it.name, rights.join(" "), state.to_owned()]
                });
                output::table(&["TOKEN", "KIND", "NAME", "RIGHTS", "STATE"], rows.collect())?;
            }
        }
        Command::Revoke { id } => {
            let token = client(global)?.revoke_token(&id).await?;
            if global.json {
                output::json(&token)?;
            } else {
                output::line(format_args!("{} is revoked", token.id))?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn described(
    kind: Kind,
    user: Option<String>,
    name: Option<String>,
    agent: Option<String>,
    permission: Option<Permission>,
    operator: bool,
) -> anyhow::Result<NewToken> {
    let (kind, name) = match (kind, user, name, agent) {
        (Kind::Human, Some(user), None, None) => ("human", user),
        (Kind::Service, None, Some(name), None) => ("service", name),
        (Kind::Agent, None, None, Some(agent)) => ("agent", agent),
        (Kind::Human, ..) => {
            return misused("a human token is for a `--user`, and for nothing else");
        }
        (Kind::Service, ..) => return misused("a service token has a `--name`, and nothing else"),
        (Kind::Agent, ..) => {
            return misused("an agent token is for an `--agent`, and for nothing else");
        }
    };
    if permission.is_some() && kind != "service" {
        return misused("`--permission` is for service tokens");
    }
    if operator && kind != "human" {
        return misused("only a person is an operator");
    }
    let approve = permission.is_some() || operator;
    Ok(NewToken { kind: kind.to_owned(), name, operator, approve })
}

fn misused(what: &str) -> anyhow::Result<NewToken> {
    Err(Misused(what.to_owned()).into())
}

async fn make(global: &Global, new: &NewToken) -> anyhow::Result<MadeToken> {
    if global.url.is_some() {
        return Ok(client(global)?.new_token(new).await?);
    }
    let (config, _) = settings(global, Table::new())?;
    let org = chancery_server::organisation::of(&config)?.org;
    let store = match Store::open(&config.location(), clock::new_worker_id()).await {
        Ok(store) => store,
        // A server has the directory: it makes the token.
        Err(OpenError::InUse(_)) => return Ok(client(global)?.new_token(new).await?),
        Err(error) => return Err(error.into()),
    };
    let made = tokens::make_as_asked(&store, &org, new, Actor::System).await;
    store.close().await;
    Ok(made?)
}
