//! `doctor`: what would stand in the way of a server here.

use chancery_runtime::clock;
use chancery_server::config::{Config, build_models, describe_models};
use chancery_store::{OpenError, Store};
use toml::Table;

use crate::Global;
use crate::isolation::{OFF, told};
use crate::outcome::Outcome;
use crate::output::{self, visible};
use crate::server::{client, environment, local_url, settings};
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub struct Args {}

#[derive(Debug, serde::Serialize)]
struct Finding {
    check: &'static str,
    ok: bool,
    detail: String,
}

pub async fn run(global: &Global, _: Args) -> anyhow::Result<Outcome> {
    let mut findings = Vec::new();
    match settings(global, Table::new()) {
        Err(error) => findings.push(finding("settings", Err(error.to_string()))),
        Ok((config, layers)) => {
            let file =
                layers.file.map_or("no file, defaults".to_owned(), |it| it.display().to_string());
            findings.push(finding("settings", Ok(file)));
            findings.push(finding("store", store(global, &config).await));
            findings.push(finding("models", models(&config)));
            findings.push(finding("organisation", organisation(&config)));
            findings.push(finding("isolation", isolation(&config).await));
            findings.push(finding("port", port(global, &config).await));
        }
    }
    let well = findings.iter().all(|it| it.ok);
    if global.json {
        output::json(&findings)?;
    } else {
        for it in &findings {
            let terminal = Terminal::of_stdout();
            let mark = match (it.ok, it.detail.starts_with(OFF)) {
                (false, _) => terminal.alarm("FAIL"),
                (true, true) => terminal.alarm("OFF "),
                (true, false) => "ok  ".to_owned(),
            };
            let detail = visible(&it.detail).replace('\n', " ");
            output::line(format_args!("{mark}  {:<13} {detail}", it.check))?;
        }
    }
    Ok(if well { Outcome::Done } else { Outcome::Failed })
}

fn finding(check: &'static str, found: Result<String, String>) -> Finding {
    match found {
        Ok(detail) => Finding { check, ok: true, detail },
        Err(detail) => Finding { check, ok: false, detail },
    }
}

async fn store(global: &Global, config: &Config) -> Result<String, String> {
    if config.database.is_none() && !config.data.exists() {
        // A look leaves nothing behind.
        return Ok(format!("`{}` will be made", config.data.display()));
    }
    match Store::open(&config.location(), clock::new_worker_id()).await {
        Ok(store) => {
            let counted = store.count_by_status().await.map_err(|it| it.to_string());
            let skew = store.now().await.map(|it| clock::now().duration_since(it).abs());
            store.close().await;
            let runs: u64 = counted?.iter().map(|(_, n)| n).sum();
            let skew = skew.map_err(|it| it.to_string())?;
            Ok(format!("{runs} runs; this clock and the store's differ by {skew:#}"))
        }
        Err(OpenError::InUse(dir)) => {
            match client(global).map_err(|it| it.to_string())?.health().await {
                Ok(health) => Ok(format!("in use by a server, version {}", health.version)),
                Err(error) => Err(format!("`{}` is in use, but: {error}", dir.display())),
            }
        }
        Err(error) => Err(error.to_string()),
    }
}

fn models(config: &Config) -> Result<String, String> {
    build_models(config, &environment().collect()).map_err(|it| it.to_string())?;
    Ok(describe_models(config, &environment().collect()))
}

fn organisation(config: &Config) -> Result<String, String> {
    chancery_server::organisation::check(config).map_err(|it| it.to_string())
}

async fn isolation(config: &Config) -> Result<String, String> {
    let workspace = config.workspace();
    // Where there is none yet, any directory tells as much.
    let workspace = if workspace.is_dir() { workspace } else { std::env::temp_dir() };
    let (well, said) = told(&config.isolation(&workspace).await);
    // Whoever wrote it knows it; whoever reads this is to see it.
    if well || said.starts_with(OFF) { Ok(said) } else { Err(said) }
}

async fn port(global: &Global, config: &Config) -> Result<String, String> {
    match tokio::net::TcpListener::bind(config.listen).await {
        Ok(_) => Ok(format!("{} is free", config.listen)),
        Err(error) => {
            let ours = local_url(&config.data) == Some(chancery_server::url(config.listen));
            match client(global) {
                Ok(client) if ours && client.health().await.is_ok() => {
                    Ok(format!("{}: our server answers", config.listen))
                }
                _ => Err(format!("{}: {error}", config.listen)),
            }
        }
    }
}
