//! `policy test`: a file of expectations, for operators to keep beside their policy.

use std::path::PathBuf;

use anyhow::Context as _;
use chancery_api::permission::{Authorize, Authorized};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::Global;
use crate::layers;
use crate::outcome::{Misused, Outcome};
use crate::output::{self, one_line};
use crate::server::client;
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// YAML: a list of `{agent, tool, args?, user?, expect}`
    file: PathBuf,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    agent: String,
    tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    args: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    expect: Expected,
}

#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Expected {
    Allow,
    RequireApproval,
    RequireHuman,
    Deny,
}

impl Expected {
    fn as_str(self) -> &'static str {
        match self {
            Expected::Allow => "allow",
            Expected::RequireApproval => "require_approval",
            Expected::RequireHuman => "require_human",
            Expected::Deny => "deny",
        }
    }
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let name = args.file.display();
    let text =
        std::fs::read_to_string(&args.file).with_context(|| format!("cannot read {name}"))?;
    let expectations: Vec<Expectation> = serde_saphyr::from_str(&text)
        .map_err(|it| Misused(format!("{name}: {}", it.without_snippet())))?;
    if expectations.is_empty() {
        return Err(Misused(format!("{name} expects nothing")).into());
    }
    let client = client(global)?;
    let mut failures = Vec::new();
    let count = expectations.len();
    for (expectation, number) in expectations.into_iter().zip(1..) {
        let question = Authorize {
            agent: expectation.agent.clone(),
            tool: expectation.tool.clone(),
            arguments: expectation.args.clone().map(Value::Object),
            user: expectation.user.clone(),
            run: None,
        };
        let ruled = client.authorize(&question).await?;
        if ruled.ruling == expectation.expect.as_str() {
            continue;
        }
        if !global.json {
            output::raw(failure(number, &expectation, &ruled).as_bytes())?;
        }
        failures.push(json!({ "number": number, "expectation": expectation, "ruled": ruled }));
    }
    if global.json {
        output::json(&json!({ "expectations": count, "failures": failures }))?;
    } else {
        output::line(format_args!("{count} expectations, {} failed", failures.len()))?;
    }
    Ok(if failures.is_empty() { Outcome::Done } else { Outcome::Failed })
}

fn failure(number: usize, expectation: &Expectation, ruled: &Authorized) -> String {
    let Expectation { agent, tool, expect, .. } = expectation;
    let (agent, tool, expect) = (one_line(agent), one_line(tool), expect.as_str());
    let head =
        format!("FAILED {number}  {agent} {tool}: expected {expect}, and it is {}\n", ruled.ruling);
    head + &layers::table(&ruled.layers, Terminal::of_stdout())
}
