//! The handlers, a file for each thing that they are about.

pub mod audit;
pub mod health;
pub mod runs;
pub mod signals;
pub mod tokens;
