//! `test`: holds the rules to scenarios. A server of its own, on the organisation that is asked
//! for, rules on every call that a scenario makes; nothing runs, and nobody is asked.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chancery_api::client::Client;
use chancery_api::permission::Authorize;
use chancery_runtime::model::scripted::{Expect, Expected, ScriptedModel};
use chancery_server::config::{Config, IsolationMode};
use chancery_server::start;
use serde::Serialize;
use serde_json::{Value, json};
use toml::Table;

use crate::Global;
use crate::cmd::scratch::Scratch;
use crate::layers;
use crate::outcome::{Misused, Outcome};
use crate::output::{self, one_line};
use crate::server::settings;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Scenarios: what agents call, and what should come of it
    #[arg(required = true, value_name = "SCENARIO.yaml")]
    files: Vec<PathBuf>,
    /// The organisation's files [default: those of the settings, or the built-in organisation]
    #[arg(long, value_name = "DIR")]
    org: Option<PathBuf>,
}

/// What came of a call.
#[derive(Debug, Serialize)]
struct Outcomes {
    file: String,
    agent: String,
    entry: usize,
    tool: String,
    ruling: &'static str,
    /// The rules, layers and steps that had a say.
    because: Vec<String>,
    detail: String,
    expected: String,
    ok: bool,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let mut scenarios = Vec::new();
    for path in &args.files {
        let model = ScriptedModel::load(path).map_err(|it| {
            let said = anyhow::Error::new(it);
            Misused(format!("{said:#}"))
        })?;
        scenarios.push((path.as_path(), model));
    }
    let scratch = Scratch::new("test", None)?;
    let (given, _) = settings(global, Table::new())?;
    let config = Config {
        listen: ([127, 0, 0, 1], 0).into(),
        data: scratch.dir.join("data"),
        org: args.org.or(given.org),
        isolation: chancery_server::config::IsolationConfig {
            // Nothing is run.
            mode: IsolationMode::Off,
            ..given.isolation
        },
        ..Config::default()
    };
    let server = start(&config, []).await.context("the organisation cannot be put in force")?;
    let client = Client::new(&server.url(), &server.local_token);
    let played = play(&client, &scenarios).await;
    server.stop().await;
    let played = played?;
    let failed = played.iter().filter(|it| !it.ok).count();
    if global.json {
        output::json(&json!({ "calls": played, "failed": failed }))?;
    } else {
        for it in played.iter().filter(|it| !it.ok) {
            let place = format!("{} {} entry {}", it.file, it.agent, it.entry);
            let said = format!("expected {}, and it is {}", it.expected, it.ruling);
            output::line(format_args!("FAILED {place}: {}: {said}", one_line(&it.tool)))?;
            output::line(format_args!("       {}", one_line(&it.detail)))?;
        }
        output::line(format_args!("{} calls, {failed} not as expected", played.len()))?;
    }
    Ok(if failed == 0 { Outcome::Done } else { Outcome::Failed })
}

async fn play(
    client: &Client,
    scenarios: &[(&Path, ScriptedModel)],
) -> anyhow::Result<Vec<Outcomes>> {
    let mut played = Vec::new();
    for (path, scenario) in scenarios {
        for expected in scenario.expected() {
            // `*` is whoever has no lines: nobody in particular to rule on.
            if expected.agent != "*" {
                played.push(ruled(client, path, expected).await?);
            }
        }
    }
    anyhow::ensure!(!played.is_empty(), Misused("the scenarios call nothing".to_owned()));
    Ok(played)
}

async fn ruled(client: &Client, path: &Path, it: Expected<'_>) -> anyhow::Result<Outcomes> {
    let (agent, user) = match it.agent.split_once('/') {
        Some((agent, user)) => (agent, Some(user.to_owned())),
        None => (it.agent, None),
    };
    let question = Authorize {
        agent: agent.to_owned(),
        tool: it.tool.to_owned(),
        arguments: Some(Value::Object(it.arguments.clone())),
        user,
        run: None,
    };
    let ruled = client.authorize(&question).await?;
    let ruling = match layers::word(&ruled.ruling) {
        "yes" => "allow",
        "ask" => "ask",
        _ => "deny",
    };
    let mut because: Vec<String> = Vec::new();
    for reason in &ruled.reasons {
        because.push(reason.layer.clone());
        because.push(reason.rule.clone());
        if let Some(step) = reason.rule.strip_prefix("mail.") {
            because.extend(rules_of(step).iter().map(|it| (*it).to_owned()));
            because.push(step.to_owned());
        }
    }
    let detail = ruled.reasons.first().map(layers::sentence).unwrap_or_default();
    let (expected, ok) = match it.expect {
        None => ("that it is not denied".to_owned(), ruling != "deny"),
        Some(Expect::Allow) => ("allow".to_owned(), ruling == "allow"),
        Some(Expect::Ask) => ("ask".to_owned(), ruling == "ask"),
        Some(Expect::Deny) => ("deny".to_owned(), ruling == "deny"),
        Some(Expect::Denied(why)) => {
            (format!("deny by {why}"), ruling == "deny" && because.contains(why))
        }
    };
    let (file, entry) = (path.display().to_string(), it.entry);
    let (agent, tool) = (it.agent.to_owned(), it.tool.to_owned());
    Ok(Outcomes { file, agent, entry, tool, ruling, because, detail, expected, ok })
}

/// The rules of the chain of command that a step of the mailroom holds.
fn rules_of(step: &str) -> &'static [&'static str] {
    match step {
        "contact" => &["C-01", "C-02", "C-03", "C-04", "C-05"],
        "type" | "contract" => &["C-02"],
        _ => &[],
    }
}
