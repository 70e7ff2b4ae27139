//! What a group has decided and delivered becomes its project's knowledge. Which runs are due
//! is written with their last event, and a deposit is made with the removal of that row: once,
//! whatever is killed in between. Beside it, what is past its time is forgotten.

use std::time::Duration;

use chancery_domain::event::{Actor, Created, Event};
use chancery_domain::id::RunId;
use chancery_domain::memory::deposit::{Deposit, deposit_home, deposit_plan};
use chancery_domain::memory::{MemoryKind, Party};
use chancery_store::memory::{Due, NewMemory, Provenance};
use chancery_store::{Store, StoreError};
use jiff::Timestamp;
use serde_json::{Map, json};
use tokio_util::sync::CancellationToken;

use crate::clock;

const LOOK: Duration = Duration::from_millis(250);
const DUE_MAX: u32 = 16;
/// How often, in looks, it is asked what is past its time; and how much is forgotten at once.
const RETENTION_LOOKS: u32 = 4 * 3600;
const EXPIRED_MAX: u32 = 500;

/// How long memories of a kind are kept; without an entry, for ever.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    pub org: String,
    pub ages: Vec<(MemoryKind, Duration)>,
}

/// A deposit that a server took comes back after `hold`, should that one have died.
pub async fn deposit(store: Store, retention: Retention, hold: Duration, stop: CancellationToken) {
    let mut looks = 0u32;
    loop {
        if let Err(error) = deposit_due(&store, hold).await {
            tracing::debug!(%error, "No deposits this time: {error}");
        }
        if looks.is_multiple_of(RETENTION_LOOKS)
            && let Err(error) = expire(&store, &retention, clock::now()).await
        {
            tracing::debug!(%error, "Nothing is forgotten this time: {error}");
        }
        looks = looks.wrapping_add(1);
        if stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_none() {
            return;
        }
    }
}

/// Makes the deposits that are due. Answers how many runs there were.
pub async fn deposit_due(store: &Store, hold: Duration) -> Result<usize, StoreError> {
    // Looked at first: most of the time there is nothing to write.
    if store.deposits_due().await? == 0 {
        return Ok(0);
    }
    let due = store.take_deposits(DUE_MAX, hold).await?;
    for Due { run, tries } in &due {
        if let Err(error) = deposit_one(store, *run).await {
            // It comes back by itself.
            tracing::warn!(run.id = %run, %error, "The results of {run} are not deposited ({tries}): {error}");
        }
    }
    Ok(due.len())
}

async fn deposit_one(store: &Store, run: RunId) -> Result<(), StoreError> {
    let first = store.events(run, 0, 1).await?.into_iter().next().map(|it| it.event);
    let row = store.run(run).await?;
    let (Some(Event::Created(created)), Some(row)) = (first, row) else {
        return store.drop_deposit(run).await;
    };
    let Some(home) = deposit_home(&created).filter(|_| row.status == "completed") else {
        return store.drop_deposit(run).await;
    };
    let records = match Party::of_run(&created).blackboard() {
        Ok(blackboard) => store.run_records(&blackboard, run).await?,
        Err(_) => Vec::new(),
    };
    let plan = deposit_plan(&records, row.output.as_deref().unwrap_or_default());
    let now = clock::now();
    let about = row.ended_at.unwrap_or(now);
    let deposits = plan.into_iter().enumerate();
    let deposits = deposits.map(|(place, it)| memory(&created, run, place, it, about, now));
    store.deposit(run, &home, deposits.collect()).await?;
    Ok(())
}

fn memory(
    created: &Created,
    run: RunId,
    place: usize,
    deposit: Deposit,
    about: Timestamp,
    now: Timestamp,
) -> NewMemory {
    let mut metadata = Map::new();
    metadata.insert("source".to_owned(), json!(deposit.source.as_str()));
    metadata.insert("source_run_id".to_owned(), json!(run));
    if let Some(original) = deposit.original {
        metadata.insert("original_memory_id".to_owned(), json!(original));
    }
    if let Some(group) = &created.group {
        metadata.insert("source_group_id".to_owned(), json!(group));
    }
    metadata.insert("deposited_at".to_owned(), json!(now));
    NewMemory {
        id: clock::new_memory_id(),
        content: deposit.content,
        metadata: metadata.into(),
        at: about,
        made_at: now,
        made_by: Actor::System,
        provenance: Some(Provenance {
            key: format!("deposit:{run}:{place}"),
            run,
            source: deposit.source.as_str(),
            original: deposit.original,
            sequence: false,
        }),
        seq: None,
        supersedes: None,
        not_from: None,
    }
}

/// Forgets what is past its time.
pub async fn expire(
    store: &Store,
    retention: &Retention,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let mut gone = 0;
    for (kind, age) in &retention.ages {
        // An age that reaches before the calendar forgets nothing.
        let Ok(before) = now.checked_sub(*age) else { continue };
        loop {
            let some = store.expire_memories(&retention.org, *kind, before, EXPIRED_MAX).await?;
            gone += some;
            if some < EXPIRED_MAX as usize {
                break;
            }
        }
    }
    Ok(gone)
}
