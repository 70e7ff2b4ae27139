//! `bench`: how fast, each figure beside the raw limit taken in the same run. Absolute figures
//! of a shared machine mean little; the ratios are what counts.

mod agentdojo;
mod authority;
mod claims;
mod doors;
mod engine;
mod load;
mod mail;
mod memory;
mod peer;
mod process;
mod runs;
mod scale;
mod servers;
mod spawn;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use crate::Global;
use crate::outcome::Outcome;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Durable steps, resume latency, memory, start-up
    Runs(RunsArgs),
    /// The work of the peers in `bench/run`, and the raw limits beside it
    Peer(peer::PeerArgs),
    /// How throughput and cost grow with runs, with waiting runs, with workers and servers
    Scale(scale::ScaleArgs),
    /// What recorded attacks come to at the gate, and what the tasks that they were made on
    #[command(name = "agentdojo")]
    AgentDojo(agentdojo::AgentDojoArgs),
    /// What a ruling costs, alone and through the door
    Authority(authority::AuthorityArgs),
    /// What is found of what is remembered, and how long it takes
    Memory(memory::MemoryArgs),
    /// Mail routed and delivered
    Mail(mail::MailArgs),
    /// What a completion through the OpenAI-style door takes, and what the console weighs and holds
    Doors(doors::DoorsArgs),
    /// What it costs to start a process behind walls
    Spawn(spawn::SpawnArgs),
    /// One of several servers on one PostgreSQL
    #[command(hide = true)]
    Drive {
        #[arg(long)]
        seconds: f64,
        #[arg(long)]
        calls: usize,
        #[arg(long, default_value_t = 64)]
        runs: usize,
        #[arg(long, default_value_t = 0.0)]
        thinks: f64,
    },
}

#[derive(Debug, Clone, clap::Args)]
pub struct RunsArgs {
    /// How long each measurement takes
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How many runs wait when memory and start-up are measured
    #[arg(long, default_value_t = 10_000)]
    waiting: u64,
    /// Only the throughput
    #[arg(long)]
    quick: bool,
    /// Up to so many servers on one PostgreSQL
    #[arg(long, default_value_t = 1)]
    servers: usize,
    /// Runs that each of several servers keeps under way
    #[arg(long, default_value_t = 64)]
    server_runs: usize,
    /// Milliseconds that the model of several servers takes to answer
    #[arg(long, default_value_t = 0)]
    model_ms: u64,
    /// The raw limits and the load alternate this often
    #[arg(long, default_value_t = 1)]
    rounds: u32,
}

impl RunsArgs {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Runs(args) => runs::run(global, &args).await,
        Command::Peer(args) => peer::run(global, &args).await,
        Command::Scale(args) => scale::run(global, &args).await,
        Command::AgentDojo(args) => agentdojo::run(global, &args),
        Command::Authority(args) => authority::run(global, &args).await,
        Command::Memory(args) => memory::run(global, &args).await,
        Command::Mail(args) => mail::run(global, &args).await,
        Command::Doors(args) => doors::run(global, &args).await,
        Command::Spawn(args) => spawn::run(global, &args).await,
        Command::Drive { seconds, calls, runs, thinks } => {
            let thinks = Duration::from_secs_f64(thinks);
            let shape = load::Shape { thinks, ..load::Shape::of(runs::STEPS, calls) };
            servers::drive(global, Duration::from_secs_f64(seconds), shape, runs).await
        }
    }
}

/// A folder to measure in, which is removed afterwards: one of nobody's, or one that is named and
/// empty.
fn own_folder(global: &Global) -> anyhow::Result<PathBuf> {
    let dir = std::env::temp_dir().join(format!("chancery-bench-{}", std::process::id()));
    let dir = global.data.clone().unwrap_or(dir);
    std::fs::create_dir_all(&dir)?;
    let is_empty = std::fs::read_dir(&dir)?.next().is_none();
    anyhow::ensure!(is_empty, "`{}` is not empty, and would be removed", dir.display());
    Ok(dir)
}
