//! Scripted models, fake servers, the simulator and the store's conformance suite.

pub mod postgres;
pub mod fake_model;
