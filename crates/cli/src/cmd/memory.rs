//! `memory`: what is remembered, where it came from, and how to take it back.

use anyhow::Context as _;
use chancery_api::client::Client;
use chancery_api::memory::{FoundMemory, Memory, MemoryScope};
use clap::Subcommand;
use jiff::Timestamp;

use crate::Global;
use crate::elapsed;
use crate::fields::Fields;
use crate::outcome::{Misused, Outcome, Stopped};
use crate::output::{self, one_line, short};
use crate::server::client;
use crate::terminal::Terminal;

/// As much of a memory as a line has room for.
const SHOWN: usize = 60;

#[derive(Debug, clap::Args)]
pub struct Which {
    /// core, episodic or archival
    #[arg(long = "type")]
    kind: Option<String>,
    /// For whom, where you may act for others
    #[arg(long)]
    user: Option<String>,
    #[arg(long)]
    project: Option<String>,
    #[arg(long)]
    group: Option<String>,
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What you may read, the newest first
    Ls {
        #[command(flatten)]
        which: Which,
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// Only what was written since: `30m`, `8h`, `7d` or a time
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
    },
    /// What has most in common with a question, in any language
    Search {
        question: String,
        /// As an agent would find it for a person: AGENT/USER
        #[arg(long = "as", value_name = "AGENT/USER", conflicts_with = "mode")]
        of: Option<String>,
        /// flat, personal or group [default: flat]
        #[arg(long)]
        mode: Option<String>,
        #[command(flatten)]
        which: Which,
        #[arg(long, default_value_t = 10)]
        limit: u32,
    },
    /// One, by its id or the beginning of it, with where it came from
    Show {
        id: String,
        /// For whom, where you may act for others
        #[arg(long)]
        user: Option<String>,
    },
    /// Forgets it, and all that it had taken the place of
    Forget {
        id: String,
        /// For whom, where you may act for others
        #[arg(long)]
        user: Option<String>,
    },
    /// All that you may read, a line of JSON each
    Export {
        #[command(flatten)]
        which: Which,
    },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    // What was misused on the command line needs no server to say so.
    let seen_by = match &command {
        Command::Search { of: Some(of), .. } => Some(agent_and_user(of)?),
        _ => None,
    };
    let client = client(global)?;
    match command {
        Command::Ls { which, limit, since } => {
            let since = since.as_deref().map(elapsed::since).transpose()?;
            list(global, &client, &which, limit, since).await?;
        }
        Command::Search { question, mode, which, limit, .. } => {
            let mut query = which.query();
            query.push(("q", question));
            query.push(("limit", limit.to_string()));
            if let Some((agent, user)) = seen_by {
                query.retain(|(name, _)| !matches!(*name, "agent" | "user"));
                query.extend([("mode", "personal".to_owned()), ("agent", agent), ("user", user)]);
            }
            query.extend(mode.map(|it| ("mode", it)));
            let found = client.search_memories(&query).await?;
            if global.json {
                output::json(&found)?;
            } else {
                let head = ["TIER", "SCORE", "TYPE", "DAY", "MEMORY", "WHY", "ID"];
                output::table_of_ids(&head, found.items.iter().map(hit).collect(), 6)?;
            }
        }
        Command::Show { id, user } => {
            print(global, &named(&client, &id, user.as_deref()).await?)?;
        }
        Command::Forget { id, user } => {
            let memory = named(&client, &id, user.as_deref()).await?;
            let memory = client.forget(&memory.id, user.as_deref()).await?;
            if global.json {
                output::json(&memory)?;
            } else {
                let content = one_line(&short(&memory.content, SHOWN));
                output::line(format_args!("{} is forgotten: {content}", memory.id))?;
            }
        }
        Command::Export { which } => {
            let mut response = client.export_memories(&which.query()).await?;
            while let Some(bytes) = response.chunk().await.context("the export broke off")? {
                output::raw(&bytes)?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn agent_and_user(given: &str) -> anyhow::Result<(String, String)> {
    let parts = given.split_once('/').filter(|(agent, user)| !agent.is_empty() && !user.is_empty());
    let (agent, user) =
        parts.ok_or_else(|| Misused(format!("`{given}` is no `AGENT/USER`, such as `pa/lin`")))?;
    Ok((agent.to_owned(), user.to_owned()))
}

impl Which {
    fn query(&self) -> Vec<(&'static str, String)> {
        let given = [
            ("type", &self.kind),
            ("user", &self.user),
            ("project", &self.project),
            ("group", &self.group),
            ("agent", &self.agent),
        ];
        given.into_iter().filter_map(|(name, it)| Some((name, it.clone()?))).collect()
    }
}

async fn list(
    global: &Global,
    client: &Client,
    which: &Which,
    limit: u32,
    since: Option<Timestamp>,
) -> anyhow::Result<()> {
    let mut query = which.query();
    query.push(("limit", limit.to_string()));
    let mut page = client.memories(&query).await?;
    page.items.retain(|it| since.is_none_or(|since| it.created_at >= since));
    if global.json {
        return output::json(&page);
    }
    let rows = page.items.iter().map(|it| {
        let content = one_line(&short(&it.content, SHOWN));
        vec![it.kind.clone(), whose(&it.scope), day(it), content, it.id.clone()]
    });
    output::table_of_ids(&["TYPE", "OF", "DAY", "MEMORY", "ID"], rows.collect(), 4)
}

fn hit(it: &FoundMemory) -> Vec<String> {
    vec![
        format!("{} {}", it.tier, it.tier_name),
        format!("{:.2}", it.score),
        it.memory.kind.clone(),
        day(&it.memory),
        one_line(&short(&it.memory.content, SHOWN)),
        one_line(&it.why),
        it.memory.id.clone(),
    ]
}

fn day(memory: &Memory) -> String {
    memory.at.to_string().chars().take(10).collect()
}

/// Whose a memory is, in one word.
fn whose(scope: &MemoryScope) -> String {
    let parts = [
        scope.user.as_deref().map(|it| format!("user {it}")),
        scope.project.as_deref().map(|it| format!("project {it}")),
        scope.group.as_deref().map(|it| format!("group {it}")),
        scope.agent.as_deref().map(|it| format!("agent {it}")),
    ];
    let said: Vec<String> = parts.into_iter().flatten().collect();
    if said.is_empty() { "everyone".to_owned() } else { said.join(", ") }
}

/// By its id, or by a beginning that only it has.
async fn named(client: &Client, given: &str, user: Option<&str>) -> anyhow::Result<Memory> {
    if given.len() >= "mem_".len() + 32 {
        return Ok(client.memory(given, user).await?);
    }
    if given.len() < "mem_".len() + 6 || !given.starts_with("mem_") {
        return Err(Misused(format!("`{given}` is no memory (`mem_…`)")).into());
    }
    let mut begin: Vec<Memory> = Vec::new();
    let mut query = vec![("limit", "200".to_owned())];
    query.extend(user.map(|it| ("user", it.to_owned())));
    let asked = query.len();
    loop {
        let page = client.memories(&query).await?;
        begin.extend(page.items.into_iter().filter(|it| it.id.starts_with(given)));
        let Some(cursor) = page.next_cursor else { break };
        query.truncate(asked);
        query.push(("cursor", cursor));
    }
    match begin.len() {
        1 => Ok(begin.remove(0)),
        0 => {
            let said = format!("there is no memory that begins with `{given}`");
            Err(Stopped::new(Outcome::Failed, "not_found", said).into())
        }
        _ => Err(Misused(format!("more than one memory begins with `{given}`")).into()),
    }
}

fn print(global: &Global, memory: &Memory) -> anyhow::Result<()> {
    if global.json {
        return output::json(memory);
    }
    let mut fields = Fields::new(Terminal::of_stdout(), 2);
    fields.field("memory", &memory.content);
    fields.field("of", &whose(&memory.scope));
    fields.field("day", &day(memory));
    fields.field("written", &format!("by {} at {}", memory.created_by, memory.created_at));
    for it in &memory.sources {
        let copy = it.original_memory_id.as_deref().map(|it| format!(", copy of {it}"));
        let copy = copy.unwrap_or_default();
        fields.field("from", &format!("{} ({}{copy})", it.run_id, it.source));
    }
    if let Some(it) = &memory.similar_to {
        fields.field("like", it);
    }
    if let Some(it) = &memory.superseded_by {
        fields.field("corrected by", it);
    }
    if memory.metadata.as_object().is_some_and(|it| !it.is_empty()) {
        fields.field("metadata", &memory.metadata.to_string());
    }
    output::line(format_args!("{}  {}", memory.id, memory.kind))?;
    output::raw(fields.into_text().as_bytes())
}
