//! `user`: people are those who hold a person's token.

use std::collections::BTreeMap;

use chancery_api::client::Client;
use chancery_api::token::{NewToken, Token};
use clap::Subcommand;
use serde_json::json;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output;
use crate::server::client;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Everybody who was ever let in
    Ls {
        /// At most so many [default: all of them]
        #[arg(long)]
        limit: Option<usize>,
    },
    /// Lets a person in: makes their token and prints it, once
    Add {
        name: String,
        /// May act for any user
        #[arg(long)]
        operator: bool,
    },
    /// Makes all tokens of a person worthless, and a new one
    Reset { name: String },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    match command {
        Command::Ls { limit } => list(global, &client, limit).await,
        Command::Add { name, operator } => {
            if held(&client, &name).await?.iter().any(is_valid) {
                let said = format!("`{name}` is let in already: `user reset` makes a new token");
                return Err(Misused(said).into());
            }
            make(global, &client, &name, operator).await
        }
        Command::Reset { name } => {
            let tokens = held(&client, &name).await?;
            anyhow::ensure!(!tokens.is_empty(), Misused(format!("nobody is called `{name}`")));
            let operator = tokens.iter().filter(|it| is_valid(it)).any(|it| it.operator);
            for token in tokens.iter().filter(|it| is_valid(it)) {
                client.revoke_token(&token.id).await?;
            }
            make(global, &client, &name, operator).await
        }
    }
}

fn is_valid(token: &Token) -> bool {
    token.revoked_at.is_none()
}

/// The tokens of a person, old and new.
async fn held(client: &Client, name: &str) -> anyhow::Result<Vec<Token>> {
    let tokens = client.tokens().await?.items;
    Ok(tokens.into_iter().filter(|it| it.kind == "human" && it.name == name).collect())
}

async fn make(
    global: &Global,
    client: &Client,
    name: &str,
    operator: bool,
) -> anyhow::Result<Outcome> {
    let kind = "human".to_owned();
    let new = NewToken { kind, name: name.to_owned(), operator, approve: operator };
    let made = client.new_token(&new).await?;
    if global.json {
        output::json(&made)?;
    } else {
        output::line(format_args!("{}", made.token))?;
    }
    Ok(Outcome::Done)
}

async fn list(global: &Global, client: &Client, limit: Option<usize>) -> anyhow::Result<Outcome> {
    let mut people: BTreeMap<String, (bool, usize)> = BTreeMap::new();
    for token in client.tokens().await?.items.into_iter().filter(|it| it.kind == "human") {
        let (operator, valid) = people.entry(token.name.clone()).or_default();
        if is_valid(&token) {
            *operator |= token.operator;
            *valid += 1;
        }
    }
    let people = people.into_iter().take(limit.unwrap_or(usize::MAX));
    if global.json {
        let shown = people.map(|(name, (operator, valid))| {
            json!({ "name": name, "operator": operator, "tokens": valid })
        });
        output::json(&json!({ "items": shown.collect::<Vec<_>>() }))?;
    } else {
        let rows = people.map(|(name, (operator, valid))| {
            let right = if operator { "operator" } else { "" };
            let state = if valid == 0 { "shut out".to_owned() } else { valid.to_string() };
            vec![name, right.to_owned(), state]
        });
        output::table(&["PERSON", "RIGHTS", "TOKENS"], rows.collect())?;
    }
    Ok(Outcome::Done)
}
