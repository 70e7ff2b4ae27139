//! `user`: people are those who hold a person's token.

use std::collections::BTreeMap;

use chancery_api::client::Client;
use chancery_api::token::{NewToken, Token};
use clap::Subcommand;
use jiff::Timestamp;
use serde_json::json;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output;
use crate::server::client;
use crate::window::Window;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Everybody who was ever let in
    Ls {
        #[command(flatten)]
        window: Window,
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
        Command::Ls { window } => list(global, &client, &window).await,
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

/// What the tokens of a person say of them together.
struct Person {
    operator: bool,
    valid: usize,
    /// When they were first let in.
    since: Timestamp,
}

async fn list(global: &Global, client: &Client, window: &Window) -> anyhow::Result<Outcome> {
    let mut people: BTreeMap<String, Person> = BTreeMap::new();
    for token in client.tokens().await?.items.into_iter().filter(|it| it.kind == "human") {
        let since = token.created_at;
        let person =
            people.entry(token.name.clone()).or_insert(Person { operator: false, valid: 0, since });
        person.since = person.since.min(since);
        if is_valid(&token) {
            person.operator |= token.operator;
            person.valid += 1;
        }
    }
    let mut people: Vec<(String, Person)> = people.into_iter().collect();
    window.cut(&mut people, |(_, it)| it.since)?;
    if global.json {
        let shown = people.into_iter().map(|(name, it)| {
            json!({ "name": name, "operator": it.operator, "tokens": it.valid, "since": it.since })
        });
        output::list(&shown.collect::<Vec<_>>())?;
    } else {
        let rows = people.into_iter().map(|(name, it)| {
            let right = if it.operator { "operator" } else { "" };
            let state = if it.valid == 0 { "shut out".to_owned() } else { it.valid.to_string() };
            vec![name, right.to_owned(), state, it.since.to_string()]
        });
        output::table(&["PERSON", "RIGHTS", "TOKENS", "SINCE"], rows.collect())?;
    }
    Ok(Outcome::Done)
}
