//! The queue: who has which run, and how it is given back.

use std::collections::BTreeSet;

use chancery_domain::policy::Ruling::Allow;
use chancery_store::queue::{Release, Wanted};

use super::*;

const NOW: Release = Release::Failure { pause: Duration::ZERO };
const LATER: Release = Release::Failure { pause: Duration::from_secs(60) };

async fn many(store: &Store, count: usize) -> Vec<RunId> {
    let mut runs = Vec::new();
    for n in 0..count {
        runs.push(make(store, created(&n.to_string())).await);
    }
    runs
}

pub async fn runs_are_claimed_oldest_first_as_many_as_asked_for(home: &Home) {
    let store = home.open().await;
    let runs = many(&store, 5).await;
    let claimed =
        async |limit| -> Vec<RunId> { claim(&store, limit).await.iter().map(Lease::run).collect() };
    assert_eq!(claimed(0).await, []);
    assert_eq!(claimed(2).await, runs[..2]);
    settled(&store).await;
    assert_eq!(store.queue_depth().await.unwrap(), (5, 2));
    assert_eq!(claimed(100).await, runs[2..]);
    assert_eq!(claimed(100).await, []);
    settled(&store).await;
    assert_eq!(store.queue_depth().await.unwrap(), (5, 5));
}

pub async fn a_claim_brings_the_whole_log(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    append(&store, run, [started(), spoke("hm")], Fence::Outside).await.unwrap();
    let claimed = store.claim(1).await.unwrap().remove(0);
    assert_eq!(claimed.log.unwrap(), store.events(run, 0, 100).await.unwrap());
    assert_eq!((claimed.lease.attempt(), claimed.lease.failures()), (1, 0));
    settled(&store).await;
    assert_eq!(store.run(run).await.unwrap().unwrap().attempt, 1);
}

pub async fn no_run_is_claimed_twice(home: &Home) {
    const RUNS: usize = 200;
    let store = home.open().await;
    let other = home.another(&store).await;
    many(&store, RUNS).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let store = if n % 2 == 0 { store.clone() } else { other.clone() };
        tasks.spawn(async move {
            let mut mine = Vec::new();
            // Where another claimer holds a row just now, it is skipped: look again.
            let mut empty = 0;
            while empty < 5 {
                let claimed = claim(&store, 7).await;
                empty = if claimed.is_empty() { empty + 1 } else { 0 };
                mine.extend(claimed.iter().map(|it| (it.run(), it.attempt())));
            }
            mine
        });
    }
    let all: Vec<(RunId, u64)> = tasks.join_all().await.into_iter().flatten().collect();
    let runs: BTreeSet<RunId> = all.iter().map(|(run, _)| *run).collect();
    assert_eq!((all.len(), runs.len()), (RUNS, RUNS));
    assert!(all.iter().all(|(_, attempt)| *attempt == 1));
}

pub async fn what_waits_or_has_ended_is_not_in_the_queue(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    let lease = claim_one(&store).await;
    let wait = [started(), proposed(&[("a", Allow)], 1), call_started("a"), waits("a", "k", None)];
    append(&store, run, wait, Fence::Lease(&lease)).await.unwrap();
    assert_eq!(store.queue_depth().await.unwrap(), (0, 0));
    // Words do not wake a run that waits.
    append(&store, run, [spoke("hm")], Fence::Outside).await.unwrap();
    assert_eq!(store.queue_depth().await.unwrap(), (0, 0));
    append(&store, run, [signalled("k")], Fence::Outside).await.unwrap();
    assert_eq!(store.queue_depth().await.unwrap(), (1, 0));
    // The lease of before the wait is no lease on what comes after it.
    store.release(lease, NOW).await.unwrap();
    let lease = claim_one(&store).await;
    assert_eq!((lease.attempt(), lease.failures()), (2, 0));
    append(&store, run, [cancelled()], Fence::Outside).await.unwrap();
    assert_eq!(store.queue_depth().await.unwrap(), (0, 0));
    store.release(lease, NOW).await.unwrap();
    assert_eq!(store.queue_depth().await.unwrap(), (0, 0));
}

pub async fn failures_are_counted_while_the_log_stands_still(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    let mut seen = Vec::new();
    for how in [NOW, NOW, Release::Handover, NOW] {
        let lease = claim_one(&store).await;
        seen.push(lease.failures());
        store.release(lease, how).await.unwrap();
    }
    let lease = claim_one(&store).await;
    seen.push(lease.failures());
    append(&store, run, [started()], Fence::Lease(&lease)).await.unwrap();
    store.release(lease, NOW).await.unwrap();
    seen.push(claim_one(&store).await.failures());
    assert_eq!(seen, [0, 1, 2, 2, 3, 1]);
}

pub async fn a_failure_pauses_and_a_handover_does_not(home: &Home) {
    let store = home.open().await;
    make(&store, created("x")).await;
    store.release(claim_one(&store).await, Release::Handover).await.unwrap();
    store.release(claim_one(&store).await, LATER).await.unwrap();
    assert!(claim(&store, 1).await.is_empty());
    assert_eq!(store.queue_depth().await.unwrap(), (1, 0));
}

pub async fn a_lost_lease_is_not_given_back(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    make(&store, created("x")).await;
    let old = claim_one(&store).await;
    let_die(&store).await;
    other.beat(Duration::from_secs(60)).await.unwrap();
    assert_eq!(other.rescue().await.unwrap(), 1);
    let new = claim_one(&other).await;
    store.release(old, Release::Handover).await.unwrap();
    assert!(claim(&store, 1).await.is_empty(), "a stale release freed another's run");
    store.disown(new.run(), new.attempt(), NOW).await.unwrap();
    other.disown(new.run(), 1, NOW).await.unwrap();
    assert!(claim(&store, 1).await.is_empty(), "a run was disowned by one who has it not");
    // And of the same worker, by an attempt of long ago.
    other.release(new, Release::Handover).await.unwrap();
    let mine = claim_one(&store).await;
    assert_eq!((mine.attempt(), mine.failures()), (3, 1));
}

pub async fn a_run_is_disowned_by_its_owner(home: &Home) {
    let store = home.open().await;
    make(&store, created("x")).await;
    for failures in 0..3 {
        let lease = claim_one(&store).await;
        assert_eq!(lease.failures(), failures);
        // An attempt of long ago is not this one.
        store.disown(lease.run(), lease.attempt() - 1, NOW).await.unwrap();
        assert!(claim(&store, 1).await.is_empty());
        store.disown(lease.run(), lease.attempt(), NOW).await.unwrap();
    }
    let lease = claim_one(&store).await;
    store.disown(lease.run(), lease.attempt(), LATER).await.unwrap();
    assert!(claim(&store, 1).await.is_empty());
}

pub async fn the_runs_of_the_dead_are_rescued_and_counted(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    store.beat(Duration::from_secs(60)).await.unwrap();
    let runs = many(&store, 3).await;
    let mine = claim(&store, 1).await;
    let theirs = claim(&other, 1).await;
    let_die(&other).await;
    assert_eq!(store.rescue().await.unwrap(), 1);
    assert_eq!(store.rescue().await.unwrap(), 0);
    let again: Vec<_> = claim(&store, 10).await;
    let found: Vec<_> = again.iter().map(|it| (it.run(), it.attempt(), it.failures())).collect();
    assert_eq!(found, [(theirs[0].run(), 2, 1), (runs[2], 1, 0)]);
    // One's own are left alone.
    append(&store, runs[0], [started()], Fence::Lease(&mine[0])).await.unwrap();
}

/// Whoever was there when a worker was lost is suspect the second time; only who was there alone is
/// to blame.
pub async fn a_lost_worker_is_held_against_a_run_that_it_had_alone(home: &Home) {
    let store = home.open().await;
    let doomed = home.another(&store).await;
    store.beat(Duration::from_secs(60)).await.unwrap();
    let_die(&doomed).await;
    let runs = many(&store, 3).await;
    let claimed = async |wanted, limit| -> Vec<Lease> {
        let claimed = doomed.claim_of(wanted, limit).await.unwrap();
        settled(&doomed).await;
        let_die(&doomed).await;
        claimed.into_iter().map(|it| it.lease).collect()
    };
    let seen = |leases: &[Lease]| -> Vec<_> {
        leases.iter().map(|it| (it.run(), it.failures(), it.is_suspect())).collect()
    };
    for _ in 0..2 {
        let together = claimed(Wanted::Any, 10).await;
        assert_eq!(seen(&together), runs.iter().map(|it| (*it, 0, false)).collect::<Vec<_>>());
        assert_eq!(store.rescue().await.unwrap(), 3);
    }
    assert!(claimed(Wanted::Others, 10).await.is_empty());
    // The first is lost alone, and the others come before it from now on.
    for (run, failures) in [(runs[0], 0), (runs[1], 0), (runs[2], 0), (runs[0], 1)] {
        let alone = claimed(Wanted::Suspects, 1).await;
        assert_eq!(seen(&alone), [(run, failures, true)]);
        assert_eq!(store.rescue().await.unwrap(), 1);
    }
    // Whatever comes further is no suspect any more.
    let [alone] = &claimed(Wanted::Suspects, 1).await[..] else { panic!("one is there") };
    assert_eq!((alone.run(), alone.failures()), (runs[1], 1));
    append(&doomed, runs[1], [started()], Fence::Lease(alone)).await.unwrap();
    assert_eq!(store.rescue().await.unwrap(), 1);
    assert_eq!(seen(&claimed(Wanted::Others, 10).await), [(runs[1], 1, false)]);
}

/// A call that is begun again and again has not come further; one that has ended has.
pub async fn what_is_begun_again_stands_where_it_stood(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    let lease = claim_one(&store).await;
    let begin = [started(), proposed(&[("a", Allow)], 1), call_started("a")];
    append(&store, run, begin, Fence::Lease(&lease)).await.unwrap();
    store.release(lease, NOW).await.unwrap();
    for failures in 1..4 {
        let lease = claim_one(&store).await;
        assert_eq!(lease.failures(), failures);
        let again = CallRetried { call: CallId::from("a") }.into();
        append(&store, run, [again, call_started("a")], Fence::Lease(&lease)).await.unwrap();
        store.release(lease, NOW).await.unwrap();
    }
    let lease = claim_one(&store).await;
    append(&store, run, [call_ended("a")], Fence::Lease(&lease)).await.unwrap();
    store.release(lease, Release::Handover).await.unwrap();
    assert_eq!(claim_one(&store).await.failures(), 0);
}

pub async fn one_who_resigns_leaves_nothing_behind(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    many(&store, 3).await;
    store.beat(Duration::from_secs(60)).await.unwrap();
    assert_eq!(claim(&store, 2).await.len(), 2);
    store.resign().await.unwrap();
    let claimed = claim(&other, 10).await;
    assert_eq!(claimed.len(), 3);
    assert!(claimed.iter().all(|it| it.failures() == 0), "resigning is no failure");
}

/// Claiming and ending the same runs from two sides at once: nothing is stuck, lost or left over.
pub async fn runs_are_cancelled_while_they_are_claimed(home: &Home) {
    const RUNS: usize = 120;
    let store = home.open().await;
    let other = home.another(&store).await;
    let runs = many(&store, RUNS).await;
    let mut tasks = tokio::task::JoinSet::new();
    for chunk in runs.chunks(RUNS / 4) {
        let (chunk, other) = (chunk.to_vec(), other.clone());
        tasks.spawn(async move {
            for run in chunk {
                let said = other.amend(run, clock::now(), |history, _| {
                    history.record(cancelled()).map(chancery_store::log::Amendment::<()>::Record)
                });
                said.await.unwrap().unwrap();
            }
        });
    }
    let claimer = store.clone();
    tasks.spawn(async move {
        for _ in 0..30 {
            for lease in claim(&claimer, 5).await {
                // It may have been cancelled meanwhile; then there is nothing to start.
                let mut now = history(&claimer, lease.run()).await;
                if now.run().status() == "pending" {
                    now = now.record(started()).unwrap();
                    let change = now.change().unwrap();
                    let _ = claimer.append(&change, Fence::Lease(&lease), clock::now()).await;
                }
            }
        }
    });
    tasks.join_all().await;
    assert_eq!(store.queue_depth().await.unwrap(), (0, 0));
    assert_eq!(store.count_by_status().await.unwrap(), [("cancelled".to_owned(), RUNS as u64)]);
}
