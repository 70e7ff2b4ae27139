//! `approval`: what waits for a person, and the person's answers.

mod batch;
mod card;
mod decide;
mod edit;
mod editor;
mod extend;
mod find;
mod list;
mod prompt;
mod watch;

use chancery_api::client::Client;
use chancery_api::permission::{Inquire, Permission};
use chancery_runtime::clock;
use clap::Subcommand;
use serde_json::json;

use crate::Global;
use crate::elapsed;
use crate::outcome::{Misused, Outcome, Stopped};
use crate::output;
use crate::server::client;
use crate::terminal::Terminal;

pub use batch::proposed;
pub use card::decided;
pub use find::{of_run, run as whole_run_id};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What waits, the riskiest first
    Ls {
        /// Whatever became of it
        #[arg(long, conflicts_with = "status")]
        all: bool,
        /// pending, granted, denied, expired or cancelled
        #[arg(long, default_value = "pending")]
        status: String,
        /// Only what was asked since: `30m`, `8h`, `7d` or a time
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
        /// At most so many [default: all of them]
        #[arg(long)]
        limit: Option<usize>,
    },
    /// One request, or the whole batch of a run
    Show { id: String },
    /// Lets calls run, once nothing else of their batch is open
    Approve(decide::Approve),
    /// Does not let them run
    Deny(decide::Deny),
    /// Lets a call run with other arguments
    Edit(edit::Args),
    /// Asks the agent something about its request, and prints what it says; decides nothing
    Ask { id: String, text: String },
    /// Gives questions more time; decides nothing
    Extend(extend::Args),
    /// One at a time, as they come
    Watch(watch::Args),
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    match command {
        Command::Ls { all, status, since, limit } => {
            let status = (!all).then_some(status);
            ls(global, &client, status, since, limit).await
        }
        Command::Show { id } => show(global, &client, &id).await,
        Command::Approve(args) => decide::approve(global, &client, args).await,
        Command::Deny(args) => decide::deny(global, &client, args).await,
        Command::Edit(args) => edit::edit(global, &client, args).await,
        Command::Ask { id, text } => ask(global, &client, &id, text).await,
        Command::Extend(args) => extend::extend(global, &client, args).await,
        Command::Watch(args) => watch::watch(global, &client, args).await,
    }
}

async fn ask(global: &Global, client: &Client, id: &str, text: String) -> anyhow::Result<Outcome> {
    let asked = request(client, id).await?;
    let told = client.ask(&asked.id, &Inquire { text }).await?;
    if global.json {
        output::json(&told)?;
        return Ok(Outcome::Done);
    }
    output::raw(card::told(&told).as_bytes())?;
    Ok(Outcome::Done)
}

/// One request, by its id or the beginning of it.
pub async fn request(client: &Client, id: &str) -> anyhow::Result<Permission> {
    match find::named(client, id).await? {
        find::Found::One(permission) => Ok(*permission),
        find::Found::Run(run) => Err(Misused(format!("{run} is a run, and no request")).into()),
    }
}

async fn ls(
    global: &Global,
    client: &Client,
    status: Option<String>,
    since: Option<String>,
    limit: Option<usize>,
) -> anyhow::Result<Outcome> {
    let since = since.as_deref().map(elapsed::since).transpose()?;
    let open = status.as_deref() == Some("pending");
    let query = status.map(|it| ("status", it)).into_iter().collect();
    let mut permissions = find::every(client, query).await?;
    permissions.retain(|it| since.is_none_or(|since| it.created_at >= since));
    permissions.truncate(limit.unwrap_or(usize::MAX));
    if global.json {
        output::json(&json!({ "items": permissions, "next_cursor": null }))?;
    } else {
        list::print(&permissions, clock::now(), open)?;
    }
    Ok(Outcome::Done)
}

async fn show(global: &Global, client: &Client, id: &str) -> anyhow::Result<Outcome> {
    let (terminal, now) = (Terminal::of_stdout(), clock::now());
    let permission = match find::named(client, id).await? {
        find::Found::Run(run) => {
            let Some(batch) = batch::of(client, &run).await? else {
                let said = format!("{run} has asked nothing");
                return Err(Stopped::new(Outcome::Failed, "nothing_asked", said).into());
            };
            if global.json {
                output::json(&batch)?;
            } else {
                output::raw(batch::text(&batch, now, terminal).as_bytes())?;
                next(batch.open().next())?;
            }
            return Ok(Outcome::Done);
        }
        find::Found::One(permission) => permission,
    };
    if global.json {
        output::json(&permission)?;
    } else {
        output::raw(card::card(&permission, now, terminal).as_bytes())?;
        next(Some(&*permission).filter(|it| it.status == "pending"))?;
    }
    Ok(Outcome::Done)
}

/// What to type next.
fn next(open: Option<&Permission>) -> anyhow::Result<()> {
    let Some(open) = open else { return Ok(()) };
    let id = &open.id;
    let why = if list::is_high(open) { " -c 'why'" } else { "" };
    output::line(format_args!("\nDecide:  chancery approval approve {id}{why}"))?;
    if open.kind != "recover" {
        output::line(format_args!("         chancery approval edit {id}"))?;
    }
    output::line(format_args!("         chancery approval deny {id} -r 'why not'"))
}
