//! `serve`: the server, until it is told to stop.

use std::path::PathBuf;

use anyhow::Context as _;
use chancery_server::config::{Config, Layers, describe_models};
use chancery_server::{Running, start};
use tokio::signal::unix::{SignalKind, signal};
use toml::{Table, Value};

use crate::Global;
use crate::isolation;
use crate::outcome::Outcome;
use crate::output;
use crate::server::{environment, settings};
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen [default: 127.0.0.1:7717]
    #[arg(long, alias = "addr", value_name = "ADDRESS")]
    listen: Option<String>,
    /// The organisation's files [default: the built-in organisation]
    #[arg(long, value_name = "DIR")]
    org: Option<PathBuf>,
    /// Where agents read and write [default: `workspace` in the data directory]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Runs driven at once [default: 64]
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let mut flags = Table::new();
    let text = |path: PathBuf| Value::String(path.display().to_string());
    flags.extend(args.listen.map(|it| ("listen".to_owned(), Value::String(it))));
    flags.extend(args.org.map(|it| ("org".to_owned(), text(it))));
    flags.extend(args.workspace.map(|it| ("workspace".to_owned(), text(it))));
    flags.extend(args.workers.map(|it| ("workers".to_owned(), Value::Integer(it.into()))));
    let (config, layers) = settings(global, flags)?;
    log();
    raise_open_files();
    // Before the banner, so that whoever reads it may stop us at once.
    let mut terminate = signal(SignalKind::terminate()).context("signals")?;
    let running = start(&config, environment()).await?;
    for warning in &running.tools.warnings {
        output::note(format_args!("warning: {warning}"));
    }
    banner(&config, &layers, &running);
    let (well, told) = isolation::told(&running.isolation);
    let told = format!("  Isolation   {told}");
    let told = if well { told } else { Terminal::of_stderr().alarm(&told) };
    output::note(format_args!("{told}"));
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    output::note(format_args!(
        "stopping: steps in flight end, leases are given back; once more stops at once"
    ));
    tokio::select! {
        () = running.stop() => Ok(Outcome::Done),
        _ = tokio::signal::ctrl_c() => Ok(Outcome::Interrupted),
        _ = terminate.recv() => Ok(Outcome::Interrupted),
    }
}

/// Everyone who looks on holds a connection, and the usual soft limit is for programs of another
/// kind. What is started for agents has a limit of its own.
fn raise_open_files() {
    const WANTED: u64 = 16_384;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED, |it| it.min(WANTED));
    if current.is_some_and(|it| it < wanted) {
        // The lower limit is no reason not to serve.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

fn banner(config: &Config, layers: &Layers, running: &Running) {
    let url = running.url();
    let first = running
        .invitation
        .as_ref()
        .map_or(String::new(), |link| format!("\n  First visit {link}   (works once, 30 min)"));
    let file =
        layers.file.as_ref().map_or("none (defaults)".to_owned(), |it| it.display().to_string());
    let store = match &config.database {
        Some(_) => "PostgreSQL, shared".to_owned(),
        None => format!("{} (SQLite, kept)", config.data.display()),
    };
    let org = config.org.as_ref().map_or("built in".to_owned(), |it| it.display().to_string());
    output::note(format_args!(
        "Chancery {}\n  Console     {url}{first}\n  API         {url}   docs {url}/docs\n  Settings    {file}\n  Data        {store}\n  \
         Organisation {org}\n  Models      {}\n  Telemetry   none",
        env!("CARGO_PKG_VERSION"),
        describe_models(config, &environment().collect()),
    ));
}

/// Structured logs to standard error; `CHANCERY_LOG` says how much.
pub fn log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("CHANCERY_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let json = std::env::var("CHANCERY_LOG_FORMAT").is_ok_and(|it| it == "json");
    // A log that nobody reads any more is no reason to stop.
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(Terminal::of_stderr().colours)
        .log_internal_errors(false);
    // A second one in the same process (tests) stays with the first.
    let _ = if json { subscriber.json().try_init() } else { subscriber.try_init() };
}
