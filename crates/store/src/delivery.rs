//! The delivery log: what became of each attempt to tell a subscriber something. Kept for a
//! while, for people who ask why they were not told; nothing depends on it.

use chancery_domain::id::RunId;
use jiff::Timestamp;

use crate::log::timestamp;
use crate::outbox::Notice;
use crate::sql::Param;
use crate::{Store, StoreError};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: u64,
    pub notice: u64,
    pub subscriber: String,
    pub run: RunId,
    pub seq: u64,
    pub topic: String,
    /// 1 for the first.
    pub attempt: u32,
    pub at: Timestamp,
    /// Absent: it was taken.
    pub error: Option<String>,
}

/// More than anyone reads back.
const KEPT: i64 = 10_000;

impl Store {
    pub async fn log_delivery(
        &self,
        notice: &Notice,
        error: Option<&str>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let mut params = vec![
            Param::Int(notice.id as i64),
            Param::Text(notice.subscriber.clone()),
            Param::Uuid(notice.run.0),
            Param::Int(notice.seq as i64),
            Param::Text(notice.topic.clone()),
            Param::Int(i64::from(notice.tries)),
            Param::Int(at.as_microsecond()),
        ];
        let sql = match error {
            None => {
                "INSERT INTO deliveries (notice_id, subscriber, run_id, seq, topic, attempt, at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)"
            }
            Some(error) => {
                params.push(Param::Text(crate::projection::storable(error)));
                "INSERT INTO deliveries (notice_id, subscriber, run_id, seq, topic, attempt, at, error)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
            }
        };
        self.execute(sql, params).await?;
        if notice.id % 256 == 0 {
            self.execute(
                "DELETE FROM deliveries WHERE id <= (SELECT max(id) FROM deliveries) - $1",
                vec![Param::Int(KEPT)],
            )
            .await?;
        }
        Ok(())
    }

    /// The newest first.
    pub async fn deliveries(
        &self,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let before = before.and_then(|it| i64::try_from(it).ok()).unwrap_or(i64::MAX);
        self.query(
            "SELECT id, notice_id, subscriber, run_id, seq, topic, attempt, at, error FROM deliveries
             WHERE id < $1 ORDER BY id DESC LIMIT $2",
            vec![Param::Int(before), Param::Int(i64::from(limit))],
            |row| {
                Ok(Delivery {
                    id: row.int(0)? as u64,
                    notice: row.int(1)? as u64,
                    subscriber: row.text(2)?,
                    run: RunId(row.uuid(3)?),
                    seq: row.int(4)? as u64,
                    topic: row.text(5)?,
                    attempt: row.int(6)? as u32,
                    at: timestamp(row.int(7)?)?,
                    error: row.opt_text(8)?,
                })
            },
        )
        .await
    }
}
