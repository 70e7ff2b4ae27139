//! Tells subscribers what is in the outbox: a POST each, at least once, signed, with an id that
//! says whether it was seen before. What is told is which event of which run, and of a question
//! what the server itself knows; never what an agent said. A channel holds no authority: whoever
//! wants to know more, or to decide, follows the link and says who they are.

mod message;

use std::collections::BTreeMap;
use std::time::Duration;

use chancery_store::Store;
use chancery_store::outbox::Notice;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio_util::sync::CancellationToken;

use crate::clock;

pub use message::Format;

/// The longest that a subscriber may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A notice that another courier took comes back after this, should that one have died.
const HOLD: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(1);
const NOTICES_MAX: u32 = 64;
/// About a day of trying, with the pauses below.
const TRIES_MAX: u32 = 100;

/// Where a subscriber is and how it is spoken to.
#[derive(Clone)]
pub struct Subscriber {
    pub url: String,
    /// What its messages are signed with.
    pub secret: Option<String>,
    pub format: Format,
}

/// Everyone who is told something, by name.
#[derive(Debug, Clone, Default)]
pub struct Subscribers {
    pub by_name: BTreeMap<String, Subscriber>,
    /// Where people reach this server; links begin with it.
    pub public_url: String,
}

pub async fn deliver(store: Store, subscribers: Subscribers, stop: CancellationToken) {
    if subscribers.by_name.is_empty() {
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
                    tell(&store, &client, &subscribers, &notice).await;
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

async fn tell(store: &Store, client: &reqwest::Client, all: &Subscribers, notice: &Notice) {
    let Some(subscriber) = all.by_name.get(&notice.subscriber) else {
        // It is configured no more.
        let _ = store.settle_notice(notice.id).await;
        return;
    };
    let told = match message::about(store, all, subscriber.format, notice).await {
        Ok(body) => post(client, subscriber, notice, &body).await,
        Err(error) => Err(error.to_string()),
    };
    let logged = store.log_delivery(notice, told.as_ref().err().map(|it| &**it), clock::now());
    if let Err(error) = logged.await {
        tracing::debug!(%error, "The delivery of notice {} is not logged: {error}", notice.id);
    }
    let settled = match told {
        Ok(()) => store.settle_notice(notice.id).await,
        Err(why) => {
            let given_up = notice.tries >= TRIES_MAX;
            let word = if given_up { "is given up" } else { "was not taken" };
            tracing::warn!(subscriber = notice.subscriber, "Notice {} {word}: {why}", notice.id);
            if given_up {
                store.settle_notice(notice.id).await
            } else {
                let pause = Duration::from_secs(1 << notice.tries.min(10));
                store.postpone_notice(notice.id, pause).await
            }
        }
    };
    if let Err(error) = settled {
        // It comes back by itself.
        tracing::debug!(%error, "Notice {} is still open: {error}", notice.id);
    }
}

async fn post(
    client: &reqwest::Client,
    subscriber: &Subscriber,
    notice: &Notice,
    body: &str,
) -> Result<(), String> {
    let mut request = client
        .post(&subscriber.url)
        .header("Content-Type", "application/json")
        .header("X-Chancery-Delivery", notice.id.to_string());
    if let Some(secret) = &subscriber.secret {
        let signature = signature(secret, clock::now().as_second(), body);
        request = request.header("X-Chancery-Signature", signature);
    }
    match request.body(body.to_owned()).send().await {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("status {}", answer.status())),
        // The address may hold a secret: it is not for the log.
        Err(error) => Err(error.without_url().to_string()),
    }
}

/// `t=<seconds>,v1=<hex>`: HMAC-SHA256 over `<seconds>.<body>`, so that an old message cannot be
/// sent again as a new one.
pub fn signature(secret: &str, at: i64, body: &str) -> String {
    // A key of any length is a key to HMAC.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else {
        return String::new();
    };
    mac.update(format!("{at}.{body}").as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|it| format!("{it:02x}")).collect();
    format!("t={at},v1={hex}")
}

// Without the secret and the address, which may hold one.
impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscriber").field("format", &self.format).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As anyone would compute it who has the secret: `printf '7.{}' | openssl dgst -sha256 -hmac s`
    #[test]
    fn a_signature_is_an_hmac_over_time_and_body() {
        let known = "t=7,v1=b12cae8f0db9d3d7c47e9b81ab46de84afeb161044a1c6fb23057d023b1e2b55";
        assert_eq!(signature("s", 7, "{}"), known);
        assert_ne!(signature("s", 8, "{}"), signature("s", 7, "{}"));
    }
}
