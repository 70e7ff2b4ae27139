//! PostgreSQL goes away under load and comes back: runs go on by themselves, exactly once.

use std::time::Duration;

use chancery_testkit::postgres::PrivatePostgres;
use futures_util::future::join_all;

use crate::house::House;
use crate::kills::{Doors, attend, settle_and_audit};
use crate::{Dice, model};

const RUNS: usize = 60;
const PLAN: &str = "u ee w u e uw e u";

#[tokio::test]
async fn heavy_runs_go_on_by_themselves_when_connections_are_cut() {
    let postgres = PrivatePostgres::start().await;
    let mut dice = Dice::new();
    let house = House::on(postgres.url(), 10);
    let model = model::start("fake").await;
    let servers = [house.serve("one", &model).await, house.serve("two", &model).await];
    let doors = Doors::of(servers.iter().map(|it| it.api.clone()).collect());
    let attendant = attend(doors.clone());
    let cuts = async {
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(dice.between(30, 300))).await;
            postgres.kill_connections().await;
        }
    };
    let make = (0..RUNS).map(|number| {
        let api = doors.first();
        async move { api.create(&format!("run-{number}"), PLAN).await }
    });
    let (runs, ()) = tokio::join!(join_all(make), cuts);
    let figures = settle_and_audit(&house, &doors.first(), &runs).await;
    attendant.abort();
    println!("20 times all connections cut: {figures:?}");
    assert_eq!(figures.unknown, 0, "no server died, so every outcome is known");
}

#[tokio::test]
async fn heavy_runs_go_on_by_themselves_when_postgres_is_restarted() {
    let mut postgres = PrivatePostgres::start().await;
    let mut dice = Dice::new();
    let house = House::on(postgres.url(), 10);
    let model = model::start("fake").await;
    let server = house.serve("one", &model).await;
    let doors = Doors::of(vec![server.api.clone()]);
    let attendant = attend(doors.clone());
    let restarts = async {
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(dice.between(200, 800))).await;
            postgres.stop().await;
            tokio::time::sleep(Duration::from_millis(dice.between(1, 1500))).await;
            postgres.start_again().await;
        }
    };
    let make = (0..RUNS).map(|number| {
        let api = doors.first();
        async move { api.create(&format!("run-{number}"), PLAN).await }
    });
    let (runs, ()) = tokio::join!(join_all(make), restarts);
    let figures = settle_and_audit(&house, &doors.first(), &runs).await;
    attendant.abort();
    println!("4 restarts of PostgreSQL: {figures:?}");
    assert_eq!(figures.unknown, 0, "no server died, so every outcome is known");
}
