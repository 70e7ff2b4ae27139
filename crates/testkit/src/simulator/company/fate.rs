//! What a seed has in store for a company: how many there are, on which terms they work, and
//! what goes wrong.

use std::time::Duration;

use chancery_runtime::UnknownOutcome;
use chancery_store::fault::{Plant, Regime, Told};

use super::super::Recover;
use super::super::check;
use super::super::dice::Dice;
use super::super::people::Law;
use super::Company;

/// A mistake in the system that a game is to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// Of the store.
    Store(Plant),
    /// A tool acts while somebody is asked whether it may.
    ActsWhileAsked,
    /// A tool acts twice for one start.
    ActsTwice,
}

/// The terms of one game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    pub regime: Regime,
    pub servers: u64,
    /// How many runs people ask for.
    pub runs: u64,
    pub concurrency: usize,
    pub lease: Duration,
    pub on_unknown: UnknownOutcome,
    pub recover: Recover,
    pub attempts: u32,
    /// What the rules become in the middle of it.
    pub law: Law,
    /// How long a question stands; nobody answers some of them.
    pub expire_after: Duration,
    pub escalates: bool,
    pub abort_batch: bool,
    /// How long a child may take.
    pub child_timeout: Duration,
    pub detach: bool,
    /// Something goes wrong once in so many steps.
    pub rate: u64,
    pub mistake: Option<Mistake>,
}

impl Fate {
    pub fn draw(dice: &mut Dice, mistake: Option<Mistake>) -> Fate {
        let regime = if dice.once_in(3) { Regime::Alone } else { Regime::Shared };
        // What is planted shows in company.
        let regime = if mistake.is_some() { Regime::Shared } else { regime };
        let laws = [Law::Usual, Law::Usual, Law::Human, Law::Denied, Law::Gone, Law::Dismissed];
        Fate {
            regime,
            servers: if regime == Regime::Alone { 1 } else { dice.between(2, 5) },
            runs: dice.between(20, 60),
            concurrency: dice.pick(&[1, 2, 4, 8]),
            lease: Duration::from_millis(dice.pick(&[2_000, 5_000, 10_000])),
            on_unknown: dice.pick(&[
                UnknownOutcome::Ask,
                UnknownOutcome::Fail,
                UnknownOutcome::Retry,
            ]),
            recover: dice.pick(&[Recover::RunAgain, Recover::Fail, Recover::Supply]),
            attempts: dice.pick(&[5, u32::MAX]),
            law: dice.pick(&laws),
            expire_after: Duration::from_secs(dice.pick(&[5, 60, 3600])),
            escalates: dice.once_in(2),
            abort_batch: dice.once_in(4),
            child_timeout: Duration::from_secs(dice.pick(&[10, 300])),
            detach: dice.once_in(3),
            rate: dice.pick(&[30, 100, 400]),
            mistake,
        }
    }

    pub fn plant(&self) -> Option<Plant> {
        match self.mistake {
            Some(Mistake::Store(plant)) => Some(plant),
            _ => None,
        }
    }
}

/// What goes wrong, and how long it still does.
#[derive(Debug)]
pub struct Faults {
    /// After so many steps nothing does any more, and all must come to an end.
    left: u64,
    rate: u64,
    /// How many turns in a row nobody did anything.
    pub idle: u64,
}

impl Faults {
    pub fn new(fate: &Fate) -> Faults {
        Faults { left: fate.runs * 60, rate: fate.rate, idle: 0 }
    }

    pub fn are_on(&self) -> bool {
        self.left > 0
    }

    /// By how much a server's clock is off.
    pub fn draw_skew(&self, dice: &mut Dice) -> i64 {
        if self.are_on() { dice.between(0, 4_000_000) as i64 - 2_000_000 } else { 0 }
    }
}

impl Company {
    /// What goes wrong in this step, if anything.
    pub(super) fn strike(&mut self) -> Result<(), String> {
        self.faults.left -= 1;
        if self.faults.left == 0 {
            return self.mend();
        }
        if !self.dice.once_in(self.faults.rate) {
            return Ok(());
        }
        if self.servers.is_empty() {
            return self.hire();
        }
        let at = self.dice.roll(self.servers.len() as u64) as usize;
        match self.dice.roll(10) {
            0 | 1 => {
                self.crash(at)?;
                // Sometimes nobody is there for a while.
                if !self.dice.once_in(4) {
                    self.hire()?;
                }
            }
            2 => {
                self.servers[at].stop();
                if self.regime() == Regime::Shared {
                    self.hire()?;
                }
            }
            3 | 4 => {
                // Half of the time past its lease.
                let most = 2 * self.fate.lease.as_micros() as u64;
                let pause = self.dice.between(1, most) as i64;
                self.servers[at].sleep_until(self.time + pause);
                self.tally.pauses += 1;
            }
            5 | 6 => {
                let times = self.dice.between(1, 12);
                self.servers[at].seat.go_away(times);
                self.tally.outages += 1;
            }
            7 => {
                let slow = self.dice.pick(&[0, 0, 5, 40, 300]);
                self.servers[at].seat.slow_down(Duration::from_millis(slow));
                self.tally.slow += 1;
            }
            8 => {
                // Mostly a little, sometimes by more than any lease.
                let far = self.dice.pick(&[500_000, 3_000_000, 60_000_000]);
                let jump = self.dice.between(0, 2 * far) as i64 - far as i64;
                match self.dice.once_in(2) {
                    true => self.servers[at].skew += jump,
                    false => self.skew += jump,
                }
                self.tally.jumps += 1;
            }
            _ => {
                self.time += self.dice.pick(&[10_000, 700_000, 3_000_000]);
            }
        }
        if self.servers.is_empty() && self.dice.once_in(2) {
            self.hire()?;
        }
        Ok(())
    }

    /// A server is dead from one moment to the next.
    fn crash(&mut self, at: usize) -> Result<(), String> {
        let server = self.servers.remove(at);
        for run in self.ledger.leased_by(server.worker) {
            let log = self.log(run)?;
            let left = check::orphans(run, &log);
            self.orphans.extend(left.into_iter().map(|it| (run, it)));
        }
        drop(server);
        self.tally.crashes += 1;
        Ok(())
    }

    /// Nothing goes wrong any more.
    fn mend(&mut self) -> Result<(), String> {
        for server in &mut self.servers {
            server.mend(self.time);
        }
        Ok(())
    }

    /// The network brings what a server has told the others: to some, to all, twice, or not.
    pub(super) fn deliver(&mut self) {
        for at in 0..self.servers.len() {
            let told = self.servers[at].seat.take_told();
            if told == Told::default() {
                continue;
            }
            for to in (0..self.servers.len()).filter(|to| *to != at) {
                let faulty = self.faults.are_on();
                let lost = faulty && self.dice.once_in(4);
                let doubled = faulty && self.dice.once_in(8);
                self.tally.lost += u64::from(lost);
                self.tally.doubled += u64::from(doubled);
                for _ in 0..u64::from(!lost) + u64::from(doubled) {
                    self.servers[to].seat.hear(told);
                }
            }
        }
    }
}
