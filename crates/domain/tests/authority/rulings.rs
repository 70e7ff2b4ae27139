//! Rulings and their reasons are those of the reference.

use std::collections::BTreeSet;

use chancery_domain::policy::{Fitness, Layer, Policy, Question, Reason, Ruling};
use proptest::prelude::*;

use crate::company::*;
use crate::reference::{self, Asked};
use crate::{ROUNDS, cases};

/// The ruling of the code under test alone.
pub fn outcome(policy: &Policy, asked: &Asked) -> Ruling {
    let delegated = asked.delegated.as_ref().map(|it| policy.delegation(&bounds(it)));
    let unfit = Fitness::BadArguments(String::new());
    let arguments = reasons("arguments", &asked.arguments);
    let limits = reasons("limits", &asked.limits);
    let verdict = policy.rule(Question {
        agent: &asked.agent,
        user: &asked.user,
        tool: &asked.tool,
        delegated: delegated.as_ref(),
        fitness: if asked.arguments_fit { &Fitness::Fits } else { &unfit },
        arguments: &arguments,
        limits: &limits,
    });
    verdict.outcome()
}

/// What the code under test says: the ruling, its reasons, and the whole table.
fn ruled(policy: &Policy, asked: &Asked) -> (Ruling, Vec<Reason>, Vec<Reason>) {
    let delegated = asked.delegated.as_ref().map(|it| policy.delegation(&bounds(it)));
    let unfit = Fitness::BadArguments("`to` is missing".to_owned());
    let arguments = reasons("arguments", &asked.arguments);
    let limits = reasons("limits", &asked.limits);
    let verdict = policy.rule(Question {
        agent: &asked.agent,
        user: &asked.user,
        tool: &asked.tool,
        delegated: delegated.as_ref(),
        fitness: if asked.arguments_fit { &Fitness::Fits } else { &unfit },
        arguments: &arguments,
        limits: &limits,
    });
    (verdict.outcome(), verdict.reasons(), verdict.table())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_ruling_is_the_strictest_word_of_the_reference(company in company(), seed in any::<u64>()) {
        let (policy, mut dice) = (policy(&company), Dice(seed));
        for _ in 0..ROUNDS {
            let asked = dice.asked();
            let said = reference::layers(&company, &asked);
            let expected = reference::ruling(&company, &asked);
            let (ruling, reasons, table) = ruled(&policy, &asked);
            prop_assert_eq!(ruling, to_ruling(&expected), "{:?} {:?}", asked, said);
            prop_assert_eq!(ruling, outcome(&policy, &asked));

            // Strictest first, and the first is the one that decided.
            prop_assert_eq!(reasons.first().map(|it| it.outcome), Some(ruling));
            let sorted = reasons.is_sorted_by(|one, next| one.outcome >= next.outcome);
            prop_assert!(sorted, "{:?}", reasons);
            // Every layer that speaks is there, with its strictest word; and no other is.
            let speakers: BTreeSet<&str> = said.iter().map(|(layer, _)| *layer).collect();
            let shown: BTreeSet<&str> = reasons.iter().map(|it| &*it.layer).collect();
            prop_assert_eq!(&shown, &speakers, "{:?}", reasons);
            for (layer, word) in &said {
                let words = reasons.iter().filter(|it| it.layer == *layer);
                let strictest = words.map(|it| it.outcome).max();
                prop_assert_eq!(strictest, Some(to_ruling(word)), "{}", layer);
            }
            prop_assert!(reasons.iter().all(|it| !it.rule.is_empty() && !it.detail.is_empty()));
            // The table has all eight, in their order, with nothing left out.
            let mut layers: Vec<&str> = table.iter().map(|it| &*it.layer).collect();
            layers.dedup();
            prop_assert_eq!(layers, Layer::ALL.map(Layer::as_str).to_vec());
            let spoken = table.iter().filter(|it| !it.rule.is_empty());
            prop_assert_eq!(spoken.count(), reasons.len());
        }
    }

    #[test]
    fn the_tools_that_are_offered_are_those_that_are_not_denied(company in company(), seed in any::<u64>()) {
        let (policy, mut dice) = (policy(&company), Dice(seed));
        for _ in 0..ROUNDS {
            let asked = Asked { arguments_fit: true, arguments: vec![], limits: vec![], ..dice.asked() };
            let delegated = asked.delegated.as_ref().map(|it| policy.delegation(&bounds(it)));
            let expected = reference::ruling(&company, &asked) != "deny";
            let offered = policy.offers(&asked.agent, &asked.user, delegated.as_ref(), &asked.tool);
            prop_assert_eq!(offered, expected, "{:?}", asked);
            // What is not there or not known is denied, whatever else is said.
            let known =
                company.tools.contains_key(&asked.tool) && company.agents.contains_key(&asked.agent);
            prop_assert!(known || !offered);
        }
    }

    #[test]
    fn a_name_matches_as_letter_by_letter(pattern in "[ab*]{0,6}", name in "[ab]{0,7}") {
        prop_assert_eq!(chancery_domain::policy::glob(&pattern, &name), reference::matches(&pattern, &name));
    }
}
