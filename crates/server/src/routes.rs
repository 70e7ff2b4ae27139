//! The handlers, a file for each thing that they are about.

pub mod health;
pub mod org;
pub mod permissions;
pub mod runs;
pub mod signals;
pub mod tokens;
