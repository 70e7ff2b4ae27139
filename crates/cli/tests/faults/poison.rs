//! A run that takes its server down each time it is driven fails in the end, and the server lives;
//! those that were driven beside it complete.

use std::time::Duration;

use chancery_testkit::postgres::TestDatabase;
use futures_util::future::join_all;

use crate::house::House;
use crate::{model, until};

#[tokio::test]
async fn a_run_that_kills_its_server_each_time_fails_with_a_clear_error() {
    let house = House::new();
    let model = model::start("fake").await;
    let mut server = house.serve("one", &model).await;
    let bystander = server.api.create("bystander", "w e").await;
    server.api.reaches(&bystander, "waiting", Duration::from_secs(20)).await;
    let poison = server.api.try_create("poison", "k").await;
    let mut deaths = 0;
    loop {
        let ended = until("the server dies or the run ends", Duration::from_secs(30), async || {
            if server.ended().is_some() {
                return Some(None);
            }
            let (_, page) = server.api.try_get("/api/runs?status=failed").await?;
            Some(Some(page["items"].as_array()?.first()?.clone()))
        })
        .await;
        if let Some(run) = ended {
            assert!(poison.is_none_or(|it| run["id"] == it));
            let error = run["error"].as_str().unwrap();
            println!("after {deaths} deaths: {error}");
            assert!(error.contains("gave up after 5 attempts"), "{error}");
            break;
        }
        // A server may die before it is ready: then the next one is tried.
        server = loop {
            deaths += 1;
            assert!(deaths <= 5, "the run is driven for ever");
            if let Some(server) = house.start("one", &model).try_serve().await {
                break server;
            }
        };
    }
    assert_eq!(deaths, 5);
    assert_eq!(house.effects().values().sum::<usize>(), 5, "each attempt had its one effect");
    assert_eq!(house.effects().len(), 1, "with the same key");
    assert_eq!(server.api.signal(&bystander, "go-0", &true.into()).await, Some(200));
    server.api.reaches(&bystander, "completed", Duration::from_secs(20)).await;
}

#[tokio::test]
async fn heavy_a_poisonous_run_does_not_take_others_with_it() {
    one_among_many(&House::new()).await;
}

#[tokio::test]
async fn heavy_a_poisonous_run_does_not_take_others_with_it_on_postgres() {
    let database = TestDatabase::create().await;
    one_among_many(&House::on(database.url(), 1)).await;
}

/// Every innocent run is in the middle of a call at each death, until it is driven alone.
async fn one_among_many(house: &House) {
    let model = model::start("fake").await;
    let mut server = house.serve("one", &model).await;
    let keys: Vec<String> = (0..20).map(|number| format!("run-{number}")).collect();
    let innocent = join_all(keys.iter().map(|key| server.api.create(key, "w pp"))).await;
    for run in &innocent {
        server.api.reaches(run, "waiting", Duration::from_secs(20)).await;
    }
    let poison = server.api.create("poison", "w k").await;
    server.api.reaches(&poison, "waiting", Duration::from_secs(20)).await;
    for run in &innocent {
        assert_eq!(server.api.signal(run, "go-0", &true.into()).await, Some(200));
    }
    server.api.signal(&poison, "go-0", &true.into()).await;
    let mut deaths = 0;
    loop {
        let ended =
            until("the server dies or the poison fails", Duration::from_secs(60), async || {
                if server.ended().is_some() {
                    return Some(None);
                }
                let (_, page) = server.api.try_get("/api/runs?status=failed").await?;
                Some(Some(page["items"].as_array()?.first()?.clone()))
            })
            .await;
        if let Some(run) = ended {
            assert_eq!(run["id"], *poison, "an innocent run failed: {run}");
            let error = run["error"].as_str().unwrap();
            println!("after {deaths} deaths: {error}");
            assert!(error.contains("gave up after 5 attempts"), "{error}");
            break;
        }
        server = loop {
            deaths += 1;
            // Two with everybody there, five alone.
            assert!(deaths <= 7, "the poison is driven for ever");
            if let Some(server) = house.start("one", &model).try_serve().await {
                break server;
            }
        };
    }
    for run in &innocent {
        server.api.reaches(run, "completed", Duration::from_secs(60)).await;
    }
}
