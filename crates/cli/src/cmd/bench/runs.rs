//! `bench runs`: the figures of the spine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chancery_runtime::clock;
use chancery_store::{Location, Store, raw};
use serde::Serialize;

use super::RunsArgs;
use super::load::{Load, Shape};
use super::{claims, own_folder, process, servers};
use crate::Global;
use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, Serialize)]
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    /// Against the raw limit that stands above it.
    ratio: Option<f64>,
}

/// Ten steps, as the peers were measured.
pub const STEPS: usize = 10;

pub async fn run(global: &Global, args: &RunsArgs) -> anyhow::Result<Outcome> {
    let dir = own_folder(global)?;
    let mut bench = Bench { figures: Vec::new(), json: global.json, dir, fresh: 0 };
    let database = global.database.clone();
    for _ in 0..args.rounds.max(1) {
        bench.all(args, None).await?;
        if let Some(url) = &database {
            bench.all(args, Some(url)).await?;
        }
    }
    if global.json {
        output::json(&bench.figures)?;
    } else if database.is_none() {
        eprintln!("(SQLite only: name a PostgreSQL with --database to measure it too)");
    }
    std::fs::remove_dir_all(&bench.dir)?;
    Ok(Outcome::Done)
}

struct Bench {
    figures: Vec<Figure>,
    json: bool,
    dir: PathBuf,
    fresh: u32,
}

impl Bench {
    async fn all(&mut self, args: &RunsArgs, database: Option<&str>) -> anyhow::Result<()> {
        let name = if database.is_some() { "postgres" } else { "sqlite" };
        let (single, group) = self.raw_limits(args, database, name).await?;
        let five = Shape::of(STEPS, 5);
        for shape in [five, Shape { at_once: true, ..five }, Shape::of(STEPS, 1)] {
            for (clients, limit) in [(1, single.per_second), (64, group.per_second)] {
                self.steps(args, database, name, shape, clients, limit).await?;
            }
        }
        if let Some(url) = database.filter(|_| args.servers > 1) {
            self.servers(args, url, name).await?;
        }
        if args.quick {
            return Ok(());
        }
        self.long_run(args, database, name, single.per_second).await?;
        self.resume(database, name, single.p50).await?;
        self.waiting(args, database, name).await
    }

    async fn raw_limits(
        &mut self,
        args: &RunsArgs,
        database: Option<&str>,
        name: &str,
    ) -> anyhow::Result<(raw::Rate, raw::Rate)> {
        let (single, group) = match database {
            Some(url) => (
                raw::postgres(url, 1, args.time()).await?,
                raw::postgres(url, 64, args.time()).await?,
            ),
            None => {
                let (dir, time) = (self.dir.clone(), args.time());
                tokio::task::spawn_blocking(move || {
                    let single = raw::sqlite_single(&dir, raw::Shape::Row, time)?;
                    Ok::<_, anyhow::Error>((single, raw::sqlite_group(&dir, 64, time)?))
                })
                .await??
            }
        };
        self.note(format!("{name}: raw durable commits, 1 client"), single.per_second, "/s", None)?;
        self.note(format!("{name}: raw durable steps, 64 clients"), group.per_second, "/s", None)?;
        Ok((single, group))
    }

    async fn steps(
        &mut self,
        args: &RunsArgs,
        database: Option<&str>,
        name: &str,
        shape: Shape,
        clients: usize,
        limit: f64,
    ) -> anyhow::Result<()> {
        let load = Load::start(self.store(database).await?, shape, 64).await?;
        let used = process::processor_time();
        let began = Instant::now();
        let rate = load.steps_per_second(clients, args.time()).await?;
        let cpu =
            (process::processor_time() - used).as_secs_f64() / began.elapsed().as_secs_f64() / rate;
        load.stop().await;
        let calls = shape.calls_per_message;
        let how = if shape.at_once { "at once" } else { "a message" };
        let what = format!("{name}: steps, {clients} runs, {calls} calls {how}");
        self.note(what, rate, "/s", Some(rate / limit))?;
        if calls == 1 {
            // A run of theirs is five questions to a model and five calls, each a step.
            let what = format!("{name}: the same as peers count, {clients} runs");
            self.note(what, rate * 2.0, "/s", Some(rate * 2.0 / limit))?;
        }
        if clients > 1 {
            self.note(
                format!("{name}: processor time a step, {clients} runs"),
                cpu * 1e3,
                "ms",
                None,
            )?;
        }
        Ok(())
    }

    /// What each added server brings, beside what as many clients with nothing around them bring on
    /// the same database: where these bring little, the machine has no more to give.
    async fn servers(&mut self, args: &RunsArgs, url: &str, name: &str) -> anyhow::Result<()> {
        let thinks = Duration::from_millis(args.model_ms);
        let shape = Shape { thinks, ..Shape::of(STEPS, 1) };
        let (mut first, runs) = (None, args.server_runs);
        for count in [1, 2, 4, 8].into_iter().filter(|it| *it <= args.servers) {
            let raw = raw::postgres(url, count * runs, args.time()).await?.per_second;
            let dir = self.location();
            let together = servers::together(url, &dir, count, args.time(), shape, runs).await?;
            let rate = together.steps_per_second;
            let clients = count * runs;
            self.note(format!("{name}: raw durable steps, {clients} clients"), raw, "/s", None)?;
            let what = format!("{name}: steps, {count} servers of {runs} runs");
            self.note(what, rate, "/s", Some(rate / raw))?;
            let (alone, raw_alone) = *first.get_or_insert((rate, raw));
            if count > 1 {
                let each = |all: f64, one: f64| (all - one) / (count - 1) as f64 / one;
                let what = format!("{name}: of it, each added server");
                self.note(what, each(rate, alone), "x", None)?;
                let what = format!("{name}: of the raw limit, as many added clients");
                self.note(what, each(raw, raw_alone), "x", None)?;
            }
            if let Some(busy) = together.database {
                self.note(format!("{name}: processors that the database used"), busy, "", None)?;
            }
            if let Some(idle) = together.idle {
                self.note(format!("{name}: processors that nobody used"), idle, "", None)?;
            }
        }
        Ok(())
    }

    /// A long run costs no more a step than a short one; alone, it shows a step without a beginning
    /// and an end.
    async fn long_run(
        &mut self,
        args: &RunsArgs,
        database: Option<&str>,
        name: &str,
        limit: f64,
    ) -> anyhow::Result<()> {
        let load = Load::start(self.store(database).await?, Shape::of(1000, 5), 64).await?;
        let rate = load.steps_per_second(1, args.time()).await?;
        load.stop().await;
        let what = format!("{name}: steps, 1 run of 1000 steps, 5 calls a message");
        self.note(what, rate, "/s", Some(rate / limit))?;
        let mut rates = Vec::new();
        for steps in [10, 1000] {
            let shape = Shape::of(steps, 1);
            let load = Load::start(self.store(database).await?, shape, 64).await?;
            rates.push(load.steps_per_second(8, args.time()).await?);
            load.stop().await;
        }
        let ratio = rates[0] / rates[1];
        self.note(
            format!("{name}: cost of a step in runs of 1000 against runs of 10"),
            ratio,
            "x",
            None,
        )
    }

    async fn resume(
        &mut self,
        database: Option<&str>,
        name: &str,
        raw: Duration,
    ) -> anyhow::Result<()> {
        let shape = Shape::waiting();
        let load = Load::start(self.store(database).await?, shape, 64).await?;
        let mut latencies = Vec::new();
        for n in 0..300 {
            let key = format!("go-{n}");
            let run = load.create(&key).await?;
            while load.store.run(run).await?.is_none_or(|row| row.status != "waiting") {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            latencies.push(load.resume_latency(run, &key).await?);
        }
        load.stop().await;
        latencies.sort_unstable();
        let ms =
            |share: f64| latencies[(latencies.len() as f64 * share) as usize].as_secs_f64() * 1e3;
        let raw_ms = raw.as_secs_f64() * 1e3;
        self.note(format!("{name}: raw commit, p50"), raw_ms, "ms", None)?;
        self.note(format!("{name}: signal to next step, p50"), ms(0.5), "ms", None)?;
        self.note(format!("{name}: signal to next step, p99"), ms(0.99), "ms", None)
    }

    async fn waiting(
        &mut self,
        args: &RunsArgs,
        database: Option<&str>,
        name: &str,
    ) -> anyhow::Result<()> {
        let empty = self.location();
        let before = process::start_and_look(&empty, database).await?;
        let full = self.location();
        // One PostgreSQL is one store: there the two cannot be looked at side by side.
        let calm = match database {
            Some(_) => Some(claims::latencies([&open(&full, database).await?]).await?),
            None => None,
        };
        let load = Load::start(open(&full, database).await?, Shape::waiting(), 64).await?;
        for n in 0..args.waiting {
            load.create(&format!("wait-{n}")).await?;
        }
        while load.store.queue_depth().await?.0 > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        load.stop().await;
        let after = process::start_and_look(&full, database).await?;
        let crowded = open(&full, database).await?;
        let [claim_before, claim_after] = match calm {
            Some([before]) => [before, claims::latencies([&crowded]).await?[0]],
            None => claims::latencies([&self.store(None).await?, &crowded]).await?,
        };
        let n = args.waiting;
        let us = |it: Duration| it.as_secs_f64() * 1e6;
        self.note(format!("{name}: a claim, no run waits"), us(claim_before), "us", None)?;
        self.note(format!("{name}: a claim, {n} runs wait"), us(claim_after), "us", None)?;
        self.note(format!("{name}: resident, idle"), before.resident_mb, "MB", None)?;
        self.note(format!("{name}: of it, its own and not the binary"), before.own_mb, "MB", None)?;
        self.note(format!("{name}: resident, {n} runs wait"), after.resident_mb, "MB", None)?;
        self.note(format!("{name}: of it, its own and not the binary"), after.own_mb, "MB", None)?;
        self.note(
            format!("{name}: start to ready, empty"),
            us(before.ready_after) / 1e3,
            "ms",
            None,
        )?;
        self.note(
            format!("{name}: start to ready, {n} runs"),
            us(after.ready_after) / 1e3,
            "ms",
            None,
        )
    }

    fn note(
        &mut self,
        what: String,
        value: f64,
        unit: &'static str,
        ratio: Option<f64>,
    ) -> anyhow::Result<()> {
        if !self.json {
            let ratio = ratio.map(|it| format!("   {it:.2} of the raw limit")).unwrap_or_default();
            output::line(format_args!("{what:<62} {value:>12.2} {unit}{ratio}"))?;
        }
        self.figures.push(Figure { what, value, unit, ratio });
        Ok(())
    }

    fn location(&mut self) -> PathBuf {
        self.fresh += 1;
        self.dir.join(format!("data-{}", self.fresh))
    }

    async fn store(&mut self, database: Option<&str>) -> anyhow::Result<Store> {
        let dir = self.location();
        open(&dir, database).await
    }
}

async fn open(dir: &Path, database: Option<&str>) -> anyhow::Result<Store> {
    let location = match database {
        Some(url) => Location::Postgres(url.to_owned()),
        None => Location::Sqlite(dir.to_owned()),
    };
    std::fs::create_dir_all(dir)?;
    Ok(Store::open(&location, clock::new_worker_id()).await?)
}
