//! A second server: refused on the same SQLite directory, welcome on the same PostgreSQL.

use std::collections::BTreeSet;
use std::time::Duration;

use chancery_testkit::postgres::TestDatabase;
use futures_util::future::join_all;

use crate::house::House;
use crate::kills::{logs, settle_and_audit};
use crate::model;

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused_with_a_sentence() {
    let house = House::new();
    let model = model::start("fake").await;
    let first = house.serve("one", &model).await;
    let (code, said) = house.start("one", &model).ends();
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(said.starts_with("error: another server uses the data directory"), "{said}");
    // The first one has not noticed.
    let run = first.api.create("run", "e").await;
    first.api.reaches(&run, "completed", Duration::from_secs(20)).await;
    first.kill();
    // What a dead server held is free at once.
    house.serve("one", &model).await;
}

#[tokio::test]
async fn heavy_a_second_server_on_the_same_postgres_joins_and_both_drive() {
    let database = TestDatabase::create().await;
    let house = House { workers: 4, ..House::on(database.url(), 10) };
    let models = [model::start("first").await, model::start("second").await];
    let one = house.serve("one", &models[0]).await;
    let two = house.serve("two", &models[1]).await;
    let keys: Vec<String> = (0..40).map(|number| format!("run-{number}")).collect();
    let runs = join_all(keys.iter().map(|key| one.api.create(key, "u ee u"))).await;
    let figures = settle_and_audit(&house, &two.api, &runs).await;
    assert_eq!((figures.finished, figures.unknown), (160, 0));
    let logs = logs(&two.api, &runs).await;
    let asked: BTreeSet<&str> =
        logs.values().flatten().filter_map(|it| it["data"]["model"].as_str()).collect();
    assert_eq!(asked, BTreeSet::from(["first", "second"]));
}
