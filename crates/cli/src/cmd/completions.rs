//! `completions`: for a shell to load.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, clap::Args)]
pub struct Args {
    shell: Shell,
}

pub fn run<C: CommandFactory>(args: &Args) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut C::command(), "chancery", &mut script);
    output::raw(&script)?;
    Ok(Outcome::Done)
}
