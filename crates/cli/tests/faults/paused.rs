//! A server that is paused past its lease is replaced, and when it wakes it writes nothing more.

use std::time::{Duration, Instant};

use chancery_testkit::postgres::TestDatabase;
use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::Value;

use crate::api::Api;
use crate::house::House;
use crate::kills::{Doors, attend, logs, settle_and_audit};
use crate::{model, until};

const LEASE: Duration = Duration::from_secs(2);
const RUNS: usize = 16;

#[tokio::test]
async fn heavy_a_paused_server_is_replaced_and_writes_nothing_when_it_wakes() {
    let database = TestDatabase::create().await;
    let house = House::on(database.url(), LEASE.as_secs());
    let (first_model, second_model) = (model::start("first").await, model::start("second").await);
    // The second one sleeps while the first takes every run.
    let second = house.serve("second", &second_model).await;
    second.signal(Signal::STOP);
    let first = house.serve("first", &first_model).await;
    let plan = ["s"; 2].join(" ") + &" u".repeat(10);
    let keys: Vec<String> = (0..RUNS).map(|number| format!("run-{number}")).collect();
    let runs = join_all(keys.iter().map(|key| first.api.create(key, &plan))).await;
    until("the first server is in the middle", Duration::from_secs(20), async || {
        (house.effects().len() > RUNS / 2).then_some(())
    })
    .await;
    second.signal(Signal::CONT);
    first.signal(Signal::STOP);
    let paused = Instant::now();
    let held = under_way(&second.api, &runs).await;
    assert!(!held.is_empty(), "the first server was done before it was paused");
    let patience = Duration::from_secs(20);
    until("nobody took over", patience, async || {
        taken_over(&second.api, &held).await.then_some(())
    })
    .await;
    let took = paused.elapsed();
    println!("{} runs taken over {took:.2?} after the pause, lease {LEASE:?}", held.len());
    assert!(took > LEASE / 2, "taken over before the lease could have ended: {took:?}");

    // The second server does all that can be done without a person.
    until("the second server goes on", Duration::from_secs(60), async || {
        under_way(&second.api, &runs).await.is_empty().then_some(())
    })
    .await;
    let before = logs(&second.api, &runs).await;
    first.signal(Signal::CONT);
    until("the first server lets go of what it had", patience, async || {
        let let_go = first.said().iter().filter(|it| it.contains("lets go of it")).count();
        (let_go >= held.len()).then_some(())
    })
    .await;
    assert!(
        before == logs(&second.api, &runs).await,
        "the first server wrote after it was replaced"
    );
    for (run, log) in &before {
        assert_one_after_the_other(run, log);
    }

    let attendant = attend(Doors::of(vec![second.api.clone()]));
    let figures = settle_and_audit(&house, &second.api, &runs).await;
    attendant.abort();
    println!("{figures:?}");
    assert!(figures.unknown > 0, "no call was in the air: nothing was proven");
}

async fn under_way(api: &Api, runs: &[String]) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for id in runs {
        let run = api.run(id).await;
        if run["status"] == "running" || run["status"] == "pending" {
            found.push((id.clone(), run["attempt"].as_u64().unwrap()));
        }
    }
    found
}

/// Whether every one of them has been claimed anew.
async fn taken_over(api: &Api, held: &[(String, u64)]) -> bool {
    for (id, attempt) in held {
        if api.run(id).await["attempt"].as_u64().unwrap() <= *attempt {
            return false;
        }
    }
    true
}

/// Who drives shows in which model was asked.
fn assert_one_after_the_other(run: &str, log: &[Value]) {
    let asked = log.iter().filter(|it| it["type"] == "batch.proposed");
    let models: Vec<&str> = asked.map(|it| it["data"]["model"].as_str().unwrap()).collect();
    let handed_over = models.iter().position(|it| *it == "second").unwrap_or(models.len());
    assert!(models[handed_over..].iter().all(|it| *it == "second"), "{run}: {models:?}");
}
