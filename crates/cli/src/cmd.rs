//! The commands, a file each.

pub mod audit;
pub mod bench;
pub mod chat;
pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod org;
pub mod run;
pub mod serve;
pub mod token;

use crate::Global;
use crate::outcome::Outcome;
use crate::output;

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
