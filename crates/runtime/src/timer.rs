//! Deadlines become events: a wait whose time is up ends with `wait.expired`, a question that
//! nobody answered is put to others or expires.

use std::time::Duration;

use chancery_domain::command::{self, Effect};
use chancery_store::Store;
use chancery_store::log::Amendment;
use chancery_store::timer::Due;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::escalation::{Terms, cancel_orphans, overdue};

/// The longest sleep: a nearer deadline may be set meanwhile, here or by another server.
const LOOK: Duration = Duration::from_millis(500);
const DUE_MAX: u32 = 256;

pub async fn fire(store: Store, terms: Terms, stop: CancellationToken) {
    loop {
        let pause = match fire_due(&store, &terms).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::debug!(%error, "No deadlines this time: {error}");
                LOOK
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn fire_due(store: &Store, terms: &Terms) -> Result<Duration, chancery_store::StoreError> {
    let orphaned = cancel_orphans(store).await?;
    let due = store.due(DUE_MAX).await?;
    if due.is_empty() && !orphaned {
        let next = store.next_due().await?;
        return Ok(next.unwrap_or(LOOK).clamp(Duration::from_millis(1), LOOK));
    }
    let mut pause = Duration::ZERO;
    for due in due {
        if let Err(error) = expire(store, &due, terms).await {
            tracing::warn!(run.id = %due.run, %error, "A deadline of {} did not take effect: {error}", due.run);
            // It is still due: without a pause we would do nothing else.
            pause = LOOK;
        }
    }
    Ok(pause)
}

async fn expire(
    store: &Store,
    due: &Due,
    terms: &Terms,
) -> Result<(), chancery_store::AppendError> {
    if due.is_of_child() {
        return overdue(store, due, terms).await;
    }
    // By the clock that says what is due.
    let now = store.now().await?;
    let decided = store
        .amend(due.run, clock::now(), |history, _| {
            let key = command::awaited_keys(&history).into_iter().find(|it| due.is_for(it));
            // A signal or a person was faster.
            let Some(key) = key else { return Ok(Amendment::Nothing(())) };
            command::expire(history, &key, now).map(|effect| match effect {
                Effect::Record(history) => Amendment::Record(history),
                Effect::Already => Amendment::Nothing(()),
            })
        })
        .await?;
    if let Err(illegal) = decided {
        tracing::error!(run.id = %due.run, %illegal, "A deadline of {} is illegal: {illegal}", due.run);
    }
    Ok(())
}
