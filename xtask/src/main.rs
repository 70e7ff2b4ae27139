//! The one task runner: `cargo xtask` lists the tasks.
//!
//! It depends on little, so that it is built in seconds, and stands apart from what it builds.

mod cluster;
mod graph;
mod keeper;
mod licences;
mod postgres;
mod process;
mod release;
mod sbom;
mod setup;
mod stages;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

const TASKS: &str = "\
cargo xtask <task>

  test               everything that must pass: formatting, clippy, all tests on both databases
  check              formatting, clippy and tidy: what needs no database
  tidy               the rules about this tree that the compiler cannot hold
  licences           licences, bans and sources of everything that is built, as deny.toml has them
  sbom               what the binary is made of (CycloneDX 1.5), on standard output
  release DIR        the binary of this commit, its digest and its SBOM
  postgres -- CMD…   run a command beside a temporary PostgreSQL ($CHANCERY_TEST_POSTGRES)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Result<ExitCode> {
    match words {
        [] | ["help" | "--help" | "-h"] => print!("{TASKS}"),
        ["test"] => stages::test()?,
        ["check"] => stages::check()?,
        ["tidy"] => tidy::report()?,
        ["licences"] => licences::report()?,
        ["sbom"] => print!("{}", sbom::text()?),
        ["release", into] => release::release(Path::new(into))?,
        ["postgres", "--", program, rest @ ..] | ["postgres", program, rest @ ..] => {
            return postgres::beside(program, rest);
        }
        ["postgres"] => bail!("say what to run: `cargo xtask postgres -- CMD…`"),
        [task, ..] => {
            bail!("there is no task `{task}` that takes these arguments; `cargo xtask` lists all")
        }
    }
    Ok(ExitCode::SUCCESS)
}
