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

pub use permit::{created, permit};
