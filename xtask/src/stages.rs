//! What must pass, one stage after the other, stopping at the first that fails.
//!
//! All stages build with the same profile and the same features, so nothing is built twice.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::keeper::Keeper;
use crate::process::{command, run};
use crate::{licences, postgres, setup, tidy};

const FMT: &str = "fmt --all --check";
const CLIPPY: &str = "clippy --workspace --all-targets -- -D warnings";
// The tidy rules and the licences are among these tests.
const TESTS: &str = "nextest run --workspace";
const DOC_TESTS: &str = "test --doc --workspace";

pub fn test() -> Result<()> {
    let mut keeper = Keeper::start()?;
    let mut stages = Stages::default();
    stages.run("set-up", || setup::ensure(&mut keeper))?;
    stages.run("formatting", || run(&mut keeper, &mut cargo(FMT)?))?;
    stages.run("clippy", || run(&mut keeper, &mut cargo(CLIPPY)?))?;
    let cluster = stages.run("PostgreSQL", || postgres::start(&mut keeper))?;
    stages
        .run("tests", || run(&mut keeper, cargo(TESTS)?.env(postgres::VARIABLE, cluster.url())))?;
    stages.run("doc tests", || run(&mut keeper, &mut cargo(DOC_TESTS)?))?;
    stages.print();
    Ok(())
}

pub fn check() -> Result<()> {
    let mut keeper = Keeper::start()?;
    let mut stages = Stages::default();
    stages.run("formatting", || run(&mut keeper, &mut cargo(FMT)?))?;
    stages.run("clippy", || run(&mut keeper, &mut cargo(CLIPPY)?))?;
    stages.run("tidy", tidy::report)?;
    stages.run("licences", licences::report)?;
    stages.print();
    Ok(())
}

/// The stages so far, with the time that each took.
#[derive(Debug, Default)]
struct Stages {
    done: Vec<(&'static str, Duration)>,
}

impl Stages {
    fn run<T>(&mut self, name: &'static str, stage: impl FnOnce() -> Result<T>) -> Result<T> {
        println!("\n=== {name}");
        let began = Instant::now();
        let result = stage();
        self.done.push((name, began.elapsed()));
        result.inspect_err(|_| self.print()).with_context(|| format!("stage `{name}` failed"))
    }

    fn print(&self) {
        println!("\n=== time per stage");
        for (name, took) in &self.done {
            println!("{:>8.1} s  {name}", took.as_secs_f64());
        }
    }
}

fn cargo(words: &str) -> Result<Command> {
    let mut cargo = command("cargo");
    cargo.args(words.split(' ')).current_dir(tidy::root());
    // What an earlier checkout built remembers where that one was.
    cargo.env("INSTA_WORKSPACE_ROOT", tidy::root());
    cargo.env("CARGO_TARGET_DIR", target_dir()?);
    Ok(cargo)
}

/// Out of the tree, so that a fresh checkout finds what an earlier one built.
pub fn target_dir() -> Result<PathBuf> {
    if let Some(asked) = std::env::var_os("CARGO_TARGET_DIR") {
        return Ok(PathBuf::from(asked));
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let cache = cache.context("set `CARGO_TARGET_DIR`, `XDG_CACHE_HOME` or `HOME`")?;
    Ok(cache.join("chancery/target"))
}
