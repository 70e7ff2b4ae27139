//! `bench doors`: what a completion through the OpenAI-style door takes beyond the model itself,
//! and what the console weighs and holds.

mod console;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use chancery_domain::id::AgentId;
use chancery_runtime::model::scripted::ScriptedModel;
use chancery_runtime::model::{Message, Model as _, Request};
use chancery_server::config::{Config, ModelConfig, Provider};
use chancery_store::raw;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Global;
use crate::outcome::Outcome;
use crate::output;

#[derive(Debug, Clone, clap::Args)]
pub struct DoorsArgs {
    /// How many completions each figure is taken from
    #[arg(long, default_value_t = 300)]
    completions: usize,
    /// How long the scripted model thinks, in milliseconds
    #[arg(long, value_delimiter = ',', default_value = "0,50")]
    thinks: Vec<u64>,
    /// How many look on at once; 0 leaves the console out
    #[arg(long, default_value_t = 1000)]
    streams: usize,
}

#[derive(Debug, Serialize)]
struct Figure {
    what: String,
    p50_ms: f64,
    p99_ms: Option<f64>,
    /// Of the door: p50 beyond that of the model itself.
    beyond_ms: Option<f64>,
    /// Of the door: p50 against that of the model itself.
    ratio: Option<f64>,
    /// Of the door: how many raw commits that is. A run that answers is at least two.
    commits: Option<f64>,
}

pub async fn run(global: &Global, args: &DoorsArgs) -> anyhow::Result<Outcome> {
    ensure!(args.completions > 0, "no completions, no figures");
    let dir = std::env::temp_dir().join(format!("chancery-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let figures = measured(&dir, args).await;
    let console = match args.streams {
        0 => Ok(Vec::new()),
        streams => console::measured(&dir, streams).await,
    };
    std::fs::remove_dir_all(&dir)?;
    let (figures, console) = (figures?, console?);
    if global.json {
        output::json(&json!({ "completions": figures, "console": console }))?;
        return Ok(Outcome::Done);
    }
    for it in &figures {
        let p99 = it.p99_ms.map(|it| format!("  p99 {it:>8.2} ms")).unwrap_or_default();
        let beyond = it.beyond_ms.zip(it.commits).map(|(beyond, commits)| {
            format!("  {beyond:>6.2} ms beyond it: {commits:.1} raw commits")
        });
        let ratio = it.ratio.map(|it| format!("; {it:.2} x")).unwrap_or_default();
        let (what, p50, beyond) = (&it.what, it.p50_ms, beyond.unwrap_or_default());
        output::line(format_args!("{what:<44} p50 {p50:>8.2} ms{p99}{beyond}{ratio}"))?;
    }
    for it in &console {
        let bar = it.bar.map(|bar| format!("   bar {bar:.0} {}", it.unit)).unwrap_or_default();
        let (what, value, unit) = (&it.what, it.value, it.unit);
        output::line(format_args!("{what:<58} {value:>9.1} {unit}{bar}"))?;
    }
    Ok(Outcome::Done)
}

async fn measured(dir: &Path, args: &DoorsArgs) -> anyhow::Result<Vec<Figure>> {
    let raw_dir = dir.to_owned();
    let time = Duration::from_secs(1);
    let raw =
        tokio::task::spawn_blocking(move || raw::sqlite_single(&raw_dir, raw::Shape::Row, time));
    let commit = raw.await??.p50;
    let mut raw = figure("a raw durable commit on SQLite".to_owned(), &[commit], None);
    raw.p99_ms = None;
    let mut figures = vec![raw];
    for thinks in &args.thinks {
        let scenario = dir.join(format!("scenario-{thinks}.yaml"));
        std::fs::write(&scenario, format!("delay_ms: {thinks}\nfallback: an answer\n"))?;
        let itself = itself(&scenario, args.completions).await?;
        let base = p50(&itself);
        let named = |what: &str| format!("{what}, model thinks {thinks} ms");
        figures.push(figure(named("the model itself"), &itself, None));
        let data = dir.join(format!("data-{thinks}"));
        let (whole, streamed) = through(&data, &scenario, args.completions).await?;
        figures.push(figure(named("completion, whole"), &whole, Some((base, commit))));
        figures.push(figure(named("completion, streamed"), &streamed, Some((base, commit))));
    }
    Ok(figures)
}

/// How long the model takes without anything in between.
async fn itself(scenario: &Path, completions: usize) -> anyhow::Result<Vec<Duration>> {
    let model = ScriptedModel::load(scenario)?;
    let (agent, messages) = (AgentId::from("pa"), [Message::User { text: "hello".to_owned() }]);
    let mut times = Vec::with_capacity(completions);
    for _ in 0..completions {
        let request =
            Request { run: None, agent: &agent, system: "", messages: &messages, tools: &[] };
        let began = Instant::now();
        model.generate(request).await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}

/// How long it takes through the door: whole answers, and streams until their end.
async fn through(
    data: &Path,
    scenario: &Path,
    completions: usize,
) -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let listen = "127.0.0.1:0".parse().context("an address")?;
    let mut config = Config { listen, data: data.to_owned(), ..Config::default() };
    let scripted =
        ModelConfig { scenario: Some(scenario.to_owned()), ..ModelConfig::new(Provider::Scripted) };
    config.models.insert("default".to_owned(), scripted);
    let server = chancery_server::start(&config, []).await?;
    let (url, token) =
        (format!("{}/v1/chat/completions", server.url()), server.local_token.clone());
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut times = (Vec::new(), Vec::new());
    for stream in [false, true] {
        let times = if stream { &mut times.1 } else { &mut times.0 };
        let body = json!({
            "model": "pa/operator", "stream": stream,
            "messages": [{"role": "user", "content": "hello"}],
        });
        complete(&client, &url, &token, &body).await?;
        for _ in 0..completions {
            let began = Instant::now();
            complete(&client, &url, &token, &body).await?;
            times.push(began.elapsed());
        }
        times.sort_unstable();
    }
    server.stop().await;
    Ok(times)
}

async fn complete(
    client: &reqwest::Client,
    url: &str,
    token: &str,
    body: &Value,
) -> anyhow::Result<()> {
    let answered = client.post(url).bearer_auth(token).json(body).send().await?;
    let text = answered.error_for_status()?.text().await?;
    ensure!(text.contains("an answer"), "no answer: {text}");
    Ok(())
}

fn p50(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// A figure, beside the model itself and a raw commit.
fn figure(what: String, sorted: &[Duration], beside: Option<(Duration, Duration)>) -> Figure {
    let ms = |it: Duration| it.as_secs_f64() * 1e3;
    let p99 = sorted.get(sorted.len() * 99 / 100).copied().unwrap_or_default();
    let (p50, base) = (p50(sorted), beside.map(|it| it.0));
    Figure {
        what,
        p50_ms: ms(p50),
        p99_ms: Some(ms(p99)),
        beyond_ms: base.map(|it| ms(p50) - ms(it)),
        // A model that thinks for no time at all is no measure.
        ratio: base.filter(|it| it.as_millis() > 0).map(|it| ms(p50) / ms(it)),
        commits: beside.map(|(base, commit)| (ms(p50) - ms(base)) / ms(commit)),
    }
}
