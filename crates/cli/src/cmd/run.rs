//! `run`: start, look, speak, signal, cancel, go on from another.

pub mod story;

use std::collections::BTreeMap;

use chancery_api::client::{Client, ClientError};
use chancery_api::run::{CreateRun, DroppedCall, Fork, ForkRun, Run, Signal, Speak, Tree};
use clap::Subcommand;
use jiff::Timestamp;
use serde_json::json;

use crate::Global;
use crate::cmd::approval;
use crate::elapsed;
use crate::outcome::{self, Misused, Outcome};
use crate::output::{self, one_line, quoted, short, visible};
use crate::server::client;
use crate::terminal::Terminal;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Starts a run; with --wait, answers when it ends or waits for someone
    Start {
        /// The goal
        input: String,
        /// [default: pa]
        #[arg(long, conflicts_with = "group")]
        agent: Option<String>,
        /// Instead of an agent
        #[arg(long)]
        group: Option<String>,
        #[arg(long)]
        user: Option<String>,
        #[arg(long)]
        project: Option<String>,
        /// The talk that it goes on with
        #[arg(long, value_name = "KEY")]
        session: Option<String>,
        #[arg(long)]
        wait: bool,
    },
    /// The newest runs
    Ls {
        #[arg(long)]
        status: Option<String>,
        #[arg(long)]
        agent: Option<String>,
        #[arg(long)]
        group: Option<String>,
        #[arg(long, default_value_t = 20)]
        limit: u32,
        /// Only what was asked for since: `30m`, `8h`, `7d` or a time
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
    },
    /// One run
    Show { id: String },
    /// What happened in it, with the runs beneath in their place
    Trace {
        id: String,
        /// Its log instead, event by event
        #[arg(long)]
        events: bool,
        /// Its log, as it grows
        #[arg(long)]
        follow: bool,
    },
    /// The run with its children
    Tree { id: String },
    /// It and all beneath it with every event of theirs, as one JSON document
    Export { id: String },
    /// Says something into it
    Say {
        id: String,
        text: String,
        /// To one member of the group alone
        #[arg(long, value_name = "AGENT")]
        to: Option<String>,
    },
    /// Ends a wait
    Signal {
        id: String,
        correlation_key: String,
        /// JSON
        #[arg(long)]
        payload: Option<String>,
    },
    /// Ends it
    Cancel { id: String },
    /// Lets it rest before its next step
    Pause { id: String },
    /// Goes on with one that is paused, or that failed at the model
    Resume { id: String },
    /// Goes on from it as a run of its own: what had ended there is not done again, and what comes
    /// after it is made and asked about anew
    Fork {
        id: String,
        /// The last event that counts, as `run trace --events` numbers them [default: all of them]
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
        /// Something new to go on with [default: the goal as it was]
        #[arg(long, value_name = "TEXT")]
        input: Option<String>,
        #[arg(long)]
        wait: bool,
    },
    /// Asks it to come to an end with what it has
    Wrapup { id: String },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    // What became of the run is the outcome of a command that waits for it, and of no other.
    let waits = matches!(command, Command::Start { wait: true, .. });
    let shown = match command {
        Command::Ls { status, agent, group, limit, since } => {
            let since = since.as_deref().map(elapsed::since).transpose()?;
            let mut query = Vec::new();
            query.extend(status.map(|it| ("status", it)));
            query.extend(agent.map(|it| ("agent", it)));
            query.extend(group.map(|it| ("group", it)));
            return list(global, &client, query, limit, since).await;
        }
        Command::Trace { id, events, follow } if events || follow || global.json => {
            return trace(global, &client, &id, follow).await;
        }
        Command::Trace { id, .. } => {
            let run = client.run(&id).await?;
            story::print(&client, &run).await?;
            print_next(&client, &run).await?;
            return Ok(Outcome::Done);
        }
        Command::Export { id } => return export(&client, &id).await,
        Command::Tree { id } => return tree(global, &client.tree(&id).await?),
        Command::Start { input, agent, group, user, project, session, wait } => {
            let agent = agent.or_else(|| group.is_none().then(|| "pa".to_owned()));
            let session_key = session;
            let more = CreateRun::default();
            let new = CreateRun { agent, group, input, user, project, session_key, ..more };
            let run = client.create_run(&new).await?;
            if wait { settled(&client, run).await? } else { run }
        }
        Command::Show { id } => client.run(&id).await?,
        Command::Say { id, text, to } => client.speak(&id, &Speak { text, to }).await?,
        Command::Signal { id, correlation_key, payload } => {
            let payload = payload.as_deref().map(serde_json::from_str).transpose();
            let payload = payload
                .map_err(|it| Misused(format!("`--payload` is not JSON: {it}")))?
                .unwrap_or_default();
            let told = client.signal(&id, &Signal { correlation_key, payload }).await?;
            match client.run(&told.id).await {
                Ok(run) => run,
                // Whoever may answer a run need not be one who may read it.
                Err(ClientError::Problem(it)) if it.status == 404 => {
                    if global.json {
                        output::json(&told)?;
                    } else {
                        output::line(format_args!("{} {}", told.id, told.status))?;
                    }
                    return Ok(Outcome::Done);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Command::Fork { id, at, input, wait } => {
            return fork(global, &client, &id, ForkRun { at, input }, wait).await;
        }
        Command::Cancel { id } => client.cancel(&id).await?,
        Command::Pause { id } => client.pause(&id).await?,
        Command::Resume { id } => client.resume(&id).await?,
        Command::Wrapup { id } => client.wrapup(&id).await?,
    };
    if global.json {
        output::json(&shown)?;
    } else {
        print(&shown)?;
        print_next(&client, &shown).await?;
    }
    Ok(if waits { outcome::of_status(&shown.status) } else { Outcome::Done })
}

/// Follows a run until it ends or waits for someone. The stream says when to look.
pub async fn settled(client: &Client, mut run: Run) -> anyhow::Result<Run> {
    let under_way = |run: &Run| matches!(&*run.status, "pending" | "running");
    while under_way(&run) {
        let mut live = client.follow(&run.id, 0).await?;
        while under_way(&run) && live.chunk().await?.is_some() {
            run = client.run(&run.id).await?;
        }
    }
    Ok(run)
}

async fn list(
    global: &Global,
    client: &Client,
    mut query: Vec<(&str, String)>,
    limit: u32,
    since: Option<Timestamp>,
) -> anyhow::Result<Outcome> {
    query.push(("limit", limit.to_string()));
    let mut page = client.runs(&query).await?;
    // The newest come first: behind the first that is too old, all are.
    if let Some(old) = page.items.iter().position(|it| since.is_some_and(|at| it.created_at < at)) {
        page.items.truncate(old);
        page.next_cursor = None;
    }
    if global.json {
        output::json(&page)?;
        return Ok(Outcome::Done);
    }
    let rows = page.items.iter().map(|run| {
        let status = match &run.waiting_for {
            Some(why) => format!("{} ({why})", run.status),
            None => run.status.clone(),
        };
        let cells = [&*run.id, &*status, &*run.agent, &*run.user];
        let mut row: Vec<String> = cells.iter().map(|it| (*it).to_owned()).collect();
        row.extend([run.created_at.to_string(), short(&run.input, 40)]);
        row
    });
    output::table(&["RUN", "STATUS", "AGENT", "USER", "CREATED", "INPUT"], rows.collect())?;
    Ok(Outcome::Done)
}

async fn trace(
    global: &Global,
    client: &Client,
    id: &str,
    follow: bool,
) -> anyhow::Result<Outcome> {
    let mut after = 0;
    loop {
        let page = client.events(id, after).await?;
        for event in &page.items {
            after = event.seq;
            if global.json {
                output::line(format_args!("{}", serde_json::to_string(event)?))?;
            } else {
                let data = visible(&short(&event.data.to_string(), 100));
                output::line(format_args!(
                    "{:>5}  {}  {:<22} {data}",
                    event.seq, event.at, event.kind
                ))?;
            }
        }
        if page.next_cursor.is_some() {
            continue;
        }
        let run = client.run(id).await?;
        if !follow || run.ended_at.is_some() {
            if !global.json {
                print_next(client, &run).await?;
            }
            return Ok(if follow { outcome::of_status(&run.status) } else { Outcome::Done });
        }
        // Something more has come when the first of it arrives.
        client.follow(id, after).await?.chunk().await?;
    }
}

fn tree(global: &Global, tree: &Tree) -> anyhow::Result<Outcome> {
    fn branch(tree: &Tree, depth: usize) -> anyhow::Result<()> {
        let run = &tree.run;
        output::line(format_args!(
            "{:indent$}{}  {}  {}  {}",
            "",
            run.id,
            visible(&run.agent),
            run.status,
            visible(&short(&run.input, 60)),
            indent = depth * 2
        ))?;
        tree.children.iter().try_for_each(|child| branch(child, depth + 1))
    }
    if global.json {
        output::json(tree)?;
    } else {
        branch(tree, 0)?;
    }
    Ok(Outcome::Done)
}

async fn fork(
    global: &Global,
    client: &Client,
    id: &str,
    wanted: ForkRun,
    wait: bool,
) -> anyhow::Result<Outcome> {
    let Fork { mut run, carried, dropped } = client.fork(id, &wanted).await?;
    if wait {
        let forked_from = run.forked_from.take();
        run = Run { forked_from, ..settled(client, run).await? };
    }
    let outcome = if wait { outcome::of_status(&run.status) } else { Outcome::Done };
    if global.json {
        output::json(&Fork { run, carried, dropped })?;
        return Ok(outcome);
    }
    print(&run)?;
    let tools = carried.iter().map(|it| one_line(&it.tool)).collect::<Vec<_>>();
    if !tools.is_empty() {
        let tools = tools.join(", ");
        output::line(format_args!("  carried over, and not made again: {tools}"))?;
    }
    let tools = dropped.iter().map(left_behind).collect::<Vec<_>>();
    if !tools.is_empty() {
        let tools = tools.join(", ");
        output::line(format_args!("  left behind, to be made and asked about anew: {tools}"))?;
    }
    print_next(client, &run).await?;
    Ok(outcome)
}

/// A call that a fork does not know of, with what had become of it.
fn left_behind(call: &DroppedCall) -> String {
    let said = [(call.ran, "ran there"), (call.asked, "was asked about there")];
    let said: Vec<&str> = said.iter().filter(|it| it.0).map(|it| it.1).collect();
    let tool = one_line(&call.tool);
    if said.is_empty() { tool } else { format!("{tool} ({})", said.join(", ")) }
}

/// As the console has it for download.
async fn export(client: &Client, id: &str) -> anyhow::Result<Outcome> {
    let tree = client.tree(id).await?;
    let (mut events, mut next) = (BTreeMap::new(), vec![&tree]);
    while let Some(Tree { run, children }) = next.pop() {
        let (mut log, mut after) = (Vec::new(), 0);
        loop {
            let page = client.events(&run.id, after).await?;
            log.extend(page.items);
            after = log.last().map_or(0, |it| it.seq);
            if page.next_cursor.is_none() {
                break;
            }
        }
        events.insert(run.id.clone(), log);
        next.extend(children);
    }
    output::json(&json!({ "run": tree, "events": events }))?;
    Ok(Outcome::Done)
}

fn print(run: &Run) -> anyhow::Result<()> {
    let waits = run.waiting_for.as_ref().map(|it| format!(" for {it}")).unwrap_or_default();
    output::line(format_args!("{}  {}{waits}", run.id, run.status))?;
    let (agent, user) = (visible(&run.agent), visible(&run.user));
    output::line(format_args!("  agent   {agent}   user {user}"))?;
    if let Some(from) = &run.forked_from {
        output::line(format_args!("  forked from {} at {}", from.run_id, from.at))?;
    }
    output::line(format_args!("  input   {}", visible(&run.input)))?;
    if let Some(text) = &run.output {
        output::line(format_args!("  output  {}", visible(text)))?;
    }
    if let Some(text) = &run.error {
        output::line(format_args!("  error   {}", visible(text)))?;
    }
    Ok(())
}

/// What a waiting run waits for, and what to type. A question is answered where it can be read:
/// a signal would approve it unseen.
pub async fn print_next(client: &Client, run: &Run) -> anyhow::Result<()> {
    if run.waiting_for.as_deref() == Some("permission") {
        for asked in approval::of_run(client, &run.id, Some("pending")).await? {
            let risk = Terminal::of_stdout().risk(asked.risk.as_deref());
            let tool = one_line(&asked.tool);
            output::line(format_args!("  asks    {risk} {tool}"))?;
            output::line(format_args!("  next    chancery approval show {}", asked.id))?;
        }
        return Ok(());
    }
    for key in run.wait.iter().flat_map(|it| &it.correlation_keys) {
        output::line(format_args!("  next    chancery run signal {} {}", run.id, quoted(key)))?;
    }
    Ok(())
}
