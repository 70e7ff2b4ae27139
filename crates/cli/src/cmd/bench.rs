//! `bench`: how fast, each figure beside the raw limit taken in the same run.

use clap::Subcommand;

use crate::Global;
use crate::outcome::Outcome;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Durable steps, resume latency, memory, start-up
    Runs,
}

pub async fn run(_: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Runs => anyhow::bail!("later"),
    }
}
