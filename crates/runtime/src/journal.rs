//! A run's log as its worker holds it: folded once, followed event by event, appended to.
//!
//! Recording stages an event; [`Journal::commit`] makes all that is staged durable in one
//! append. What must be durable before what is the runner's to say.

use chancery_domain::batch::Permit;
use chancery_domain::event::{CallStarted, Created, Event, Recorded};
use chancery_domain::history::{FoldError, History};
use chancery_domain::run::{Illegal, Run};
use chancery_store::log::{AppendError, Fence};
use chancery_store::queue::Lease;
use chancery_store::read::Exchange;
use chancery_store::{Store, StoreError};

use crate::clock;
use crate::context::Context;

/// How much of a session a model is reminded of.
const SESSION_MAX: u32 = 20;

#[derive(Debug)]
pub struct Journal<'a> {
    store: &'a Store,
    lease: &'a Lease,
    /// Absent only after an event was refused, or while the journal is being read again.
    history: Option<History>,
    context: Context,
    /// How many of the context's messages are durable.
    durable_messages: usize,
    before: Vec<Exchange>,
}

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Others have changed the run so that what was staged no longer fits: it was dropped, the
    /// log was read again, and the runner looks anew.
    #[error("the run was changed by others")]
    Overtaken,
    #[error(transparent)]
    Append(AppendError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// A mistake of the runner's: the machine refused its event.
    #[error(transparent)]
    Illegal(#[from] Illegal),
    #[error("the log does not begin with the run's creation")]
    NoBeginning,
}

impl<'a> Journal<'a> {
    pub async fn open(
        store: &'a Store,
        lease: &'a Lease,
        log: &[Recorded],
    ) -> Result<Journal<'a>, JournalError> {
        let created = beginning(log)?;
        let before = session_before(store, lease, created).await?;
        let history = History::fold(lease.run(), log)?;
        let context = follow(created, before.clone(), log);
        let durable_messages = context.messages().len();
        Ok(Journal { store, lease, history: Some(history), context, durable_messages, before })
    }

    pub fn run(&self) -> Result<&Run, JournalError> {
        Ok(self.history()?.run())
    }

    pub fn history(&self) -> Result<&History, JournalError> {
        self.history.as_ref().ok_or(JournalError::Overtaken)
    }

    pub fn lease(&self) -> &'a Lease {
        self.lease
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn record(&mut self, event: impl Into<Event>) -> Result<(), JournalError> {
        let event = event.into();
        let history = self.history.take().ok_or(JournalError::Overtaken)?;
        self.context.follow(&event);
        self.history = Some(history.record(event)?);
        Ok(())
    }

    /// Stages the start of a call. The permit is to be spent after the commit, not before.
    pub fn start(&mut self, started: CallStarted) -> Result<Permit, JournalError> {
        let history = self.history.take().ok_or(JournalError::Overtaken)?;
        let (history, permit) = history.start(started)?;
        self.history = Some(history);
        Ok(permit)
    }

    /// Makes what is staged durable. When others have appended meanwhile, it is staged again
    /// behind their events, if it still fits there.
    pub async fn commit(&mut self) -> Result<(), JournalError> {
        loop {
            let history = self.history.as_mut().ok_or(JournalError::Overtaken)?;
            let Some(change) = history.change() else { return Ok(()) };
            match self.store.append(&change, Fence::Lease(self.lease), clock::now()).await {
                Ok(()) => {
                    self.durable_messages = self.context.messages().len();
                    return Ok(());
                }
                Err(AppendError::Conflict { .. }) => {
                    let known = change.expected_seq();
                    self.stage_again(change.events(), known).await?;
                }
                Err(error) => return Err(JournalError::Append(error)),
            }
        }
    }

    /// Makes durable what the model will read or a person may see. That a batch is closed is
    /// neither, unless words were held back until then: it shares the next commit.
    pub async fn commit_words(&mut self) -> Result<(), JournalError> {
        let staged = self.history()?.staged();
        let closing = staged.iter().all(|it| matches!(it, Event::BatchClosed(_)));
        if closing && self.durable_messages == self.context.messages().len() {
            return Ok(());
        }
        self.commit().await
    }

    /// Drops what is staged and reads the log anew.
    pub async fn reread(&mut self) -> Result<(), JournalError> {
        let log = self.store.events(self.lease.run(), 0, u32::MAX).await?;
        self.history = Some(History::fold(self.lease.run(), &log)?);
        self.context = follow(beginning(&log)?, self.before.clone(), &log);
        self.durable_messages = self.context.messages().len();
        Ok(())
    }

    async fn stage_again(&mut self, staged: &[Event], known: u64) -> Result<(), JournalError> {
        let log = self.store.events(self.lease.run(), 0, u32::MAX).await?;
        let news = &log[(known as usize).min(log.len())..];
        let spoken_to = news.iter().any(|it| matches!(it.event, Event::UserSpoke(_)));
        let answers = staged.iter().any(|it| matches!(it, Event::Completed(_)));
        let mut history = History::fold(self.lease.run(), &log)?;
        self.context = follow(beginning(&log)?, self.before.clone(), &log);
        self.durable_messages = self.context.messages().len();
        // An answer that has not heard the last word is no answer.
        let mut fits = !(spoken_to && answers);
        if fits {
            for event in staged {
                match history.record(event.clone()) {
                    Ok(next) => {
                        self.context.follow(event);
                        history = next;
                    }
                    Err(_) => {
                        fits = false;
                        history = History::fold(self.lease.run(), &log)?;
                        self.context = follow(beginning(&log)?, self.before.clone(), &log);
                        break;
                    }
                }
            }
        }
        self.history = Some(history);
        if fits { Ok(()) } else { Err(JournalError::Overtaken) }
    }
}

async fn session_before(
    store: &Store,
    lease: &Lease,
    created: &Created,
) -> Result<Vec<Exchange>, StoreError> {
    if created.session_key.is_none() {
        return Ok(Vec::new());
    }
    match store.run(lease.run()).await? {
        Some(row) => store.session_before(&row, SESSION_MAX).await,
        None => Ok(Vec::new()),
    }
}

fn beginning(log: &[Recorded]) -> Result<&Created, JournalError> {
    match log.first().map(|it| &it.event) {
        Some(Event::Created(created)) => Ok(created),
        _ => Err(JournalError::NoBeginning),
    }
}

fn follow(created: &Created, before: Vec<Exchange>, log: &[Recorded]) -> Context {
    let mut context = Context::new(created.clone(), before);
    for it in log {
        context.follow(&it.event);
    }
    context
}
