//! Runs that wait hold no worker, and each resumes once, however often and wherever it is told to.

use std::time::{Duration, Instant};

use chancery_testkit::postgres::TestDatabase;
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::api::Api;
use crate::house::House;
use crate::{model, until};

const RUNS: usize = 2000;
/// Requests at one time.
const AT_ONCE: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_two_thousand_waiting_runs_hold_no_worker_and_resume_once() {
    let database = TestDatabase::create().await;
    let mut house = House::on(database.url(), 10);
    let model = model::start("fake").await;
    let many = house.serve("one", &model).await;
    let began = Instant::now();
    let idle = resident_kib(many.pid());
    let api = &many.api;
    let runs: Vec<String> = stream::iter(0..RUNS)
        .map(async |number| {
            // One in ten goes on to have an effect.
            let plan = if number.is_multiple_of(10) { "w e" } else { "w" };
            api.create(&format!("run-{number}"), plan).await
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    until("not all runs wait", Duration::from_secs(120), async || {
        (counted(api, "waiting").await == RUNS).then_some(())
    })
    .await;
    println!(
        "{RUNS} runs wait after {:.1?}; the server has {} KiB, and had {idle}",
        began.elapsed(),
        resident_kib(many.pid())
    );
    many.kill();
    house.workers = 1;
    let servers = [house.serve("one", &model).await, house.serve("two", &model).await];
    let [one, two] = &servers;
    let other = one.api.create("other", "e e").await;
    one.api.reaches(&other, "completed", Duration::from_secs(20)).await;

    let began = Instant::now();
    stream::iter(&runs)
        .for_each_concurrent(AT_ONCE, async |run| {
            let payload = json!({"go": true});
            let told = tokio::join!(
                one.api.signal(run, "go-0", &payload),
                two.api.signal(run, "go-0", &payload)
            );
            assert_eq!(told, (Some(200), Some(200)), "{run}");
        })
        .await;
    until("not all runs are done", Duration::from_secs(180), async || {
        (counted(&one.api, "completed").await == RUNS + 1).then_some(())
    })
    .await;
    println!("signalled twice each and done in {:.1?}", began.elapsed());
    stream::iter(&runs)
        .for_each_concurrent(AT_ONCE, async |run| {
            let log = one.api.events(run).await;
            let signals = log.iter().filter(|it| it["type"] == "signal.received").count();
            assert_eq!(signals, 1, "{run}: {log:#?}");
        })
        .await;
    let effects = house.effects();
    assert_eq!(effects.len(), RUNS / 10 + 2);
    assert!(effects.values().all(|it| *it == 1), "an effect happened twice");
}

async fn counted(api: &Api, status: &str) -> usize {
    let text = api.metrics().await;
    let line = text.lines().find(|it| it.contains("chancery_runs{") && it.contains(status));
    line.and_then(|it| it.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
}

fn resident_kib(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
