//! A standing order: a worker with free places has its claim made in the very commit that makes a
//! run ready, instead of hearing of it and coming for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chancery_domain::id::WorkerId;
use rusqlite::Connection;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::claim::claim;
use crate::queue::{ClaimedRow, Wanted};

/// The order that stands, and what the transaction under way has for it.
#[derive(Debug, Default)]
pub(super) struct Orders {
    standing: Mutex<Option<Order>>,
    ready: Mutex<Vec<(Uuid, Taken)>>,
}

#[derive(Debug)]
struct Order {
    worker: WorkerId,
    wanted: Wanted,
    limit: u32,
    reply: oneshot::Sender<Vec<ClaimedRow>>,
}

/// Whether a run that was made ready was claimed in the same commit: then nobody need be woken.
#[derive(Debug, Clone, Default)]
pub(crate) struct Taken(Arc<AtomicBool>);

impl Taken {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was claimed for an order, to be handed over when it is durable.
#[derive(Debug)]
pub(super) struct Filled {
    order: Order,
    rows: Vec<ClaimedRow>,
    ready: Vec<(Uuid, Taken)>,
}

/// An order as whoever left it holds it. Dropped, it does not stand any longer.
#[derive(Debug)]
pub(crate) struct Receipt {
    orders: Arc<Orders>,
    /// Absent once it is known.
    answer: Option<oneshot::Receiver<Vec<ClaimedRow>>>,
}

impl Orders {
    /// There is one claimer in a process, and so one order.
    pub(super) fn leave(self: &Arc<Self>, worker: WorkerId, wanted: Wanted, limit: u32) -> Receipt {
        let (reply, answer) = oneshot::channel();
        *lock(&self.standing) = Some(Order { worker, wanted, limit, reply });
        Receipt { orders: self.clone(), answer: Some(answer) }
    }

    /// The transaction under way makes a run ready.
    pub(super) fn made_ready(&self, run: Uuid, taken: Taken) {
        lock(&self.ready).push((run, taken));
    }

    /// To be called before the commit: claims for the order, if there is something to claim.
    pub(super) fn fill(&self, connection: &Connection) -> rusqlite::Result<Option<Filled>> {
        let ready = std::mem::take(&mut *lock(&self.ready));
        let order = match ready.is_empty() {
            true => None,
            false => lock(&self.standing).take(),
        };
        let Some(order) = order else { return Ok(None) };
        let rows = claim(connection, order.worker, order.wanted, order.limit, super::now())?;
        Ok(Some(Filled { order, rows, ready }))
    }

    /// The transaction under way was not made.
    pub(super) fn forget(&self) {
        lock(&self.ready).clear();
    }
}

impl Filled {
    /// To be called after the commit, and before anybody hears of it.
    pub(super) fn hand_over(self) {
        for (run, taken) in self.ready {
            let claimed = self.rows.iter().any(|it| it.run == run);
            taken.0.store(claimed, Ordering::Relaxed);
        }
        // Whoever left the order may be gone, with its process or as it stops: then what it has a
        // lease on is given back as a whole.
        let _ = self.order.reply.send(self.rows);
    }
}

impl Receipt {
    /// Returns when the order was carried out, or will never be.
    pub(crate) async fn filled(&mut self) -> Vec<ClaimedRow> {
        let Some(answer) = &mut self.answer else { return Vec::new() };
        let rows = answer.await.unwrap_or_default();
        self.answer = None;
        rows
    }

    /// Takes the order back. What was claimed for it meanwhile is the answer.
    pub(crate) async fn withdraw(mut self) -> Vec<ClaimedRow> {
        if lock(&self.orders.standing).take().is_some() {
            return Vec::new();
        }
        self.filled().await
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.answer = None;
        lock(&self.orders.standing).take_if(|it| it.reply.is_closed());
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
