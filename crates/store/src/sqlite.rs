//! SQLite: one process, one writer, group commit.
//!
//! The writer takes all that waits in its queue, carries it out in one transaction and commits
//! once. It never waits for company: alone, a write is committed at once; under load, many share
//! one flush of the disk. Reads use connections of their own and never wait for the writer.

mod append;
mod audit;
mod claim;
mod deposit;
mod gate;
mod joint;
mod open;
mod order;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;

pub(crate) use self::audit::Chain;
pub(crate) use self::open::{FILE, check_current};
use self::order::Orders;
pub(crate) use self::order::{Receipt, Taken};
use self::writer::{Desk, Job};
use crate::{OpenError, StoreError};

/// Reads at one time; more wait their turn.
const READERS: usize = 4;

#[derive(Debug)]
pub(crate) struct Sqlite {
    desk: Arc<Desk>,
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    readers: Arc<Readers>,
    pub(crate) chain: Arc<audit::Chain>,
    orders: Arc<Orders>,
    /// In a simulation: whoever asks does it, and nobody else has a thread.
    #[cfg(feature = "faults")]
    on_the_spot: bool,
}

#[derive(Debug)]
struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: tokio::sync::Semaphore,
}

/// The file without a writer of its own, for one who is alone with it as long as the lock is held.
pub(crate) fn open_alone(dir: &Path) -> Result<(std::fs::File, Connection), OpenError> {
    open::open(dir).map(|(lock, _, connection)| (lock, connection))
}

impl Sqlite {
    pub(crate) async fn open(dir: &Path) -> Result<Sqlite, OpenError> {
        let dir = dir.to_owned();
        let opened = tokio::task::spawn_blocking(move || open::open(&dir)).await;
        let (lock, path, connection) =
            opened.map_err(|it| StoreError::Failed(it.to_string()))??;
        let (jobs, queue) = mpsc::channel();
        let chain = Arc::new(audit::Chain::default());
        let orders = Arc::new(Orders::default());
        let desk = Arc::new(Desk::new(connection, chain.clone(), orders.clone()));
        let writers = desk.clone();
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                writers.write_loop(&queue);
                drop(lock);
            })
            .map_err(|it| StoreError::Failed(it.to_string()))?;
        Ok(Sqlite {
            desk,
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some(writer)),
            readers: Arc::new(Readers {
                path,
                idle: Mutex::default(),
                places: tokio::sync::Semaphore::new(READERS),
            }),
            chain,
            orders,
            #[cfg(feature = "faults")]
            on_the_spot: false,
        })
    }

    /// A record that is gone with its process.
    #[cfg(feature = "faults")]
    pub(crate) fn in_memory() -> Result<Sqlite, OpenError> {
        let chain = Arc::new(audit::Chain::default());
        let orders = Arc::new(Orders::default());
        let desk = Arc::new(Desk::new(open::in_memory()?, chain.clone(), orders.clone()));
        let places = tokio::sync::Semaphore::new(READERS);
        let readers = Readers { path: PathBuf::new(), idle: Mutex::default(), places };
        Ok(Sqlite {
            desk,
            jobs: Mutex::new(None),
            writer: Mutex::new(None),
            readers: Arc::new(readers),
            chain,
            orders,
            on_the_spot: true,
        })
    }

    /// Runs `work` in the writer's transaction; answers when it is durable.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        #[cfg(feature = "faults")]
        if self.on_the_spot {
            return self.desk.write_on_the_spot(work);
        }
        match self.desk.write_alone(work) {
            Ok(written) => written,
            Err(work) => self.submit(work, When::Durable).await,
        }
    }

    /// The same for what need not survive a crash, such as a lease: answers when it is done, and
    /// shares the commit of what comes next.
    pub(crate) async fn write_soon<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        #[cfg(feature = "faults")]
        if self.on_the_spot {
            return self.desk.write_on_the_spot(work);
        }
        self.submit(work, When::Done).await
    }

    async fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        when: When,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        // The caller may be gone; what it asked for is done all the same.
        let job: Job = Box::new(move |connection| {
            let worked = connection.and_then(|it| work(it).map_err(StoreError::from));
            match (worked, when) {
                (Ok(value), When::Done) => {
                    let _ = reply.send(Ok(value));
                    Ok(None)
                }
                (Ok(value), When::Durable) => Ok(Some(Box::new(move |committed: Result<_, _>| {
                    let _ = reply.send(committed.map(|()| value));
                }))),
                (Err(error), _) => {
                    let _ = reply.send(Err(error.clone()));
                    Err(error)
                }
            }
        });
        {
            let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let jobs = jobs.as_ref().ok_or(StoreError::Closed)?;
            self.desk.announce();
            jobs.send(job).map_err(|_| StoreError::Closed)?;
        }
        // Dropped without an answer: the writer is gone.
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        #[cfg(feature = "faults")]
        if self.on_the_spot {
            return self.desk.read_on_the_spot(work);
        }
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
    #[cfg(feature = "faults")]
    if let Some(simulated) = crate::fault::clock::database() {
        return simulated;
    }
    jiff::Timestamp::now().as_microsecond()
}

/// When a caller is answered.
#[derive(Debug, Clone, Copy)]
enum When {
    Done,
    Durable,
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
