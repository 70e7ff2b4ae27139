//! Who lives, and what becomes of the runs of those who do not.

use std::time::Duration;

use crate::postgres::postgres_now;
use crate::sql::Param;
use crate::{Database, Store, StoreError};

/// A worker is lost: whatever it had is suspect, and a run that it had alone is to blame.
macro_rules! rescued {
    () => {
        concat!(
            "UPDATE queue SET ready_at = 0, ",
            given_back!("dead.alone", "1"),
            " FROM (SELECT owner AS id, CASE count(*) WHEN 1 THEN 1 ELSE 0 END AS alone
                    FROM queue WHERE owner IS NOT NULL GROUP BY owner) AS dead
              WHERE queue.owner = dead.id AND queue.owner <> $1"
        )
    };
}

/// Of them, those that are not heard of at this time.
macro_rules! silent_at {
    ($($now:tt)+) => {
        concat!(
            " AND NOT EXISTS (SELECT 1 FROM workers WHERE id = queue.owner AND alive_until > ",
            $($now)+,
            ")"
        )
    };
}

impl Store {
    /// Says that this worker lives, for the length of a lease from now.
    pub async fn beat(&self, lease: Duration) -> Result<(), StoreError> {
        if let Database::Postgres(postgres) = &self.inner.database {
            return postgres.beat(self.worker(), lease).await;
        }
        self.execute_with(
            "INSERT INTO workers (id, alive_until) VALUES ($1, $2)
             ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until",
            || {
                let until = crate::sqlite::now() + lease.as_micros() as i64;
                vec![Param::Uuid(self.worker().0), Param::Int(until)]
            },
        )
        .await?;
        Ok(())
    }

    /// This worker is gone, in good order: whatever it still had is free at once.
    pub async fn resign(&self) -> Result<(), StoreError> {
        let me = || Param::Uuid(self.worker().0);
        self.execute("UPDATE queue SET owner = NULL WHERE owner = $1", vec![me()]).await?;
        self.execute("DELETE FROM workers WHERE id = $1", vec![me()]).await?;
        if let Database::Postgres(postgres) = &self.inner.database {
            // Now: whoever would send it later is about to end.
            postgres.notify_now().await?;
        }
        Ok(())
    }

    /// Frees the runs of workers that are taken for dead, and answers how many.
    pub async fn rescue(&self) -> Result<u64, StoreError> {
        let others_live = self.is_shared();
        #[cfg(feature = "faults")]
        let others_live = others_live && !self.has_plant(crate::fault::Plant::RescuesTheLiving);
        let rescued = match others_live {
            true => self.rescue_silent().await?,
            false => self.rescue_others().await?,
        };
        if rescued > 0 {
            self.bell().ring_work();
        }
        Ok(rescued)
    }

    async fn rescue_others(&self) -> Result<u64, StoreError> {
        let me = Param::Uuid(self.worker().0);
        let rescued = self.execute(rescued!(), vec![me.clone()]).await?;
        self.execute("DELETE FROM workers WHERE id <> $1", vec![me]).await?;
        Ok(rescued)
    }

    /// Who is silent is judged in the statement that frees their runs. Between a look at the clock
    /// and that statement it may be set back, or another host become the primary: whoever was heard
    /// of since would be dead by the earlier time.
    async fn rescue_silent(&self) -> Result<u64, StoreError> {
        // Whoever asks lives: what it has is driven.
        let me = Param::Uuid(self.worker().0);
        let rescued = match &self.inner.database {
            Database::Postgres(_) => {
                self.execute(concat!(rescued!(), silent_at!(postgres_now!())), vec![me]).await?
            }
            Database::Sqlite(_) => {
                let now = || vec![me, Param::Int(crate::sqlite::now())];
                self.execute_with(concat!(rescued!(), silent_at!("$2")), now).await?
            }
        };
        // The row outlives the lease by far: it costs nothing, and its absence says dead too.
        let long_dead = self.database_time().await? - 3_600_000_000;
        self.execute("DELETE FROM workers WHERE alive_until < $1", vec![Param::Int(long_dead)])
            .await?;
        Ok(rescued)
    }
}
