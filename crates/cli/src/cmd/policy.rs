//! `policy`: reading the rules, and holding them to what one expects of them.

mod diff;
mod expect;
mod matrix;
mod prove;

use chancery_api::permission::Authorize;
use clap::Subcommand;

use crate::Global;
use crate::cmd::can_i::{asked, object};
use crate::cmd::org::side::Side;
use crate::layers;
use crate::outcome::Outcome;
use crate::output::{self, one_line};
use crate::server::client;
use crate::terminal::Terminal;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// What every layer says of a call
    Explain {
        #[arg(long)]
        agent: String,
        #[arg(long)]
        tool: String,
        /// The arguments as JSON [default: they are left aside]
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
        /// Under what this run was given
        #[arg(long)]
        run: Option<String>,
        /// On whose behalf
        #[arg(long, alias = "as", value_name = "PERSON")]
        user: Option<String>,
    },
    /// Role by tool: ✔ allowed, ◐ asked about, ✕ denied; arguments aside
    Matrix {
        /// A directory, a version's number, `running` or `builtin` [default: the server's]
        which: Option<Side>,
    },
    /// What would have been ruled otherwise on past calls and mail, had these files been in force
    Diff(diff::Args),
    /// Whether these files allow anything that others did not, over every call that could be made
    Prove(prove::Args),
    /// Checks a file of expectations: a YAML list of {agent, tool, args?, user?, expect}
    Test(expect::Args),
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Explain { agent, tool, args, run, user } => {
            let arguments = args.as_deref().map(object).transpose()?;
            let client = client(global)?;
            let question = Authorize { agent, tool, arguments, run, user };
            let ruled = asked(&client, question.clone()).await?;
            if global.json {
                output::json(&ruled)?;
            } else {
                let terminal = Terminal::of_stdout();
                let (agent, tool) = (one_line(&question.agent), one_line(&question.tool));
                let mut text = format!("{}  {tool}  {agent}\n", terminal.bold(&ruled.ruling));
                text.push_str(&layers::table(&ruled.layers, terminal));
                text.push_str(&layers::ways(&ruled.ways, None));
                output::raw(text.as_bytes())?;
            }
            Ok(Outcome::Done)
        }
        Command::Matrix { which } => matrix::print(global, which).await,
        Command::Diff(args) => diff::run(global, args).await,
        Command::Prove(args) => prove::run(global, args).await,
        Command::Test(args) => expect::run(global, args).await,
    }
}
