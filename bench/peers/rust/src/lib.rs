//! What the peers in Rust share: their arguments, what a step returns, an effect at the far side,
//! and the lines that `bench/run` reads.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

/// What a question returns, and what a call does.
pub const MODEL: &str =
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

pub fn tool() -> String {
    "y".repeat(200)
}

pub fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args();
    arguments.find(|it| it == name)?;
    arguments.next()
}

pub fn number(name: &str, otherwise: f64) -> f64 {
    argument(name).and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

/// 1,64 unless told otherwise.
pub fn clients() -> Vec<usize> {
    let list = argument("--clients").unwrap_or_else(|| "1,64".to_owned());
    list.split(',').filter_map(|it| it.parse().ok()).collect()
}

pub fn say(line: Value) {
    println!("{line}");
}

pub fn say_end(clients: usize, mut latencies: Vec<Duration>, took: Duration) {
    latencies.sort_unstable();
    let at = |share: f64| {
        let place = (latencies.len() as f64 * share) as usize;
        let found = latencies.get(place.min(latencies.len().saturating_sub(1)));
        found.map(|it| it.as_secs_f64() * 1e3)
    };
    say(json!({
        "said": "end", "clients": clients, "runs": latencies.len(), "seconds": took.as_secs_f64(),
        "p50_ms": at(0.5), "p99_ms": at(0.99),
    }));
}

/// Looked at from outside, and then let go.
pub fn until_let_go() -> ! {
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(0)
}

/// One line, in one write, to the file that stands for the far side; then the call takes a while.
pub async fn effect(file: &str, run: &str, step: u32) -> std::io::Result<()> {
    let mut far_side = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
    far_side.write_all(format!("{run},{step}\n").as_bytes())?;
    tokio::time::sleep(Duration::from_millis(3)).await;
    Ok(())
}

/// The clock that all processes of this machine read alike.
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the place that it is given, and to nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
