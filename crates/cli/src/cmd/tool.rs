//! `tool`: what there is to call, and what would come of it.

use clap::Subcommand;

use crate::Global;
use crate::cmd::can_i;
use crate::outcome::Outcome;
use crate::output;
use crate::server::client;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Every tool, with its risk and what it can do
    Ls {
        /// At most so many [default: all of them]
        #[arg(long)]
        limit: Option<usize>,
    },
    /// What would come of a call: yes (0), ask (8) or no (6); nothing runs
    Try(can_i::Args),
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Try(args) => can_i::run(global, args).await,
        Command::Ls { limit } => {
            let mut page = client(global)?.tools().await?;
            page.items.truncate(limit.unwrap_or(usize::MAX));
            if global.json {
                output::json(&page)?;
            } else {
                let row = |it: chancery_api::org::Tool| {
                    let about = it.description.lines().next().unwrap_or_default().to_owned();
                    vec![it.name, it.kind, it.risk, it.capabilities.join(" "), about]
                };
                let rows = page.items.into_iter().map(row).collect();
                output::table_of_ids(&["TOOL", "KIND", "RISK", "CAN", "ABOUT"], rows, 0)?;
            }
            Ok(Outcome::Done)
        }
    }
}
