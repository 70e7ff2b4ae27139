//! The writer: a thread that takes all that waits, carries it out in one transaction and commits
//! once. Who comes alone and finds nobody there does the same on the spot, which saves the way to
//! the thread and back.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use super::audit::Chain;
use super::order::Orders;
use crate::StoreError;

/// More than this many writes in one transaction make the first of them wait too long.
const GROUP_MAX: usize = 512;
/// How long the writer looks for work before it sleeps.
const SPIN: Duration = Duration::from_micros(150);
/// How long a group that nobody waits for stays open to others.
const LINGER: Duration = Duration::from_millis(1);
/// Where a commit takes longer, nobody but the writer's own thread is kept busy with it.
const QUICK: Duration = Duration::from_millis(2);

/// A write, and what to do when it is durable or has failed. An error from the work fails the
/// whole group, so it is for the database's own failures; a refusal is part of the answer.
pub(super) type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Outcome + Send>;
pub(super) type Outcome = Result<Option<Answer>, StoreError>;
pub(super) type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The one connection that writes.
#[derive(Debug)]
pub(super) struct Desk {
    /// Absent once the store is closed.
    connection: Mutex<Option<Connection>>,
    /// Writes that are on their way to the thread and not in a group yet.
    queued: AtomicUsize,
    /// How many waited for the last commit, and how long it took, in microseconds.
    last_size: AtomicUsize,
    last_time: AtomicU64,
    /// What is undone with a transaction is undone in the audit's chain, too.
    chain: Arc<Chain>,
    orders: Arc<Orders>,
}

impl Desk {
    pub(super) fn new(connection: Connection, chain: Arc<Chain>, orders: Arc<Orders>) -> Desk {
        Desk {
            connection: Mutex::new(Some(connection)),
            queued: AtomicUsize::new(0),
            last_size: AtomicUsize::new(1),
            last_time: AtomicU64::new(0),
            chain,
            orders,
        }
    }

    /// To be called before a job is sent.
    pub(super) fn announce(&self) {
        self.queued.fetch_add(1, Ordering::SeqCst);
    }

    /// The connection, for one who is alone: nobody writes, nobody is about to, and those before
    /// were alone, too. Where many come at a time, they share a commit.
    fn alone(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        let company = self.queued.load(Ordering::SeqCst) > 0
            || self.last_size.load(Ordering::Relaxed) > 1
            || self.last_time.load(Ordering::Relaxed) > QUICK.as_micros() as u64;
        if company {
            return None;
        }
        match self.connection.try_lock() {
            Ok(connection) => Some(connection),
            Err(TryLockError::Poisoned(connection)) => Some(connection.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Carries a write out here and now, and makes it durable, if there is no company. Gives the
    /// work back otherwise.
    pub(super) fn write_alone<T, W>(&self, work: W) -> Result<Result<T, StoreError>, W>
    where
        W: FnOnce(&Connection) -> rusqlite::Result<T>,
    {
        let Some(mut connection) = self.alone() else { return Err(work) };
        let Some(connection) = connection.as_mut() else { return Ok(Err(StoreError::Closed)) };
        Ok(self.write_one(connection, work))
    }

    fn write_one<T>(
        &self,
        connection: &mut Connection,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let began = Instant::now();
        let written = (|| {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            let filled = self.orders.fill(&transaction)?;
            transaction.commit()?;
            if let Some(filled) = filled {
                filled.hand_over();
            }
            Ok(value)
        })();
        self.note(1, began.elapsed());
        if let Err(error) = &written {
            self.chain.forget();
            self.orders.forget();
            tracing::error!(%error, "A write failed, and was not made: {error}");
        }
        written
    }

    /// The same, whoever else is there: in a simulation nobody is.
    #[cfg(feature = "faults")]
    pub(super) fn write_on_the_spot<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        match self.lock().as_mut() {
            Some(connection) => self.write_one(connection, work),
            None => Err(StoreError::Closed),
        }
    }

    #[cfg(feature = "faults")]
    pub(super) fn read_on_the_spot<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let connection = self.lock();
        Ok(work(connection.as_ref().ok_or(StoreError::Closed)?)?)
    }

    fn note(&self, size: usize, time: Duration) {
        self.last_size.store(size, Ordering::Relaxed);
        self.last_time.store(time.as_micros() as u64, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until nobody can send any more.
    pub(super) fn write_loop(&self, queue: &mpsc::Receiver<Job>) {
        while let Some(first) = self.next_job(queue) {
            let mut connection = self.lock();
            let Some(connection) = connection.as_mut() else { return };
            let mut group = Group::default();
            let committed = self.write_group(connection, first, queue, &mut group);
            self.note(group.answers.len(), group.time);
            if let Err(error) = &committed {
                self.chain.forget();
                self.orders.forget();
                tracing::error!(%error, "A group of writes failed; none of it was made: {error}");
            }
            for answer in group.answers {
                answer(committed.clone());
            }
        }
        if let Some(connection) = self.lock().take() {
            // Leaves one tidy file behind; what is in the log is durable without it.
            let _ = connection.pragma_update(None, "wal_checkpoint", "TRUNCATE");
        }
    }

    /// The next job. What follows on a write often follows at once, sooner than a sleeping thread
    /// can be woken: so it looks for a moment before it sleeps.
    fn next_job(&self, queue: &mpsc::Receiver<Job>) -> Option<Job> {
        let began = Instant::now();
        while began.elapsed() < SPIN {
            match queue.try_recv() {
                Ok(job) => return Some(self.taken(job)),
                // Whoever else wants the processor has it: they may be bringing the job.
                Err(mpsc::TryRecvError::Empty) => std::thread::yield_now(),
                Err(mpsc::TryRecvError::Disconnected) => return None,
            }
        }
        queue.recv().ok().map(|job| self.taken(job))
    }

    fn taken(&self, job: Job) -> Job {
        self.queued.fetch_sub(1, Ordering::SeqCst);
        job
    }

    fn write_group(
        &self,
        connection: &mut Connection,
        first: Job,
        queue: &mpsc::Receiver<Job>,
        group: &mut Group,
    ) -> Result<(), StoreError> {
        let began = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = match began {
            Ok(transaction) => transaction,
            Err(error) => {
                let error = StoreError::from(error);
                let _ = first(Err(error.clone()));
                return Err(error);
            }
        };
        let mut next = Some(first);
        while let Some(job) = next {
            group.size += 1;
            group.answers.extend(job(Ok(&transaction))?);
            if group.size == GROUP_MAX {
                break;
            }
            next = queue.try_recv().ok();
            if next.is_none() && group.answers.is_empty() {
                // Nobody waits for this commit yet: whoever comes within a moment shares it.
                next = queue.recv_timeout(LINGER).ok();
            }
            next = next.map(|job| self.taken(job));
        }
        let filled = self.orders.fill(&transaction)?;
        let began = Instant::now();
        transaction.commit()?;
        group.time = began.elapsed();
        if let Some(filled) = filled {
            filled.hand_over();
        }
        Ok(())
    }
}

/// What shares a commit.
#[derive(Default)]
struct Group {
    answers: Vec<Answer>,
    size: usize,
    time: Duration,
}
