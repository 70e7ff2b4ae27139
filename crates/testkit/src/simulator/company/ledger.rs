//! What is true of a company at every moment: told of every change as it is made, it folds each
//! log by itself, and says at once what must not be. It never writes to the record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chancery_domain::event::Event;
use chancery_domain::history::{Change, History};
use chancery_domain::id::{RunId, WorkerId};
use chancery_domain::run::{Run, Wait};
use chancery_store::Store;
use chancery_store::fault::{Regime, Touch, Witness};
use futures_util::FutureExt;

use super::account::Account;
use super::queue::Leases;

#[derive(Debug)]
pub struct Ledger {
    record: Store,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    accounts: BTreeMap<RunId, Account>,
    leases: Leases,
    /// The runs that have not ended, and those of them that wait.
    live: BTreeSet<RunId>,
    waiting: BTreeSet<RunId>,
    violation: Option<String>,
    events: u64,
    digest: u64,
}

impl Ledger {
    pub fn new(record: Store, regime: Regime) -> Ledger {
        let book = Book {
            accounts: BTreeMap::new(),
            leases: Leases::new(regime),
            live: BTreeSet::new(),
            waiting: BTreeSet::new(),
            violation: None,
            events: 0,
            digest: 0xcbf2_9ce4_8422_2325,
        };
        Ledger { record, book: Mutex::new(book) }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first thing that was wrong.
    pub fn violation(&self) -> Option<String> {
        self.book().violation.clone()
    }

    pub fn wrong(&self, what: String) {
        self.book().violation.get_or_insert(what);
    }

    pub fn all_ended(&self) -> bool {
        self.book().live.is_empty()
    }

    /// Events, runs, takeovers and the digest of it all.
    pub fn totals(&self) -> (u64, u64, u64, u64) {
        let book = self.book();
        (book.events, book.accounts.len() as u64, book.leases.takeovers(), book.digest)
    }

    pub fn unfinished(&self) -> String {
        let book = self.book();
        let live = book.live.iter().take(3).map(|run| {
            let history = book.accounts.get(run).and_then(|it| it.history.as_ref());
            format!("{run}: {:?}", history.map(History::run))
        });
        format!("{} runs, {:?}", book.live.len(), live.collect::<Vec<_>>())
    }

    pub fn runs(&self) -> Vec<RunId> {
        self.book().accounts.keys().copied().collect()
    }

    /// Those that wait for something from outside, and all that have not ended.
    pub fn waiting(&self) -> Vec<RunId> {
        self.book().waiting.iter().copied().collect()
    }

    pub fn live(&self) -> Vec<RunId> {
        self.book().live.iter().copied().collect()
    }

    pub fn leased_by(&self, worker: WorkerId) -> Vec<RunId> {
        self.book().leases.of(worker)
    }

    /// How many runs stand above a run.
    pub fn depth(&self, run: RunId) -> usize {
        let book = self.book();
        let history = book.accounts.get(&run).and_then(|it| it.history.as_ref());
        history.map_or(0, |it| it.created().ancestors.len())
    }

    /// Looks at a run as it is.
    pub fn look<T>(&self, run: RunId, at: impl FnOnce(&History) -> T) -> Option<T> {
        self.book().accounts.get(&run).and_then(|it| it.history.as_ref()).map(at)
    }

    /// Where every log is. Who has a run may have looked up the rules already.
    pub fn places(&self) -> Vec<(RunId, u64)> {
        let mut book = self.book();
        let owned = book.leases.owned();
        let places = book.accounts.iter_mut().map(|(run, account)| {
            account.lenient = owned.contains(run);
            (*run, account.history.as_ref().map_or(0, History::seq))
        });
        places.collect()
    }

    /// A tool has acted for a call: its start must be in the log, once for each time.
    pub fn took_effect(&self, run: RunId, key: &str, count: u32) {
        let mut book = self.book();
        let account = book.accounts.get(&run);
        let starts = account.and_then(|it| it.starts.get(key)).copied().unwrap_or(0);
        if count > starts {
            let wrong =
                format!("I4: `{key}` took effect {count} times and was started {starts} times");
            book.violation.get_or_insert(wrong);
        }
    }

    /// How far a log had come when the worker that had it knew the new rules.
    pub fn lenient_until(&self, run: RunId) -> Option<u64> {
        self.book().accounts.get(&run).and_then(|it| it.lenient_until)
    }

    pub fn took_effect_unbidden(&self, tool: &str) {
        self.wrong(format!("I5: `{tool}` took effect while it was asked for"));
    }
}

impl Witness for Ledger {
    fn appended(&self, worker: WorkerId, attempt: u64, change: &Change) {
        let mut book = self.book();
        if let Err(wrong) = book.follow(worker, attempt, change) {
            let kinds: Vec<_> = change.events().iter().map(Event::kind).collect();
            let told =
                format!("{wrong}; {kinds:?} after {} in {}", change.expected_seq(), change.run());
            book.violation.get_or_insert(told);
        }
        let told = book.rows_hold(&self.record, change.run());
        if let Err(wrong) = told {
            book.violation.get_or_insert(format!("{wrong} in {}", change.run()));
        }
    }

    fn touched(&self, worker: WorkerId, how: Touch) {
        let owners = self.record.owners().now_or_never();
        let Some(Ok(owners)) = owners else {
            return self.wrong("the queue cannot be read".to_owned());
        };
        let mut book = self.book();
        let now = self.record.now().now_or_never().and_then(Result::ok);
        let now = now.map_or(i64::MAX, |it| it.as_microsecond());
        match book.leases.moved(worker, how, &owners, now) {
            // Whoever has it now looks everything up anew.
            Ok(claimed) => claimed.iter().for_each(|run| {
                if let Some(account) = book.accounts.get_mut(run) {
                    account.lenient = false;
                }
            }),
            Err(wrong) => drop(book.violation.get_or_insert(wrong)),
        }
    }
}

impl Book {
    fn follow(&mut self, worker: WorkerId, attempt: u64, change: &Change) -> Result<(), String> {
        let run = change.run();
        if attempt > 0 {
            self.leases.may_write(run, worker, attempt)?;
        }
        let account = self.accounts.entry(run).or_default();
        account.follow(change)?;
        if attempt > 0 && std::mem::take(&mut account.lenient) {
            account.lenient_until = Some(change.next_seq());
        }
        self.events += change.events().len() as u64;
        for event in change.events() {
            digest(&mut self.digest, run.0.as_bytes());
            digest(&mut self.digest, event.encode().unwrap_or_default().as_bytes());
        }
        let Some(history) = &account.history else { return Err("a log without a run".to_owned()) };
        if !change.after().wants_worker {
            self.leases.parked(run);
        }
        let (ended, waits) = match history.run() {
            Run::Finished(_) => (true, false),
            Run::Waiting(_) => (false, true),
            _ => (false, false),
        };
        let parent = history.created().parent.filter(|_| ended);
        set(&mut self.live, run, !ended);
        set(&mut self.waiting, run, waits);
        // Whoever ends a child tells its parent in the same transaction, which was seen before.
        if let Some(parent) = parent
            && let Some(Run::Waiting(Wait::Children(batch))) =
                self.accounts.get(&parent).and_then(|it| it.history.as_ref()).map(History::run)
            && batch.away().any(|(_, child)| child == run)
        {
            return Err(format!("I8: {parent} was not told that its child {run} has ended"));
        }
        Ok(())
    }

    /// What stands beside the log is what the log says.
    fn rows_hold(&mut self, record: &Store, run: RunId) -> Result<(), String> {
        let Some(account) = self.accounts.get(&run) else { return Ok(()) };
        let Some(history) = &account.history else { return Ok(()) };
        let rows = record.rows_of(run).now_or_never();
        let Some(Ok(Some(rows))) = rows else { return Err("a run has no row".to_owned()) };
        let posture = account.posture.as_ref().ok_or("a run without a posture")?;
        let pending = match history.run() {
            Run::Waiting(Wait::Permissions(batch)) => batch.asked().count() as u64,
            _ => 0,
        };
        let seen =
            (&*rows.status, rows.waiting_for.as_deref(), rows.seq, rows.in_queue, rows.pending);
        let due =
            (posture.status, posture.waiting_for, history.seq(), posture.wants_worker, pending);
        if seen != due {
            return Err(format!("I9: rows say {seen:?} and the log says {due:?}"));
        }
        if rows.owner.is_some() && !rows.in_queue {
            return Err("I9: a run that waits has an owner".to_owned());
        }
        match (rows.due_at, &posture.deadline) {
            (None, None) => Ok(()),
            (Some(_), Some(_)) => Ok(()),
            (rows, log) => Err(format!("a deadline {log:?} is kept as {rows:?}")),
        }
    }
}

fn set(all: &mut BTreeSet<RunId>, run: RunId, is: bool) {
    match is {
        true => all.insert(run),
        false => all.remove(&run),
    };
}

/// Mixes in some bytes (FNV-1a).
fn digest(sum: &mut u64, bytes: &[u8]) {
    for byte in bytes {
        *sum = (*sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
}
