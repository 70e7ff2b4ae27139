//! PostgreSQL: any number of processes share one database.
//!
//! Appends of many runs are flushed together: a flusher takes all that waits for it and sends
//! one statement, so that they share one commit. Other processes are woken by `NOTIFY`, sent
//! after the commit and debounced (inside the append it would cost nine tenths of the speed);
//! it carries no data, and everything works by polling without it.

pub(crate) mod audit;
mod claim;
mod create;
mod flush;
mod gate;
mod hosts;
mod joint;
mod sweep;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use chancery_domain::id::WorkerId;
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres_rustls::MakeRustlsConnect;

use self::hosts::Hosts;
use crate::bell::Bell;
use crate::log::Verdict;
use crate::migrate;
use crate::projection::{Prepared, QueueMove};
use crate::sql::Param;
use crate::{OpenError, StoreError};

/// Connections of one process. Flushers share commits, so that a few carry any number of runs.
const CONNECTIONS: usize = 8;
/// Flushers: one writes while the other collects.
const FLUSHERS: usize = 2;
/// The flushers and the auditor, a connection each.
const WRITERS: usize = FLUSHERS + 1;
/// How long a request waits for a database that is away before it fails.
const OUTAGE_MAX: Duration = Duration::from_secs(30);
/// How long a connection may take to be made, whatever its host says or does not say.
const GREETING_MAX: Duration = Duration::from_secs(5);
/// How long a heartbeat may take, however short the lease is that it renews.
const BEAT_MIN: Duration = Duration::from_secs(1);

/// The same for the writes of a log; only tests shorten it.
pub(crate) type Patience = Arc<std::sync::RwLock<Duration>>;
/// The same number in every server: only one migrates at a time.
const MIGRATION_LOCK: i64 = 0x6368_616e_6365_7279;
/// What a commit answers for is on disk, whatever the database's default is. Rows are found by their
/// keys: a plan that was made while a table was small would read all of it when it is large, and
/// lock what it finds in no order. Compiling a plan takes longer than most of ours take. A process that stands still in the middle of a transaction does
/// not keep the others from theirs.
const SETTINGS: &str = "SET synchronous_commit = on; SET enable_seqscan = off; SET jit = off;
    SET application_name = 'chancery'; SET idle_in_transaction_session_timeout = '5s'";
/// For those who write one statement after the other, the same few for ever. Left alone, PostgreSQL
/// plans a statement with arrays anew each time, which takes twice as long as carrying it out. A plan
/// that is made once must do for one row and for hundreds, in an empty table and in a large one: rows
/// are looked up by the keys that the statement names, in their order, and put together by hashes.
const WRITING: &str = "SET plan_cache_mode = force_generic_plan; SET enable_nestloop = off;
    SET enable_mergejoin = off; SET enable_bitmapscan = off";

#[derive(Debug)]
pub(crate) struct Postgres {
    pool: Pool,
    /// Those of the flushers and the auditor: what is read does not stand in their way either.
    writers: Pool,
    /// One connection for the heartbeat alone: no request may stand in its way.
    pulse: Pool,
    flushers: Vec<mpsc::UnboundedSender<flush::Flush>>,
    auditor: mpsc::UnboundedSender<audit::Alone>,
    patience: Patience,
    news: Arc<wake::News>,
    gone: Arc<sweep::Gone>,
    tasks: Vec<tokio::task::AbortHandle>,
}

impl Postgres {
    pub(crate) async fn open(url: &str, bell: Bell) -> Result<Postgres, OpenError> {
        let config: tokio_postgres::Config =
            url.parse().map_err(|it: tokio_postgres::Error| OpenError::Url(said(&it)))?;
        let hosts = Hosts::of(&config, tls()?);
        let pulse = pool(&config, hosts.clone(), 1, SETTINGS)?;
        let writers = pool(&config, hosts.clone(), WRITERS, &format!("{SETTINGS}; {WRITING}"))?;
        let pool = pool(&config, hosts.clone(), CONNECTIONS, SETTINGS)?;
        let mut checked = check(&pool).await;
        for _ in 1..hosts.count() {
            // One that takes the call and says nothing uses up the patience of a whole search.
            if let Err(OpenError::Store(StoreError::Unreachable(_))) = checked {
                checked = check(&pool).await;
            }
        }
        checked?;
        migrate(&pool).await?;
        let patience = Patience::new(OUTAGE_MAX.into());
        let mut tasks = Vec::new();
        let mut flushers = Vec::new();
        for _ in 0..FLUSHERS {
            let (sender, queue) = mpsc::unbounded_channel();
            tasks.push(
                tokio::spawn(flush::flush_loop(writers.clone(), patience.clone(), queue))
                    .abort_handle(),
            );
            flushers.push(sender);
        }
        let (auditor, queue) = mpsc::unbounded_channel();
        tasks.push(tokio::spawn(audit::audit_loop(writers.clone(), queue)).abort_handle());
        let news = Arc::new(wake::News::default());
        tasks.push(tokio::spawn(wake::tell(pool.clone(), news.clone())).abort_handle());
        tasks.push(tokio::spawn(wake::listen(hosts, bell)).abort_handle());
        let gone = Arc::new(sweep::Gone::default());
        tasks.push(tokio::spawn(sweep::sweep(pool.clone(), gone.clone())).abort_handle());
        Ok(Postgres { gone, pool, writers, pulse, flushers, auditor, patience, news, tasks })
    }

    pub(crate) async fn append(&self, change: Prepared) -> Result<Verdict, StoreError> {
        if change.queue == QueueMove::Leave {
            self.gone.one();
        }
        // One run's changes go through one flusher, so that they cannot meet each other.
        let place = change.run.as_u128() as usize % self.flushers.len();
        let (flush, answer) = flush::Flush::new(change);
        self.flushers[place].send(flush).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    pub(crate) async fn query(
        &self,
        sql: &str,
        params: &[Param],
    ) -> Result<Vec<tokio_postgres::Row>, StoreError> {
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query(&statement, &as_params(params)).await?)
    }

    pub(crate) async fn execute(&self, sql: &str, params: &[Param]) -> Result<u64, StoreError> {
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.execute(&statement, &as_params(params)).await?)
    }

    /// A connection, for what takes more than one statement.
    pub(crate) async fn client(&self) -> Result<deadpool_postgres::Object, StoreError> {
        Ok(self.pool.get().await?)
    }

    /// The database's clock, in microseconds.
    pub(crate) async fn now(&self) -> Result<i64, StoreError> {
        let rows = self.query(&format!("SELECT {NOW}"), &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Failed("no time".to_owned()))?;
        Ok(row.try_get(0)?)
    }

    /// Says that a worker lives, for the length of a lease from now by the database's clock.
    pub(crate) async fn beat(&self, worker: WorkerId, lease: Duration) -> Result<(), StoreError> {
        let client = self.pulse.get().await?;
        let sql = format!(
            "INSERT INTO workers (id, alive_until) VALUES ($1, {NOW} + $2)
             ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until"
        );
        let beat = async {
            let statement = client.prepare_cached(&sql).await?;
            client.execute(&statement, &[&worker.0, &(lease.as_micros() as i64)]).await
        };
        match tokio::time::timeout(lease.max(BEAT_MIN), beat).await {
            Ok(beaten) => Ok(beaten.map(drop)?),
            Err(_) => {
                // A connection that is silent for so long is not used again.
                drop(deadpool_postgres::Object::take(client));
                let said = "no answer to a heartbeat within the length of a lease";
                Err(StoreError::Unreachable(said.to_owned()))
            }
        }
    }

    pub(crate) fn tell_others(&self, work: bool) {
        self.news.log_grew(work);
    }

    pub(crate) async fn notify_now(&self) -> Result<(), StoreError> {
        wake::send(&self.pool, true).await
    }

    #[cfg(feature = "faults")]
    pub(crate) fn wait_at_most(&self, patience: Duration) {
        *self.patience.write().unwrap_or_else(std::sync::PoisonError::into_inner) = patience;
    }

    pub(crate) fn close(&self) {
        for task in &self.tasks {
            task.abort();
        }
        self.pool.close();
        self.writers.close();
        self.pulse.close();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.close();
    }
}

/// The database's clock in microseconds, as an expression.
macro_rules! postgres_now {
    () => {
        "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
    };
}
pub(crate) use postgres_now;

const NOW: &str = postgres_now!();

pub(crate) fn as_params(params: &[Param]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|it| it as &(dyn ToSql + Sync)).collect()
}

fn said(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// TLS as the URL's `sslmode` asks for it, trusting what the machine trusts.
fn tls() -> Result<MakeRustlsConnect, OpenError> {
    let failed = |it: rustls::Error| OpenError::Url(format!("TLS cannot be set up: {it}"));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider.clone()).map_err(failed)?;
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn pool(
    config: &tokio_postgres::Config,
    hosts: Hosts,
    size: usize,
    settings: &str,
) -> Result<Pool, OpenError> {
    let settings: Arc<str> = settings.into();
    let manager = Manager::from_connect(
        config.clone(),
        hosts,
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    Pool::builder(manager)
        .max_size(size)
        .runtime(deadpool_postgres::Runtime::Tokio1)
        .create_timeout(Some(GREETING_MAX))
        .wait_timeout(Some(OUTAGE_MAX))
        .post_create(Hook::async_fn(move |client, _| {
            let settings = settings.clone();
            Box::pin(
                async move { client.batch_execute(&settings).await.map_err(HookError::Backend) },
            )
        }))
        .build()
        .map_err(|it| OpenError::Url(it.to_string()))
}

async fn check(pool: &Pool) -> Result<(), OpenError> {
    let client = pool.get().await.map_err(StoreError::from)?;
    let show = async |name: &str| -> Result<String, StoreError> {
        Ok(client.query_one(&format!("SHOW {name}"), &[]).await?.try_get(0)?)
    };
    let number: u32 = show("server_version_num").await?.parse().unwrap_or(0);
    if number < 130_000 {
        return Err(OpenError::TooOld { found: show("server_version").await? });
    }
    if show("fsync").await? == "off" {
        tracing::warn!("PostgreSQL runs with `fsync = off`: a crash of its machine loses runs");
    }
    Ok(())
}

async fn migrate(pool: &Pool) -> Result<(), OpenError> {
    let apply = async |client: &mut deadpool_postgres::Object| -> Result<(), OpenError> {
        let transaction = client.transaction().await.map_err(StoreError::from)?;
        transaction
            .execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK])
            .await
            .map_err(StoreError::from)?;
        transaction.batch_execute(migrate::TABLE).await.map_err(StoreError::from)?;
        let applied = transaction
            .query("SELECT number, checksum FROM migrations ORDER BY number", &[])
            .await
            .map_err(StoreError::from)?;
        let applied: Vec<(i64, String)> =
            applied.iter().map(|row| (row.get(0), row.get(1))).collect();
        for migration in migrate::pending(&applied, |it| it.postgres)? {
            transaction.batch_execute(migration.postgres).await.map_err(StoreError::from)?;
            transaction
                .execute(
                    "INSERT INTO migrations (number, name, checksum) VALUES ($1, $2, $3)",
                    &[&migration.number, &migration.name, &migrate::checksum(migration.postgres)],
                )
                .await
                .map_err(StoreError::from)?;
        }
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(())
    };
    let mut client = pool.get().await.map_err(StoreError::from)?;
    apply(&mut client).await
}
