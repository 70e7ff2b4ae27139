//! SQLite: one process, one writer thread, group commit.
//!
//! The writer takes all that waits in its queue, carries it out in one transaction and commits
//! once. It never waits for company: alone, a write is committed at once; under load, many share
//! one flush of the disk. Reads use connections of their own and never wait for the writer.

mod append;
mod audit;
mod claim;
mod gate;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use tokio::sync::oneshot;

use crate::migrate;
use crate::{OpenError, StoreError};

/// More than this many writes in one transaction make the first of them wait too long.
const GROUP_MAX: usize = 512;
/// How long the writer looks for work before it sleeps.
const SPIN: Duration = Duration::from_micros(150);
/// How long a group that nobody waits for stays open to others.
const LINGER: Duration = Duration::from_millis(1);
/// Reads at one time; more wait their turn.
const READERS: usize = 4;

#[derive(Debug)]
pub(crate) struct Sqlite {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    readers: Arc<Readers>,
    chain: Arc<audit::Chain>,
}

/// A write, and what to do when it is durable or has failed. An error from the work fails the
/// whole group, so it is for the database's own failures; a refusal is part of the answer.
type Job = Box<dyn FnOnce(&Connection) -> Result<Option<Answer>, StoreError> + Send>;
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

#[derive(Debug)]
struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: tokio::sync::Semaphore,
}

impl Sqlite {
    pub(crate) async fn open(dir: &Path) -> Result<Sqlite, OpenError> {
        let dir = dir.to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&dir)).await;
        let (lock, path, connection) =
            opened.map_err(|it| StoreError::Failed(it.to_string()))??;
        let (jobs, queue) = mpsc::channel();
        let chain = Arc::new(audit::Chain::default());
        let written = chain.clone();
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                write_loop(connection, &queue, &written);
                drop(lock);
            })
            .map_err(|it| StoreError::Failed(it.to_string()))?;
        Ok(Sqlite {
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some(writer)),
            readers: Arc::new(Readers {
                path,
                idle: Mutex::default(),
                places: tokio::sync::Semaphore::new(READERS),
            }),
            chain,
        })
    }

    /// Runs `work` in the writer's transaction; answers when it is durable.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(work, When::Durable).await
    }

    /// The same for what need not survive a crash, such as a lease: answers when it is done, and
    /// shares the commit of what comes next.
    pub(crate) async fn write_soon<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.submit(work, When::Done).await
    }

    async fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        when: When,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        // The caller may be gone; what it asked for is done all the same.
        let job: Job = Box::new(move |connection| match (work(connection), when) {
            (Ok(value), When::Done) => {
                let _ = reply.send(Ok(value));
                Ok(None)
            }
            (Ok(value), When::Durable) => Ok(Some(Box::new(move |committed: Result<_, _>| {
                let _ = reply.send(committed.map(|()| value));
            }))),
            (Err(error), _) => {
                let error = StoreError::from(error);
                let _ = reply.send(Err(error.clone()));
                Err(error)
            }
        });
        {
            let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let jobs = jobs.as_ref().ok_or(StoreError::Closed)?;
            jobs.send(job).map_err(|_| StoreError::Closed)?;
        }
        // Dropped without an answer: its turn never came, for the group could not begin.
        answer.await.unwrap_or_else(|_| {
            Err(StoreError::Failed(
                "the write was not made: the disk or the database refused it".to_owned(),
            ))
        })
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.readers.clone();
        let _place = self.readers.places.acquire().await.map_err(|_| StoreError::Closed)?;
        let read = tokio::task::spawn_blocking(move || {
            let connection = readers.take()?;
            let value = work(&connection)?;
            readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            Ok(value)
        });
        read.await.map_err(|it| StoreError::Failed(it.to_string()))?
    }

    pub(crate) async fn close(&self) {
        self.readers.places.close();
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // A panic there has been answered for by dropped replies.
            let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        }
    }
}

/// The process clock, in microseconds; the only one that a store without company needs.
#[expect(clippy::disallowed_methods, reason = "the store's one clock for leases and deadlines")]
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// When a caller is answered.
#[derive(Debug, Clone, Copy)]
enum When {
    Done,
    Durable,
}

fn write_loop(mut connection: Connection, queue: &mpsc::Receiver<Job>, chain: &audit::Chain) {
    while let Some(first) = next_job(queue) {
        let mut answers = Vec::new();
        let committed = write_group(&mut connection, first, queue, &mut answers);
        if let Err(error) = &committed {
            chain.forget();
            tracing::error!(%error, "A group of writes failed; none of it was made: {error}");
        }
        for answer in answers {
            answer(committed.clone());
        }
    }
    // Leaves one tidy file behind; what is in the log is durable without it.
    let _ = connection.pragma_update(None, "wal_checkpoint", "TRUNCATE");
}

/// The next job. What follows on a write often follows at once, sooner than a sleeping thread
/// can be woken: so it looks for a moment before it sleeps.
fn next_job(queue: &mpsc::Receiver<Job>) -> Option<Job> {
    let began = Instant::now();
    while began.elapsed() < SPIN {
        match queue.try_recv() {
            Ok(job) => return Some(job),
            // Whoever else wants the processor has it: they may be bringing the job.
            Err(mpsc::TryRecvError::Empty) => std::thread::yield_now(),
            Err(mpsc::TryRecvError::Disconnected) => return None,
        }
    }
    queue.recv().ok()
}

fn write_group(
    connection: &mut Connection,
    first: Job,
    queue: &mpsc::Receiver<Job>,
    answers: &mut Vec<Answer>,
) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut next = Some(first);
    for _ in 0..GROUP_MAX {
        let Some(job) = next else { break };
        answers.extend(job(&transaction)?);
        next = queue.try_recv().ok();
        if next.is_none() && answers.is_empty() {
            // Nobody waits for this commit yet: whoever comes within a moment shares it.
            next = queue.recv_timeout(LINGER).ok();
        }
    }
    // The group is full, and a job is in hand: it is the last of this group.
    if let Some(job) = next {
        answers.extend(job(&transaction)?);
    }
    transaction.commit()?;
    Ok(())
}

impl Readers {
    fn take(&self) -> Result<Connection, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(connection) = idle {
            return Ok(connection);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }
}

fn open(dir: &Path) -> Result<(File, PathBuf, Connection), OpenError> {
    let unusable =
        |it: std::io::Error| OpenError::Directory { dir: dir.to_owned(), detail: it.to_string() };
    // What agents and people said is nobody else's business.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unusable)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(dir.join("chancery.lock"))
        .map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => return Err(OpenError::InUse(dir.to_owned())),
        Err(std::fs::TryLockError::Error(error)) => return Err(unusable(error)),
    }
    let path = dir.join("chancery.db");
    let mut connection = Connection::open(&path).map_err(StoreError::from)?;
    configure(&connection)?;
    migrate(&mut connection)?;
    Ok((lock, path, connection))
}

fn configure(connection: &Connection) -> Result<(), OpenError> {
    let set = |name: &str, value: &str| {
        connection.pragma_update(None, name, value).map_err(StoreError::from)
    };
    set("journal_mode", "WAL")?;
    set("synchronous", "FULL")?;
    set("temp_store", "MEMORY")?;
    set("cache_size", "-16384")?;
    set("journal_size_limit", "67108864")?;
    connection.set_prepared_statement_cache_capacity(64);
    // SQLite reads a value that it does not know as another one, and says nothing.
    let read = |name: &str| {
        connection
            .pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
            .map_err(StoreError::from)
    };
    for (setting, wanted, value) in [
        ("synchronous", "FULL", rusqlite::types::Value::Integer(2)),
        ("journal_mode", "wal", rusqlite::types::Value::Text("wal".to_owned())),
    ] {
        let found = read(setting)?;
        if found != value {
            return Err(OpenError::NotDurable { setting, found: format!("{found:?}"), wanted });
        }
    }
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::from)?;
    transaction.execute_batch(migrate::TABLE).map_err(StoreError::from)?;
    let applied = (|| {
        let mut statement =
            transaction.prepare("SELECT number, checksum FROM migrations ORDER BY number")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<Vec<(i64, String)>>>()
    })()
    .map_err(StoreError::from)?;
    for migration in migrate::pending(&applied, |it| it.sqlite)? {
        transaction.execute_batch(migration.sqlite).map_err(StoreError::from)?;
        transaction
            .execute(
                "INSERT INTO migrations (number, name, checksum) VALUES (?1, ?2, ?3)",
                (migration.number, migration.name, migrate::checksum(migration.sqlite)),
            )
            .map_err(StoreError::from)?;
    }
    transaction.commit().map_err(StoreError::from)?;
    Ok(())
}
