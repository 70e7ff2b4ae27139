//! `completions`: for a shell to load.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::outcome::Outcome;

#[derive(Debug, clap::Args)]
pub struct Args {
    shell: Shell,
}

pub fn run<C: CommandFactory>(args: &Args) -> anyhow::Result<Outcome> {
    clap_complete::generate(args.shell, &mut C::command(), "chancery", &mut std::io::stdout());
    Ok(Outcome::Done)
}
