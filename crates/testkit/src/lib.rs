//! Scripted models, fake servers, the simulator and the store's conformance suite.

pub mod fake_model;
