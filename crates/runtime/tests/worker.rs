//! Workers as a whole: what they do with a lease that they lose.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::sync::Arc;
use std::time::Duration;

use chancery_runtime::{Limits, UnknownOutcome, worker::Workers};
use chancery_store::fault::Fuse;
use chancery_testkit::conformance::{Home, created, make};
use chancery_testkit::simulator::world::{self, Act, World};
use chancery_testkit::simulator::{Recover, Scenario};

/// A worker that was not heard of for a while takes its lease for lost. Where no other has taken
/// the run, it must come back to the queue: its owner lives, so nobody would rescue it.
async fn a_run_is_not_stranded(home: Home) {
    let store = home.open().await;
    let scenario = Scenario {
        script: vec![vec![Act::Write]],
        on_unknown: UnknownOutcome::Ask,
        recover: Recover::Fail,
        attempts: 5,
    };
    let world = Arc::new(World::default());
    let mut parts = world::parts(&world, &store, &Fuse::never(), &scenario);
    // No heartbeat is ever recent enough.
    parts.limits = Limits { lease: Duration::from_nanos(1), ..parts.limits };
    let run = make(&store, created("goal")).await;
    let mut changes = store.bell().changes();
    let workers = Workers::start(parts).await.unwrap();
    let parked = async {
        while store.run(run).await.unwrap().unwrap().status != "waiting" {
            let _ = changes.recv().await;
        }
    };
    let parked = tokio::time::timeout(Duration::from_secs(20), parked).await;
    assert!(parked.is_ok(), "the run is stranded");
    assert_eq!(world.effects().values().sum::<u32>(), 0, "a dead worker acted");
    workers.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_lease_ran_out_is_not_stranded_on_sqlite() {
    a_run_is_not_stranded(Home::sqlite().await).await;
}
