//! The dispatcher: claims runs and has them driven, most of them side by side.
//!
//! A suspect is driven alone: workers were lost time and again while they had it, and only when
//! nothing else is under way does one more loss say whose fault it is. It goes on in company as
//! soon as it has come further than where they were lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chancery_domain::id::RunId;
use chancery_store::StoreError;
use chancery_store::queue::{Claimed, Release, Wanted};
use futures_util::future::try_join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Shared, spawn_drive};

/// Claims at one time: enough to keep up, few enough to leave some to others.
const CLAIM_MAX: usize = 32;
/// A claim whose answer was lost may have been made, or may be yet for this long.
const DOUBT: Duration = Duration::from_secs(30);
/// Waking is a hint; this often we look without one,
const POLL: Duration = Duration::from_secs(1);
/// and this soon after work was found: others share the queue, and what they put there while they
/// are full is told less often than a run takes.
const SOON: Duration = Duration::from_millis(1);
/// How long other runs have to end their step before a suspect is driven,
const ASIDE: Duration = Duration::from_secs(30);
/// and how long it is left to other servers when they do not.
const SHUN: Duration = Duration::from_secs(60);

/// Claims for as long as the server runs.
pub(super) async fn dispatch(shared: Arc<Shared>) {
    let store = &shared.parts.store;
    let mut doubtful: Option<Instant> = None;
    // Until then, suspects are left to others.
    let mut shunned: Option<Instant> = None;
    let mut aside = CancellationToken::new();
    let mut pause = POLL;
    // What was claimed for an order that was left, and how much that asked for.
    let (mut brought, mut asked) = (Vec::new(), 0);
    loop {
        if doubtful.is_some_and(|since| since.elapsed() > DOUBT) {
            doubtful = None;
        }
        // What was just brought is ours, though it is not under way yet.
        if doubtful.is_some() && brought.is_empty() {
            free_lost_claims(&shared).await;
        }
        let wanted = match shunned {
            Some(until) if Instant::now() < until => Wanted::Others,
            _ => Wanted::Any,
        };
        let mut full = false;
        if brought.is_empty() {
            asked = shared.slots.available_permits().min(CLAIM_MAX);
        }
        if asked > 0 {
            let claimed = match brought.is_empty() {
                true => store.claim_of(wanted, asked as u32).await,
                false => Ok(std::mem::take(&mut brought)),
            };
            match claimed {
                Ok(claimed) if claimed.iter().any(|it| it.lease.is_suspect()) => {
                    aside.cancel();
                    match drive_suspects(&shared, claimed).await {
                        Ok(Suspects::Driven) => shunned = None,
                        Ok(Suspects::Left) => shunned = Some(Instant::now() + SHUN),
                        Err(error) => {
                            tracing::warn!(%error, "Suspects could not be claimed: {error}");
                            doubtful = Some(Instant::now());
                        }
                    }
                    aside = CancellationToken::new();
                    full = true;
                }
                Ok(claimed) => {
                    full = claimed.len() == asked;
                    if !claimed.is_empty() && store.is_shared() {
                        pause = SOON;
                    }
                    shared.backlog.store(full, Ordering::Relaxed);
                    for claim in claimed {
                        spawn_drive(&shared, claim, aside.clone());
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "Runs could not be claimed: {error}");
                    doubtful = Some(Instant::now());
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        } else {
            shared.backlog.store(true, Ordering::Relaxed);
        }
        if full && shared.slots.available_permits() > 0 && !shared.stop.is_cancelled() {
            continue;
        }
        let mut look_again = POLL;
        asked = shared.slots.available_permits().min(CLAIM_MAX);
        if asked > 0 {
            look_again = pause;
            pause = (pause * 2).min(POLL);
        }
        let mut order = (asked > 0).then(|| store.order(wanted, asked as u32)).flatten();
        let filled = async {
            match &mut order {
                Some(order) => order.filled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // Whatever an order brings now is given back with all else that is ours.
            () = shared.stop.cancelled() => return,
            claimed = filled => brought = claimed,
            () = store.bell().work() => {}
            () = tokio::time::sleep(look_again) => {}
        }
        if let Some(order) = order {
            brought.extend(order.withdraw().await);
        }
    }
}

/// Frees the runs that the store says are ours and that nobody here drives: the answer to their
/// claim was lost. Only the dispatcher claims, so whatever was claimed and answered is active.
async fn free_lost_claims(shared: &Shared) {
    let active: HashSet<RunId> = shared.active().keys().copied().collect();
    match shared.parts.store.free_all_but(&active).await {
        Ok(0) => {}
        Ok(freed) => tracing::warn!(freed, "Freed {freed} runs whose claim was not answered"),
        Err(error) => tracing::debug!(%error, "Lost claims are not freed yet: {error}"),
    }
}

/// What became of the suspects.
enum Suspects {
    /// None is left that nobody drives.
    Driven,
    /// What else is under way here takes too long.
    Left,
}

/// Drives the suspects one by one, when all else that is under way here has been handed over.
/// `claimed` is what they were found among: none of it has been driven, and none of it is yet.
async fn drive_suspects(
    shared: &Arc<Shared>,
    claimed: Vec<Claimed>,
) -> Result<Suspects, StoreError> {
    let store = &shared.parts.store;
    try_join_all(claimed.into_iter().map(|it| store.release(it.lease, Release::Handover))).await?;
    if tokio::time::timeout(ASIDE, idle(shared)).await.is_err() {
        return Ok(Suspects::Left);
    }
    while !shared.stop.is_cancelled() {
        let mut claimed = store.claim_of(Wanted::Suspects, 1).await?;
        let Some(claim) = claimed.pop() else { break };
        let run = claim.lease.run();
        tracing::warn!(run.id = %run, "{run} is driven alone: servers were lost while they had it");
        spawn_drive(shared, claim, CancellationToken::new());
        idle(shared).await;
    }
    Ok(Suspects::Driven)
}

/// Returns when nothing is under way here. Only the dispatcher takes places.
async fn idle(shared: &Shared) {
    let all = u32::try_from(shared.parts.limits.concurrency).unwrap_or(u32::MAX);
    let _ = shared.slots.acquire_many(all).await;
}
