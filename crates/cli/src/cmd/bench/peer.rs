//! `bench peer`: ours as one of the peers that `bench/run` measures side by side. The same work,
//! told in the same lines on standard output, until standard input ends.

mod ends;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chancery_domain::event::Actor;
use chancery_domain::id::WaitKey;
use chancery_runtime::clock;
use chancery_store::{Location, Store, raw};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use self::work::Work;
use super::own_folder;
use crate::Global;
use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, Clone, clap::Args)]
pub struct PeerArgs {
    /// How long each measurement takes
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How many clients make one run after the other
    #[arg(long, value_delimiter = ',', default_value = "1,64")]
    clients: Vec<usize>,
    /// How many runs wait for a signal and are sent one
    #[arg(long, default_value_t = 50)]
    approvals: usize,
    /// Instead of that: the raw limits of the disk and the database
    #[arg(long)]
    raw: bool,
}

pub async fn run(global: &Global, args: &PeerArgs) -> anyhow::Result<Outcome> {
    let dir = own_folder(global)?;
    let location = match &global.database {
        Some(url) => Location::Postgres(url.clone()),
        None => Location::Sqlite(dir.clone()),
    };
    if args.raw {
        raw_limits(&location, args).await?;
    } else {
        whole(&location, args).await?;
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(Outcome::Done)
}

async fn whole(location: &Location, args: &PeerArgs) -> anyhow::Result<()> {
    let store = Store::open(location, clock::new_worker_id()).await?;
    let work = Arc::new(Work::start(store).await?);
    work.run_once().await?;
    say(&json!({ "said": "ready" }))?;
    for clients in args.clients.iter().copied() {
        say(&json!({ "said": "begin", "clients": clients }))?;
        let (latencies, took) = closed_loop(&work, clients, args.seconds).await?;
        say(&json!({
            "said": "end", "clients": clients, "runs": latencies.len(),
            "seconds": took.as_secs_f64(),
            "p50_ms": at(&latencies, 0.5), "p99_ms": at(&latencies, 0.99),
        }))?;
    }
    let mut approvals = Vec::new();
    for n in 0..args.approvals {
        approvals.push(approval(&work, &format!("go-{n}")).await?.as_secs_f64() * 1e3);
    }
    say(&json!({ "said": "approvals", "ms": approvals }))?;
    // Looked at from outside, and then let go.
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    if let Some(work) = Arc::into_inner(work) {
        work.stop().await;
    }
    Ok(())
}

/// Each client makes the next run when its last one has durably ended. Answers how long each run
/// took, the shortest first.
async fn closed_loop(
    work: &Arc<Work>,
    clients: usize,
    seconds: f64,
) -> anyhow::Result<(Vec<Duration>, Duration)> {
    let began = Instant::now();
    let time = Duration::from_secs_f64(seconds);
    let clients: Vec<_> = (0..clients)
        .map(|_| {
            let work = work.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while began.elapsed() < time {
                    let asked = Instant::now();
                    work.run_once().await?;
                    latencies.push(asked.elapsed());
                }
                Ok::<_, anyhow::Error>(latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for client in clients {
        latencies.extend(client.await??);
    }
    let took = began.elapsed();
    latencies.sort_unstable();
    Ok((latencies, took))
}

/// From the signal to the next question to the model.
async fn approval(work: &Work, key: &str) -> anyhow::Result<Duration> {
    let (run, asked_again) = work.wait_for(key).await?;
    while work.store.run(run).await?.is_none_or(|row| row.status != "waiting") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let key = WaitKey::from(key);
    let signalled = Instant::now();
    let amended = work
        .store
        .amend(run, clock::now(), |history, events| {
            use chancery_domain::command::{Effect, signal};
            use chancery_store::log::Amendment;
            let effect = signal(history, events, &key, json!({}), Actor::System)?;
            Ok::<_, chancery_domain::command::Refusal>(match effect {
                Effect::Record(history) => Amendment::Record(history),
                Effect::Already => Amendment::Nothing(()),
            })
        })
        .await?;
    amended?;
    Ok(asked_again.await?.saturating_duration_since(signalled))
}

/// What one step costs with nothing of ours around it: alone, and with 64 clients.
async fn raw_limits(location: &Location, args: &PeerArgs) -> anyhow::Result<()> {
    let time = Duration::from_secs_f64(args.seconds);
    for clients in args.clients.iter().copied() {
        let rate = match location {
            Location::Postgres(url) => raw::postgres(url, clients, time).await?,
            Location::Sqlite(dir) => {
                let dir = dir.clone();
                tokio::task::spawn_blocking(move || match clients {
                    1 => raw::sqlite_single(&dir, raw::Shape::Step, time),
                    _ => raw::sqlite_group(&dir, clients, time),
                })
                .await??
            }
        };
        say(&json!({
            "said": "raw", "clients": clients, "per_second": rate.per_second,
            "p50_ms": rate.p50.as_secs_f64() * 1e3, "p99_ms": rate.p99.as_secs_f64() * 1e3,
        }))?;
    }
    Ok(())
}

fn say(line: &Value) -> anyhow::Result<()> {
    output::line(format_args!("{line}"))
}

fn at(sorted: &[Duration], share: f64) -> Option<f64> {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).map(|it| it.as_secs_f64() * 1e3)
}
