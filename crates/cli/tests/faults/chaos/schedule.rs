//! What goes wrong, and when: made from a seed before anything begins.

use std::fmt;
use std::time::Duration;

use crate::Dice;

/// How much of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub runs: usize,
    pub kills: usize,
    pub pauses: usize,
    /// Of connections to the database, in one of three ways.
    pub cuts: usize,
    /// Milliseconds between two faults.
    pub pace: (u64, u64),
    pub seed: u64,
}

/// Servers and roads are known by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Kill(usize),
    /// Stopped for so many milliseconds, longer than a lease.
    Pause(usize, u64),
    /// All connections of a server to the database are cut.
    Cut(usize),
    /// Each breaks off in the middle of its next message.
    BreakOff(usize),
    /// Nothing moves for so many milliseconds.
    Jam(usize, u64),
    /// The primary is lost for good; so many milliseconds later the standby is promoted.
    FailOver(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub after: Duration,
    pub fault: Fault,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}ms {:?}", self.after.as_millis(), self.fault)
    }
}

/// The faults in an order by chance, and the fail-over in the middle of them.
pub fn schedule(size: &Size, servers: usize, roads: usize, lease: Duration) -> Vec<Step> {
    let mut dice = Dice(size.seed);
    let lease = u64::try_from(lease.as_millis()).unwrap();
    let (servers, roads) = (servers as u64, roads as u64);
    let mut faults = Vec::new();
    for _ in 0..size.kills {
        faults.push(Fault::Kill(dice.between(0, servers) as usize));
    }
    for _ in 0..size.pauses {
        let long = dice.between(lease * 3 / 2, lease * 5 / 2);
        faults.push(Fault::Pause(dice.between(0, servers) as usize, long));
    }
    for number in 0..size.cuts {
        let road = dice.between(0, roads) as usize;
        faults.push(match number % 3 {
            0 => Fault::Cut(road),
            1 => Fault::BreakOff(road),
            _ => Fault::Jam(road, dice.between(200, lease * 2)),
        });
    }
    for place in (1..faults.len()).rev() {
        faults.swap(place, dice.between(0, place as u64 + 1) as usize);
    }
    faults.insert(faults.len() / 2, Fault::FailOver(dice.between(0, 1500)));
    let (from, to) = size.pace;
    let after = |dice: &mut Dice| Duration::from_millis(dice.between(from, to));
    faults.into_iter().map(|fault| Step { after: after(&mut dice), fault }).collect()
}

/// A run: a few steps, a batch with questions in it, a few more steps. Sometimes it waits.
pub fn plan(dice: &mut Dice) -> String {
    let asked = ["aue", "eaa", "aa", "uae", "au"][dice.between(0, 5) as usize];
    let before = ["u", "u e", "e u"][dice.between(0, 3) as usize];
    let after = ["u", "u w u", "eu w", "w ua u"][dice.between(0, 4) as usize];
    format!("{before} {asked} {after}")
}

#[test]
fn the_same_seed_makes_the_same_schedule() {
    let size = Size { runs: 1, kills: 5, pauses: 3, cuts: 6, pace: (10, 20), seed: 7 };
    let make = |size: &Size| schedule(size, 3, 2, Duration::from_secs(2));
    let steps = make(&size);
    assert_eq!(steps, make(&size));
    assert_ne!(steps, make(&Size { seed: 8, ..size }));
    let count = |is: fn(&Fault) -> bool| steps.iter().filter(|it| is(&it.fault)).count();
    assert_eq!(count(|it| matches!(it, Fault::Kill(_))), 5);
    assert_eq!(count(|it| matches!(it, Fault::Pause(_, 3000..5000))), 3);
    assert_eq!(count(|it| matches!(it, Fault::FailOver(_))), 1);
    assert_eq!(steps.len(), 15);
}
