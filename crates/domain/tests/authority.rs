//! Authority, held against a reference that was written apart from it.
//!
//! Each property is tried on some hundreds of random companies, with `ROUNDS` questions to each.
//! `CHANCERY_PROOF_CASES` is how many companies: 40000 make a million chains of delegation.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

#[path = "authority/chains.rs"]
mod chains;
#[path = "authority/company.rs"]
mod company;
#[path = "authority/reference.rs"]
mod reference;
#[path = "authority/rulings.rs"]
mod rulings;
#[path = "authority/tighter.rs"]
mod tighter;

use proptest::test_runner::Config;

const ROUNDS: usize = 25;

fn cases() -> Config {
    let said = std::env::var("CHANCERY_PROOF_CASES").ok().and_then(|it| it.parse().ok());
    Config { cases: said.unwrap_or(400), failure_persistence: None, ..Config::default() }
}
