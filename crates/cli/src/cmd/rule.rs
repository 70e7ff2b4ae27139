//! `rule`: decisions that are remembered.

use chancery_api::client::Client;
use chancery_api::permission::{Narrow, StandingRule};
use chancery_runtime::clock;
use clap::Subcommand;
use jiff::Timestamp;

use crate::Global;
use crate::elapsed::{self, span};
use crate::fields::Fields;
use crate::matches;
use crate::outcome::{Misused, Outcome, Stopped};
use crate::output::{self, one_line};
use crate::server::client;
use crate::terminal::Terminal;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Those that hold; with --all, those that held too
    Ls {
        #[arg(long)]
        all: bool,
        /// Only what was made since: `30m`, `8h`, `7d` or a time
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
        /// At most so many [default: all of them]
        #[arg(long)]
        limit: Option<usize>,
    },
    /// One, by its id or the beginning of it
    Show { id: String },
    /// Lets it cover less, or hold for less time
    Narrow {
        id: String,
        /// `agent`: for one agent alone; `run`: for the run alone that it was made in
        #[arg(long, value_parser = ["run", "agent"])]
        scope: Option<String>,
        /// How long it still holds: `30m`, `8h`, `7d`
        #[arg(long = "for", value_name = "TIME", required_unless_present = "scope")]
        holds_for: Option<String>,
        /// Says what it would have matched, with the questions, and changes nothing
        #[arg(long)]
        preview: bool,
    },
    /// Makes it hold no more: what it covers is asked again
    Revoke { id: String },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    match command {
        Command::Ls { all, since, limit } => {
            let since = since.as_deref().map(elapsed::since).transpose()?;
            let mut rules = every(&client).await?;
            rules.retain(|it| all || state(it, clock::now()) == "holds");
            rules.retain(|it| since.is_none_or(|since| it.made_at >= since));
            rules.truncate(limit.unwrap_or(usize::MAX));
            if global.json {
                output::list(&rules)?;
            } else {
                list(&rules)?;
            }
        }
        Command::Show { id } => print(global, &named(&client, &id).await?)?,
        Command::Narrow { id, scope, holds_for, preview } => {
            let id = named(&client, &id).await?.id;
            if preview || matches::is_watched(global) {
                let found = client.matches_of_rule(&id, scope.as_deref()).await?;
                match (preview, global.json) {
                    (false, _) => matches::say(&id, &found),
                    (true, true) => return output::json(&found).map(|()| Outcome::Done),
                    (true, false) => {
                        output::line(format_args!("{id} {}", matches::told(&found)))?;
                        return matches::list(&found).map(|()| Outcome::Done);
                    }
                }
            }
            let narrow = Narrow { scope, expires_after: holds_for };
            print(global, &client.narrow_rule(&id, &narrow).await?)?;
        }
        Command::Revoke { id } => {
            let id = named(&client, &id).await?.id;
            let rule = client.revoke_rule(&id).await?;
            if global.json {
                output::json(&rule)?;
            } else {
                let covers = one_line(&rule.signature);
                output::line(format_args!("{} is revoked: `{covers}` is asked again", rule.id))?;
            }
        }
    }
    Ok(Outcome::Done)
}

async fn every(client: &Client) -> anyhow::Result<Vec<StandingRule>> {
    let mut all = Vec::new();
    let mut query = vec![("limit", "200".to_owned())];
    loop {
        let page = client.rules(&query).await?;
        all.extend(page.items);
        let Some(cursor) = page.next_cursor else { return Ok(all) };
        query.truncate(1);
        query.push(("cursor", cursor));
    }
}

/// By its id, or by a beginning that only it has.
async fn named(client: &Client, given: &str) -> anyhow::Result<StandingRule> {
    if given.len() >= "rul_".len() + 32 {
        return Ok(client.rule(given).await?);
    }
    if given.len() < "rul_".len() + 6 || !given.starts_with("rul_") {
        return Err(Misused(format!("`{given}` is no rule (`rul_…`)")).into());
    }
    let mut begin = every(client).await?;
    begin.retain(|it| it.id.starts_with(given));
    match begin.len() {
        1 => Ok(begin.remove(0)),
        0 => {
            let said = format!("there is no rule that begins with `{given}`");
            Err(Stopped::new(Outcome::Failed, "not_found", said).into())
        }
        _ => Err(Misused(format!("more than one rule begins with `{given}`")).into()),
    }
}

fn state(rule: &StandingRule, now: Timestamp) -> &'static str {
    match rule.revoked_at {
        Some(_) => "revoked",
        None if rule.expires_at <= now => "expired",
        None => "holds",
    }
}

/// For whom it holds.
fn holds_for(rule: &StandingRule) -> String {
    match &*rule.scope {
        "run" => rule.run_id.clone(),
        "agent" => format!("agent {}", rule.agent),
        _ => format!("every agent of {}", rule.user),
    }
}

fn list(rules: &[StandingRule]) -> anyhow::Result<()> {
    let now = clock::now();
    let rows = rules.iter().map(|it| {
        let left = match state(it, now) {
            "holds" => span(now, it.expires_at),
            other => other.to_owned(),
        };
        let (id, tool) = (it.id.clone(), it.tool.clone());
        vec![id, tool, one_line(&it.signature), holds_for(it), it.made_by.clone(), left]
    });
    let head = ["RULE", "TOOL", "COVERS", "FOR", "MADE BY", "LEFT"];
    output::table_of_ids(&head, rows.collect(), 0)
}

fn print(global: &Global, rule: &StandingRule) -> anyhow::Result<()> {
    if global.json {
        return output::json(rule);
    }
    let now = clock::now();
    let mut fields = Fields::new(Terminal::of_stdout(), 2);
    fields.field("tool", &rule.tool);
    fields.field("covers", &rule.signature);
    fields.field("for", &holds_for(rule));
    let made = format!("by {} {} ago", rule.made_by, span(rule.made_at, now));
    fields.field("made", &made);
    fields.field("answered", &rule.permission_id);
    match (&rule.revoked_by, rule.revoked_at) {
        (Some(by), Some(at)) => fields.field("revoked", &format!("by {by} {} ago", span(at, now))),
        _ if state(rule, now) == "expired" => fields.field("expired", &rule.expires_at.to_string()),
        _ => fields.field("expires", &format!("in {}", span(now, rule.expires_at))),
    }
    output::line(format_args!("{}  {}", rule.id, state(rule, now)))?;
    output::raw(fields.into_text().as_bytes())
}
