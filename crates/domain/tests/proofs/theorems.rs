//! Every theorem is proved, from nothing but Coq's own logic.

use std::collections::BTreeSet;

use crate::model::{Model, THEORIES, sources};

/// What would make a proof worth nothing.
const HOLES: [&str; 14] = [
    "Admitted",
    "admit",
    "give_up",
    "Axiom",
    "Axioms",
    "Parameter",
    "Parameters",
    "Conjecture",
    "Hypothesis",
    "Variable",
    "Abort",
    "Unset",
    "bypass_check",
    "Declare",
];

fn source(theory: &str) -> String {
    std::fs::read_to_string(sources().join(format!("{theory}.v"))).unwrap()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|it: char| !it.is_alphanumeric() && it != '_').filter(|it| !it.is_empty())
}

/// The statements of one kind, by name.
fn stated<'t>(text: &'t str, kinds: &'t [&str]) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(move |line| {
        let (kind, rest) = line.split_once(' ')?;
        kinds.contains(&kind).then(|| words(rest).next()).flatten()
    })
}

#[test]
fn every_theorem_is_proved_and_stands_on_no_axiom() {
    let mut questions = String::from("From Chancery Require ");
    questions.push_str(&(THEORIES.join(" ") + ".\n"));
    let mut count = 0;
    for theory in THEORIES {
        let text = source(theory);
        let hole = words(&text).find(|it| HOLES.contains(it));
        assert_eq!(hole, None, "in {theory}.v");
        for name in stated(&text, &["Theorem", "Corollary", "Lemma"]) {
            questions.push_str(&format!("Print Assumptions {theory}.{name}.\n"));
            count += 1;
        }
    }
    let model = Model::checked();
    model.write("Assumptions.v", &questions);
    let said = model.coq("Assumptions");
    let closed = said.lines().filter(|it| *it == "Closed under the global context").count();
    assert_eq!(closed, count, "{said}");
    assert!(count > 80 && !said.contains("Axioms"), "{said}");
}

/// So that nobody takes a theorem out and leaves its claim standing, or the other way round.
#[test]
fn the_documents_name_every_theorem_and_no_other() {
    let page = sources().join("../docs/proof.md");
    let page = std::fs::read_to_string(page).unwrap();
    let quoted = page.split('`').skip(1).step_by(2);
    let is_name = |it: &&str| it.contains('_') && it.chars().all(|c| c == '_' || c.is_lowercase());
    let named: BTreeSet<&str> = quoted.filter(is_name).collect();
    let texts = THEORIES.map(source);
    let proved: BTreeSet<&str> =
        texts.iter().flat_map(|it| stated(it, &["Theorem", "Corollary"])).collect();
    assert_eq!(named, proved);
}
