//! The simulator: real drives over a real SQLite store, with every fault at every point.
//!
//! A point is where a process can be stopped to some effect: before a write, after it and before
//! the answer, before and after a tool takes effect, before and after the model speaks. A game
//! plays one run to its end, through as many lives of a worker as it takes, and is then held
//! against the rules in [`check`].

pub mod check;
pub mod company;
pub mod dice;
pub mod family;
pub mod people;
pub mod world;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chancery_domain::command::{self, Effect, Refusal};
use chancery_domain::event::{Event, Recorded};
use chancery_domain::history::History;
use chancery_domain::id::RunId;
use chancery_domain::run::Run;
use chancery_runtime::UnknownOutcome;
use chancery_runtime::clock;
use chancery_runtime::journal::JournalError;
use chancery_runtime::runner::{self, Reins};
use chancery_runtime::worker::Pulse;
use chancery_store::audit::AuditFilter;
use chancery_store::fault::Fuse;
use chancery_store::log::Amendment;
use chancery_store::queue::Release;
use chancery_store::{AppendError, Location, Store};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use self::check::Orphan;
use self::people::People;
use self::world::{Act, World};
use crate::conformance::{ada, created, fast_dir};

/// More lives than this, and the run does not get anywhere.
const LIVES_MAX: usize = 60;
/// How many questions a store that is away leaves unanswered.
const AWAY: u64 = 3;

#[derive(Debug, Clone)]
pub struct Scenario {
    /// The batches that the model asks for, before it answers.
    pub script: Vec<Vec<Act>>,
    pub on_unknown: UnknownOutcome,
    /// What a person says about a call whose outcome is unknown.
    pub recover: Recover,
    /// How often a call whose outcome is unknown may run again by itself.
    pub attempts: u32,
    /// Who is asked what must be asked.
    pub people: People,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recover {
    RunAgain,
    Fail,
    Supply,
}

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process is killed.
    Crash,
    /// A person speaks into the run.
    Speak,
    SpeakAndCrash,
    /// A person cancels the run, and the worker finds out by itself,
    Cancel,
    /// or is told to halt.
    CancelAndHalt,
    /// What the run waits for at this moment, if anything, is answered; then the crash.
    AnswerAndCrash,
    /// The server is told to stop, and hands over;
    Stop,
    /// while a person speaks, or cancels the run.
    SpeakAndStop,
    CancelAndStop,
    /// The process stands still while another takes the run over, and then goes on.
    Takeover,
    /// Another has claimed the run and done nothing yet: only the lease can tell them apart.
    Reclaim,
    /// The store does not answer for a while. What it was asked to write may have been written.
    Away,
    /// What was remembered is taken back.
    Revoke,
}

impl Fault {
    pub const ALL: [Fault; 13] = [
        Fault::Crash,
        Fault::Speak,
        Fault::SpeakAndCrash,
        Fault::Cancel,
        Fault::CancelAndHalt,
        Fault::AnswerAndCrash,
        Fault::Stop,
        Fault::SpeakAndStop,
        Fault::CancelAndStop,
        Fault::Takeover,
        Fault::Reclaim,
        Fault::Away,
        Fault::Revoke,
    ];

    fn ends_the_life(self) -> bool {
        matches!(self, Fault::Crash | Fault::SpeakAndCrash | Fault::AnswerAndCrash)
    }
}

/// How a game went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Whether the planned faults were come to.
    pub faults: usize,
    pub log: Vec<&'static str>,
    pub status: &'static str,
    pub model_calls: u64,
    pub effects: u32,
}

/// A store in which games are played, one after the other.
#[derive(Debug)]
pub struct Simulator {
    store: Store,
    _dir: TempDir,
}

impl Simulator {
    pub async fn new() -> Simulator {
        let dir = fast_dir();
        let location = Location::Sqlite(dir.path().to_owned());
        match Store::open(&location, clock::new_worker_id()).await {
            Ok(store) => Simulator { store, _dir: dir },
            Err(error) => panic!("cannot open a store: {error}"),
        }
    }

    /// Plays the scenario once for every point of its first life. Answers how many there were.
    pub async fn explore(&self, scenario: &Scenario, fault: Fault) -> u64 {
        for point in 0.. {
            let mut plan = vec![(point, fault)];
            let played = self.play(scenario, move |_| plan.pop()).await;
            match played {
                Ok(report) if report.faults == 0 => return point,
                Ok(_) => {}
                Err(wrong) => panic!("{fault:?} at point {point} of {scenario:?}: {wrong}"),
            }
        }
        unreachable!("a life has an end")
    }

    /// Plays a scenario to its end. `plan` says, for each life, at which point what happens.
    pub async fn play(
        &self,
        scenario: &Scenario,
        mut plan: impl FnMut(usize) -> Option<(u64, Fault)>,
    ) -> Result<Report, String> {
        let run = clock::new_run_id();
        let first = History::create(run, created("goal")).change();
        let first = first.ok_or("nothing is staged")?;
        self.store.create(&first, None, clock::now()).await.map_err(|it| it.to_string())?;
        let world = Arc::new(World::default());
        let game = Game { store: &self.store, scenario, run, world };
        let mut report = Report::default();
        let mut orphans = Vec::new();
        for life in 0.. {
            if life == LIVES_MAX {
                return Err(format!("no end after {LIVES_MAX} lives: {:?}", game.kinds().await));
            }
            let planned = plan(life);
            let (fired, left) = game.life(planned).await?;
            report.faults += usize::from(fired);
            orphans.extend(left);
            if let Run::Finished(_) = game.history().await?.run() {
                break;
            }
        }
        game.judge(&orphans, &mut report).await?;
        Ok(report)
    }
}

struct Game<'s> {
    store: &'s Store,
    scenario: &'s Scenario,
    run: RunId,
    world: Arc<World>,
}

impl Game<'_> {
    /// One life of a worker: a new name, a rescue, claims and drives until nothing is left to do
    /// or the fault ends it. Answers whether the fault was come to, and what a crash left open.
    async fn life(&self, planned: Option<(u64, Fault)>) -> Result<(bool, Vec<Orphan>), String> {
        let fuse = planned.map_or_else(Fuse::never, |(point, _)| Fuse::at(point));
        let store = self.store.disguised(clock::new_worker_id(), Some(fuse.clone()));
        store.rescue().await.map_err(|it| it.to_string())?;
        let (halt, stop) = (CancellationToken::new(), CancellationToken::new());
        // The hardest case: nothing but the fence keeps a worker from acting.
        let pulse = Arc::new(Pulse::new(Duration::MAX, &store));
        let aside = CancellationToken::new();
        let reins = Reins { halt: halt.clone(), stop: stop.clone(), aside, pulse };
        let mut work = Box::pin(self.work(&store, &fuse, reins));
        tokio::select! {
            biased;
            () = fuse.blown() => {}
            worked = &mut work => return worked.map(|()| (false, Vec::new())),
        }
        let Some((_, fault)) = planned else { return Err("blew without a plan".to_owned()) };
        match fault {
            Fault::Crash => {}
            Fault::Speak | Fault::SpeakAndCrash => self.speak().await?,
            Fault::AnswerAndCrash => self.answer().await?,
            Fault::Cancel => self.cancel().await?,
            Fault::CancelAndHalt => {
                self.cancel().await?;
                halt.cancel();
            }
            Fault::Stop => stop.cancel(),
            Fault::Away => fuse.go_away(AWAY),
            Fault::Revoke => self.revoke().await?,
            Fault::SpeakAndStop => {
                self.speak().await?;
                stop.cancel();
            }
            Fault::CancelAndStop => {
                self.cancel().await?;
                stop.cancel();
            }
            Fault::Takeover => {
                Box::pin(self.life(None)).await?;
            }
            Fault::Reclaim => {
                let other = self.store.disguised(clock::new_worker_id(), None);
                other.rescue().await.map_err(|it| it.to_string())?;
                let claimed = other.claim(1).await.map_err(|it| it.to_string())?;
                let seq = self.history().await?.seq();
                fuse.mend();
                work.await?;
                let now = self.history().await?.seq();
                if !claimed.is_empty() && now != seq {
                    return Err(format!("wrote without a lease: {seq} became {now}"));
                }
                return Ok((true, check::orphans(self.run, &self.log().await?)));
            }
        }
        if fault.ends_the_life() {
            drop(work);
            return Ok((true, check::orphans(self.run, &self.log().await?)));
        }
        fuse.mend();
        work.await?;
        Ok((true, Vec::new()))
    }

    async fn work(&self, store: &Store, fuse: &Fuse, reins: Reins) -> Result<(), String> {
        let parts = world::parts(&self.world, store, fuse, self.scenario);
        'claims: loop {
            let claimed = match store.claim(1).await {
                Ok(claimed) => claimed,
                Err(error) if error.may_pass() => {
                    let freed = store.free_all_but(&HashSet::new()).await;
                    freed.map_err(|it| it.to_string())?;
                    continue;
                }
                Err(error) => return Err(error.to_string()),
            };
            for claimed in claimed {
                let log = claimed.log.map_err(|it| it.to_string())?;
                match runner::drive(&parts, &claimed.lease, &log, &reins).await {
                    Ok(runner::Driven::Parked) => {}
                    Ok(runner::Driven::Handover) if reins.stop.is_cancelled() => {
                        let released = store.release(claimed.lease, Release::Handover).await;
                        return released.map_err(|it| it.to_string());
                    }
                    // Cleared of a suspicion: it goes on in company.
                    Ok(runner::Driven::Handover) if claimed.lease.is_suspect() => {
                        let released = store.release(claimed.lease, Release::Handover).await;
                        released.map_err(|it| it.to_string())?;
                        continue 'claims;
                    }
                    Ok(runner::Driven::Handover) => return Err("nobody said stop".to_owned()),
                    Err(JournalError::Append(AppendError::LeaseLost(_))) => return Ok(()),
                    Err(error) => return Err(format!("the drive failed: {error}")),
                }
            }
            if !matches!(self.history().await?.run(), Run::Waiting(_)) {
                return Ok(());
            }
            self.answer().await?;
        }
    }

    async fn speak(&self) -> Result<(), String> {
        let text = format!("word-{}", clock::new_message_id());
        let message = clock::new_message_id();
        if let Run::Finished(_) = self.history().await?.run() {
            return Ok(());
        }
        self.amend(|history, _| command::speak(history, message, text.clone(), None, ada()))
            .await?;
        Ok(())
    }

    async fn cancel(&self) -> Result<(), String> {
        if let Run::Finished(_) = self.history().await?.run() {
            return Ok(());
        }
        self.amend(|history, _| command::cancel(history, ada())).await?;
        Ok(())
    }

    /// Carries out a command. Answers whether it was so already.
    async fn amend(
        &self,
        command: impl Fn(History, &[Recorded]) -> Result<Effect, Refusal>,
    ) -> Result<bool, String> {
        let amended = self.store.amend(self.run, clock::now(), |history, events| {
            command(history, events).map(|effect| match effect {
                Effect::Record(history) => Amendment::Record(history),
                Effect::Already => Amendment::Nothing(()),
            })
        });
        let amended = amended.await.map_err(|it| it.to_string())?;
        amended.map(|it| it.is_some()).map_err(|it| it.to_string())
    }

    async fn log(&self) -> Result<Vec<Recorded>, String> {
        self.store.events(self.run, 0, u32::MAX).await.map_err(|it| it.to_string())
    }

    fn fold(&self, log: &[Recorded]) -> Result<History, String> {
        History::fold(self.run, log).map_err(|it| it.to_string())
    }

    async fn history(&self) -> Result<History, String> {
        self.fold(&self.log().await?)
    }

    async fn kinds(&self) -> Result<Vec<&'static str>, String> {
        Ok(self.log().await?.iter().map(|it| it.event.kind()).collect())
    }

    async fn judge(&self, orphans: &[Orphan], report: &mut Report) -> Result<(), String> {
        // Whoever drives a run that has ended calls no model, and finds nothing to drive.
        let calls = self.world.model_calls.load(Ordering::SeqCst);
        self.life(None).await?;
        if self.world.model_calls.load(Ordering::SeqCst) != calls {
            return Err("a run that has ended asked the model".to_owned());
        }
        let log = self.log().await?;
        let told = |wrong: String| {
            let kinds: Vec<_> = log.iter().map(|it| (it.seq, it.event.kind())).collect();
            format!("{wrong}; log {kinds:?}")
        };
        check::whole(self.run, &log, &self.world).map_err(told)?;
        check::heard_all(&log).map_err(told)?;
        check::orphans_surfaced(&log, orphans, self.scenario).map_err(told)?;
        check::by_right(self.run, &log, &self.world).map_err(told)?;
        if let Some(wrong) = self.world.violations().first() {
            return Err(told(wrong.clone()));
        }
        let mine = AuditFilter { run: Some(self.run), ..AuditFilter::default() };
        let audited = self.store.audit_after(&mine, 0, 1000).await.map_err(|it| it.to_string())?;
        let due = check::entries_due(&log);
        if audited.len() != due {
            return Err(told(format!("{} entries in the audit, not {due}", audited.len())));
        }
        let outputs = log
            .iter()
            .filter(|it| matches!(it.event, Event::BatchProposed(_) | Event::Completed(_)))
            .count() as u64;
        // A model is asked again only for words that were lost or overtaken.
        if calls > outputs + report.faults as u64 {
            return Err(told(format!("{calls} calls of the model for {outputs} outputs")));
        }
        report.log = log.iter().map(|it| it.event.kind()).collect();
        report.status = self.fold(&log)?.run().status();
        report.model_calls = calls;
        report.effects = self.world.effects().values().sum();
        Ok(())
    }
}
