//! Orders: claims that are made in the commit that makes a run ready.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::path::Path;

use chancery_domain::event::{Actor, Paused, Unpaused};
use chancery_domain::id::RunId;
use chancery_store::queue::Wanted;
use chancery_store::{Fence, Location, Store};
use chancery_testkit::conformance::{
    append, claim_one, clock, created, fast_dir, history, make, started,
};
use futures_util::FutureExt;

async fn open(dir: &Path) -> Store {
    Store::open(&Location::Sqlite(dir.to_owned()), clock::new_worker_id()).await.unwrap()
}

#[tokio::test]
async fn an_order_is_carried_out_in_the_commit_that_brings_the_run() {
    let dir = fast_dir();
    let store = open(dir.path()).await;
    let mut order = store.order(Wanted::Any, 2).unwrap();
    let run = make(&store, created("x")).await;
    // Nobody was woken for it, and it is durable that it is taken.
    assert!(store.bell().work().now_or_never().is_none());
    assert!(store.owned().await.unwrap().contains(&run));
    let mut claimed = order.filled().await;
    let claim = claimed.pop().unwrap();
    assert_eq!((claim.lease.run(), claim.lease.attempt()), (run, 1));
    assert_eq!(claim.log.unwrap().len(), 1);
    assert!(claimed.is_empty());
    // The lease is as good as any other.
    let change = history(&store, run).await.record(started()).unwrap().change().unwrap();
    store.append(&change, Fence::Lease(&claim.lease), clock::now()).await.unwrap();
    // One order, one claim: the next run is told of.
    assert!(order.withdraw().await.is_empty());
    let next = make(&store, created("y")).await;
    assert!(store.bell().work().now_or_never().is_some());
    assert_eq!(next_claim(&store).await, Some(next));
    store.close().await;
}

#[tokio::test]
async fn an_order_that_is_taken_back_claims_nothing_and_loses_nothing() {
    let dir = fast_dir();
    let store = open(dir.path()).await;
    let order = store.order(Wanted::Any, 1).unwrap();
    assert!(order.withdraw().await.is_empty());
    let first = make(&store, created("x")).await;
    assert_eq!(next_claim(&store).await, Some(first));
    drop(store.order(Wanted::Any, 1).unwrap());
    let second = make(&store, created("y")).await;
    assert_eq!(next_claim(&store).await, Some(second));
    // Taken back too late, it says what it has.
    let order = store.order(Wanted::Any, 1).unwrap();
    let third = make(&store, created("z")).await;
    assert_eq!(next_claim(&store).await, None);
    let brought: Vec<RunId> = order.withdraw().await.iter().map(|it| it.lease.run()).collect();
    assert_eq!(brought, [third]);
    store.close().await;
}

#[tokio::test]
async fn an_order_brings_what_waited_before_it_and_no_more_than_it_asked_for() {
    let dir = fast_dir();
    let store = open(dir.path()).await;
    let old = make(&store, created("x")).await;
    assert!(store.bell().work().now_or_never().is_some());
    let mut order = store.order(Wanted::Any, 1).unwrap();
    let new = make(&store, created("y")).await;
    // The new one was not taken: somebody is told of it.
    assert!(store.bell().work().now_or_never().is_some());
    assert_eq!(order.filled().await[0].lease.run(), old);
    assert_eq!(next_claim(&store).await, Some(new));
    store.close().await;
}

#[tokio::test]
async fn a_run_that_is_signalled_is_brought_like_a_new_one() {
    let dir = fast_dir();
    let store = open(dir.path()).await;
    let run = make(&store, created("x")).await;
    let lease = claim_one(&store).await;
    let events = [started(), Paused {}.into()];
    append(&store, run, events, Fence::Lease(&lease)).await.unwrap();
    assert_eq!(next_claim(&store).await, None);
    let mut order = store.order(Wanted::Any, 1).unwrap();
    let by = Actor::System;
    append(&store, run, [Unpaused { by }.into()], Fence::Outside).await.unwrap();
    let brought = order.filled().await;
    assert_eq!((brought[0].lease.run(), brought[0].lease.attempt()), (run, 2));
    assert_eq!(brought[0].log.as_ref().unwrap().len(), 4);
    store.close().await;
}

async fn next_claim(store: &Store) -> Option<RunId> {
    store.claim(1).await.unwrap().first().map(|it| it.lease.run())
}
