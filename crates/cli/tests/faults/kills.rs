//! `kill -9` at random moments under load: no run is lost, no finished call runs again, and what
//! was in the air is shown as unknown.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use chancery_testkit::postgres::TestDatabase;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::api::Api;
use crate::audit::{Figures, audit};
use crate::house::House;
use crate::{Dice, model};

/// Runs that are under way at any time.
const LOAD: usize = 40;
const PLAN: &str = "u uu w u uw u";
/// Unless `CHANCERY_TEST_KILLS` says how many: then there is no limit on the time either.
const KILLS: usize = 6;
const TIME_MAX: Duration = Duration::from_secs(25);

fn kills() -> (usize, Duration) {
    match std::env::var("CHANCERY_TEST_KILLS").ok().and_then(|it| it.parse().ok()) {
        Some(kills) => (kills, Duration::MAX),
        None => (KILLS, TIME_MAX),
    }
}

#[tokio::test]
async fn heavy_kills_on_sqlite_lose_nothing_and_double_nothing() {
    let house = House::new();
    kill_and_count(&house, &["one"], 20..600).await;
}

#[tokio::test]
async fn heavy_kills_on_sqlite_where_unknown_fails_leave_an_error_result() {
    let house = House { on_unknown_outcome: "fail", ..House::new() };
    kill_and_count(&house, &["one"], 20..600).await;
}

#[tokio::test]
async fn heavy_kills_of_two_servers_on_postgres_lose_nothing_and_double_nothing() {
    let database = TestDatabase::create().await;
    let house = House::on(database.url(), 1);
    kill_and_count(&house, &["one", "two"], 20..1500).await;
}

async fn kill_and_count(house: &House, names: &[&str], moments: std::ops::Range<u64>) {
    let (kills, time) = kills();
    let mut dice = Dice::new();
    let model = model::start("fake").await;
    let mut servers = join_all(names.iter().map(|name| house.serve(name, &model))).await;
    let doors = Doors::of(servers.iter().map(|it| it.api.clone()).collect());
    let attendant = attend(doors.clone());
    let mut runs: Vec<String> = Vec::new();
    let (began, mut killed) = (Instant::now(), 0);
    while killed < kills && began.elapsed() < time {
        top_up(&doors, &mut runs).await;
        // Not to wait for anything: this is the random moment.
        tokio::time::sleep(Duration::from_millis(dice.between(moments.start, moments.end))).await;
        let victim = killed % servers.len();
        servers.remove(victim).kill();
        killed += 1;
        servers.insert(victim, house.serve(names[victim], &model).await);
        doors.moved(victim, servers[victim].api.clone());
    }
    let figures = settle_and_audit(house, &doors.first(), &runs).await;
    attendant.abort();
    println!("{killed} kills in {:.1?}, {} servers: {figures:?}", began.elapsed(), names.len());
    assert!(figures.finished > 0, "nothing was proven: {figures:?}");
    drop(model);
}

/// Makes runs until enough of them are under way.
async fn top_up(doors: &Doors, runs: &mut Vec<String>) {
    let open: usize = {
        let mut open = 0;
        for status in ["pending", "running", "waiting"] {
            let page = doors.first().get(&format!("/api/runs?status={status}&limit=200")).await;
            open += page["items"].as_array().unwrap().len();
        }
        open
    };
    let from = runs.len();
    let make = (from..from + LOAD.saturating_sub(open)).map(|number| {
        let api = doors.first();
        async move { api.create(&format!("run-{number}"), PLAN).await }
    });
    runs.extend(join_all(make).await);
}

/// Waits for every run to complete by itself, then holds the logs against the effects.
pub async fn settle_and_audit(house: &House, api: &Api, runs: &[String]) -> Figures {
    for run in runs {
        api.reaches(run, "completed", Duration::from_secs(60)).await;
    }
    audit(&logs(api, runs).await, &house.effects())
}

pub async fn logs(api: &Api, runs: &[String]) -> BTreeMap<String, Vec<Value>> {
    let mut logs = BTreeMap::new();
    for run in runs {
        logs.insert(run.clone(), api.events(run).await);
    }
    logs
}

/// Where the servers are just now.
#[derive(Debug, Clone)]
pub struct Doors(Arc<RwLock<Vec<Api>>>);

impl Doors {
    pub fn of(apis: Vec<Api>) -> Doors {
        Doors(Arc::new(RwLock::new(apis)))
    }

    pub fn moved(&self, place: usize, api: Api) {
        self.0.write().unwrap()[place] = api;
    }

    pub fn first(&self) -> Api {
        self.0.read().unwrap()[0].clone()
    }

    pub fn any(&self, number: usize) -> Api {
        let apis = self.0.read().unwrap();
        apis[number % apis.len()].clone()
    }
}

/// Someone who answers everything that runs wait for: signals, sometimes twice, and recoveries in
/// each of the three ways.
pub fn attend(doors: Doors) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut number = 0;
        loop {
            for waiting in doors.any(number).waiting().await {
                number += 1;
                answer(&doors.any(number), &waiting.run, &waiting.why, number).await;
            }
            number += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
}

async fn answer(api: &Api, run: &str, why: &str, number: usize) {
    let Some((200, run_now)) = api.try_get(&format!("/api/runs/{run}")).await else { return };
    let keys = run_now["wait"]["correlation_keys"].as_array().cloned().unwrap_or_default();
    for key in keys.iter().filter_map(Value::as_str) {
        let payload = match (why, number % 3) {
            ("signal", _) => json!({"number": number}),
            (_, 0) => json!({"approved": false}),
            (_, 1) => json!({"result": "a person looked: it was done"}),
            _ => json!({"approved": true}),
        };
        let told = api.signal(run, key, &payload).await;
        // 404 and 409: someone was faster, and the run is elsewhere by now.
        assert!(matches!(told, None | Some(200 | 404 | 409 | 503)), "{run} {key}: {told:?}");
        if number.is_multiple_of(2) && told == Some(200) {
            let again = api.signal(run, key, &payload).await;
            // A call that was run again and lost again is asked about under the same key: what
            // was said the first time stands in the way of hearing the second twice.
            let heard = matches!(again, None | Some(200 | 503)) || why == "permission";
            assert!(heard, "{run} {key} again: {again:?}");
        }
    }
}
