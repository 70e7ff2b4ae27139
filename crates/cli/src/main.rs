//! The one binary. Every command is a file in `cmd`; how it went is an exit code of `outcome`.

mod cmd;
mod elapsed;
mod fields;
mod isolation;
mod layers;
mod matches;
mod outcome;
mod output;
mod server;
mod terminal;
mod window;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use outcome::Outcome;

/// Runs AI agents under authority that the system enforces, not the prompt.
#[derive(Debug, Parser)]
#[command(name = "chancery", version, after_help = outcome::HELP)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Global {
    /// Answer in JSON
    #[arg(long, global = true)]
    json: bool,
    /// Does not ask whether it is meant; few commands do
    #[arg(long, global = true)]
    yes: bool,
    /// Where everything is kept that is not in a PostgreSQL [default: chancery-data]
    #[arg(long, alias = "data-dir", global = true, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A PostgreSQL to share instead of the SQLite in the data directory
    #[arg(long, global = true, value_name = "URL")]
    database: Option<String>,
    /// The settings' file [default: chancery.toml, where there is one]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A server elsewhere [default: the one that uses the data directory]
    #[arg(long, global = true, env = "CHANCERY_URL", value_name = "URL")]
    url: Option<String>,
    /// The token to speak with [default: the operator's, from the data directory]
    #[arg(
        long,
        global = true,
        env = "CHANCERY_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The server
    Serve(cmd::serve::Args),
    /// The whole story in one terminal: a scripted agent, nothing leaves the machine
    Demo(cmd::demo::Args),
    /// Runs: start, look, speak, signal, cancel
    #[command(subcommand)]
    Run(cmd::run::Command),
    /// What waits for a person: look, approve, deny, edit, extend, watch
    #[command(subcommand)]
    Approval(cmd::approval::Command),
    /// Decisions that are remembered: list, show, narrow, revoke
    #[command(subcommand)]
    Rule(cmd::rule::Command),
    /// Why something was allowed, asked or denied
    Why(cmd::why::Args),
    /// What would happen: yes (0), ask (8) or no (6); nothing runs
    #[command(name = "can-i")]
    CanI(cmd::can_i::Args),
    /// The rules: explain a call, check expectations
    #[command(subcommand)]
    Policy(cmd::policy::Command),
    /// Talk with an agent
    Chat(cmd::chat::Args),
    /// Keeps a server elsewhere and a token for it, for where nothing else says which
    Login(cmd::login::Args),
    /// Forgets them
    Logout,
    /// Tokens: make, list, revoke
    #[command(subcommand)]
    Token(cmd::token::Command),
    /// The audit: look at it, carry it away, check it
    #[command(subcommand)]
    Audit(cmd::audit::Command),
    /// What agents write to one another
    #[command(subcommand)]
    Mail(cmd::mail::Command),
    /// Work that was handed down
    #[command(subcommand)]
    Contract(cmd::contract::Command),
    /// Whether a mail would be delivered
    CanMail(cmd::can_mail::Args),
    /// Tools for agents outside, and from servers outside
    #[command(subcommand)]
    Mcp(cmd::mcp::Command),
    /// What is remembered: list, search, show, forget, carry away
    #[command(subcommand)]
    Memory(cmd::memory::Command),
    /// The organisation: show, write out, check, compare, change
    #[command(subcommand)]
    Org(cmd::org::Command),
    /// Models: list them, try one
    #[command(subcommand)]
    Model(cmd::model::Command),
    /// Tools: list them, see what would come of a call
    #[command(subcommand)]
    Tool(cmd::tool::Command),
    /// People: list them, let one in, shut one out
    #[command(subcommand)]
    User(cmd::user::Command),
    /// Who is told what happens: list them, try one, what was told
    #[command(subcommand)]
    Webhook(cmd::webhook::Command),
    /// Plays scenarios against the rules: what is allowed, asked and denied
    Test(cmd::test::Args),
    /// Settings: show them with their origin, check them
    #[command(subcommand)]
    Config(cmd::config::Command),
    /// Writes a copy of everything that is recorded, also while servers are at work
    Backup(cmd::backup::Args),
    /// Puts a copy back, into a store that nobody has used
    Restore(cmd::restore::Args),
    /// Checks settings, store, models, tools and ports
    Doctor(cmd::doctor::Args),
    /// How fast, beside the raw limit of this disk
    #[command(subcommand)]
    Bench(cmd::bench::Command),
    /// Completions for a shell
    Completions(cmd::completions::Args),
    /// The version
    Version,
    /// What the exit codes mean
    #[command(name = "exit-codes", long_about = outcome::CODES, help_template = "{about}\n")]
    ExitCodes,
}

fn main() -> ExitCode {
    // Before there is a second thread.
    if let Some(code) = chancery_runtime::sandbox::launch::if_asked() {
        return code;
    }
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(command()),
        Err(error) => {
            output::note(format_args!("error: {error}"));
            ExitCode::from(Outcome::Failed as u8)
        }
    }
}

async fn command() -> ExitCode {
    let Cli { global, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let as_json = std::env::args_os().any(|it| it == "--json");
            return ExitCode::from(outcome::of_usage(&error, as_json) as u8);
        }
    };
    let done = match command {
        Command::Serve(args) => cmd::serve::run(&global, args).await,
        Command::Demo(args) => cmd::demo::run(&global, args).await,
        Command::Run(command) => cmd::run::run(&global, command).await,
        Command::Approval(command) => cmd::approval::run(&global, command).await,
        Command::Rule(command) => cmd::rule::run(&global, command).await,
        Command::Why(args) => cmd::why::run(&global, args).await,
        Command::CanI(args) => cmd::can_i::run(&global, args).await,
        Command::Policy(command) => cmd::policy::run(&global, command).await,
        Command::Chat(args) => cmd::chat::run(&global, args).await,
        Command::Login(args) => cmd::login::login(&global, args).await,
        Command::Logout => cmd::login::logout(&global),
        Command::Token(command) => cmd::token::run(&global, command).await,
        Command::Audit(command) => cmd::audit::run(&global, command).await,
        Command::Mail(command) => cmd::mail::run(&global, command).await,
        Command::Contract(command) => cmd::contract::run(&global, command).await,
        Command::CanMail(args) => cmd::can_mail::run(&global, args).await,
        Command::Mcp(command) => cmd::mcp::run(&global, command).await,
        Command::Memory(command) => cmd::memory::run(&global, command).await,
        Command::Org(command) => cmd::org::run(&global, command).await,
        Command::Model(command) => cmd::model::run(&global, command).await,
        Command::Tool(command) => cmd::tool::run(&global, command).await,
        Command::User(command) => cmd::user::run(&global, command).await,
        Command::Webhook(command) => cmd::webhook::run(&global, command).await,
        Command::Test(args) => cmd::test::run(&global, args).await,
        Command::Config(command) => cmd::config::run(&global, command),
        Command::Backup(args) => cmd::backup::run(&global, args).await,
        Command::Restore(args) => cmd::restore::run(&global, args).await,
        Command::Doctor(args) => cmd::doctor::run(&global, args).await,
        Command::Bench(command) => cmd::bench::run(&global, command).await,
        Command::Completions(args) => cmd::completions::run::<Cli>(&args),
        Command::Version => cmd::version(&global),
        Command::ExitCodes => cmd::exit_codes(),
    };
    let outcome = done.unwrap_or_else(|error| outcome::of_error(&error, global.json));
    ExitCode::from(outcome as u8)
}
