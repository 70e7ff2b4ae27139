//! Waking other servers, and being woken by them.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::Notify;
use tokio_postgres::AsyncMessage;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::StoreError;
use crate::bell::{Bell, Changed};

const CHANNEL: &str = "chancery";
/// However much changes, others are told this often at the most.
const DEBOUNCE: Duration = Duration::from_millis(10);

/// Tells the other servers that something changed.
pub(crate) async fn tell(pool: Pool, notify: Arc<Notify>) {
    loop {
        notify.notified().await;
        // They poll as well: a lost word costs a little time, nothing else.
        let _ = send(&pool).await;
        tokio::time::sleep(DEBOUNCE).await;
    }
}

pub(crate) async fn send(pool: &Pool) -> Result<(), StoreError> {
    let client = pool.get().await?;
    Ok(client.batch_execute(&format!("NOTIFY {CHANNEL}")).await?)
}

/// Rings the bell when another server says so. Connects again for as long as it lives.
pub(crate) async fn listen(config: tokio_postgres::Config, tls: MakeRustlsConnect, bell: Bell) {
    let mut pause = Duration::from_millis(50);
    loop {
        if listen_once(&config, tls.clone(), &bell).await.is_ok() {
            pause = Duration::from_millis(50);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

async fn listen_once(
    config: &tokio_postgres::Config,
    tls: MakeRustlsConnect,
    bell: &Bell,
) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = config.connect(tls).await?;
    let rings = bell.clone();
    let ears = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if matches!(message, AsyncMessage::Notification(_)) {
                rings.ring_work();
                rings.ring_changed(Changed::Something);
            }
        }
    });
    let listening = client.batch_execute(&format!("LISTEN {CHANNEL}")).await;
    if listening.is_ok() {
        // Whatever was said while nobody listened.
        bell.ring_work();
        bell.ring_changed(Changed::Something);
        let _ = ears.await;
    }
    listening
}
