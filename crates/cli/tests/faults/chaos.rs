//! Chaos: three servers on a PostgreSQL with a standby, killed, stopped and cut off while runs with
//! questions go on, and one fail-over. Nothing is lost, nothing is done twice, no batch goes on
//! twice, counted at the far side. [docs/chaos.md] says how to run it at full length.
//!
//! [docs/chaos.md]: ../../../../docs/chaos.md

mod fleet;
mod people;
mod schedule;
mod tally;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;
use std::time::{Duration, Instant};

use chancery_testkit::postgres::Pair;
use chancery_testkit::road::Road;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::watch;

use self::fleet::Fleet;
use self::people::People;
use self::schedule::{Fault, Size, Step, schedule};
use self::tally::{Evidence, Tally};
use crate::api::Api;
use crate::house::House;
use crate::{Dice, model};

const SERVERS: usize = 3;
/// The last server reaches the database without one, as people's servers do.
const ROADS: usize = 2;
const LEASE: Duration = Duration::from_secs(2);
/// After the last fault: everything that can go on has ended by then.
const SETTLE_MAX: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_chaos_loses_nothing_doubles_nothing_and_resumes_once() {
    let from_environment = |name: &str, otherwise: usize| said(name).unwrap_or(otherwise);
    let size = Size {
        runs: from_environment("CHANCERY_CHAOS_RUNS", 90),
        kills: from_environment("CHANCERY_CHAOS_KILLS", 6),
        pauses: from_environment("CHANCERY_CHAOS_PAUSES", 2),
        cuts: from_environment("CHANCERY_CHAOS_CUTS", 6),
        pace: (200, said("CHANCERY_CHAOS_PACE_MS").unwrap_or(1600)),
        seed: said("CHANCERY_CHAOS_SEED").unwrap_or_else(|| Dice::new().0),
    };
    chaos(&size).await;
}

fn said<T: FromStr<Err: Debug>>(name: &str) -> Option<T> {
    std::env::var(name).ok().map(|it| it.parse().unwrap())
}

async fn chaos(size: &Size) {
    let began = Instant::now();
    let steps = schedule(size, SERVERS, ROADS, LEASE);
    println!("{size:?}");
    steps.iter().for_each(|it| println!("{it}"));
    let mut pair = Pair::start().await;
    let roads = roads(&pair).await;
    let house = House { lease_seconds: LEASE.as_secs(), workers: 16, ..House::new() };
    let model = model::start("fake").await;
    let mut fleet = Fleet::start(starts(&house, &model, &pair, &roads)).await;
    println!("ready after {:.1?}", began.elapsed());
    let people = People::new(fleet.doors.clone(), &house.path().join("effects"), size.seed);
    let attendant = people.attend();
    let (allow, allowed) = watch::channel(0);
    let making = people.make(size.runs, allowed);

    for (place, Step { after, fault }) in steps.iter().enumerate() {
        // Some of the runs for each fault, so that each finds some under way.
        allow.send_replace(size.runs * (place + 1) / steps.len());
        tokio::time::sleep(*after).await;
        inflict(*fault, &mut fleet, &roads, &mut pair).await;
    }
    let plans = making.await.unwrap();
    fleet.calm().await;
    println!("the last fault is over after {:.1?}", began.elapsed());
    settle(&fleet.doors.first()).await;
    assert!(!attendant.is_finished(), "nobody answers any more: {:?}", attendant.await);
    attendant.abort();
    println!("settled after {:.1?}", began.elapsed());

    let logs = agreed(&fleet, &plans).await;
    let ledger = std::fs::read_to_string(house.path().join("effects")).unwrap();
    let ledger = ledger.lines().map(str::to_owned).collect();
    let (answers, signals) = (people.answers(), people.signals());
    let tally = Tally::of(&Evidence { plans, logs, ledger, answers, signals });
    println!("{size:?}\n1 fail-over, {:.1?}: {:#?}", began.elapsed(), tally.figures);
    let wrongs = tally.wrongs;
    assert!(wrongs.is_empty(), "seed {}, {} wrongs: {wrongs:#?}", size.seed, wrongs.len());
    assert_eq!(tally.figures.completed, size.runs);
}

/// Two for each server that has roads: to the primary and to the standby.
async fn roads(pair: &Pair) -> Vec<[Road; 2]> {
    let mut roads = Vec::new();
    for _ in 0..ROADS {
        let [first, second] =
            pair.ports().map(|it| format!("postgres://postgres@127.0.0.1:{it}/postgres"));
        roads.push([Road::to(&first).await, Road::to(&second).await]);
    }
    roads
}

fn starts(
    house: &House,
    model: &chancery_testkit::fake_model::FakeModel,
    pair: &Pair,
    roads: &[[Road; 2]],
) -> Vec<crate::server::Start> {
    let url = |place: usize| match roads.get(place) {
        Some([first, second]) => format!(
            "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres",
            first.port(),
            second.port()
        ),
        None => pair.url(),
    };
    let start = |place: usize| {
        let mut start = house.start(["one", "two", "three"][place], model);
        start.arguments.extend(["--database".to_owned(), url(place)]);
        start
    };
    (0..SERVERS).map(start).collect()
}

async fn inflict(fault: Fault, fleet: &mut Fleet, roads: &[[Road; 2]], pair: &mut Pair) {
    let both = |place: usize, act: fn(&Road)| roads[place].iter().for_each(act);
    match fault {
        Fault::Kill(server) => fleet.kill(server).await,
        Fault::Pause(server, long) => fleet.pause(server, Duration::from_millis(long)).await,
        Fault::Cut(road) => both(road, Road::cut),
        Fault::BreakOff(road) => both(road, Road::break_off),
        Fault::Jam(road, long) => {
            both(road, |it| it.jam(true));
            tokio::time::sleep(Duration::from_millis(long)).await;
            both(road, |it| it.jam(false));
        }
        Fault::FailOver(late) => {
            pair.lose_primary().await;
            tokio::time::sleep(Duration::from_millis(late)).await;
            pair.promote().await;
        }
    }
}

/// Waits until no run is under way, or for as long as that may take; what is still under way then
/// is found by the tally.
async fn settle(api: &Api) {
    let began = Instant::now();
    loop {
        let mut open = Vec::new();
        for status in ["pending", "running", "waiting"] {
            let page = api.get(&format!("/api/runs?status={status}&limit=200")).await;
            open.extend(page["items"].as_array().unwrap().clone());
        }
        if open.is_empty() {
            return;
        }
        if began.elapsed() > SETTLE_MAX {
            println!("after {SETTLE_MAX:?} still under way: {open:#?}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The logs, once every server has shown the same runs, the same logs and the same whole chain.
async fn agreed(fleet: &Fleet, plans: &BTreeMap<String, String>) -> BTreeMap<String, Vec<Value>> {
    let mut first = None;
    for place in 0..SERVERS {
        let api = fleet.doors.any(place);
        let chain = api.get("/api/audit/verify").await;
        assert_eq!(chain["ok"], true, "the audit is broken: {chain}");
        assert_eq!(count_runs(&api).await, plans.len(), "as many runs as were asked for");
        let seen = (chain, everything(&api, plans).await);
        match &first {
            None => first = Some(seen),
            Some(first) => assert!(*first == seen, "server {place} says otherwise"),
        }
    }
    let everything = first.unwrap().1;
    everything.into_iter().map(|(id, (_, log))| (id, log)).collect()
}

async fn everything(
    api: &Api,
    plans: &BTreeMap<String, String>,
) -> BTreeMap<String, (Value, Vec<Value>)> {
    let one = |id: String| async move { (id.clone(), (api.run(&id).await, api.events(&id).await)) };
    stream::iter(plans.keys().cloned()).map(one).buffer_unordered(8).collect().await
}

async fn count_runs(api: &Api) -> usize {
    let (mut count, mut cursor) = (0, String::new());
    loop {
        let page = api.get(&format!("/api/runs?limit=200&cursor={cursor}")).await;
        count += page["items"].as_array().unwrap().len();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return count,
        }
    }
}
