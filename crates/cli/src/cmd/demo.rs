//! `demo`: the whole story with a scripted model. All else is real: the server, the store, the
//! gate, the tools, the signal, the restart.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use chancery_api::client::Client;
use chancery_api::run::{CreateRun, Run, Signal};
use chancery_server::config::{Config, ModelConfig, Provider};
use chancery_server::{Running, start};

use crate::Global;
use crate::cmd::run::settled;
use crate::outcome::Outcome;
use crate::output;

/// What the scripted model says; the same file is a model for one's own scenarios.
const SCENARIO: &str = include_str!("../../scenarios/demo.yaml");
const KEY: &str = "demo-go-ahead";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ends by itself; exit code 0 only if every step happened
    #[arg(long)]
    headless: bool,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let scratch = Scratch::new(global.data.clone())?;
    let config = settings(&scratch.dir)?;
    let workspace = config.workspace();
    std::fs::write(workspace.join("brief.txt"), "Ship the pricing fix: round to cents.\n")?;
    say(
        "Chancery demo: a scripted model (no AI is called, no key needed, nothing leaves this machine)",
    )?;
    say(&format!("Data in {}", scratch.dir.display()))?;

    let server = start(&config, []).await?;
    say(&format!("1. A server runs at {}   docs at {}/docs", server.url(), server.url()))?;
    let waiting = begin(&client(&server)).await?;
    say(&format!("2. {} has read brief.txt and waits for the signal `{KEY}`", waiting.id))?;

    server.stop().await;
    say(
        "3. The server has stopped. The run is rows in a file: it holds nothing, and nothing is lost",
    )?;
    let server = start(&config, []).await?;
    let client = client(&server);
    let same = client.run(&waiting.id).await?;
    ensure!(same.status == "waiting", "the run should still wait, and is {}", same.status);
    say("4. The server is back, and the run waits as before")?;

    let done = finish(&client, &waiting.id).await?;
    let written = std::fs::read_to_string(workspace.join("report.txt")).context("report.txt")?;
    ensure!(written.contains("approved by the demo"), "report.txt says: {written}");
    let output = done.output.unwrap_or_default();
    ensure!(output.contains("report.txt"), "the agent reported: {output}");
    say(&format!("5. The signal came; the agent wrote report.txt and reports: {output}"))?;
    say(&format!("6. Every step is in its log: {} events", trace(&client, &waiting.id).await?))?;

    if !args.headless {
        say(&format!("The server stays at {} until Ctrl-C.", server.url()))?;
        say(&format!(
            "Look around:  chancery --data {} run trace {}",
            scratch.dir.display(),
            done.id
        ))?;
        tokio::signal::ctrl_c().await?;
    }
    server.stop().await;
    Ok(Outcome::Done)
}

fn client(server: &Running) -> Client {
    Client::new(&server.url(), &server.local_token)
}

/// Gives the agent its goal and follows it to its wait.
async fn begin(client: &Client) -> anyhow::Result<Run> {
    let new = CreateRun {
        agent: Some("pa".to_owned()),
        input: "Read brief.txt, wait for the go-ahead, then write report.txt.".to_owned(),
        ..CreateRun::default()
    };
    let run = client.create_run(&new).await?;
    let run = settled(client, run).await?;
    ensure!(
        run.waiting_for.as_deref() == Some("signal"),
        "the run should wait for a signal, and is {}: {}",
        run.status,
        run.error.unwrap_or_default()
    );
    Ok(run)
}

async fn finish(client: &Client, id: &str) -> anyhow::Result<Run> {
    let payload = serde_json::json!({ "note": "approved by the demo" });
    client.signal(id, &Signal { correlation_key: KEY.to_owned(), payload }).await?;
    let run = settled(client, client.run(id).await?).await?;
    ensure!(
        run.status == "completed",
        "the run should be completed, and is {}: {}",
        run.status,
        run.error.unwrap_or_default()
    );
    Ok(run)
}

async fn trace(client: &Client, id: &str) -> anyhow::Result<usize> {
    let events = client.events(id, 0).await?.items;
    let kinds: Vec<&str> = events.iter().map(|it| &*it.kind).collect();
    for kind in ["run.created", "tool.started", "wait.began", "signal.received", "run.completed"] {
        ensure!(kinds.contains(&kind), "the log lacks `{kind}`: {kinds:?}");
    }
    for event in &events {
        output::line(format_args!("     {:>3}  {}", event.seq, event.kind))?;
    }
    Ok(events.len())
}

fn settings(dir: &Path) -> anyhow::Result<Config> {
    let scenario = dir.join("scenario.yaml");
    std::fs::create_dir_all(dir.join("data/workspace"))?;
    std::fs::write(&scenario, SCENARIO)?;
    let mut config =
        Config { listen: ([127, 0, 0, 1], 0).into(), data: dir.join("data"), ..Config::default() };
    let model = ModelConfig { scenario: Some(scenario), ..ModelConfig::new(Provider::Scripted) };
    config.models.insert("default".to_owned(), model);
    Ok(config)
}

fn say(text: &str) -> anyhow::Result<()> {
    output::line(format_args!("{text}"))
}

/// A directory for the demo: the one that was asked for, or one that goes away with it.
struct Scratch {
    dir: PathBuf,
    temporary: bool,
}

impl Scratch {
    fn new(asked: Option<PathBuf>) -> anyhow::Result<Scratch> {
        let temporary = asked.is_none();
        let dir = asked.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("chancery-demo-{}", std::process::id()))
        });
        std::fs::create_dir_all(&dir).with_context(|| format!("`{}`", dir.display()))?;
        Ok(Scratch { dir, temporary })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.temporary {
            // Best effort: it lies where temporary things lie.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
