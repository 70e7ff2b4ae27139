//! Doors for a fuzzer to what reads files and texts from outside. Each takes any bytes, and panics
//! where something does not hold that must. Only built with the feature `fuzz`.

pub use crate::archive::fuzz::copy;
pub use crate::audit::fuzz::{audit_entry, audit_export, audit_hash};
