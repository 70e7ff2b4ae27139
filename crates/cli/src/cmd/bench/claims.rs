//! How long it takes to claim a run, in stores that are looked at by turns: what disturbs this
//! machine disturbs all of them alike.

use std::time::{Duration, Instant};

use chancery_store::Store;

use super::load;

/// Enough for a median that stands still.
const ROUNDS: usize = 500;

/// The median claim of one ready run with its log, for each store. Nobody else may claim there.
pub async fn latencies<const N: usize>(stores: [&Store; N]) -> anyhow::Result<[Duration; N]> {
    let mut taken = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (store, taken) in stores.iter().zip(&mut taken) {
            load::create(store, "claim").await?;
            let began = Instant::now();
            let claimed = store.claim(1).await?;
            taken.push(began.elapsed());
            anyhow::ensure!(claimed.len() == 1, "somebody else claims here");
        }
    }
    for store in stores {
        store.resign().await?;
    }
    Ok(taken.map(|mut taken: Vec<Duration>| {
        taken.sort_unstable();
        taken[taken.len() / 2]
    }))
}
