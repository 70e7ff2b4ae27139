//! `bench scale`: how throughput and cost grow with what is in the store, with what waits, and
//! with who works. Each axis starts from an empty store. `bench/run scale` plots it.

mod fill;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use chancery_domain::id::UserId;
use chancery_runtime::clock;
use chancery_store::read::RunFilter;
use chancery_store::{Location, Store};
use serde::Serialize;

use self::fill::{Kind, Place};
use super::load::{Load, Shape};
use super::{own_folder, process, servers};
use crate::Global;
use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, Clone, clap::Args)]
pub struct ScaleArgs {
    /// What grows
    #[arg(value_enum)]
    axis: Axis,
    /// How far: how many finished runs, waiting runs, or workers, one after the other
    #[arg(long, value_delimiter = ',', required = true)]
    to: Vec<usize>,
    /// How long each measurement takes
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Axis {
    /// Runs that have ended
    Finished,
    /// Runs that wait for a signal
    Waiting,
    /// Runs that one server drives at a time
    Workers,
    /// Servers on one PostgreSQL, with 64 runs each
    Servers,
}

/// One point of the plot. A step is a question to the model or a call, as in `bench/run`.
#[derive(Debug, Serialize)]
struct Point {
    n: usize,
    steps_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fill_seconds: Option<f64>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    store: Option<Standing>,
    /// Processors that the database kept busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    database_processors: Option<f64>,
}

/// What a store of that size asks for.
#[derive(Debug, Serialize)]
struct Standing {
    /// Runs of that kind, before the load adds some of its own.
    there: u64,
    /// A claim that finds nothing, in the middle of 200.
    claim_us: f64,
    /// The newest fifty runs of all, of somebody, and of those that wait.
    list_newest_ms: f64,
    list_user_ms: f64,
    list_waiting_ms: f64,
    ready_ms: f64,
    resident_mb: f64,
    disk_mb: f64,
}

/// Five calls a run: ten steps, as peers count them.
const SHAPE: Shape = Shape::of(5, 1);

pub async fn run(global: &Global, args: &ScaleArgs) -> anyhow::Result<Outcome> {
    let dir = own_folder(global)?;
    let time = Duration::from_secs_f64(args.seconds);
    let place = Place { dir: dir.clone(), database: global.database.clone() };
    let points = match args.axis {
        Axis::Finished => filled(&place, Kind::Finished, &args.to, time).await,
        Axis::Waiting => filled(&place, Kind::Waiting, &args.to, time).await,
        Axis::Workers => workers(&place, &args.to, time).await,
        Axis::Servers => several(&place, &args.to, time).await,
    };
    std::fs::remove_dir_all(&dir)?;
    let points = points?;
    if global.json {
        output::json(&points)?;
    }
    Ok(Outcome::Done)
}

/// Fills the store up to each size in turn, and measures there.
async fn filled(
    place: &Place,
    kind: Kind,
    sizes: &[usize],
    time: Duration,
) -> anyhow::Result<Vec<Point>> {
    let location = place.location();
    let template = fill::template(&location, kind).await?;
    let (mut points, mut there) = (Vec::new(), 1);
    for n in sizes.iter().copied() {
        let began = Instant::now();
        fill::grow(&location, template, n.saturating_sub(there)).await?;
        there = there.max(n);
        let fill_seconds = Some(began.elapsed().as_secs_f64());
        let store = standing(place, kind).await?;
        let steps_per_second = steps(&location, 64, time).await?;
        let point = Point {
            n,
            steps_per_second,
            fill_seconds,
            store: Some(store),
            database_processors: None,
        };
        tell(&point);
        points.push(point);
    }
    Ok(points)
}

async fn standing(place: &Place, kind: Kind) -> anyhow::Result<Standing> {
    let location = place.location();
    let disk_mb = chancery_store::raw::fill::bytes(&location).await? as f64 / 1e6;
    let looked = process::start_and_look(&place.dir, place.database.as_deref()).await?;
    let store = Store::open(&location, clock::new_worker_id()).await?;
    let newest = RunFilter::default();
    let user = RunFilter { user: Some(UserId::from("bench")), ..RunFilter::default() };
    let waiting = RunFilter { status: Some("waiting".to_owned()), ..RunFilter::default() };
    let list = async |filter: &RunFilter| {
        median(async || store.runs(filter, 50).await.map(|_| ()).context("a list")).await
    };
    let counts = store.count_by_status().await?;
    let there = counts.iter().find(|it| it.0 == kind.status()).map_or(0, |it| it.1);
    let standing = Standing {
        there,
        claim_us: median(async || store.claim(1).await.map(|_| ()).context("a claim")).await? * 1e3,
        list_newest_ms: list(&newest).await?,
        list_user_ms: list(&user).await?,
        list_waiting_ms: list(&waiting).await?,
        ready_ms: looked.ready_after.as_secs_f64() * 1e3,
        resident_mb: looked.resident_mb,
        disk_mb,
    };
    store.close().await;
    Ok(standing)
}

/// The middle of 200 times, in milliseconds.
async fn median(asked: impl AsyncFn() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..200 {
        let began = Instant::now();
        asked().await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_secs_f64() * 1e3)
}

/// Runs at a time in one server.
async fn workers(place: &Place, counts: &[usize], time: Duration) -> anyhow::Result<Vec<Point>> {
    let mut points = Vec::new();
    for n in counts.iter().copied() {
        let steps_per_second = steps(&place.location(), n, time).await?;
        let point = Point {
            n,
            steps_per_second,
            fill_seconds: None,
            store: None,
            database_processors: None,
        };
        tell(&point);
        points.push(point);
    }
    Ok(points)
}

/// Servers on one database.
async fn several(place: &Place, counts: &[usize], time: Duration) -> anyhow::Result<Vec<Point>> {
    let url =
        place.database.as_deref().context("several servers share a PostgreSQL: --database")?;
    let mut points = Vec::new();
    for n in counts.iter().copied() {
        let together = servers::together(url, &place.dir, n, time, SHAPE, 64).await?;
        let point = Point {
            n,
            steps_per_second: together.steps_per_second * 2.0,
            fill_seconds: None,
            store: None,
            database_processors: together.database,
        };
        tell(&point);
        points.push(point);
    }
    Ok(points)
}

/// With so many runs under way.
async fn steps(location: &Location, runs: usize, time: Duration) -> anyhow::Result<f64> {
    let store = Store::open(location, clock::new_worker_id()).await?;
    let load = Load::start(store, SHAPE, runs).await?;
    let calls = load.steps_per_second(runs, time).await?;
    load.stop().await;
    Ok(calls * 2.0)
}

fn tell(point: &Point) {
    let Point { n, steps_per_second, .. } = point;
    let store = point.store.as_ref().map(|it| {
        format!(
            ", claim {:.0} us, lists {:.2}/{:.2}/{:.2} ms, ready in {:.0} ms, {:.0} MB resident, \
             {:.0} MB on disk",
            it.claim_us,
            it.list_newest_ms,
            it.list_user_ms,
            it.list_waiting_ms,
            it.ready_ms,
            it.resident_mb,
            it.disk_mb
        )
    });
    let filled = point.fill_seconds.map(|it| format!(", filled in {it:.1} s")).unwrap_or_default();
    let busy = point.database_processors.map(|it| format!(", database {it:.2} processors"));
    let (store, busy) = (store.unwrap_or_default(), busy.unwrap_or_default());
    output::note(format_args!("{n:>9}: {steps_per_second:.0} steps/s{store}{busy}{filled}"));
}
