//! Waking other servers, and being woken by them.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::Notify;
use tokio_postgres::AsyncMessage;

use super::GREETING_MAX;
use super::hosts::Hosts;
use crate::StoreError;
use crate::bell::{Bell, Changed};

/// The queue has grown: someone may claim.
const WORK: &str = "chancery_work";
/// Some log has grown: someone may read.
const LOG: &str = "chancery_log";
/// However much changes, others are told this often at the most.
const DEBOUNCE: Duration = Duration::from_millis(10);

/// What there is to tell the other servers.
#[derive(Debug, Default)]
pub(crate) struct News {
    any: Notify,
    work: AtomicBool,
}

impl News {
    pub(crate) fn log_grew(&self, work: bool) {
        if work {
            self.work.store(true, Ordering::Relaxed);
        }
        self.any.notify_one();
    }
}

/// Tells the other servers that something changed.
pub(crate) async fn tell(pool: Pool, news: Arc<News>) {
    loop {
        news.any.notified().await;
        let work = news.work.swap(false, Ordering::Relaxed);
        // They poll as well: a lost word costs a little time, nothing else.
        let _ = send(&pool, work).await;
        tokio::time::sleep(DEBOUNCE).await;
    }
}

/// Says it at once: for those who cannot wait until the teller comes to it.
pub(crate) async fn send(pool: &Pool, work: bool) -> Result<(), StoreError> {
    let client = pool.get().await?;
    let words = if work { format!("NOTIFY {WORK}; NOTIFY {LOG}") } else { format!("NOTIFY {LOG}") };
    Ok(client.batch_execute(&words).await?)
}

/// Rings the bell when another server says so. Connects again for as long as it lives.
pub(crate) async fn listen(hosts: Hosts, bell: Bell) {
    let mut pause = Duration::from_millis(50);
    loop {
        if listen_once(&hosts, &bell).await.is_ok() {
            pause = Duration::from_millis(50);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

async fn listen_once(hosts: &Hosts, bell: &Bell) -> Result<(), StoreError> {
    let greeted = tokio::time::timeout(GREETING_MAX, hosts.connect()).await;
    let silent = |_| StoreError::Unreachable("no answer to a connection".to_owned());
    let (client, mut connection) = greeted.map_err(silent)??;
    let rings = bell.clone();
    let ears = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            match message {
                AsyncMessage::Notification(it) if it.channel() == WORK => rings.ring_work(),
                AsyncMessage::Notification(_) => rings.ring_changed(Changed::Something),
                _ => {}
            }
        }
    });
    let listening = client.batch_execute(&format!("LISTEN {WORK}; LISTEN {LOG}")).await;
    if listening.is_ok() {
        // Whatever was said while nobody listened.
        bell.ring_work();
        bell.ring_changed(Changed::Something);
        let _ = ears.await;
    }
    Ok(listening?)
}
