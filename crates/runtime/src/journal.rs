//! A run's log as its worker holds it: folded once, followed event by event, appended to.
//!
//! Recording stages an event; [`Journal::commit`] makes all that is staged durable in one
//! append. What must be durable before what is the runner's to say. What a store that is away
//! does not take is held until it is back: a result that is known is not to be forgotten.

use std::time::Duration;

use chancery_domain::batch::Permit;
use chancery_domain::event::{CallStarted, ChildSpawned, Created, Event, Member, Recorded};
use chancery_domain::history::{Change, FoldError, History};
use chancery_domain::id::RunId;
use chancery_domain::run::{Illegal, Run};
use chancery_store::log::{AppendError, Fence};
use chancery_store::queue::Lease;
use chancery_store::read::Exchange;
use chancery_store::{Store, StoreError};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::context::Context;

/// How much of a session a model is reminded of.
pub const SESSION_MAX: u32 = 200;
/// Pauses between two tries to reach the store, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// How often that is tried which the store refuses though it is there.
const REFUSALS_MAX: u32 = 5;

#[derive(Debug)]
pub struct Journal<'a> {
    store: &'a Store,
    lease: &'a Lease,
    /// The server stops: nothing is held any longer.
    stop: CancellationToken,
    /// Absent only after an event was refused, or while the journal is being read again.
    history: Option<History>,
    context: Context,
    /// How many of the context's messages are durable.
    durable_messages: usize,
    before: Vec<Exchange>,
    /// The run has come further than the place that made it a suspect.
    is_cleared: bool,
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
        stop: CancellationToken,
    ) -> Result<Journal<'a>, JournalError> {
        let created = beginning(log)?;
        let before = session_before(store, lease, created).await?;
        let history = History::fold(lease.run(), log)?;
        let context = follow(created, before.clone(), log);
        let durable_messages = context.messages().len();
        let history = Some(history);
        Ok(Journal {
            store,
            lease,
            stop,
            history,
            context,
            durable_messages,
            before,
            is_cleared: false,
        })
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

    /// Whether a suspect has been shown to be none: it need not be driven alone any further.
    pub fn is_cleared(&self) -> bool {
        self.is_cleared
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

    /// Who acts: the member that has the floor, or the run's one agent.
    pub fn speaker(&self) -> Result<Member, JournalError> {
        let created = self.context.created();
        let alone = || Member { agent: created.agent.clone(), role: created.role.clone() };
        Ok(self.history()?.floor().speaker().cloned().unwrap_or_else(alone))
    }

    /// Stages a goal handed to a group, with the run that it makes.
    pub fn spawn(&mut self, spawned: ChildSpawned, child: Created) -> Result<(), JournalError> {
        let history = self.history.take().ok_or(JournalError::Overtaken)?;
        self.context.follow(&Event::ChildSpawned(spawned.clone()));
        self.history = Some(history.spawn(spawned, child)?);
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
            match self.append(&change).await {
                Ok(()) => {
                    self.is_cleared |= self.lease.is_suspect() && moves(&change);
                    self.durable_messages = self.context.messages().len();
                    return Ok(());
                }
                Err(AppendError::Conflict { .. }) => {
                    let known = change.expected_seq();
                    // A goal is handed on with what holds when it is: the runner looks anew.
                    if !change.children().is_empty() {
                        self.reread().await?;
                        return Err(JournalError::Overtaken);
                    }
                    self.stage_again(change.events(), known).await?;
                }
                Err(error) => return Err(JournalError::Append(error)),
            }
        }
    }

    /// The database's clock.
    pub async fn database_now(&self) -> Result<Timestamp, JournalError> {
        let mut hold = self.hold();
        loop {
            match self.store.now().await {
                Ok(now) => return Ok(now),
                Err(error) => hold.on(error).await?,
            }
        }
    }

    pub fn store(&self) -> &Store {
        self.store
    }

    /// Asks the store, for as long as it takes until it answers.
    pub async fn held<T, F>(&self, ask: impl Fn(Store) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut hold = self.hold();
        loop {
            match ask(self.store.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(error) => hold.on(error).await?,
            }
        }
    }

    async fn append(&self, change: &Change) -> Result<(), AppendError> {
        let mut appended = self.store.append(change, Fence::Lease(self.lease), clock::now()).await;
        let mut hold = self.hold();
        // What the log says of it is an answer, whatever it is; only the store's errors are none.
        while let Err(AppendError::Store(error)) = appended {
            hold.on(error).await?;
            appended = self.store.append_again(change, self.lease, clock::now()).await;
        }
        appended
    }

    async fn read(&self) -> Result<Vec<Recorded>, StoreError> {
        let mut hold = self.hold();
        loop {
            match self.store.events(self.lease.run(), 0, u32::MAX).await {
                Ok(log) => return Ok(log),
                Err(error) => hold.on(error).await?,
            }
        }
    }

    fn hold(&self) -> Hold<'_> {
        Hold { run: self.lease.run(), stop: &self.stop, tries: 0, pause: PAUSES.0 }
    }

    /// Makes durable what the model will read. That the run has started or a batch is closed is
    /// not, unless words were held back until then: it shares the next commit.
    pub async fn commit_words(&mut self) -> Result<(), JournalError> {
        let staged = self.history()?.staged();
        let wordless = |it: &Event| matches!(it, Event::Started(_) | Event::BatchClosed(_));
        if staged.iter().all(wordless) && self.durable_messages == self.context.messages().len() {
            return Ok(());
        }
        self.commit().await
    }

    /// Whether nobody has been told yet that the run has started.
    pub fn is_starting(&self) -> Result<bool, JournalError> {
        Ok(self.history()?.staged().iter().any(|it| matches!(it, Event::Started(_))))
    }

    /// Drops what is staged and reads the log anew.
    pub async fn reread(&mut self) -> Result<(), JournalError> {
        let log = self.read().await?;
        self.history = Some(History::fold(self.lease.run(), &log)?);
        self.context = follow(beginning(&log)?, self.before.clone(), &log);
        self.durable_messages = self.context.messages().len();
        Ok(())
    }

    async fn stage_again(&mut self, staged: &[Event], known: u64) -> Result<(), JournalError> {
        let log = self.read().await?;
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

/// How long a run is held that the store cannot take: as long as its lease may be ours there is
/// no hurry, and when the server stops there is one more try.
#[derive(Debug)]
struct Hold<'a> {
    run: RunId,
    stop: &'a CancellationToken,
    tries: u32,
    pause: Duration,
}

impl Hold<'_> {
    /// Returns when it is time to try again. Gives the error back when it is not to be.
    async fn on(&mut self, error: StoreError) -> Result<(), StoreError> {
        let refused = matches!(error, StoreError::Failed(_)) && self.tries < REFUSALS_MAX;
        if self.stop.is_cancelled() || !(refused || error.may_pass()) {
            return Err(error);
        }
        if self.tries == 0 {
            let run = self.run;
            tracing::warn!(run.id = %run, %error, "{run} is held until the store is back: {error}");
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(self.pause) => {}
        }
        self.tries += 1;
        self.pause = (self.pause * 2).min(PAUSES.1);
        Ok(())
    }
}

/// Whether a run stands elsewhere after a change: what is begun, or begun again, has not come
/// further. (The store's queue knows a run's place by the same rule.)
fn moves(change: &Change) -> bool {
    let begins = |it: &Event| matches!(it, Event::CallStarted(_) | Event::CallRetried(_));
    !change.events().iter().all(begins)
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
