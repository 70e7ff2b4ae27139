//! The work. The only crate that calls models and tools.

pub mod model;
pub mod tool;
