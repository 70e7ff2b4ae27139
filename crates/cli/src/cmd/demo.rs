//! `demo`: the whole story with a scripted model. All else is real: the server, the store, the
//! gate, the tools, the group, the restart, what is remembered afterwards.

mod attacks;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chancery_api::client::Client;
use chancery_api::memory::{MemoryScope, NewMemory};
use chancery_api::permission::{Decide, Permission};
use chancery_api::run::{CreateRun, Run};
use chancery_runtime::sandbox::Isolation;
use chancery_server::config::{Config, IsolationMode, ModelConfig, Provider};
use chancery_server::{Running, start};
use serde_json::json;

use crate::Global;
use crate::cmd::run::{settled, story};
use crate::cmd::scratch::Scratch;
use crate::outcome::Outcome;
use crate::output;

/// What the scripted model says, and the organisation that it says it in; the same files are a
/// model for one's own.
const SCENARIO: &str = include_str!("../../scenarios/demo.yaml");
const TOOLS: &str = include_str!("../../scenarios/demo/tools.yaml");
const POLICY: &str = include_str!("../../scenarios/demo/policy.yaml");
/// The line of the scenario that says which languages it has.
const LANGUAGES: &str = "lang: [en, zh]";
const PERSON: &str = "lin";
const PROJECT: &str = "shop";
/// What follows on a run's end comes within moments, or not at all.
const SOON: Duration = Duration::from_secs(20);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Ends by itself; exit code 0 only if every step happened
    #[arg(long)]
    headless: bool,
    /// Starts over in a directory that an earlier demo has left
    #[arg(long)]
    fresh: bool,
    /// The language that the scripted model speaks in, whatever it is spoken to in
    #[arg(long, value_parser = ["en", "zh"])]
    lang: Option<String>,
    /// Opens no browser; none is opened without it either, the link is printed
    #[arg(long)]
    no_open: bool,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let scratch = Scratch::new("demo", global.data.clone())?;
    if args.fresh {
        sweep(&scratch.dir)?;
    }
    // What it shows is counted from the beginning.
    ensure!(
        !scratch.dir.join("data").exists(),
        "`{}` has a demo in it already: `--fresh` starts over, or name another directory",
        scratch.dir.display()
    );
    let mut config = settings(&scratch.dir, args.lang.as_deref())?;
    let workspace = config.workspace();
    if let Isolation::Lacking(why) = config.isolation(&workspace).await {
        // Its commands are our own, and do nothing but write a line.
        say(&format!("This kernel cannot isolate commands ({why}); the demo's own run without"))?;
        config.isolation.mode = IsolationMode::Off;
    }
    std::fs::write(workspace.join("brief.txt"), "Ship the pricing fix: round to cents.\n")?;
    say(
        "Chancery demo: a scripted model (no AI is called, no key needed, nothing leaves this machine)",
    )?;
    say(&format!("Data in {}", scratch.dir.display()))?;

    let server = start(&config, []).await?;
    say(&format!("1. A server runs at {}   docs at {}/docs", server.url(), server.url()))?;
    let client_1 = client(&server);
    wish(&client_1).await?;
    say(&format!("2. {PERSON}'s personal agent remembers: {PERSON} wants short reports"))?;

    let (asked_by, group) = begin(&client_1).await?;
    let asked = asked(&client_1, &group.id).await?;
    say(&format!(
        "3. {} hands \"Ship the pricing fix\" to the group grp_delivery and waits",
        asked_by.id
    ))?;
    refused(&client_1, &group.id).await?;
    say("   backend_worker tried to deploy by itself: refused, for its role does not bind it")?;
    ensure!(ships(&workspace).is_empty(), "something ran before it was decided");
    say(&format!(
        "4. devops_worker wants three calls; {} of them need a person's word, so none has run",
        asked.len()
    ))?;

    server.stop().await;
    let server = start(&config, []).await?;
    let client = client(&server);
    ensure!(self::asked(&client, &group.id).await?.len() == asked.len(), "the questions are gone");
    say("5. The server was stopped and started again: the questions are still there")?;

    let done = decide(&client, &asked_by.id, &asked).await?;
    let ran = ships(&workspace);
    let wanted = ["logs web", "build shop/web:1.8.3", "deploy production shop/web:1.8.3 canary"];
    ensure!(ran == wanted, "what ran is {ran:?}");
    say("6. Approved, the deployment changed to `canary`: the batch ran once, in order")?;
    say(&format!("7. The personal agent reports: {}", done.output.unwrap_or_default()))?;
    let known = deposited(&client, &group.id).await?;
    say(&format!("8. The organisation knows from now on: {known}"))?;
    attacks::all(&client).await?;
    let run = client.run(&asked_by.id).await?;
    story::print(&client, &run).await?;

    if !args.headless {
        // Questions for whoever looks on to answer themselves.
        let (again, _) = begin(&client).await?;
        let data = scratch.dir.join("data");
        say("")?;
        say(&format!(
            "The same goal once more ({}): this time its questions wait for you.",
            again.id
        ))?;
        if let Some(link) = &server.invitation {
            say(&format!("Console       {link}   (lets you in once)"))?;
            say(
                "              Inbox: what waits. Chat: \"Ship the pricing fix\" from the beginning, and attempts to break the rules",
            )?;
        }
        say(&format!("Terminal      chancery --data {} approval watch", data.display()))?;
        say(&format!("What happened chancery --data {} run trace {}", data.display(), run.id))?;
        say(&format!(
            "OpenAI style  {}/v1   MCP {}/mcp   until Ctrl-C",
            server.url(),
            server.url()
        ))?;
        tokio::signal::ctrl_c().await?;
    }
    server.stop().await;
    Ok(Outcome::Done)
}

fn client(server: &Running) -> Client {
    Client::new(&server.url(), &server.local_token)
}

/// What the person wants of their agent.
async fn wish(client: &Client) -> anyhow::Result<()> {
    let scope = MemoryScope {
        user: Some(PERSON.to_owned()),
        agent: Some("pa".to_owned()),
        ..MemoryScope::default()
    };
    let wish = NewMemory {
        content: "Lin wants release reports short.".to_owned(),
        kind: "core".to_owned(),
        scope: Some(scope),
        metadata: Some([("pa_preference".to_owned(), json!(true))].into_iter().collect()),
        at: None,
        supersedes: None,
    };
    client.remember(&wish).await?;
    Ok(())
}

/// Gives the agent its goal, and follows the group that it calls to its questions.
async fn begin(client: &Client) -> anyhow::Result<(Run, Run)> {
    let new = CreateRun {
        agent: Some("pa".to_owned()),
        input: "Ship the pricing fix".to_owned(),
        user: Some(PERSON.to_owned()),
        project: Some(PROJECT.to_owned()),
        ..CreateRun::default()
    };
    let run = settled(client, client.create_run(&new).await?).await?;
    let why = run.error.clone().unwrap_or_default();
    ensure!(run.waiting_for.as_deref() == Some("child"), "the agent is {}: {why}", run.status);
    let children = client.runs(&[("parent", run.id.clone())]).await?.items;
    let group = children.into_iter().next().context("the group's run is not there")?;
    let group = settled(client, group).await?;
    let why = group.error.clone().unwrap_or_default();
    let asks = group.waiting_for.as_deref() == Some("permission");
    ensure!(asks, "the group is {}: {why}", group.status);
    Ok((run, group))
}

async fn asked(client: &Client, run: &str) -> anyhow::Result<Vec<Permission>> {
    let query = [("status", "pending".to_owned()), ("run", run.to_owned())];
    Ok(client.permissions(&query).await?.items)
}

async fn refused(client: &Client, run: &str) -> anyhow::Result<()> {
    let events = client.events(run, 0).await?.items;
    let refused = events.iter().find(|it| it.kind == "tool.refused");
    let refused = refused.context("nothing was refused")?;
    let code = &refused.data["result"]["code"];
    ensure!(code == "PERMISSION_DENIED", "it was refused with {code}");
    Ok(())
}

/// Answers every question; the deployment is granted with another strategy.
async fn decide(client: &Client, run: &str, asked: &[Permission]) -> anyhow::Result<Run> {
    for it in asked {
        let mut decide = Decide {
            decision: "grant".to_owned(),
            comment: None,
            arguments: None,
            remember: None,
            result: None,
        };
        if it.tool == "docker_deploy" {
            let mut arguments = it.arguments.clone();
            arguments["strategy"] = json!("canary");
            decide.arguments = Some(arguments);
            decide.comment = Some("canary first".to_owned());
        }
        client.decide(&it.id, &decide).await?;
    }
    finished(client, run).await
}

/// The run, once it is done.
async fn finished(client: &Client, run: &str) -> anyhow::Result<Run> {
    let began = Instant::now();
    loop {
        let run = settled(client, client.run(run).await?).await?;
        match &*run.status {
            "completed" => return Ok(run),
            "waiting" if began.elapsed() < SOON => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            _ => anyhow::bail!("the run is {}: {}", run.status, run.error.unwrap_or_default()),
        }
    }
}

/// What of the group's work has become knowledge, with the run that it came from.
async fn deposited(client: &Client, group: &str) -> anyhow::Result<String> {
    let asked = "prices rounded to cents".to_owned();
    let query = [
        ("q", asked),
        ("mode", "flat".to_owned()),
        ("type", "archival".to_owned()),
        ("project", PROJECT.to_owned()),
        ("user", PERSON.to_owned()),
    ];
    let began = Instant::now();
    loop {
        let found = client.search_memories(&query).await?.items;
        let of_group =
            |it: &&chancery_api::memory::FoundMemory| it.memory.metadata["source_run_id"] == group;
        if let Some(it) = found.iter().find(of_group) {
            return Ok(format!("\"{}\" ({group})", it.memory.content));
        }
        ensure!(began.elapsed() < SOON, "nothing was deposited");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the demo's tools did, in order.
fn ships(workspace: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(workspace.join("docker/ships.log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Removes what a demo has left, and nothing of anybody else's.
fn sweep(dir: &Path) -> anyhow::Result<()> {
    let scenario = dir.join("scenario.yaml");
    if !scenario.exists() {
        return Ok(());
    }
    for left in ["data", "org"] {
        match std::fs::remove_dir_all(dir.join(left)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(std::fs::remove_file(scenario)?)
}

fn settings(dir: &Path, language: Option<&str>) -> anyhow::Result<Config> {
    let (scenario, org) = (dir.join("scenario.yaml"), dir.join("org"));
    std::fs::create_dir_all(dir.join("data/workspace"))?;
    std::fs::create_dir_all(&org)?;
    let said = language.map(|it| SCENARIO.replacen(LANGUAGES, &format!("lang: [{it}]"), 1));
    std::fs::write(&scenario, said.as_deref().unwrap_or(SCENARIO))?;
    std::fs::write(org.join("tools.yaml"), TOOLS)?;
    std::fs::write(org.join("policy.yaml"), POLICY)?;
    let mut config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        data: dir.join("data"),
        org: Some(org),
        ..Config::default()
    };
    let model = ModelConfig { scenario: Some(scenario), ..ModelConfig::new(Provider::Scripted) };
    config.models.insert("default".to_owned(), model);
    Ok(config)
}

fn say(text: &str) -> anyhow::Result<()> {
    output::line(format_args!("{text}"))
}
