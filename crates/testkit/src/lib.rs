//! Scripted models, fake servers, the simulator and the store's conformance suite.

pub mod fake_model;
pub mod mcp_servers;
mod permit;
pub mod postgres;

pub use permit::permit;
