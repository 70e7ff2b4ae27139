//! The real binary: what it prints, where, and with which exit code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "cli/agentdojo.rs"]
mod agentdojo;
#[path = "cli/anchors.rs"]
mod anchors;
#[path = "cli/approvals.rs"]
mod approvals;
#[path = "cli/audit.rs"]
mod audit;
#[path = "cli/bank.rs"]
mod bank;
#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/harness.rs"]
mod harness;
#[path = "cli/isolation.rs"]
mod isolation;
#[path = "cli/keeping.rs"]
mod keeping;
#[path = "cli/mail.rs"]
mod mail;
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/names.rs"]
mod names;
#[path = "cli/offline.rs"]
mod offline;
#[path = "cli/org.rs"]
mod org;
#[path = "cli/proving.rs"]
mod proving;
#[path = "cli/readme.rs"]
mod readme;
#[path = "cli/rulings.rs"]
mod rulings;
#[path = "cli/runs.rs"]
mod runs;
#[path = "cli/serving.rs"]
mod serving;
#[path = "cli/settings.rs"]
mod settings;
#[path = "cli/talk.rs"]
mod talk;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/watching.rs"]
mod watching;
