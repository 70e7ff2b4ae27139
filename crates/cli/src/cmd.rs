//! The commands, a file each.

pub mod approval;
pub mod audit;
pub mod backup;
pub mod bench;
pub mod can_i;
pub mod can_mail;
pub mod chat;
pub mod completions;
pub mod config;
pub mod contract;
pub mod demo;
pub mod doctor;
pub mod login;
pub mod mail;
pub mod mcp;
pub mod memory;
pub mod model;
pub mod org;
pub mod policy;
pub mod restore;
pub mod rule;
pub mod run;
pub mod scratch;
pub mod serve;
pub mod test;
pub mod token;
pub mod tool;
pub mod user;
pub mod webhook;
pub mod why;

use crate::Global;
use crate::outcome::{self, Outcome};
use crate::output;

/// What the exit codes mean.
pub fn exit_codes() -> anyhow::Result<Outcome> {
    output::line(format_args!("{}", outcome::CODES))?;
    Ok(Outcome::Done)
}

/// Which version this is.
pub fn version(global: &Global) -> anyhow::Result<Outcome> {
    let version = env!("CARGO_PKG_VERSION");
    if global.json {
        output::json(&serde_json::json!({ "version": version }))?;
    } else {
        output::line(format_args!("chancery {version}"))?;
    }
    Ok(Outcome::Done)
}
