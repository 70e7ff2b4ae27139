//! Scripted models, fake servers, the simulator, the explorer and the store's conformance suite.

pub mod conformance;
pub mod explore;
pub mod fake_embeddings;
pub mod fake_issuer;
pub mod fake_model;
pub mod mcp_servers;
mod permit;
pub mod postgres;
pub mod road;
pub mod simulator;

use std::path::PathBuf;

pub use permit::{created, permit};

/// The folder of the package whose tests run. Asked of the cargo that runs them, not of the one
/// that built them: two checkouts may share what was built. Without one, it is where they run.
pub fn package() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default())
}
