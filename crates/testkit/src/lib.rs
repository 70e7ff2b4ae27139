//! Scripted models, fake servers, the simulator and the store's conformance suite.

pub mod mcp_servers;
mod permit;

pub use permit::permit;
