//! Changes of several runs at once, on PostgreSQL: one transaction of its own, since goals are
//! handed on and back far less often than steps are taken.

use std::time::{Duration, Instant};

use super::Postgres;
use super::audit::extend;
use super::create::make;
use super::flush::{Verdicts, is_in_log, orphan, send};
use crate::StoreError;
use crate::log::{Joint, Verdict};
use crate::projection::Prepared;

impl Postgres {
    /// Tries again while the database is away. What broke off may have been committed: what is
    /// found in the log, word for word, was.
    pub(crate) async fn append_jointly(&self, joint: Joint) -> Result<Vec<Verdict>, StoreError> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(20);
        let mut broken = false;
        loop {
            let error = match self.try_jointly(&joint, broken).await {
                Ok(verdicts) => return Ok(verdicts),
                Err(error) => error,
            };
            let patience = *self.patience.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            if !matches!(error, StoreError::Unreachable(_)) || began.elapsed() > patience {
                return Err(error);
            }
            broken = true;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn try_jointly(&self, joint: &Joint, broken: bool) -> Result<Vec<Verdict>, StoreError> {
        let mut client = self.pool.get().await?;
        let transaction = client.transaction().await?;
        let mut appends: Vec<&Prepared> = joint.appends.iter().collect();
        // Every server locks its runs in this order, so that none waits in a circle.
        appends.sort_unstable_by_key(|it| it.run);
        let appended = send(&transaction, &appends).await?;
        if appended.len() == appends.len() {
            for (change, birth) in &joint.births {
                make(&transaction, change, birth, None).await?;
            }
            orphan(&transaction, &appends).await?;
            let births = joint.births.iter().map(|it| &it.0);
            extend(&transaction, appends.into_iter().chain(births).flat_map(|it| &it.audit))
                .await?;
            #[cfg(feature = "faults")]
            crate::fault::brink();
            transaction.commit().await?;
            return Ok(vec![Verdict::Appended; joint.appends.len()]);
        }
        transaction.rollback().await?;
        if let (true, Some(first)) = (broken, joint.appends.first())
            && is_in_log(&client, first).await?
        {
            return Ok(vec![Verdict::Appended; joint.appends.len()]);
        }
        let runs: Vec<_> = joint.appends.iter().map(|it| it.run).collect();
        let heads = client
            .query("SELECT run_id, seq, attempt FROM heads WHERE run_id = ANY($1)", &[&runs])
            .await?;
        let mut found = Verdicts::new();
        for head in heads {
            let (seq, attempt) = (head.try_get(1)?, head.try_get(2)?);
            found.insert(head.try_get(0)?, Verdict::Stale { seq, attempt });
        }
        let verdict = |change: &Prepared| match found.get(&change.run) {
            _ if appended.contains(&change.run) => Verdict::Current,
            Some(stale) => *stale,
            None => Verdict::Absent,
        };
        Ok(joint.appends.iter().map(verdict).collect())
    }
}
