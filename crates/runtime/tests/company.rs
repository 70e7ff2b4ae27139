//! The whole system, simulated: companies of servers, runs, groups and people, from seeds.
//! [docs/simulator.md] says what is real in it, and how a seed is played again.

use chancery_store::fault::Plant;
use chancery_testkit::conformance::Home;
use chancery_testkit::simulator::company::twin::twins;
use chancery_testkit::simulator::company::{self, KEPT, Mistake, Tally};

/// How many events are played in all. A night takes as many as it likes.
const EVENTS: u64 = 1_040_000;
/// In how many tests, so that all cores have some.
const PARTS: u64 = 4;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|it| it.parse().ok())
}

/// Plays one seed after the other, until enough is played. `CHANCERY_COMPANY_SEED` plays that one
/// alone, `CHANCERY_COMPANY_EVENTS` says how much is enough, for all parts together.
fn play_from(base: u64) {
    if let Some(seed) = number("CHANCERY_COMPANY_SEED") {
        let played = company::play(seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        return println!("{played:?}");
    }
    let enough = number("CHANCERY_COMPANY_EVENTS").unwrap_or(EVENTS).div_ceil(PARTS);
    let mut played = Tally::default();
    let mut seed = base;
    while played.events < enough {
        match company::play(seed) {
            Ok(tally) => played += tally,
            Err(wrong) => panic!(
                "play it again with CHANCERY_COMPANY_SEED={seed} cargo test -p chancery-runtime \
                 --test company companies_one: {wrong}"
            ),
        }
        seed += 1;
    }
    println!("seeds {base} to {}: {played:?}", seed - 1);
    // A game in which nothing goes wrong shows nothing.
    for (what, count) in [
        ("crashes", played.crashes),
        ("pauses", played.pauses),
        ("outages", played.outages),
        ("slow stores", played.slow),
        ("jumps of clocks", played.jumps),
        ("lost wake-ups", played.lost),
        ("doubled wake-ups", played.doubled),
        ("takeovers", played.takeovers),
    ] {
        assert!(count > 100, "{count} {what} in {} events", played.events);
    }
}

#[test]
fn companies_one_keep_every_rule_at_every_event() {
    play_from(1);
}

#[test]
fn companies_two_keep_every_rule_at_every_event() {
    play_from(1_000_000_000);
}

#[test]
fn companies_three_keep_every_rule_at_every_event() {
    play_from(2_000_000_000);
}

#[test]
fn companies_four_keep_every_rule_at_every_event() {
    play_from(3_000_000_000);
}

/// Whatever was found once stays found.
#[test]
fn kept_seeds_keep_every_rule() {
    for (seed, found) in KEPT {
        if let Err(wrong) = company::play(*seed) {
            panic!("seed {seed} ({found}): {wrong}");
        }
    }
}

#[test]
fn a_seed_is_the_same_history_to_the_last_event() {
    for seed in 1..=12 {
        let (one, two) = (company::play(seed), company::play(seed));
        assert_eq!(one, two, "seed {seed}");
        assert!(one.unwrap().events > 100);
    }
    assert_ne!(company::play(1), company::play(2));
}

/// Plays until a mistake that was planted is found; the games say what is wrong in its words.
fn is_found(mistake: Mistake, words: &[&str]) {
    for seed in 1..=40 {
        if let Err(wrong) = company::play_with(seed, Some(mistake)) {
            let told = words.iter().any(|it| wrong.starts_with(it));
            assert!(told, "{mistake:?} is found as something else in seed {seed}: {wrong}");
            return;
        }
    }
    panic!("{mistake:?} is not found");
}

#[test]
fn a_store_that_forgets_the_fence_is_found() {
    is_found(Mistake::Store(Plant::NoFence), &["fence:"]);
}

#[test]
fn a_rescue_of_the_living_is_found() {
    is_found(Mistake::Store(Plant::RescuesTheLiving), &["lease:"]);
}

#[test]
fn wake_ups_that_are_lost_for_good_are_found() {
    is_found(Mistake::Store(Plant::NoPolling), &["no end in sight"]);
}

#[test]
fn a_run_that_waits_in_the_queue_is_found() {
    is_found(Mistake::Store(Plant::WaitsInTheQueue), &["I9:", "lease:"]);
}

#[test]
fn a_child_that_ends_in_silence_is_found() {
    is_found(Mistake::Store(Plant::ParentNotTold), &["I8:"]);
}

#[test]
fn a_ruling_that_is_not_audited_is_found() {
    is_found(Mistake::Store(Plant::NoAudit), &["audit:"]);
}

#[test]
fn a_call_that_runs_while_it_is_asked_for_is_found() {
    is_found(Mistake::ActsWhileAsked, &["I5:"]);
}

#[test]
fn a_call_that_takes_effect_twice_is_found() {
    is_found(Mistake::ActsTwice, &["I4:"]);
}

/// What the simulation makes up about leases is what PostgreSQL does.
#[tokio::test]
async fn a_shared_record_answers_as_postgresql_does() {
    for seed in 1..=4 {
        let home = Home::postgres().await;
        let same = twins(seed, home.open().await, 250).await;
        assert_eq!(same, Ok(250), "seed {seed}");
    }
}
