//! Scripted models, fake servers, the simulator and the store's conformance suite.

pub mod conformance;
pub mod postgres;
pub mod simulator;
