//! What only PostgreSQL can go through: several servers, lost connections, a restart.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::collections::BTreeSet;
use std::time::Duration;

use chancery_domain::history::History;
use chancery_domain::id::AuditId;
use chancery_store::log::Amendment;
use chancery_store::{AppendError, Fence, Location, OpenError, Store, StoreError};
use chancery_testkit::conformance::audit::{sign_in, whole_chain};
use chancery_testkit::conformance::clock;
use chancery_testkit::conformance::{
    call_started, cancelled, claim_one, created, history, make, proposed, spoke, started,
};
use chancery_testkit::postgres::{Pair, PrivatePostgres, TestDatabase};
use chancery_testkit::road::Road;
use tokio::sync::mpsc;

async fn open(url: String) -> Store {
    Store::open(&Location::Postgres(url), clock::new_worker_id()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_at_once_migrate_once() {
    let database = TestDatabase::create().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..6 {
        tasks.spawn(open(database.url()));
    }
    let stores = tasks.join_all().await;
    let run = make(&stores[0], created("x")).await;
    for store in stores {
        assert_eq!(store.run(run).await.unwrap().unwrap().id, run);
    }
}

const RUNS: usize = 16;
const APPENDS: usize = 60;

/// Many runs append as fast as they can while `disturb` is called again and again. No append may
/// fail, be lost, or be made twice.
async fn under_load(store: Store, mut disturbances: usize, mut disturb: impl AsyncFnMut()) {
    let (made, mut progress) = mpsc::unbounded_channel();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..RUNS {
        let run = make(&store, created("x")).await;
        // Now: appends are held while the database is away, reads are not.
        let mut history = history(&store, run).await;
        let (store, made) = (store.clone(), made.clone());
        tasks.spawn(async move {
            for n in 0..APPENDS {
                history = history.record(spoke(n.to_string())).unwrap();
                let change = history.change().unwrap();
                let appended = store.append(&change, Fence::Outside, clock::now()).await;
                appended.unwrap_or_else(|it| panic!("append {n} of {run}: {it}"));
                made.send(()).unwrap();
            }
            run
        });
    }
    drop(made);
    let every = RUNS * APPENDS / (disturbances + 1);
    let mut count = 0;
    while progress.recv().await.is_some() {
        count += 1;
        if count % every == 0 && disturbances > 0 {
            disturbances -= 1;
            disturb().await;
        }
    }
    for run in tasks.join_all().await {
        let events = store.events(run, 0, u32::MAX).await.unwrap();
        let texts: Vec<String> = events[1..]
            .iter()
            .map(|it| match &it.event {
                chancery_domain::event::Event::UserSpoke(it) => it.text.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, (0..APPENDS).map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_connections_that_are_cut_lose_and_double_nothing() {
    let postgres = PrivatePostgres::start().await;
    let store = open(postgres.url()).await;
    under_load(store, 12, async || postgres.kill_connections().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_a_restart_loses_and_doubles_nothing() {
    let mut postgres = PrivatePostgres::start().await;
    let store = open(postgres.url()).await;
    under_load(store, 3, async || postgres.restart().await).await;
}

/// The primary is lost for good in the middle of it, and the standby takes its place: the store
/// finds it by itself, and what was answered for is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_a_fail_over_loses_and_doubles_nothing() {
    let mut pair = Pair::start().await;
    let store = open(pair.url()).await;
    under_load(store, 1, async || {
        pair.lose_primary().await;
        pair.promote().await;
    })
    .await;
}

/// A standby takes connections, and is not the database: whichever host stands first, the one that
/// takes writes is found. A primary that takes connections and says nothing hides nobody either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_whichever_host_takes_writes_is_found() {
    let mut pair = Pair::start().await;
    let [first, second] = pair.ports();
    let turned = format!("postgres://postgres@127.0.0.1:{second},127.0.0.1:{first}/postgres");
    let run = make(&open(turned).await, created("x")).await;
    let alone = format!("postgres://postgres@127.0.0.1:{second}/postgres");
    match Store::open(&Location::Postgres(alone), clock::new_worker_id()).await {
        Err(OpenError::Store(StoreError::Unreachable(said))) => {
            assert!(said.contains("does not allow writes"), "{said}");
        }
        other => panic!("a standby was taken for the database: {other:?}"),
    }

    pair.freeze_primary(true);
    pair.promote().await;
    let store = open(pair.url()).await;
    assert_eq!(store.run(run).await.unwrap().unwrap().id, run);
}

/// Runs are cancelled and people sign in while `disturb` is called again and again: each is in
/// the chain once.
async fn under_audited_load(store: Store, mut disturbances: usize, mut disturb: impl AsyncFnMut()) {
    let mut ids = BTreeSet::new();
    let (made, mut progress) = mpsc::unbounded_channel();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..RUNS {
        let mut work = Vec::new();
        for _ in 0..APPENDS / 2 {
            let run = make(&store, created("x")).await;
            let entry = sign_in("ada");
            ids.extend([AuditId::of_event(run, 2, 0), entry.id]);
            let change = history(&store, run).await.record(cancelled()).unwrap().change().unwrap();
            work.push((change, entry));
        }
        let (store, made) = (store.clone(), made.clone());
        tasks.spawn(async move {
            for (change, entry) in work {
                store.append(&change, Fence::Outside, clock::now()).await.unwrap();
                store.audit(vec![entry], clock::now()).await.unwrap();
                made.send(()).unwrap();
            }
        });
    }
    drop(made);
    let every = RUNS * APPENDS / 2 / (disturbances + 1);
    let mut count = 0;
    while progress.recv().await.is_some() {
        count += 1;
        if count % every == 0 && disturbances > 0 {
            disturbances -= 1;
            disturb().await;
        }
    }
    tasks.join_all().await;
    let chain = whole_chain(&store).await;
    let found: BTreeSet<AuditId> = chain.iter().map(|it| it.link().unwrap().entry.id).collect();
    assert_eq!((chain.len(), found), (ids.len(), ids));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_connections_that_are_cut_lose_and_double_no_entry() {
    let postgres = PrivatePostgres::start().await;
    let store = open(postgres.url()).await;
    under_audited_load(store, 25, async || postgres.kill_connections().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_a_restart_loses_and_doubles_no_entry() {
    let mut postgres = PrivatePostgres::start().await;
    let store = open(postgres.url()).await;
    under_audited_load(store, 3, async || postgres.restart().await).await;
}

async fn client(database: &TestDatabase) -> tokio_postgres::Client {
    let connected = tokio_postgres::connect(&database.url(), tokio_postgres::NoTls).await;
    let (client, connection) = connected.unwrap();
    tokio::spawn(connection);
    client
}

/// One server is cut off in the middle of starting a call; another takes the run over and starts
/// the same call, in the very same words. Back on the network, the first must not take the other's
/// event for its own: it would carry the call out as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_workers_event_is_not_taken_for_ones_own() {
    let database = TestDatabase::create().await;
    let road = Road::to(&database.url()).await;
    let (cut_off, other) = (open(road.url.clone()).await, open(database.url()).await);

    let run = make(&other, created("x")).await;
    let old = claim_one(&cut_off).await;
    let start = async |store: &Store| {
        history(store, run).await.record(call_started("a")).unwrap().change().unwrap()
    };
    let begin = history(&cut_off, run).await.record(started()).unwrap();
    let begin = begin.record(proposed(&[("a", chancery_domain::policy::Ruling::Allow)], 1));
    let begin = begin.unwrap().change().unwrap();
    cut_off.append(&begin, Fence::Lease(&old), clock::now()).await.unwrap();
    let late = start(&cut_off).await;

    road.turn();
    let starting =
        tokio::spawn(async move { cut_off.append(&late, Fence::Lease(&old), clock::now()).await });
    other.beat(Duration::from_secs(60)).await.unwrap();
    assert_eq!(other.rescue().await.unwrap(), 1);
    let new = claim_one(&other).await;
    other.append(&start(&other).await, Fence::Lease(&new), clock::now()).await.unwrap();
    road.turn();

    match starting.await.unwrap() {
        Err(AppendError::LeaseLost(lost)) => assert_eq!(lost, run),
        answer => panic!("the one who was cut off was told {answer:?}"),
    }
    let events = other.events(run, 0, 100).await.unwrap();
    History::fold(run, &events).unwrap();
    assert_eq!(events.len(), 4);
}

/// The connection breaks while the server still works on the append: it is made after all, and
/// whoever asked for it is told so, not that someone else was faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_outlives_its_connection_is_recognised() {
    let database = TestDatabase::create().await;
    let road = Road::to(&database.url()).await;
    let (cut_off, other) = (open(road.url.clone()).await, open(database.url()).await);
    let run = make(&other, created("x")).await;
    let change = history(&other, run).await.record(spoke("once")).unwrap().change().unwrap();

    let (holder, onlooker) = (client(&database).await, client(&database).await);
    holder.batch_execute("BEGIN; SELECT * FROM heads FOR UPDATE").await.unwrap();
    let appending =
        tokio::spawn(async move { cut_off.append(&change, Fence::Outside, clock::now()).await });
    until_waiting(&onlooker, 1).await;
    road.turn();
    road.turn();
    until_waiting(&onlooker, 2).await;
    holder.batch_execute("COMMIT").await.unwrap();

    appending.await.unwrap().unwrap();
    assert_eq!(other.events(run, 0, 100).await.unwrap().len(), 2);
}

/// The number of sessions that wait for a lock, once it is that.
async fn until_waiting(onlooker: &tokio_postgres::Client, count: i64) {
    let query = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while onlooker.query_one(query, &[]).await.unwrap().get::<_, i64>(0) < count {
        tokio::task::yield_now().await;
    }
}

/// The same with an entry: its transaction may be undone with the connection, or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_whose_connection_breaks_is_written_once() {
    for locked in ["heads", "audit_head"] {
        let database = TestDatabase::create().await;
        let road = Road::to(&database.url()).await;
        let (cut_off, other) = (open(road.url.clone()).await, open(database.url()).await);
        let run = make(&other, created("x")).await;
        let change = history(&other, run).await.record(cancelled()).unwrap().change().unwrap();
        let (holder, onlooker) = (client(&database).await, client(&database).await);
        holder.batch_execute(&format!("BEGIN; SELECT * FROM {locked} FOR UPDATE")).await.unwrap();
        let appending =
            tokio::spawn(
                async move { cut_off.append(&change, Fence::Outside, clock::now()).await },
            );
        until_waiting(&onlooker, 1).await;
        road.turn();
        road.turn();
        until_waiting(&onlooker, 2).await;
        holder.batch_execute("COMMIT").await.unwrap();
        appending.await.unwrap().unwrap();
        assert_eq!(other.events(run, 0, 100).await.unwrap().len(), 2);
        let chain = whole_chain(&other).await;
        assert_eq!(chain.len(), 1, "{locked}");
        assert_eq!(chain[0].link().unwrap().entry.id, AuditId::of_event(run, 2, 0));
    }
}

/// A server that stands still with the head of the chain in its hands does not keep the others
/// from writing for long; and what it was about is done when it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_stands_still_does_not_hold_the_chain() {
    let database = TestDatabase::create().await;
    let road = Road::to(&database.url()).await;
    let (still, other) = (open(road.url.clone()).await, open(database.url()).await);
    let run = make(&other, created("x")).await;
    let change = history(&other, run).await.record(cancelled()).unwrap().change().unwrap();
    let (holder, onlooker) = (client(&database).await, client(&database).await);
    holder.batch_execute("BEGIN; SELECT * FROM audit_head FOR UPDATE").await.unwrap();
    let appending =
        tokio::spawn(async move { still.append(&change, Fence::Outside, clock::now()).await });
    until_waiting(&onlooker, 1).await;
    road.jam(true);
    holder.batch_execute("COMMIT").await.unwrap();

    let entry = sign_in("ada");
    let written = other.audit(vec![entry.clone()], clock::now());
    tokio::time::timeout(Duration::from_secs(15), written).await.unwrap().unwrap();
    assert_eq!(whole_chain(&other).await.len(), 1);

    road.jam(false);
    road.turn();
    road.turn();
    appending.await.unwrap().unwrap();
    assert_eq!(other.events(run, 0, 100).await.unwrap().len(), 2);
    assert_eq!(whole_chain(&other).await.len(), 2);
}

/// The same, when whoever asked is told that the database is away, and asks once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_outlives_the_patience_of_its_writer_is_recognised() {
    let database = TestDatabase::create().await;
    let road = Road::to(&database.url()).await;
    let (cut_off, other) = (open(road.url.clone()).await, open(database.url()).await);
    cut_off.wait_at_most(Duration::ZERO);
    let run = make(&other, created("x")).await;
    let lease = claim_one(&cut_off).await;
    let change = history(&other, run).await.record(started()).unwrap().change().unwrap();

    let (holder, onlooker) = (client(&database).await, client(&database).await);
    holder.batch_execute("BEGIN; SELECT * FROM heads FOR UPDATE").await.unwrap();
    let cut = async {
        until_waiting(&onlooker, 1).await;
        road.turn();
    };
    let (answer, ()) =
        tokio::join!(cut_off.append(&change, Fence::Lease(&lease), clock::now()), cut);
    assert!(matches!(&answer, Err(AppendError::Store(it)) if it.may_pass()), "{answer:?}");
    road.turn();
    let release = async {
        until_waiting(&onlooker, 2).await;
        holder.batch_execute("COMMIT").await.unwrap();
    };
    let (again, ()) = tokio::join!(cut_off.append_again(&change, &lease, clock::now()), release);
    again.unwrap();
    assert_eq!(other.events(run, 0, 100).await.unwrap().len(), 2);
}

/// Two servers append to the same runs, many at a time: each group locks its runs in one order, so
/// that nobody waits in a circle until the database breaks it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_servers_that_append_to_the_same_runs_do_not_deadlock() {
    let database = TestDatabase::create().await;
    let stores = [open(database.url()).await, open(database.url()).await];
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..48 {
        let run = make(&stores[0], created("x")).await;
        for store in stores.clone() {
            tasks.spawn(async move {
                for n in 0..20 {
                    let speak = store.amend(run, clock::now(), |history, _| {
                        history.record(spoke(n.to_string())).map(Amendment::<()>::Record)
                    });
                    speak.await.unwrap().unwrap();
                }
            });
        }
    }
    tasks.join_all().await;
    for store in stores {
        store.close().await;
    }
    // A connection says what it has seen when it ends.
    let onlooker = client(&database).await;
    let number = async |sql: &str| -> i64 { onlooker.query_one(sql, &[]).await.unwrap().get(0) };
    let others = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    while number(others).await > 0 {
        tokio::task::yield_now().await;
    }
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(number(deadlocks).await, 0);
}
