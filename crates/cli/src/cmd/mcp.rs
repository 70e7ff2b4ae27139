//! `mcp`: the tools of a role over standard input and output, and the servers that tools come
//! from.

mod add;
mod bridge;

use clap::Subcommand;

use crate::Global;
use crate::outcome::Outcome;
use crate::output;
use crate::server::client;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Speaks MCP over standard input and output, for the agent that CHANCERY_TOKEN is for
    Serve,
    /// Writes one into the organisation's `tools.yaml`
    Add(add::Args),
    /// The MCP servers that tools come from
    Ls {
        /// At most so many [default: all of them]
        #[arg(long)]
        limit: Option<usize>,
    },
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Serve => bridge::serve(client(global)?).await?,
        Command::Add(args) => return add::add(global, args),
        Command::Ls { limit } => {
            let mut page = client(global)?.mcp_servers().await?;
            page.items.truncate(limit.unwrap_or(usize::MAX));
            if global.json {
                output::json(&page)?;
            } else {
                let rows = page.items.into_iter();
                let rows = rows.map(|it| vec![it.name, it.state, it.tools.join(" ")]);
                output::table(&["SERVER", "STATE", "TOOLS"], rows.collect())?;
            }
        }
    }
    Ok(Outcome::Done)
}
