//! The time and the ids of a simulated process. They hold for the thread that set them: a
//! simulation has one thread, and hands the clock to whoever's turn it is.

use std::cell::Cell;

use jiff::Timestamp;
use uuid::Uuid;

/// What the clocks say, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// Of the process whose turn it is,
    pub process: i64,
    /// and of the database.
    pub database: i64,
}

thread_local! {
    static TIME: Cell<Option<Time>> = const { Cell::new(None) };
    static IDS: Cell<u64> = const { Cell::new(0) };
}

/// From here on, this thread lives in a time of its own. `None`: in the machine's again.
pub fn set(time: Option<Time>) {
    TIME.set(time);
}

/// From here on, ids are made of this number: the same number, the same ids.
pub fn seed_ids(seed: u64) {
    IDS.set(seed);
}

/// The process's time, if it is simulated.
pub fn now() -> Option<Timestamp> {
    TIME.get().and_then(|it| Timestamp::from_microsecond(it.process).ok())
}

/// A new id, if time is simulated.
pub fn new_uuid() -> Option<Uuid> {
    let time = TIME.get()?;
    let millis = u64::try_from(time.process / 1000).unwrap_or(0);
    let mut random = [0; 10];
    random[..8].copy_from_slice(&next().to_be_bytes());
    random[8..].copy_from_slice(&next().to_be_bytes()[..2]);
    Some(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
}

pub(crate) fn database() -> Option<i64> {
    TIME.get().map(|it| it.database)
}

/// The next of a row of numbers (splitmix64).
fn next() -> u64 {
    let state = IDS.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    IDS.set(state);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
