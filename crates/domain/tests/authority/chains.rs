//! Delegation only shrinks, however deep it goes, and whatever tools come later.

use chancery_domain::id::{AgentId, UserId};
use chancery_domain::policy::{Bounds, Policy};
use proptest::prelude::*;

use crate::company::*;
use crate::reference::{self, Asked, Company, Limits, Tool};
use crate::rulings::outcome;
use crate::{ROUNDS, cases};

/// The same company when every tool has come.
fn later(company: &Company) -> Company {
    let mut company = company.clone();
    for tool in TOOLS {
        let new = || Tool { risk: "low".to_owned(), capabilities: vec![] };
        company.tools.entry(tool.to_owned()).or_insert_with(new);
    }
    company
}

fn is_names(bounds: &Bounds) -> bool {
    let lists = [Some(&bounds.denied_tools), bounds.allowed_tools.as_ref()];
    lists.into_iter().flatten().flatten().all(|it| !it.contains('*'))
}

/// One chain of delegations, each held against the reference and against what is above it.
fn chain(company: &Company, now: &Policy, then: &Policy, dice: &mut Dice) {
    let user = dice.pick(&USERS);
    let mut parent = dice.maybe_limits();
    for _ in 0..1 + dice.roll(7) {
        // Agents that there are, mostly: what nobody passes on is nothing.
        let by = if dice.roll(12) == 0 { "nobody" } else { dice.pick(&AGENTS[..5]) };
        let asked = dice.maybe_limits();
        let sides = reference::sides(company, parent.as_ref(), by, user, asked.as_ref());
        let child = now.delegate(
            parent.as_ref().map(bounds).as_ref(),
            &AgentId::from(by),
            &UserId::from(user),
            asked.as_ref().map(bounds).as_ref(),
        );
        // What is stored is names.
        assert!(is_names(&child), "{child:?}");
        let below = Some(limits_of(&child));
        let agent = dice.pick(&AGENTS);
        for tool in TOOLS {
            // Exactly what all of them permit; what comes later only where nobody drew a line.
            let expected = match company.tools.contains_key(tool) {
                true => sides.iter().all(|side| side.permit(tool)),
                false => reference::permits_later(&sides, tool),
            };
            assert_eq!(child.permits(tool), expected, "{tool} of {sides:?} in {child:?}");
            // And never more than the parent has, whatever tools come.
            let above = parent.as_ref().is_none_or(|it| it.permit(tool));
            assert!(above || !child.permits(tool), "{tool} of {parent:?} in {child:?}");
        }
        // Whoever acts under it may do no more than under its parent's, now and then.
        let under = |delegated: &Option<Limits>, tool: &str| Asked {
            agent: agent.to_owned(),
            user: user.to_owned(),
            tool: tool.to_owned(),
            delegated: delegated.clone(),
            arguments_fit: true,
            arguments: vec![],
            limits: vec![],
        };
        let tool = dice.pick(&TOOLS);
        for policy in [now, then] {
            let (above, below) = (under(&parent, tool), under(&below, tool));
            assert!(outcome(policy, &below) >= outcome(policy, &above), "{tool}: {below:?}");
        }
        parent = below;
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn delegation_only_shrinks_at_any_depth(company in company(), seed in any::<u64>()) {
        let (now, then) = (policy(&company), policy(&later(&company)));
        let mut dice = Dice(seed);
        for _ in 0..ROUNDS {
            chain(&company, &now, &then, &mut dice);
        }
    }

    /// Bounds meet in any order, and again with no effect.
    #[test]
    fn bounds_meet_the_same_in_any_order(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        for _ in 0..ROUNDS {
            let mut limits = || bounds(&dice.limits());
            let (one, other, third) = (limits(), limits(), limits());
            let meet = |a: &Bounds, b: &Bounds| a.meet(b, TOOLS);
            prop_assert_eq!(meet(&one, &other), meet(&other, &one));
            prop_assert_eq!(meet(&meet(&one, &other), &third), meet(&one, &meet(&other, &third)));
            let met = meet(&one, &other);
            prop_assert_eq!(&meet(&met, &met), &met);
            prop_assert_eq!(&meet(&met, &one), &met);
        }
    }
}
