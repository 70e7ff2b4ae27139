//! Every interleaving of deciders, clocks, crashes and workers over one batch.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::time::Instant;

use chancery_domain::policy::Ruling::{self, Allow, Deny, RequireApproval, RequireHuman};
use chancery_testkit::explore::{Explored, Plan, Planted, answers_commute, explore};

const RULINGS: [Ruling; 4] = [Allow, RequireApproval, RequireHuman, Deny];

fn plan(rulings: &[Ruling]) -> Plan {
    Plan {
        rulings: rulings.to_vec(),
        escalates: false,
        parallel: false,
        crashes: 1,
        takeovers: 0,
        cancel: false,
        speak: false,
        doors: true,
        stricter: None,
        planted: None,
    }
}

/// Every combination of rulings for a batch of that many calls.
fn batches(calls: usize) -> Vec<Vec<Ruling>> {
    (0..calls).fold(vec![vec![]], |batches, _| {
        let longer = |batch: &Vec<Ruling>| RULINGS.map(|ruling| [&batch[..], &[ruling]].concat());
        batches.iter().flat_map(longer).collect()
    })
}

/// Explores all plans, on as many threads as there are, and says how much that was.
fn explore_all(name: &str, plans: Vec<Plan>) {
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let explored: Vec<Explored> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut explored = Vec::new();
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(plan) = plans.get(at) else { return explored };
                        explored.push(explore(plan).unwrap_or_else(|wrong| panic!("{wrong}")));
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    let states: u64 = explored.iter().map(|it| it.states).sum();
    let logs: u64 = explored.iter().map(|it| it.logs).sum();
    let ways = explored.iter().fold(0u128, |sum, it| sum.saturating_add(it.interleavings));
    let took = began.elapsed();
    let plans = plans.len();
    println!("{name}: {plans} plans, {states} states, {logs} logs, {ways} ways, {took:?}");
}

#[test]
fn one_call_with_everything_that_can_happen() {
    let mut plans = Vec::new();
    for rulings in batches(1) {
        for escalates in [false, true] {
            let (cancel, speak) = (true, true);
            let all = Plan { cancel, speak, escalates, takeovers: 1, ..plan(&rulings) };
            plans.push(Plan { crashes: 2, speak: false, ..all.clone() });
            plans.push(Plan { takeovers: 2, crashes: 0, speak: false, ..all.clone() });
            plans.push(all);
        }
    }
    explore_all("one call", plans);
}

#[test]
fn two_calls_with_every_two_things_that_can_happen() {
    let mut plans = Vec::new();
    for rulings in batches(2) {
        let plan = plan(&rulings);
        plans.push(Plan { cancel: true, ..plan.clone() });
        plans.push(Plan { speak: true, ..plan.clone() });
        plans.push(Plan { takeovers: 1, ..plan.clone() });
        plans.push(Plan { escalates: true, ..plan.clone() });
        plans.push(Plan { cancel: true, takeovers: 1, crashes: 0, ..plan.clone() });
        plans.push(Plan { cancel: true, speak: true, crashes: 0, ..plan });
    }
    explore_all("two calls", plans);
}

#[test]
fn three_calls_with_a_crash_or_a_cancel() {
    let crash = |rulings: Vec<Ruling>| Plan { doors: false, ..plan(&rulings) };
    let cancel = |rulings: Vec<Ruling>| Plan { cancel: true, crashes: 0, ..crash(rulings) };
    let plans = batches(3).into_iter().flat_map(|it| [crash(it.clone()), cancel(it)]);
    explore_all("three calls", plans.collect());
}

#[test]
fn calls_that_overlap() {
    let of = |rulings: Vec<Ruling>| Plan { parallel: true, ..plan(&rulings) };
    let lost = |rulings: [Ruling; 2]| Plan { takeovers: 1, ..of(rulings.to_vec()) };
    let three = [vec![Allow; 3], vec![Allow, RequireHuman, Allow]].map(of);
    let two = batches(2).into_iter().map(of);
    let lost = [[Allow, Allow], [Allow, RequireHuman]].map(lost);
    explore_all("overlapping calls", two.chain(three).chain(lost).collect());
}

#[test]
fn rules_that_become_stricter_at_any_moment() {
    let mut plans = Vec::new();
    for rulings in batches(1).into_iter().chain(batches(2)) {
        for (call, ruling) in (0u8..).zip(&rulings) {
            for stricter in RULINGS.into_iter().filter(|it| it > ruling) {
                plans.push(Plan { stricter: Some((call, stricter)), ..plan(&rulings) });
            }
        }
    }
    explore_all("stricter rules", plans);
}

#[test]
fn answers_to_different_calls_commute() {
    let mut tried = 0;
    for rulings in batches(3) {
        for escalates in [false, true] {
            tried += answers_commute(&Plan { escalates, ..plan(&rulings) }).unwrap();
        }
    }
    assert!(tried > 1000, "{tried}");
}

/// An explorer that finds nothing may be looking at nothing.
#[test]
fn what_is_planted_is_found() {
    let planted = |planted: Planted, rulings: &[Ruling]| {
        let planted = Some(planted);
        let stricter = Some((0, Deny));
        let cancel = true;
        explore(&Plan { planted, stricter, cancel, ..plan(rulings) })
    };
    assert!(planted(Planted::BlindStore, &[Allow]).is_err());
    assert!(planted(Planted::ActsFirst, &[Allow]).is_err());
    assert!(planted(Planted::TrustsTheRuling, &[RequireHuman]).is_err());
}
