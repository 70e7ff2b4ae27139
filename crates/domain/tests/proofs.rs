//! The theorems of `proofs/` hold, and the code does what they are about.
//!
//! The proofs are checked by Coq, the functions that they are about become a program, and that
//! program lists every small input with its answer. Here each answer is held against the code's.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

#[path = "proofs/bounds.rs"]
mod bounds;
#[path = "proofs/latch.rs"]
mod latch;
#[path = "proofs/model.rs"]
mod model;
mod samples;
#[path = "proofs/theorems.rs"]
mod theorems;
#[path = "proofs/verdicts.rs"]
mod verdicts;

use std::collections::BTreeMap;

use chancery_domain::batch::{Clearance, Cover};
use chancery_domain::escalation;
use chancery_domain::event::{Ancestor, Created};
use chancery_domain::id::RuleId;
use chancery_domain::policy::{Ruling, glob};
use serde::Deserialize;
use uuid::Uuid;

use crate::model::Model;

/// One line of the model's table.
#[derive(Debug, Deserialize)]
#[serde(tag = "row", rename_all = "snake_case", deny_unknown_fields)]
enum Row {
    Join { a: Ruling, b: Ruling, is: Ruling },
    Glob { pattern: String, name: String, is: bool },
    Named(bounds::Named),
    Meet(bounds::Meet),
    Link(bounds::Link),
    Chain(bounds::Chain),
    Verdict(verdicts::Asked),
    Depth { ancestors: usize, max: usize, is: bool },
    Again(Again),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Again {
    ruling: Ruling,
    clearance: String,
    granted_as: Option<u8>,
    is_now: Option<u8>,
    rule: bool,
    is: String,
}

#[test]
fn authority_is_what_was_proved_for_every_small_input() {
    let model = Model::build();
    let mut chains = bounds::Chains::default();
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    model.table("authority", |line| {
        let row: Row = serde_json::from_str(line).unwrap();
        let (kind, same) = match &row {
            Row::Join { a, b, is } => ("join", (*a).max(*b) == *is),
            Row::Glob { pattern, name, is } => ("glob", glob(pattern, name) == *is),
            Row::Named(row) => ("named", row.holds()),
            Row::Meet(row) => ("meet", row.holds()),
            Row::Link(row) => ("link", chains.add(row)),
            Row::Chain(row) => ("chain", chains.holds(row)),
            Row::Verdict(row) => ("verdict", row.holds()),
            Row::Depth { ancestors, max, is } => ("depth", is_too_deep(*ancestors, *max) == *is),
            Row::Again(row) => ("again", row.holds()),
        };
        assert!(same, "the code differs from what was proved: {line}");
        *counted.entry(kind).or_default() += 1;
    });
    // All of them, or a table that broke off would prove anything.
    let links = 2 * 3 * 2 * 3;
    let bounds = (1 + 8) * 8;
    let expected = [
        ("again", 4 * 4 * 3 * 3 * 2),
        ("chain", 2 * (links + links * links + links * links * links)),
        ("depth", 6 * 6),
        ("glob", (1 + 3 + 9 + 27 + 81) * (1 + 2 + 4 + 8 + 16)),
        ("join", 4 * 4),
        ("link", links),
        ("meet", 8 * bounds * bounds),
        ("named", 8 * bounds),
        ("verdict", 31 * 29 * 4 * 4 + 3 * 5 * 3 * 21 * 21),
    ];
    assert_eq!(counted, BTreeMap::from(expected));
}

fn is_too_deep(ancestors: usize, max: usize) -> bool {
    let above = Ancestor { run: samples::RUN, group: None };
    let created = Created { ancestors: vec![above; ancestors], ..samples::created() };
    escalation::too_deep(&created, max).is_some()
}

/// A clearance as the model's tables word it.
fn clearance(word: &str) -> Clearance {
    match word {
        "ruled" => Clearance::Ruled,
        "person" => Clearance::Granted { human: true },
        "service" => Clearance::Granted { human: false },
        rule => {
            let number = rule.strip_prefix("rule ").unwrap().parse().unwrap();
            Clearance::Rule(RuleId(Uuid::from_u128(number)))
        }
    }
}

impl Again {
    fn holds(&self) -> bool {
        let [granted_as, is_now] = [self.granted_as, self.is_now].map(|it| it.map(digest));
        let cover = clearance(&self.clearance).covers(
            self.ruling,
            granted_as.as_deref(),
            is_now.as_deref(),
        );
        let said = match cover {
            Cover::Whole => "run",
            Cover::ByRule if self.rule => "run",
            Cover::ByRule | Cover::AnotherTool | Cover::TooLittle => "ask",
            Cover::Denied => "refuse",
        };
        said == self.is
    }
}

fn digest(number: u8) -> String {
    format!("{number:064x}")
}
