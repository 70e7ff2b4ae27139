//! `chat`: talk with an agent. Every line is a run of one session.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use chancery_api::client::{Client, ClientError};
use chancery_api::run::{CreateRun, Run};

use crate::Global;
use crate::cmd::run::{print_next, settled};
use crate::outcome::{self, Outcome};
use crate::output::{self, visible};
use crate::server::client;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The agent or the group to talk with
    #[arg(long, default_value = "pa")]
    to: String,
    /// Says one thing and ends
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Goes on with an earlier talk [default: a new one]
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    let session = args.session.unwrap_or_else(|| {
        format!("chat-{}-{}", std::process::id(), chancery_runtime::clock::now().as_millisecond())
    });
    if let Some(text) = &args.message {
        let run = say(&client, &args.to, &session, text).await?;
        answer(global, &client, &run).await?;
        return Ok(outcome::of_status(&run.status));
    }
    let prompt = std::io::stdin().is_terminal();
    loop {
        if prompt {
            let mut prompt = std::io::stderr();
            write!(prompt, "> ")?;
            prompt.flush()?;
        }
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(Outcome::Done);
        }
        if !line.trim().is_empty() {
            let run = say(&client, &args.to, &session, line.trim()).await?;
            answer(global, &client, &run).await?;
        }
    }
}

async fn say(client: &Client, to: &str, session: &str, text: &str) -> anyhow::Result<Run> {
    let to_agent = CreateRun {
        agent: Some(to.to_owned()),
        input: text.to_owned(),
        session_key: Some(session.to_owned()),
        ..CreateRun::default()
    };
    let run = match client.create_run(&to_agent).await {
        // No agent is called so: a group may be.
        Err(ClientError::Problem(problem)) if problem.code == "unknown_agent" => {
            let to_group = CreateRun { agent: None, group: Some(to.to_owned()), ..to_agent };
            match client.create_run(&to_group).await {
                Err(ClientError::Problem(it)) if it.code == "unknown_group" => {
                    return Err(ClientError::Problem(problem).into());
                }
                made => made?,
            }
        }
        made => made?,
    };
    settled(client, run).await
}

async fn answer(global: &Global, client: &Client, run: &Run) -> anyhow::Result<()> {
    if global.json {
        return output::json(run);
    }
    match (&run.output, &run.error) {
        (Some(text), _) => output::line(format_args!("{}", visible(text))),
        (None, Some(error)) => output::line(format_args!("[{}] {}", run.status, visible(error))),
        (None, None) => {
            let waits = run.waiting_for.as_deref().unwrap_or("someone");
            output::line(format_args!("[{}] {} waits for {waits}", run.status, run.id))?;
            print_next(client, run).await
        }
    }
}
