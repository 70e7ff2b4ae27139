//! Tells subscribers what is in the outbox: a POST each, at least once, with an id that says
//! whether it was seen before. What is told is which event of which run, never what an agent
//! said: whoever wants to know asks with a token of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use chancery_store::Store;
use chancery_store::outbox::Notice;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// The longest that a subscriber may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A notice that another courier took comes back after this, should that one have died.
const HOLD: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(1);
const NOTICES_MAX: u32 = 64;
/// About a day of trying, with the pauses below.
const TRIES_MAX: u32 = 100;

/// Where each subscriber is.
pub type Addresses = BTreeMap<String, String>;

pub async fn deliver(store: Store, addresses: Addresses, stop: CancellationToken) {
    if addresses.is_empty() {
        return;
    }
    let client = match reqwest::Client::builder()
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
    {
        Ok(client) => client,
        Err(error) => {
            tracing::error!(%error, "Webhooks cannot be sent: {error}");
            return;
        }
    };
    let mut changes = store.bell().changes();
    loop {
        match store.take_notices(NOTICES_MAX, HOLD).await {
            Ok(notices) if notices.is_empty() => {
                tokio::select! {
                    _ = changes.recv() => {}
                    () = tokio::time::sleep(LOOK) => {}
                    () = stop.cancelled() => return,
                }
                // Many changes are one reason to look.
                changes = changes.resubscribe();
            }
            Ok(notices) => {
                for notice in notices {
                    tell(&store, &client, &addresses, &notice).await;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "The outbox cannot be read: {error}");
                tokio::time::sleep(LOOK).await;
            }
        }
        if stop.is_cancelled() {
            return;
        }
    }
}

async fn tell(store: &Store, client: &reqwest::Client, addresses: &Addresses, notice: &Notice) {
    let settled = match addresses.get(&notice.subscriber) {
        // A subscriber that is configured no more.
        None => store.settle_notice(notice.id).await,
        Some(address) => match post(client, address, notice).await {
            Ok(()) => store.settle_notice(notice.id).await,
            Err(why) if notice.tries >= TRIES_MAX => {
                tracing::error!(
                    subscriber = notice.subscriber,
                    "Notice {} is given up: {why}",
                    notice.id
                );
                store.settle_notice(notice.id).await
            }
            Err(why) => {
                tracing::warn!(
                    subscriber = notice.subscriber,
                    "Notice {} was not taken: {why}",
                    notice.id
                );
                let pause = Duration::from_secs(1 << notice.tries.min(10));
                store.postpone_notice(notice.id, pause).await
            }
        },
    };
    if let Err(error) = settled {
        // It comes back by itself.
        tracing::debug!(%error, "Notice {} is still open: {error}", notice.id);
    }
}

async fn post(client: &reqwest::Client, address: &str, notice: &Notice) -> Result<(), String> {
    let body = json!({
        "type": notice.topic,
        "run_id": notice.run.to_string(),
        "seq": notice.seq,
        "at": notice.at.to_string(),
    });
    let sent = client
        .post(address)
        .header("X-Chancery-Delivery", notice.id.to_string())
        .json(&body)
        .send()
        .await;
    match sent {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("status {}", answer.status())),
        // The address may hold a secret: it is not for the log.
        Err(error) => Err(error.without_url().to_string()),
    }
}
