//! Seeds that found something once. Each stays, with what it found: whoever breaks that again
//! hears of it at once.

/// A seed, and what it found.
pub const KEPT: &[(u64, &str)] = &[];
