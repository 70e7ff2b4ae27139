//! The shared record of the simulation beside a real PostgreSQL: the same worker does the same on
//! both, and both must answer the same. What the simulation makes up about leases, claims, rescues
//! and fences is held to the database here.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chancery_domain::history::{Change, History};
use chancery_domain::id::{RunId, WorkerId};
use chancery_domain::policy::Ruling;
use chancery_domain::run::{Run, Wait};
use chancery_runtime::clock;
use chancery_store::fault::{Regime, Seat, Touch, Witness};
use chancery_store::queue::Release;
use chancery_store::{Fence, Lease, Store};

use super::super::dice::Dice;
use crate::conformance::{
    call_started, claim, created, failed, history, proposed, signalled, started, waits,
};

const LONG: Duration = Duration::from_secs(3600);

/// Nobody looks.
#[derive(Debug)]
struct Nobody;

impl Witness for Nobody {
    fn appended(&self, _: WorkerId, _: u64, _: &Change) {}
    fn touched(&self, _: WorkerId, _: Touch) {}
}

/// One of the two records, in the hands of some workers, with all leases that they ever had.
#[derive(Debug)]
struct House {
    workers: Vec<Store>,
    leases: Vec<(usize, Lease)>,
}

/// What is done to both.
#[derive(Debug, Clone, Copy)]
enum Deed {
    Make,
    Beat,
    Die,
    Claim(u32),
    /// With the lease of this number: start, wait for a signal, or end.
    Drive(usize),
    Wake(usize),
    Release(usize),
    Fail(usize),
    Rescue,
    FreeLost,
    Resign,
}

/// Does the same on both records, so many times. Answers how often.
pub async fn twins(seed: u64, postgres: Store, deeds: u64) -> Result<u64, String> {
    let mut dice = Dice::new(seed);
    let names: Vec<WorkerId> = (0..3).map(|_| clock::new_worker_id()).collect();
    let record = Store::in_memory(clock::new_worker_id()).map_err(|it| it.to_string())?;
    let seated = names.iter().map(|name| {
        let seat = Seat::new(Regime::Shared, None, Arc::new(Nobody));
        record.seated(*name, &seat)
    });
    let mut simulated = House { workers: seated.collect(), leases: Vec::new() };
    let disguised = names.iter().map(|name| postgres.disguised(*name, None));
    let mut real = House { workers: disguised.collect(), leases: Vec::new() };
    let mut runs: Vec<RunId> = Vec::new();
    for done in 0..deeds {
        let deed = draw(&mut dice, runs.len(), simulated.leases.len());
        let by = dice.roll(names.len() as u64) as usize;
        if matches!(deed, Deed::Make) {
            runs.push(clock::new_run_id());
        }
        let here = simulated.carry_out(deed, by, &runs).await;
        let there = real.carry_out(deed, by, &runs).await;
        if here != there {
            return Err(format!("{done}: {deed:?} of {by} is {here} here and {there} there"));
        }
        let (here, there) = (simulated.queue().await?, real.queue().await?);
        if here != there {
            return Err(format!("{done}: after {deed:?} of {by} {here} here and {there} there"));
        }
    }
    Ok(deeds)
}

fn draw(dice: &mut Dice, runs: usize, leases: usize) -> Deed {
    let some = |dice: &mut Dice, of: usize| dice.roll(of as u64) as usize;
    match dice.roll(14) {
        0 | 1 => Deed::Make,
        2 => Deed::Beat,
        3 => Deed::Die,
        4..=6 => Deed::Claim(dice.between(1, 3) as u32),
        7..=9 if leases > 0 => Deed::Drive(some(dice, leases)),
        10 if runs > 0 => Deed::Wake(some(dice, runs)),
        11 if leases > 0 && dice.once_in(2) => Deed::Release(some(dice, leases)),
        11 if leases > 0 => Deed::Fail(some(dice, leases)),
        12 if dice.once_in(3) => Deed::FreeLost,
        12 if dice.once_in(2) => Deed::Resign,
        _ => Deed::Rescue,
    }
}

impl House {
    async fn carry_out(&mut self, deed: Deed, by: usize, runs: &[RunId]) -> String {
        let store = self.workers[by].clone();
        match deed {
            Deed::Make => {
                let Some(run) = runs.last() else { return "nothing to make".to_owned() };
                let Some(first) = History::create(*run, created("goal")).change() else {
                    return "nothing is staged".to_owned();
                };
                told(store.create(&first, None, clock::now()).await)
            }
            Deed::Beat => told(store.beat(LONG).await),
            Deed::Die => told(store.beat(Duration::ZERO).await),
            Deed::Claim(limit) => {
                let mut claimed = claim(&store, limit).await;
                // Which they are is the queue's word; in which order they are told means nothing.
                claimed.sort_by_key(Lease::run);
                let said = claimed
                    .iter()
                    .map(|it| (it.run(), it.attempt(), it.failures(), it.is_suspect()));
                let said = format!("{:?}", said.collect::<Vec<_>>());
                self.leases.extend(claimed.into_iter().map(|it| (by, it)));
                said
            }
            Deed::Drive(at) => self.drive(at).await,
            Deed::Wake(at) => wake(&store, runs[at]).await,
            Deed::Release(at) | Deed::Fail(at) => {
                let how = match deed {
                    Deed::Fail(_) => Release::Failure { pause: Duration::ZERO },
                    _ => Release::Handover,
                };
                let (of, lease) = &self.leases[at];
                let (run, attempt) = (lease.run(), lease.attempt());
                told(self.workers[*of].disown(run, attempt, how).await)
            }
            Deed::Rescue => told(store.rescue().await),
            Deed::FreeLost => told(store.free_all_but(&HashSet::new()).await),
            Deed::Resign => told(store.resign().await),
        }
    }

    /// The next step of a run, by whoever has the lease or had it.
    async fn drive(&self, at: usize) -> String {
        let (by, lease) = &self.leases[at];
        let store = &self.workers[*by];
        let now = history(store, lease.run()).await;
        let key = format!("key-{}", now.seq());
        let events = match now.run() {
            Run::Pending => vec![started()],
            Run::Running(_) if now.seq() < 6 => {
                let batch = proposed(&[("a", Ruling::Allow)], 1);
                vec![batch, call_started("a"), waits("a", &key, None)]
            }
            Run::Running(_) => vec![started()],
            Run::Waiting(_) | Run::Finished(_) => return "nothing to do".to_owned(),
        };
        let mut staged = now;
        for event in events {
            match staged.record(event) {
                Ok(next) => staged = next,
                // It has waited before, and ends.
                Err(_) => return self.end(store, lease).await,
            }
        }
        match staged.change() {
            Some(change) => told(store.append(&change, Fence::Lease(lease), clock::now()).await),
            None => "nothing is staged".to_owned(),
        }
    }

    async fn end(&self, store: &Store, lease: &Lease) -> String {
        let now = history(store, lease.run()).await;
        let Run::Running(_) = now.run() else { return "nothing to end".to_owned() };
        match now.record(failed()).map(|mut it| it.change()) {
            Ok(Some(change)) => {
                told(store.append(&change, Fence::Lease(lease), clock::now()).await)
            }
            other => format!("{other:?}"),
        }
    }

    /// Who has which run.
    async fn queue(&self) -> Result<String, String> {
        let owners = self.workers[0].owners().await.map_err(|it| it.to_string())?;
        Ok(format!("{owners:?}"))
    }
}

async fn wake(store: &Store, run: RunId) -> String {
    let now = history(store, run).await;
    let Run::Waiting(Wait::Signal { key, .. }) = now.run() else { return "awake".to_owned() };
    let key = key.to_string();
    match now.record(signalled(&key)).map(|mut it| it.change()) {
        Ok(Some(change)) => told(store.append(&change, Fence::Outside, clock::now()).await),
        other => format!("{other:?}"),
    }
}

fn told<T: std::fmt::Debug, E: std::fmt::Debug>(answer: Result<T, E>) -> String {
    format!("{answer:?}")
}
