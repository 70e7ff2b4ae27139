//! The promises, held by the real binary in a real process: killed, stopped, starved of disk,
//! cut off from its database, lied to about the time. Effects are counted at the far side.
//!
//! Tests that load the machine have `heavy_` in their name; nextest runs them one at a time.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "what goes wrong in a test panics")]

mod api;
mod audit;
mod house;
mod model;
mod server;

mod brink;
mod chaos;
mod clock;
mod company;
mod disk;
mod kills;
mod outage;
mod paused;
mod poison;
mod question;
mod stop;
mod waiting;

use std::time::{Duration, Instant};

/// How often a fact is looked at while it is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for a fact, and gives up when it should long have been there.
async fn until<T>(what: &str, patience: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < patience, "after {patience:?}: {what}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Numbers for the moments of faults: any will do, and the seed is printed to see them again.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn new() -> Dice {
        use std::hash::{BuildHasher, RandomState};
        let seed = RandomState::new().hash_one(std::process::id());
        println!("dice {seed:#x}");
        Dice(seed)
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        from + (self.0 >> 33) % (to - from)
    }
}
