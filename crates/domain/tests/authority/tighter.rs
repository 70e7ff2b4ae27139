//! Adding a rule never loosens any ruling.

use proptest::prelude::*;

use crate::company::*;
use crate::reference::{self, Asked, Company, Limits};
use crate::rulings::outcome;
use crate::{ROUNDS, cases};

/// A rule that somebody adds.
#[derive(Debug, Clone)]
enum Rule {
    RoleDenies(String),
    RoleLoses(usize),
    RoleHasOnly(Vec<String>),
    RunDenied(String),
    RunLoses(usize),
    RunHasOnly(Limits),
    UserDenied(String),
    UserLoses(usize),
    UserHasOnly(Vec<String>),
    Deactivated,
    Risk(&'static str, &'static str),
    Capability(&'static str, &'static str),
    Entry(String, &'static str),
    MoreCapable(&'static str),
    Riskier,
    Argument(&'static str),
    Limit(&'static str),
    BadArguments,
}

fn rule(dice: &mut Dice) -> Rule {
    let ruling = dice.pick(&reference::RULINGS);
    let capability = dice.pick(&["payment", "deploy", "write_db"]);
    // Names waive the risk, so a list that somebody newly draws is of patterns here.
    let patterns: Vec<String> =
        (0..dice.roll(3)).map(|_| dice.pick(&["*", "git*", "p*", "*_file"]).to_owned()).collect();
    match dice.roll(18) {
        0 => Rule::RoleDenies(dice.entry()),
        1 => Rule::RoleLoses(dice.roll(8)),
        2 => Rule::RoleHasOnly(patterns),
        3 => Rule::RunDenied(dice.entry()),
        4 => Rule::RunLoses(dice.roll(8)),
        5 => Rule::RunHasOnly(dice.limits()),
        6 => Rule::UserDenied(dice.entry()),
        7 => Rule::UserLoses(dice.roll(8)),
        8 => Rule::UserHasOnly(patterns),
        9 => Rule::Deactivated,
        10 => Rule::Risk(dice.pick(&["low", "medium", "high"]), ruling),
        11 => Rule::Capability(capability, ruling),
        12 => Rule::Entry(dice.entry(), ruling),
        13 => Rule::MoreCapable(capability),
        14 => Rule::Riskier,
        15 => Rule::Argument(ruling),
        16 => Rule::Limit(ruling),
        _ => Rule::BadArguments,
    }
}

fn lose(list: Option<&mut Vec<String>>, which: usize) {
    if let Some(list) = list.filter(|it| !it.is_empty()) {
        list.remove(which % list.len());
    }
}

/// Of two rulings under one name the stricter stays.
fn stricter(from: Option<&String>, default: &str, given: &str) -> String {
    let before = from.map_or(default, |it| it.as_str());
    let all = [before, given];
    let strictest = all.iter().max_by_key(|it| reference::strictness(it));
    strictest.map_or(String::new(), |it| (*it).to_owned())
}

fn add(company: &mut Company, asked: &mut Asked, rule: &Rule) {
    let role = company.agents.get(&asked.agent).map(|it| it.role.clone());
    let role = role.and_then(|it| company.roles.get_mut(&it));
    let user = company.users.entry(asked.user.clone()).or_default();
    let delegated = asked.delegated.get_or_insert_default();
    match rule {
        Rule::RoleDenies(it) => role.into_iter().for_each(|role| role.deny_tools.push(it.clone())),
        Rule::RoleLoses(it) => lose(role.and_then(|role| role.tools.as_mut()), *it),
        Rule::RoleHasOnly(list) => {
            for role in role.into_iter().filter(|it| it.tools.is_none()) {
                role.tools = Some(list.clone());
            }
        }
        Rule::RunDenied(it) => delegated.denied.push(it.clone()),
        Rule::RunLoses(it) => lose(delegated.allowed.as_mut(), *it),
        Rule::RunHasOnly(it) if *delegated == Limits::default() => *delegated = it.clone(),
        Rule::RunHasOnly(_) => {}
        Rule::UserDenied(it) => user.denied.push(it.clone()),
        Rule::UserLoses(it) => lose(user.allowed.as_mut(), *it),
        Rule::UserHasOnly(list) if user.allowed.is_none() => user.allowed = Some(list.clone()),
        Rule::UserHasOnly(_) => {}
        Rule::Deactivated => company.agents.values_mut().for_each(|it| it.active = false),
        Rule::Risk(risk, given) => {
            let default = if *risk == "high" { "require_approval" } else { "allow" };
            let ruling = stricter(company.risk.get(*risk), default, given);
            company.risk.insert((*risk).to_owned(), ruling);
        }
        Rule::Capability(name, given) => {
            let ruling = stricter(company.capabilities.get(*name), "allow", given);
            company.capabilities.insert((*name).to_owned(), ruling);
        }
        Rule::Entry(name, given) => {
            let ruling = stricter(company.entries.get(name), "allow", given);
            company.entries.insert(name.clone(), ruling);
        }
        Rule::MoreCapable(name) => {
            company.tools.values_mut().for_each(|it| it.capabilities.push((*name).to_owned()));
        }
        // With the defaults, for rulings by risk may be in any order.
        Rule::Riskier if company.risk.is_empty() => {
            company.tools.values_mut().for_each(|it| it.risk = "high".to_owned());
        }
        Rule::Riskier => {}
        Rule::Argument(it) => asked.arguments.push((*it).to_owned()),
        Rule::Limit(it) => asked.limits.push((*it).to_owned()),
        Rule::BadArguments => asked.arguments_fit = false,
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn a_rule_more_never_loosens_a_ruling(company in company(), seed in any::<u64>()) {
        let mut dice = Dice(seed);
        for _ in 0..ROUNDS / 5 {
            let (mut company, mut asked) = (company.clone(), dice.asked());
            let mut before = outcome(&policy(&company), &asked);
            for _ in 0..5 {
                let rule = rule(&mut dice);
                add(&mut company, &mut asked, &rule);
                let after = outcome(&policy(&company), &asked);
                prop_assert!(after >= before, "{:?} became {:?} by {:?}", before, after, rule);
                before = after;
            }
        }
    }
}
