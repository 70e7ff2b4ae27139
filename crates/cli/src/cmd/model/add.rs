//! `add`: a model's table at the end of the settings' file.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chancery_server::config::{Config, ModelConfig, Provider};
use serde_json::json;
use toml::Table;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output;
use crate::server::settings;

/// Where it is written if no file was read.
const FILE: &str = "chancery.toml";

#[derive(Debug, clap::Args)]
pub struct Args {
    name: String,
    #[arg(long, value_parser = ["openai", "anthropic", "scripted"])]
    provider: String,
    /// As the far side names it
    #[arg(long)]
    model: Option<String>,
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The environment variable that holds the key
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// For a scripted one: its scenario
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
}

pub fn add(
    global: &Global,
    config: &Config,
    file: Option<PathBuf>,
    args: Args,
) -> anyhow::Result<Outcome> {
    let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if args.name.is_empty() || !args.name.chars().all(plain) {
        let said = format!("`{}` is no name: letters, digits, `_` and `-`", args.name);
        return Err(Misused(said).into());
    }
    if config.models.contains_key(&args.name) {
        let said = format!("there is a model `{}` already: change its table", args.name);
        return Err(Misused(said).into());
    }
    let file = global.config.clone().or(file).unwrap_or_else(|| PathBuf::from(FILE));
    let name = args.name.clone();
    let table = toml::to_string(&described(args))?;
    append(global, &file, &format!("\n[models.{name}]\n{table}"))?;
    if global.json {
        output::json(&json!({ "name": name, "file": file.display().to_string() }))?;
    } else {
        let file = file.display();
        output::line(format_args!("`{name}` is in {file}. Next: chancery model test {name}"))?;
    }
    Ok(Outcome::Done)
}

fn described(args: Args) -> ModelConfig {
    let provider = match &*args.provider {
        "anthropic" => Provider::Anthropic,
        "scripted" => Provider::Scripted,
        _ => Provider::Openai,
    };
    ModelConfig {
        model: args.model,
        base_url: args.base_url,
        api_key_env: args.api_key_env,
        scenario: args.scenario,
        ..ModelConfig::new(provider)
    }
}

/// What cannot be read with it is left as it was.
fn append(global: &Global, file: &Path, more: &str) -> anyhow::Result<()> {
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("`{}`", file.display())),
    };
    let whole = format!("{}\n{more}", before.trim_end());
    let write =
        |text: &str| std::fs::write(file, text).with_context(|| format!("`{}`", file.display()));
    write(whole.trim_start())?;
    let named = Global { config: Some(file.to_owned()), ..global.clone() };
    if let Err(error) = settings(&named, Table::new()) {
        write(&before)?;
        return Err(error);
    }
    Ok(())
}
