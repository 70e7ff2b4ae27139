//! The whole system, simulated: a company of servers on one record, with many runs, groups,
//! people and everything that can go wrong, from one seed. The same seed, the same history.
//!
//! Real are the workers with all that they start (dispatch, heartbeat, rescue, deadlines,
//! deposits), the runner, the gate, the commands behind the doors and the store with its SQL, on
//! SQLite in memory. Made up are time, ids, the network between the servers, models and tools; and,
//! where several servers share the record as they do on PostgreSQL, the locks that PostgreSQL
//! would take: here one moves at a time. Every server has a runtime of its own, and the director
//! gives it turns: who has none stands still, and whose runtime is dropped is dead.

mod account;
mod crowd;
mod end;
mod fate;
mod kept;
mod ledger;
mod queue;
mod server;
mod stage;
pub mod twin;

use std::sync::Arc;

use chancery_domain::id::{RunId, WorkerId};
use chancery_runtime::clock::new_worker_id;
use chancery_store::Store;
use chancery_store::fault::{Regime, clock};

use self::fate::Faults;
pub use self::fate::{Fate, Mistake};
pub use self::kept::KEPT;
use self::ledger::Ledger;
use self::server::Server;
use self::stage::Stage;
use super::check::Orphan;
use super::dice::Dice;

/// Midnight of a day in 2026, in microseconds.
const DAWN: i64 = 1_767_225_600_000_000;
/// More steps than this without an end, and the company does not get anywhere.
const PATIENCE: u64 = 400_000;

/// How a game went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub events: u64,
    pub runs: u64,
    pub steps: u64,
    pub crashes: u64,
    pub pauses: u64,
    pub outages: u64,
    pub slow: u64,
    pub jumps: u64,
    pub lost: u64,
    pub doubled: u64,
    /// Leases that were lost to another worker.
    pub takeovers: u64,
    /// Of all events, in their order, with their bodies and times.
    pub digest: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, more: Tally) {
        self.events += more.events;
        self.runs += more.runs;
        self.steps += more.steps;
        self.crashes += more.crashes;
        self.pauses += more.pauses;
        self.outages += more.outages;
        self.slow += more.slow;
        self.jumps += more.jumps;
        self.lost += more.lost;
        self.doubled += more.doubled;
        self.takeovers += more.takeovers;
        self.digest = self.digest.rotate_left(1) ^ more.digest;
    }
}

/// Plays the game of a seed to its end.
pub fn play(seed: u64) -> Result<Tally, String> {
    play_with(seed, None)
}

/// The same with a mistake in the system, which is to be found.
pub fn play_with(seed: u64, mistake: Option<Mistake>) -> Result<Tally, String> {
    let mut dice = Dice::new(seed);
    let fate = Fate::draw(&mut dice, mistake);
    clock::set(Some(clock::Time { process: DAWN, database: DAWN }));
    clock::seed_ids(dice.throw());
    let played = Company::new(fate, dice).and_then(Company::run);
    clock::set(None);
    played
}

struct Company {
    fate: Fate,
    dice: Dice,
    /// Without a seat: nothing that it is asked is slow, away, or seen by the witness.
    record: Store,
    ledger: Arc<Ledger>,
    stage: Stage,
    servers: Vec<Server>,
    /// In microseconds since dawn.
    time: i64,
    /// By how much the database's clock is off.
    skew: i64,
    faults: Faults,
    /// Calls that were under way when their server died.
    orphans: Vec<(RunId, Orphan)>,
    made: u64,
    tally: Tally,
}

impl Company {
    fn new(fate: Fate, mut dice: Dice) -> Result<Company, String> {
        let record = Store::in_memory(new_worker_id()).map_err(|it| it.to_string())?;
        let ledger = Arc::new(Ledger::new(record.clone(), fate.regime));
        let stage = Stage::new(&fate, dice.throw(), ledger.clone());
        let faults = Faults::new(&fate);
        let servers = Vec::new();
        let (time, skew, made, orphans) = (0, 0, 0, Vec::new());
        let tally = Tally::default();
        Ok(Company {
            fate,
            dice,
            record,
            ledger,
            stage,
            servers,
            time,
            skew,
            faults,
            orphans,
            made,
            tally,
        })
    }

    fn run(mut self) -> Result<Tally, String> {
        for _ in 0..self.fate.servers {
            self.hire()?;
        }
        loop {
            self.tally.steps += 1;
            self.step()?;
            if let Some(wrong) = self.ledger.violation() {
                return Err(self.told(&wrong));
            }
            if self.is_over() {
                break;
            }
            if self.tally.steps > PATIENCE {
                return Err(self.told(&format!("no end in sight: {}", self.ledger.unfinished())));
            }
        }
        self.servers.clear();
        self.judge().map_err(|wrong| self.told(&wrong))?;
        let (events, runs, takeovers, digest) = self.ledger.totals();
        Ok(Tally { events, runs, takeovers, digest, ..self.tally })
    }

    /// One step: somebody moves, or something happens.
    fn step(&mut self) -> Result<(), String> {
        if self.faults.are_on() {
            self.strike()?;
        } else if (self.servers.len() as u64) < self.fate.servers {
            self.hire()?;
        }
        match self.dice.roll(16) {
            0 => self.act(),
            1 => self.deliver(),
            _ => self.turn(),
        }
        Ok(())
    }

    /// Gives a server a turn. When nobody has anything to do, time goes on.
    fn turn(&mut self) {
        let awake: Vec<usize> =
            (0..self.servers.len()).filter(|at| !self.servers[*at].sleeps(self.time)).collect();
        self.time += self.dice.roll(1_500) as i64;
        if awake.is_empty() {
            self.time += 50_000;
            return;
        }
        let at = self.dice.pick(&awake);
        let turns = self.dice.between(1, 16);
        let time = self.time;
        self.set_clock(at);
        let moved = self.servers[at].turn(time, turns);
        if self.servers[at].has_stopped() {
            drop(self.servers.remove(at));
        }
        self.faults.idle = if moved { 0 } else { self.faults.idle + 1 };
        if self.faults.idle > 2 * self.servers.len() as u64 {
            self.faults.idle = 0;
            self.time += self.dice.pick(&[2_000, 20_000, 100_000, 400_000]);
        }
    }

    /// A new server starts, under a new name.
    fn hire(&mut self) -> Result<(), String> {
        let skew = self.faults.draw_skew(&mut self.dice);
        self.set_time(skew);
        let worker: WorkerId = new_worker_id();
        let server =
            Server::start(worker, &self.record, &self.fate, &self.stage, (self.time, skew));
        match server {
            Ok(server) => self.servers.push(server),
            Err(error) => return Err(format!("a server does not start: {error}")),
        }
        Ok(())
    }

    fn set_clock(&self, at: usize) {
        self.set_time(self.servers[at].skew);
    }

    fn set_time(&self, skew: i64) {
        let (process, database) = (DAWN + self.time + skew, DAWN + self.time + self.skew);
        clock::set(Some(clock::Time { process, database }));
    }

    fn is_over(&self) -> bool {
        self.made >= self.fate.runs && self.ledger.all_ended() && self.nothing_is_left()
    }

    fn told(&self, wrong: &str) -> String {
        format!(
            "{wrong}\n  at step {}, {} ms, in {:?}",
            self.tally.steps,
            self.time / 1000,
            self.fate
        )
    }

    fn regime(&self) -> Regime {
        self.fate.regime
    }
}
