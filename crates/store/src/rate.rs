//! How often agents call tools, for all servers together.
//!
//! A call costs its share of a minute, and calls are paid for until a time that lies a minute
//! ahead at most: so many at once, and then one for each share that has passed. One row says it
//! all, and one statement reads and moves it, so that two servers never both take the last share.

use chancery_domain::id::AgentId;

use crate::projection::storable;
use crate::sql::Param;
use crate::{Store, StoreError};

const MINUTE: i64 = 60_000_000;
/// What is paid for further ahead was written by a clock that has been set back since. Not so what
/// lies a little more than a minute ahead: whoever asks has read the clock before its turn came.
const FAR: i64 = 2 * MINUTE;

impl Store {
    /// How many calls of a tool an agent has left just now.
    pub async fn shares_left(
        &self,
        agent: &AgentId,
        tool: &str,
        a_minute: u32,
    ) -> Result<u32, StoreError> {
        let now = self.database_time().await?;
        let paid = self
            .query(
                "SELECT paid_until FROM rates WHERE agent_id = $1 AND tool = $2",
                vec![Param::Text(storable(agent.as_str())), Param::Text(storable(tool))],
                |row| row.int(0),
            )
            .await?;
        let ahead = paid.first().map_or(0, |paid| paid - now);
        let ahead = if (0..=FAR).contains(&ahead) { ahead.min(MINUTE) } else { 0 };
        let left = share(a_minute).map_or(0, |share| (MINUTE - ahead) / share);
        Ok(u32::try_from(left).unwrap_or(u32::MAX).min(a_minute))
    }

    /// Takes one of them. `false`: there is none.
    pub async fn take_share(
        &self,
        agent: &AgentId,
        tool: &str,
        a_minute: u32,
    ) -> Result<bool, StoreError> {
        let Some(share) = share(a_minute) else { return Ok(false) };
        let now = self.database_time().await?;
        let taken = self
            .execute(
                "INSERT INTO rates (agent_id, tool, paid_until) VALUES ($1, $2, $3)
                 ON CONFLICT (agent_id, tool) DO UPDATE SET paid_until =
                   CASE WHEN rates.paid_until > $4 AND rates.paid_until <= $5
                     THEN rates.paid_until + $6 ELSE $3 END
                 WHERE rates.paid_until <= $7 OR rates.paid_until > $5",
                vec![
                    Param::Text(storable(agent.as_str())),
                    Param::Text(storable(tool)),
                    Param::Int(now + share),
                    Param::Int(now),
                    Param::Int(now + FAR),
                    Param::Int(share),
                    Param::Int(now + MINUTE - share),
                ],
            )
            .await?;
        Ok(taken == 1)
    }
}

/// What one call costs of a minute. `None`: none may be made.
fn share(a_minute: u32) -> Option<i64> {
    (a_minute > 0).then(|| MINUTE / i64::from(a_minute)).map(|it| it.max(1))
}
