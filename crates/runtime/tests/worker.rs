//! Workers as a whole: what they do with a lease that they lose.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::sync::Arc;
use std::time::Duration;

use chancery_runtime::{Limits, UnknownOutcome, worker::Workers};
use chancery_store::fault::Fuse;
use chancery_testkit::conformance::{Home, created, make};
use chancery_testkit::simulator::world::{self, Act, World};
use chancery_testkit::simulator::{Recover, Scenario};

/// Drives one run with one call, by workers whose heartbeat is never recent enough. Answers
/// where the run came to rest, and how often the call took effect.
async fn drive_without_a_pulse(home: Home) -> (String, u32) {
    let store = home.open().await;
    let scenario = Scenario {
        script: vec![vec![Act::Write]],
        on_unknown: UnknownOutcome::Ask,
        recover: Recover::Fail,
        attempts: 5,
    };
    let world = Arc::new(World::default());
    let mut parts = world::parts(&world, &store, &Fuse::never(), &scenario);
    parts.limits = Limits { lease: Duration::from_nanos(1), ..parts.limits };
    let run = make(&store, created("goal")).await;
    let mut changes = store.bell().changes();
    let workers = Workers::start(parts).await.unwrap();
    let parked = async {
        loop {
            let status = store.run(run).await.unwrap().unwrap().status;
            if !matches!(&*status, "pending" | "running") {
                return status;
            }
            let _ = changes.recv().await;
        }
    };
    let parked = tokio::time::timeout(Duration::from_secs(20), parked).await;
    workers.stop(Duration::from_secs(5)).await;
    (parked.unwrap_or("stranded".to_owned()), world.effects().values().sum())
}

/// Alone on its store, a worker can lose its runs to nobody, however long it was silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_alone_needs_no_pulse() {
    let rests = drive_without_a_pulse(Home::sqlite().await).await;
    assert_eq!(rests, ("completed".to_owned(), 1));
}

/// In company it acts only where it finds that nobody has taken the run; where it does not act, the
/// run comes back to the queue, and a person is asked about the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_a_pulse_neither_strands_its_runs_nor_acts_twice() {
    let (status, effects) = drive_without_a_pulse(Home::postgres().await).await;
    assert!(
        matches!((&*status, effects), ("completed", 1) | ("waiting", 0 | 1)),
        "{status} {effects}"
    );
}
