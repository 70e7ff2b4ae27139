//! What the console costs: the weight of a page, how soon the inbox knows, and what a server holds
//! for those who look on. First paint is taken in a browser, by the browser's tests.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use reqwest::redirect::Policy;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::cmd::bench::process::Served;

/// How often an update is waited for.
const UPDATES: usize = 30;
const SOON: Duration = Duration::from_secs(20);
const SCENARIO: &str = "agents:\n  '*':\n    - call: {tool: note}\nfallback: done\n";
const TOOLS: &str =
    "extends: builtin\ncommands:\n  note: {description: Notes, command: [/bin/true]}\n";
const POLICY: &str = "extends: builtin\ntools: {note: require_approval}\n";
const PAGES: [&str; 6] = ["/inbox", "/chat", "/runs", "/org", "/audit", "/settings"];

/// A figure with the bar that is set for it.
#[derive(Debug, Serialize)]
pub struct Measure {
    pub what: String,
    pub value: f64,
    pub unit: &'static str,
    pub bar: Option<f64>,
}

pub async fn measured(dir: &Path, streams: usize) -> anyhow::Result<Vec<Measure>> {
    let served = serve(dir).await?;
    let looker = Looker::sign_in(&served, dir).await?;
    let mut measures = Vec::new();
    for page in PAGES {
        let kb = looker.weight(page).await? as f64 / 1000.0;
        let what = format!("page and all it loads, compressed: {page}");
        measures.push(Measure { what, value: kb, unit: "kB", bar: Some(200.0) });
    }
    let mut times = looker.updates().await?;
    times.sort_by(f64::total_cmp);
    for (name, at) in [("p50", times.len() / 2), ("p99", times.len() * 99 / 100)] {
        let value = times.get(at).copied().unwrap_or_default();
        let what = format!("inbox shows a question after its commit, {name}");
        measures.push(Measure { what, value, unit: "ms", bar: Some(200.0) });
    }
    let before = served.memory_mb("VmRSS:")?;
    let open = looker.open(streams).await?;
    let after = served.memory_mb("VmRSS:")?;
    let all = looker.all_hear(open).await?;
    let held = served.memory_mb("VmRSS:")?;
    let mut note = |what: String, value: f64, unit, bar| {
        measures.push(Measure { what, value, unit, bar });
    };
    note("resident, nobody looks on".to_owned(), before, "MB", None);
    note(format!("resident, {streams} streams are open"), after, "MB", None);
    note(format!("resident, {streams} streams have heard of a question"), held, "MB", None);
    note(format!("of that, what {streams} streams take"), held - before, "MB", Some(100.0));
    note(format!("the last of {streams} hears of a question"), all, "ms", None);
    served.end().await?;
    Ok(measures)
}

async fn serve(dir: &Path) -> anyhow::Result<Served> {
    let (org, data) = (dir.join("console-org"), dir.join("console-data"));
    std::fs::create_dir_all(&org)?;
    std::fs::create_dir_all(&data)?;
    std::fs::write(org.join("tools.yaml"), TOOLS)?;
    std::fs::write(org.join("policy.yaml"), POLICY)?;
    let (scenario, config) = (dir.join("console.yaml"), dir.join("console.toml"));
    std::fs::write(&scenario, SCENARIO)?;
    let text = format!(
        "org = {org:?}\n[models.default]\nprovider = \"scripted\"\nscenario = {scenario:?}\n"
    );
    std::fs::write(&config, text)?;
    let config = config.display().to_string();
    Served::start(&data, &["--config", &config]).await
}

/// Somebody who is signed in.
struct Looker {
    base: String,
    host: String,
    token: String,
    cookie: String,
    http: reqwest::Client,
}

impl Looker {
    async fn sign_in(served: &Served, dir: &Path) -> anyhow::Result<Looker> {
        let token = std::fs::read_to_string(dir.join("console-data/token"))?;
        let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build()?;
        let base = served.address.clone();
        let form = format!("token={}&next=%2Finbox", token.trim());
        let sent = http
            .post(format!("{base}/signin"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form);
        let answer = sent.send().await?;
        let cookie = answer.headers().get("set-cookie").context("nobody was let in")?.to_str()?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let host = base.trim_start_matches("http://").to_owned();
        Ok(Looker { base, host, token: token.trim().to_owned(), cookie, http })
    }

    async fn get(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        let asked = self
            .http
            .get(format!("{}{path}", self.base))
            .header("cookie", &self.cookie)
            .header("accept", "text/html")
            .header("accept-encoding", "br, gzip");
        Ok(asked.send().await?.error_for_status()?.bytes().await?.to_vec())
    }

    /// The page, and what its first load brings with it.
    async fn weight(&self, page: &str) -> anyhow::Result<usize> {
        let mut bytes = self.get(page).await?.len();
        for file in ["/ui/ui.css", "/ui/ui.js", "/ui/seal.svg"] {
            bytes += self.get(file).await?.len();
        }
        Ok(bytes)
    }

    async fn api(&self, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let url = format!("{}{path}", self.base);
        let asked = match body {
            Some(body) => self.http.post(url).json(&body),
            None => self.http.get(url),
        };
        let answer = asked.bearer_auth(&self.token).send().await?.error_for_status()?;
        Ok(answer.json().await?)
    }

    async fn ask(&self) -> anyhow::Result<String> {
        let run = self.api("/api/runs", Some(json!({"agent": "pa", "input": "note it"}))).await?;
        Ok(run["id"].as_str().unwrap_or_default().to_owned())
    }

    /// From a question's commit until a page that was told of it has it, each in milliseconds.
    async fn updates(&self) -> anyhow::Result<Vec<f64>> {
        let mut stream = self.stream().await?;
        let mut times = Vec::new();
        for _ in 0..UPDATES {
            let run = self.ask().await?;
            let began = Instant::now();
            let shown = loop {
                hear(&mut stream).await?;
                let page = self.http.get(format!("{}/inbox", self.base));
                let page = page.header("cookie", &self.cookie).header("accept", "text/html");
                let page = page.send().await?.text().await?;
                let at = now();
                let asked = self.api(&format!("/api/permissions?run={run}"), None).await?;
                let known = asked["items"][0].clone();
                let id = known["id"].as_str().unwrap_or("none yet");
                if page.contains(id) {
                    let asked_at = known["created_at"].as_str().unwrap_or_default();
                    break at.duration_since(asked_at.parse::<Timestamp>()?);
                }
                ensure!(began.elapsed() < SOON, "the inbox does not know");
            };
            times.push(shown.as_secs_f64() * 1e3);
            // One that waits at a time, as for most people.
            self.api(&format!("/api/runs/{run}/cancel"), Some(json!({}))).await?;
        }
        Ok(times)
    }

    async fn stream(&self) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.host).await?;
        let (host, cookie) = (&self.host, &self.cookie);
        let asked = format!(
            "GET /ui/events?watch=inbox HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n"
        );
        stream.write_all(asked.as_bytes()).await?;
        hear(&mut stream).await?;
        Ok(stream)
    }

    async fn open(&self, streams: usize) -> anyhow::Result<Vec<TcpStream>> {
        let mut open = Vec::with_capacity(streams);
        for at in 0..streams {
            let stream = tokio::time::timeout(SOON, self.stream()).await;
            open.push(stream.with_context(|| format!("stream {at} was not let in"))??);
        }
        Ok(open)
    }

    /// How long it takes until every stream has heard of a question, in milliseconds.
    async fn all_hear(&self, open: Vec<TcpStream>) -> anyhow::Result<f64> {
        let run = self.ask().await?;
        let mut listening = tokio::task::JoinSet::new();
        for mut stream in open {
            listening.spawn(async move { hear(&mut stream).await.map(|()| (now(), stream)) });
        }
        let mut last = None;
        let mut heard = Vec::new();
        while let Some(one) = listening.join_next().await {
            let (at, stream) = one??;
            last = last.max(Some(at));
            heard.push(stream);
        }
        let asked = self.api(&format!("/api/permissions?run={run}"), None).await?;
        let asked_at = asked["items"][0]["created_at"].as_str().unwrap_or_default().to_owned();
        let last = last.context("nobody listened")?;
        Ok(last.duration_since(asked_at.parse::<Timestamp>()?).as_secs_f64() * 1e3)
    }
}

fn now() -> Timestamp {
    chancery_runtime::clock::now()
}

/// Reads until something of a page is stale.
async fn hear(stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut heard = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let n = tokio::time::timeout(SOON, stream.read(&mut buffer)).await??;
        ensure!(n > 0, "the stream broke off");
        heard.extend_from_slice(buffer.get(..n).unwrap_or_default());
        let text = String::from_utf8_lossy(&heard);
        ensure!(!text.starts_with("HTTP/1.1 4"), "not let in: {text}");
        // A frame ends with an empty line, and the piece that it comes in with another.
        if text.contains("event: stale") && text.trim_end_matches('\r').ends_with('\n') {
            return Ok(());
        }
    }
}
