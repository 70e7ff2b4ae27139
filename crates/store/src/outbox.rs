//! The outbox: what is to be told to others, in the transaction of the event that it tells of,
//! so that nothing is told that did not happen and nothing that happened goes untold. Telling is
//! the runtime's; a notice is told at least once, and its id says whether it was seen before.

use std::time::Duration;

use chancery_domain::id::RunId;
use jiff::Timestamp;

use crate::log::timestamp;
use crate::queue::PAUSE_MAX;
use crate::sql::Param;
use crate::{Store, StoreError};

/// Who wants to be told, and of which kinds of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub subscriber: String,
    pub topics: Vec<String>,
}

/// One thing to tell one subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub id: u64,
    pub subscriber: String,
    pub run: RunId,
    pub seq: u64,
    pub topic: String,
    pub at: Timestamp,
    /// This one included.
    pub tries: u32,
    /// What it says, where it is about no event of a run.
    pub body: Option<serde_json::Value>,
}

impl Store {
    /// From now on, appends of this process write notices for these subscribers, and for no
    /// others.
    pub fn subscribe(&self, subscriptions: Vec<Subscription>) {
        *self.inner.subscriptions.write().unwrap_or_else(std::sync::PoisonError::into_inner) =
            subscriptions;
    }

    /// Takes notices that are due. Those that are not settled come back after `hold`.
    pub async fn take_notices(
        &self,
        limit: u32,
        hold: Duration,
    ) -> Result<Vec<Notice>, StoreError> {
        let now = self.database_time().await?;
        let until = now + hold.min(PAUSE_MAX).as_micros() as i64;
        let mut notices = self
            .write_rows(
                // The time is asked for twice: whoever waited for another taker looks again.
                "UPDATE outbox SET due_at = $1, tries = tries + 1
                 WHERE due_at <= $2 AND id IN (SELECT id FROM outbox WHERE due_at <= $2 ORDER BY due_at, id LIMIT $3)
                 RETURNING id, subscriber, run_id, seq, topic, at, tries, body",
                vec![Param::Int(until), Param::Int(now), Param::Int(i64::from(limit))],
                |row| {
                    Ok(Notice {
                        id: row.int(0)? as u64,
                        subscriber: row.text(1)?,
                        run: RunId(row.uuid(2)?),
                        seq: row.int(3)? as u64,
                        topic: row.text(4)?,
                        at: timestamp(row.int(5)?)?,
                        tries: row.int(6)? as u32,
                        body: row.opt_text(7)?.and_then(|it| serde_json::from_str(&it).ok()),
                    })
                },
            )
            .await?;
        notices.sort_by_key(|it| it.id);
        Ok(notices)
    }

    /// Writes a notice that is about no event, and takes it in the same breath.
    pub async fn take_new_notice(
        &self,
        subscriber: &str,
        topic: &str,
        body: serde_json::Value,
        hold: Duration,
        at: Timestamp,
    ) -> Result<Notice, StoreError> {
        let until = self.database_time().await? + hold.min(PAUSE_MAX).as_micros() as i64;
        let run = RunId(uuid::Uuid::nil());
        let written = self
            .write_rows(
                "INSERT INTO outbox (subscriber, run_id, seq, topic, at, due_at, tries, body)
                 VALUES ($1, $2, 0, $3, $4, $5, 1, $6) RETURNING id",
                vec![
                    Param::Text(subscriber.to_owned()),
                    Param::Uuid(run.0),
                    Param::Text(topic.to_owned()),
                    Param::Int(at.as_microsecond()),
                    Param::Int(until),
                    Param::Text(body.to_string()),
                ],
                |row| row.int(0),
            )
            .await?;
        let id = written.first().copied();
        let id = id.ok_or_else(|| StoreError::Failed("a notice without an id".to_owned()))? as u64;
        let (subscriber, topic) = (subscriber.to_owned(), topic.to_owned());
        Ok(Notice { id, subscriber, run, seq: 0, topic, at, tries: 1, body: Some(body) })
    }

    /// It was told, or will never be.
    pub async fn settle_notice(&self, id: u64) -> Result<(), StoreError> {
        self.execute("DELETE FROM outbox WHERE id = $1", vec![Param::Int(id as i64)]).await?;
        Ok(())
    }

    /// It could not be told: again after a pause.
    pub async fn postpone_notice(&self, id: u64, pause: Duration) -> Result<(), StoreError> {
        let due = self.database_time().await? + pause.min(PAUSE_MAX).as_micros() as i64;
        self.execute(
            "UPDATE outbox SET due_at = $1 WHERE id = $2",
            vec![Param::Int(due), Param::Int(id as i64)],
        )
        .await?;
        Ok(())
    }

    /// How much waits to be told.
    pub async fn outbox_depth(&self) -> Result<u64, StoreError> {
        let found = self.query("SELECT count(*) FROM outbox", vec![], |row| row.int(0)).await?;
        Ok(found.first().copied().unwrap_or_default() as u64)
    }
}
