//! `model`: which models there are, and whether they answer.

mod add;

use std::collections::BTreeMap;
use std::time::Instant;

use chancery_runtime::model::try_out;
use chancery_server::config::{Config, ModelConfig, build_model, describe_models};
use clap::Subcommand;
use serde_json::json;
use toml::Table;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output::{self, one_line};
use crate::server::{environment, settings};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Those of the settings
    Ls {
        /// At most so many [default: all of them]
        #[arg(long)]
        limit: Option<usize>,
    },
    /// Writes one into the settings' file; the server reads it when it starts
    Add(add::Args),
    /// Asks one for a word, so that a wrong key shows now and not in the first run
    Test { name: String },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    let (config, layers) = settings(global, Table::new())?;
    match command {
        Command::Ls { limit } => list(global, &config, limit.unwrap_or(usize::MAX)),
        Command::Add(args) => add::add(global, &config, layers.file, args),
        Command::Test { name } => {
            let Some(model) = config.models.get(&name) else {
                let said = format!("there is no model `{name}`: it has a table `[models.{name}]`");
                return Err(Misused(said).into());
            };
            test(global, &name, model).await
        }
    }
}

async fn test(global: &Global, name: &str, config: &ModelConfig) -> anyhow::Result<Outcome> {
    let model = build_model(name, config, &environment().collect::<BTreeMap<_, _>>())?;
    let began = Instant::now();
    let reply = try_out(&*model).await?;
    let took = began.elapsed().as_millis() as u64;
    if global.json {
        let usage = chancery_api::run::Usage {
            input_tokens: reply.usage.input_tokens,
            output_tokens: reply.usage.output_tokens,
            cost: reply.usage.cost(),
        };
        output::json(&json!({ "model": reply.model, "text": reply.text, "milliseconds": took,
            "usage": usage }))?;
    } else {
        let (model, text) = (one_line(&reply.model), one_line(&reply.text));
        output::line(format_args!("{model} answered in {took} ms: {text}"))?;
    }
    Ok(Outcome::Done)
}

fn list(global: &Global, config: &Config, limit: usize) -> anyhow::Result<Outcome> {
    let provider = |it: &ModelConfig| format!("{:?}", it.provider).to_lowercase();
    if global.json {
        let shown = config.models.iter().take(limit).map(|(name, it)| {
            json!({ "name": name, "provider": it.provider, "model": it.model,
                "base_url": it.base_url, "api_key_env": it.api_key_env })
        });
        output::list(&shown.collect::<Vec<_>>())?;
        return Ok(Outcome::Done);
    }
    if config.models.is_empty() {
        let found = describe_models(config, &environment().collect());
        output::line(format_args!("none are in the settings; in use is {found}"))?;
        return Ok(Outcome::Done);
    }
    let rows = config.models.iter().take(limit).map(|(name, it)| {
        let key = it.api_key_env.clone().unwrap_or_default();
        let (model, url) = (it.model.clone(), it.base_url.clone());
        vec![name.clone(), provider(it), model.unwrap_or_default(), url.unwrap_or_default(), key]
    });
    output::table(&["NAME", "PROVIDER", "MODEL", "URL", "KEY FROM"], rows.collect())?;
    Ok(Outcome::Done)
}
