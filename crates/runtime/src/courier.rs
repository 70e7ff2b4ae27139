//! Tells subscribers what is in the outbox, each at least once, with an id that says whether it
//! was seen before: by a signed POST, by SMTP, or as a trace. What is told is which event of which run, and of a question
//! what the server itself knows; never what an agent said. A channel holds no authority: whoever
//! wants to know more, or to decide, follows the link and says who they are.

mod message;
mod otlp;
mod smtp;
mod spans;
mod webhook;

use std::collections::BTreeMap;
use std::time::Duration;

use chancery_store::outbox::Notice;
use chancery_store::{Store, StoreError};
use tokio_util::sync::CancellationToken;

use crate::clock;

pub use message::Format;
pub use otlp::OtlpSubscriber;
pub use smtp::{Encryption, SmtpError, SmtpSubscriber};
pub use webhook::{WebhookSubscriber, signature};

/// The longest that a subscriber may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A notice that another courier took comes back after this, should that one have died.
const HOLD: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(1);
const NOTICES_MAX: u32 = 64;
/// About a day of trying, with the pauses below.
const TRIES_MAX: u32 = 100;

/// How a subscriber is reached.
#[derive(Debug, Clone)]
pub enum Subscriber {
    Webhook(WebhookSubscriber),
    Smtp(Box<SmtpSubscriber>),
    Otlp(OtlpSubscriber),
}

/// Everyone who is told something, by name.
#[derive(Debug, Clone, Default)]
pub struct Subscribers {
    pub by_name: BTreeMap<String, Subscriber>,
    /// Where people reach this server; links begin with it.
    pub public_url: String,
}

impl Subscriber {
    /// In a word: `webhook`, `smtp` or `otlp`.
    pub fn kind(&self) -> &'static str {
        match self {
            Subscriber::Webhook(_) => "webhook",
            Subscriber::Smtp(_) => "smtp",
            Subscriber::Otlp(_) => "otlp",
        }
    }
}

pub async fn deliver(store: Store, subscribers: Subscribers, stop: CancellationToken) {
    if subscribers.by_name.is_empty() {
        return;
    }
    let client = match http() {
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
    let told = reach(store, client, all, subscriber, notice).await;
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

/// What is told to find out whether a subscriber hears it.
const TRIAL: &str = "test";

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// What the subscriber saw as `X-Chancery-Delivery`.
    pub delivery: u64,
    /// Absent: it was taken.
    pub error: Option<String>,
}

/// Tells a subscriber something now, and once, so that a wrong address or secret shows before it
/// matters. `None`: there is no such subscriber.
pub async fn try_out(
    store: &Store,
    all: &Subscribers,
    name: &str,
    by: &str,
) -> Result<Option<Tried>, StoreError> {
    let Some(subscriber) = all.by_name.get(name) else { return Ok(None) };
    let client = http().map_err(|it| StoreError::Failed(it.to_string()))?;
    let body = serde_json::json!({ "by": by });
    let notice = store.take_new_notice(name, TRIAL, body, HOLD, clock::now()).await?;
    let told = reach(store, &client, all, subscriber, &notice).await;
    // Whoever tries it looks on: it is not tried again without them.
    store.settle_notice(notice.id).await?;
    Ok(Some(Tried { delivery: notice.id, error: told.err() }))
}

/// Tells one subscriber one thing, and writes down what came of it.
async fn reach(
    store: &Store,
    client: &reqwest::Client,
    all: &Subscribers,
    subscriber: &Subscriber,
    notice: &Notice,
) -> Result<(), String> {
    let told = match subscriber {
        Subscriber::Webhook(it) => match message::about(store, all, it.format, notice).await {
            Ok(body) => it.post(client, notice, &body).await,
            Err(error) => Err(error.to_string()),
        },
        Subscriber::Smtp(it) => match message::letter(store, all, notice).await {
            Ok(letter) => it.send(notice, letter).await,
            Err(error) => Err(error.to_string()),
        },
        Subscriber::Otlp(it) => it.send(store, client, notice).await,
    };
    let logged = store.log_delivery(notice, told.as_ref().err().map(|it| &**it), clock::now());
    if let Err(error) = logged.await {
        tracing::debug!(%error, "The delivery of notice {} is not logged: {error}", notice.id);
    }
    told
}

fn http() -> reqwest::Result<reqwest::Client> {
    let stays = reqwest::redirect::Policy::none();
    reqwest::Client::builder().timeout(TIMEOUT).redirect(stays).build()
}
