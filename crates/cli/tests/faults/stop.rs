//! SIGTERM: steps in flight end, leases are given back, another server goes on at once.

use std::time::{Duration, Instant};

use chancery_testkit::postgres::TestDatabase;
use rustix::process::Signal;

use crate::house::House;
use crate::kills::settle_and_audit;
use crate::{model, until};

/// A step that takes three seconds is under way when the first server is told to stop.
async fn stop_in_the_middle(lease_seconds: u64) -> Duration {
    let database = TestDatabase::create().await;
    let house = House::on(database.url(), lease_seconds);
    let models = [model::start("first").await, model::start("second").await];
    let mut first = house.serve("first", &models[0]).await;
    let run = first.api.create("run", "s e").await;
    until("the slow effect", Duration::from_secs(20), async || {
        (!house.effects().is_empty()).then_some(())
    })
    .await;
    let second = house.serve("second", &models[1]).await;
    let mut stream = first.api.follow(&run).await;
    first.signal(Signal::TERM);
    let told = Instant::now();
    while stream.chunk().await.is_ok_and(|it| it.is_some()) {}
    println!("the stream ended {:.2?} after SIGTERM", told.elapsed());
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
    let status = first.end(Duration::from_secs(20)).await;
    assert_eq!(status.code(), Some(0), "{:#?}", first.said());
    let gone = Instant::now();
    println!("the server ended {:.2?} after SIGTERM", told.elapsed());
    let figures = settle_and_audit(&house, &second.api, std::slice::from_ref(&run)).await;
    let went_on = gone.elapsed();
    println!("the second server was done {went_on:.2?} after that: {figures:?}");
    assert_eq!((figures.finished, figures.unknown), (2, 0), "the step in flight was lost");
    went_on
}

#[tokio::test]
async fn a_server_that_is_told_to_stop_hands_its_runs_over() {
    let went_on = stop_in_the_middle(30).await;
    assert!(went_on < Duration::from_secs(10), "that was the lease, not a handover: {went_on:?}");
}

#[tokio::test]
async fn a_step_that_outlasts_the_lease_ends_in_good_order_while_the_server_stops() {
    stop_in_the_middle(1).await;
}

#[tokio::test]
async fn a_server_on_sqlite_that_is_told_to_stop_goes_on_where_it_was() {
    let house = House::new();
    let model = model::start("fake").await;
    let mut server = house.serve("one", &model).await;
    let run = server.api.create("run", "s e").await;
    until("the slow effect", Duration::from_secs(20), async || {
        (!house.effects().is_empty()).then_some(())
    })
    .await;
    server.signal(Signal::TERM);
    assert_eq!(server.end(Duration::from_secs(20)).await.code(), Some(0));
    let server = house.serve("one", &model).await;
    let figures = settle_and_audit(&house, &server.api, &[run]).await;
    assert_eq!((figures.finished, figures.unknown), (2, 0));
}
