//! The clock is set back by an hour, under the real process: libfaketime answers for the machine.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use chancery_testkit::postgres::TestDatabase;

use crate::house::House;
use crate::kills::settle_and_audit;
use crate::model;
use crate::server::Start;

/// The machine's clock as one server sees it.
#[derive(Debug)]
struct Clock {
    file: PathBuf,
}

impl Clock {
    fn at(file: PathBuf, offset: &str) -> Clock {
        let clock = Clock { file };
        clock.set(offset);
        clock
    }

    /// Seconds from the true time, as in `-3600`.
    fn set(&self, offset: &str) {
        // Renamed into place, so that no one reads half of it.
        let new = self.file.with_extension("new");
        std::fs::write(&new, format!("{offset}\n")).unwrap();
        std::fs::rename(&new, &self.file).unwrap();
    }

    fn start(&self, mut start: Start) -> Start {
        let pairs = [
            ("LD_PRELOAD", library().display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            // Setting a clock does not touch the monotonic one.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        start.environment.extend(pairs.map(|(name, value)| (name.to_owned(), value)));
        start
    }
}

fn library() -> PathBuf {
    let places = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let mut found = places.map(|it| it.path().join("faketime/libfaketimeMT.so.1"));
    found
        .find(|it| it.is_file())
        .expect("install the package `faketime`, or run `cargo xtask test`")
}

const HOUR_BACK: &str = "-3600";
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn runs_and_waits_go_on_when_the_clock_is_set_back_an_hour() {
    let house = House::new();
    let model = model::start("fake").await;
    let clock = Clock::at(house.path().join("clock"), "+0");
    let start = clock.start(house.start("one", &model));
    let server = start.serve().await;
    let api = &server.api;
    let driven = api.create("driven", &["u"; 20].join(" ")).await;
    let waiting = api.create("waiting", "w e").await;
    api.reaches(&waiting, "waiting", PATIENCE).await;

    clock.set(HOUR_BACK);
    let timed = api.create("timed", "t e").await;
    let wait = api.reaches(&timed, "waiting", PATIENCE).await;
    let (until, created) = (&wait["wait"]["until"], &wait["created_at"]);
    let began = Instant::now();
    api.reaches(&timed, "completed", PATIENCE).await;
    assert!(began.elapsed() < Duration::from_secs(15), "from {created} until {until}");
    api.signal(&waiting, "go-0", &true.into()).await;
    settle_and_audit(&house, api, &[driven.clone(), waiting.clone(), timed.clone()]).await;

    // A life before the jump, one after it: what the dead one held is free at once.
    let cut_off = api.create("cut off", &["e"; 200].join(" ")).await;
    api.reaches(&cut_off, "running", PATIENCE).await;
    server.kill();
    clock.set("-7200");
    let server = start.serve().await;
    let fresh = server.api.create("fresh", "e").await;
    server.api.reaches(&fresh, "completed", PATIENCE).await;
    let attendant = crate::kills::attend(crate::kills::Doors::of(vec![server.api.clone()]));
    settle_and_audit(&house, &server.api, &[driven, waiting, timed, cut_off, fresh]).await;
    attendant.abort();
}

#[tokio::test]
async fn a_wait_lasts_as_long_as_it_should_where_the_servers_clock_is_not_the_databases() {
    let database = TestDatabase::create().await;
    for (name, offset) in [("behind", HOUR_BACK), ("ahead", "+3600")] {
        let house = House::on(database.url(), 2);
        let model = model::start("fake").await;
        let clock = Clock::at(house.path().join("clock"), offset);
        let server = clock.start(house.start(name, &model)).serve().await;
        let began = Instant::now();
        let run = server.api.create(name, "t e").await;
        server.api.reaches(&run, "completed", PATIENCE).await;
        let took = began.elapsed();
        assert!(took > Duration::from_millis(1900), "{name}: the wait was cut short to {took:?}");
        settle_and_audit(&house, &server.api, &[run]).await;
    }
}
