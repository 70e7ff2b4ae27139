//! Who may have which run: a second opinion on the queue, from what was done to it.

use std::collections::BTreeMap;

use chancery_domain::id::{RunId, WorkerId};
use chancery_store::fault::{Owned, Regime, Touch};

#[derive(Debug)]
pub struct Leases {
    regime: Regime,
    held: BTreeMap<RunId, WorkerId>,
    /// Who claimed a run last, and with which attempt: the fence.
    claims: BTreeMap<RunId, (WorkerId, u64)>,
    /// Until when a worker is alive, by the database's clock.
    beats: BTreeMap<WorkerId, i64>,
    takeovers: u64,
}

impl Leases {
    pub fn new(regime: Regime) -> Leases {
        let (held, claims, beats) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Leases { regime, held, claims, beats, takeovers: 0 }
    }

    /// Leases that were taken from workers that had not given them back.
    pub fn takeovers(&self) -> u64 {
        self.takeovers
    }

    pub fn of(&self, worker: WorkerId) -> Vec<RunId> {
        self.held.iter().filter(|(_, it)| **it == worker).map(|(run, _)| *run).collect()
    }

    pub fn owned(&self) -> Vec<RunId> {
        self.held.keys().copied().collect()
    }

    /// The append that makes a run wait or end takes it out of the queue.
    pub fn parked(&mut self, run: RunId) {
        self.held.remove(&run);
    }

    /// Who has lost a run to another writes nothing.
    pub fn may_write(&self, run: RunId, worker: WorkerId, attempt: u64) -> Result<(), String> {
        match self.claims.get(&run) {
            Some(claim) if *claim == (worker, attempt) => Ok(()),
            other => {
                Err(format!("fence: {worker} writes as attempt {attempt}, which is {other:?}"))
            }
        }
    }

    /// Something was done to the queue, which now is as `owners` say. Answers what was claimed.
    pub fn moved(
        &mut self,
        worker: WorkerId,
        how: Touch,
        owners: &[Owned],
        now: i64,
    ) -> Result<Vec<RunId>, String> {
        if let Touch::Beat { until } = how {
            self.beats.insert(worker, until);
            return Ok(Vec::new());
        }
        let mut claimed = Vec::new();
        let mut left = self.held.len();
        for Owned { run, owner, attempt } in owners {
            let before = self.held.get(run).copied();
            left -= usize::from(before.is_some());
            match (before, *owner) {
                (before, owner) if before == owner => {}
                (None, Some(owner)) if how == Touch::Claim && owner == worker => {
                    if self.claims.get(run).is_some_and(|it| it.1 >= *attempt) {
                        return Err(format!(
                            "lease: {run} is claimed with an old attempt {attempt}"
                        ));
                    }
                    self.claims.insert(*run, (worker, *attempt));
                    self.held.insert(*run, worker);
                    claimed.push(*run);
                }
                (Some(of), None) if how == Touch::Release && of == worker => {
                    self.held.remove(run);
                }
                (Some(of), None) if how == Touch::Rescue && self.is_dead(of, worker, now) => {
                    self.held.remove(run);
                    self.takeovers += 1;
                }
                (before, owner) => {
                    return Err(format!(
                        "lease: {run} went from {before:?} to {owner:?} by {how:?} of {worker}"
                    ));
                }
            }
        }
        match left {
            0 => Ok(claimed),
            _ => Err("lease: a run that somebody has is not in the queue".to_owned()),
        }
    }

    fn is_dead(&self, worker: WorkerId, rescuer: WorkerId, now: i64) -> bool {
        worker != rescuer
            && match self.regime {
                Regime::Alone => true,
                Regime::Shared => self.beats.get(&worker).is_none_or(|until| *until <= now),
            }
    }
}
