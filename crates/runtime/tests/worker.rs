//! Workers as a whole: what they do with a lease that they lose, and without their store.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::sync::Arc;
use std::time::Duration;

use chancery_domain::history::History;
use chancery_domain::id::RunId;
use chancery_runtime::{Limits, UnknownOutcome, clock, worker::Workers};
use chancery_store::fault::Fuse;
use chancery_store::{AppendError, Fence, Location, Store};
use chancery_testkit::conformance::{Home, created, make, spoke};
use chancery_testkit::postgres::PrivatePostgres;
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
        people: Default::default(),
    };
    let world = Arc::new(World::default());
    let mut parts = world::parts(&world, &store, &Fuse::never(), &scenario);
    parts.limits = Limits { lease: Duration::from_nanos(1), ..parts.limits };
    let run = make(&store, created("goal")).await;
    let workers = Workers::start(parts).await.unwrap();
    let status = rest(&store, run).await;
    workers.stop(Duration::from_secs(5)).await;
    (status, world.effects().values().sum())
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

/// The database is away for longer than a write waits for it, right after a tool has acted. What
/// the tool said is held, and recorded once when the database is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_a_result_outlasts_an_outage_of_any_length() {
    let mut postgres = PrivatePostgres::start().await;
    let location = Location::Postgres(postgres.url());
    let store = Store::open(&location, clock::new_worker_id()).await.unwrap();
    store.wait_at_most(Duration::from_millis(20));
    let scenario = Scenario {
        script: vec![vec![Act::Write], vec![Act::Write]],
        on_unknown: UnknownOutcome::Ask,
        recover: Recover::Fail,
        attempts: 5,
        people: Default::default(),
    };
    let world = Arc::new(World::default());
    // Two points of the model, one of the tool; then it has acted.
    let fuse = Fuse::at(3);
    let parts = world::parts(&world, &store, &fuse, &scenario);
    let run = make(&store, created("goal")).await;
    let mut other = History::fold(run, &store.events(run, 0, 10).await.unwrap()).unwrap();
    other = other.record(spoke("hm")).unwrap();
    let word = other.change().unwrap();
    let workers = Workers::start(parts).await.unwrap();
    fuse.blown().await;
    assert_eq!(world.effects().values().sum::<u32>(), 1);
    postgres.stop().await;
    fuse.mend();
    // It goes by the same way as the result, and is told each time that nobody is there.
    for _ in 0..4 {
        let answer = store.append(&word, Fence::Outside, clock::now()).await;
        assert!(matches!(&answer, Err(AppendError::Store(it)) if it.may_pass()), "{answer:?}");
    }
    postgres.start_again().await;
    let status = rest(&store, run).await;
    workers.stop(Duration::from_secs(5)).await;
    assert_eq!((&*status, world.effects().values().sum::<u32>()), ("completed", 2));
    let log = store.events(run, 0, 100).await.unwrap();
    let kinds: Vec<_> = log.iter().map(|it| it.event.kind()).collect();
    let count = |kind| kinds.iter().filter(|it| **it == kind).count();
    assert_eq!((count("tool.started"), count("tool.finished")), (2, 2), "{kinds:?}");
    assert_eq!(count("permission.requested"), 0, "{kinds:?}");
}

/// Where a run comes to rest.
async fn rest(store: &Store, run: RunId) -> String {
    let mut changes = store.bell().changes();
    let parked = async {
        loop {
            // An error says that the database is away.
            if let Ok(Some(row)) = store.run(run).await
                && !matches!(&*row.status, "pending" | "running")
            {
                return row.status;
            }
            let _ = changes.recv().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), parked).await.unwrap_or("stranded".to_owned())
}
