//! `bench mail`: mail routed and delivered, durably, beside the raw limit of the same disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chancery_domain::event::Actor;
use chancery_domain::id::AgentId;
use chancery_domain::mail::{self, Draft, Known};
use chancery_domain::org::Org;
use chancery_runtime::clock;
use chancery_runtime::mailroom::{Mailroom, Posted, Terms};
use chancery_server::config::Config;
use chancery_store::mail::Behalf;
use chancery_store::{Location, Store, raw};
use serde::Serialize;

use crate::Global;
use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, Clone, clap::Args)]
pub struct MailArgs {
    /// How long each measurement takes
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How many write at once
    #[arg(long, default_value_t = 64)]
    senders: usize,
}

#[derive(Debug, Serialize)]
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
}

pub async fn run(global: &Global, args: &MailArgs) -> anyhow::Result<Outcome> {
    let time = Duration::from_secs_f64(args.seconds);
    let dir = std::env::temp_dir().join(format!("chancery-bench-{}", std::process::id()));
    let figures = measured(&dir, args.senders, time).await;
    std::fs::remove_dir_all(&dir)?;
    let figures = figures?;
    if global.json {
        output::json(&figures)?;
    } else {
        for Figure { what, value, unit } in &figures {
            output::line(format_args!("{what:<58} {value:>10.1} {unit}"))?;
        }
    }
    Ok(Outcome::Done)
}

async fn measured(
    dir: &std::path::Path,
    senders: usize,
    time: Duration,
) -> anyhow::Result<Vec<Figure>> {
    let loaded = chancery_server::organisation::of(&Config::default())?;
    let org = Arc::new(loaded.org);
    let mut figures = Vec::new();
    figures.push(Figure {
        what: "a mail routed, in memory".to_owned(),
        value: routed(&org, time)?,
        unit: "ns",
    });
    std::fs::create_dir_all(dir)?;
    let raw_dir = dir.to_owned();
    let raw = move || {
        let single = raw::sqlite_single(&raw_dir, raw::Shape::Row, time)?;
        Ok::<_, anyhow::Error>((single, raw::sqlite_group(&raw_dir, senders, time)?))
    };
    let (single, group) = tokio::task::spawn_blocking(raw).await??;
    for (rate, word) in [(single, "1 client"), (group, "as many clients")] {
        let what = format!("raw durable commits, {word}");
        figures.push(Figure { what, value: rate.per_second, unit: "/s" });
    }
    let dir = &dir.join("store");
    let store = Store::open(&Location::Sqlite(dir.to_owned()), clock::new_worker_id()).await?;
    let mailroom = Mailroom::new(store.clone(), Terms::default());
    for (count, word) in [(1, "sender"), (senders, "senders at once")] {
        let rate = delivered(&mailroom, &org, count, time, "it_manager").await?;
        let what = format!("delivered on SQLite, durable, {count} {word}");
        figures.push(Figure { what, value: rate, unit: "/s" });
    }
    let rate = delivered(&mailroom, &org, senders, time, "ceo").await?;
    let what = format!("rejected and recorded, {senders} senders at once");
    figures.push(Figure { what, value: rate, unit: "/s" });
    store.close().await;
    Ok(figures)
}

/// Nanoseconds for one.
fn routed(org: &Org, time: Duration) -> anyhow::Result<f64> {
    let (draft, known) = (Draft::bare("it_manager", "report"), Known::default());
    let (began, mut made) = (Instant::now(), 0u64);
    while began.elapsed() < time {
        for _ in 0..1000 {
            let routed = mail::route(org, "backend_worker", std::hint::black_box(&draft), &known);
            ensure!(routed.is_ok(), "a mail of the built-in organisation is rejected");
        }
        made += 1000;
    }
    Ok(began.elapsed().as_nanos() as f64 / made as f64)
}

/// How many a second, by so many senders.
async fn delivered(
    mailroom: &Mailroom,
    org: &Arc<Org>,
    senders: usize,
    time: Duration,
    to: &'static str,
) -> anyhow::Result<f64> {
    let made = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut at_work = tokio::task::JoinSet::new();
    for _ in 0..senders {
        let (mailroom, org, made) = (mailroom.clone(), org.clone(), made.clone());
        at_work.spawn(async move {
            while began.elapsed() < time {
                let draft = Draft { body: "It is done.".to_owned(), ..Draft::bare(to, "report") };
                let behalf = Behalf {
                    user: "bench".into(),
                    project: None,
                    delegated: None,
                    run: None,
                    contract: None,
                };
                let by = Actor::Agent(AgentId::from("backend_worker"));
                let mail = mailroom.from_outside(draft, "backend_worker", by, behalf);
                let posted = mailroom.send(&org, mail).await?;
                let expected = matches!(&posted, Posted::Delivered(_)) == (to == "it_manager");
                ensure!(expected, "the mail came to {posted:?}");
                made.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = at_work.join_next().await {
        ended.context("a sender was cut off")??;
    }
    Ok(made.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}
