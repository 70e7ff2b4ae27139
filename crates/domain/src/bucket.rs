//! How often something may be done: so many at once, and then so many a minute. Time comes in as
//! an argument.

use std::collections::HashMap;
use std::hash::Hash;

use jiff::{SignedDuration, Timestamp};

/// How many at once, and how many a minute come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub burst: u32,
    pub a_minute: u32,
}

/// What one has left. It is kept as the time at which all of it will be back: what is new has
/// everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    full_at: Option<Timestamp>,
}

impl Rate {
    /// What one costs of the time in which all come back.
    fn share(self) -> SignedDuration {
        SignedDuration::from_micros(60_000_000 / i64::from(self.a_minute.max(1)))
    }

    fn whole(self) -> SignedDuration {
        self.share() * i32::try_from(self.burst.max(1)).unwrap_or(i32::MAX)
    }
}

impl Bucket {
    /// Takes one, or says after how long there is one again.
    pub fn take(&mut self, rate: Rate, now: Timestamp) -> Result<(), SignedDuration> {
        self.look(rate, now)?;
        let ahead = self.ahead(rate, now) + rate.share();
        self.full_at = now.checked_add(ahead).ok();
        Ok(())
    }

    /// Whether there is one, without taking it.
    pub fn look(&self, rate: Rate, now: Timestamp) -> Result<(), SignedDuration> {
        let over = self.ahead(rate, now) + rate.share() - rate.whole();
        if over > SignedDuration::ZERO { Err(over) } else { Ok(()) }
    }

    /// How far off the time lies at which nothing is missing. Further than all of it would take is
    /// the word of a clock that has been set back since.
    fn ahead(&self, rate: Rate, now: Timestamp) -> SignedDuration {
        let ahead = self.full_at.map_or(SignedDuration::ZERO, |it| it.duration_since(now));
        if (SignedDuration::ZERO..=rate.whole()).contains(&ahead) {
            ahead
        } else {
            SignedDuration::ZERO
        }
    }
}

/// What each of many has left, of as many as are kept: whoever was not seen for longest is
/// forgotten first, and has everything again.
// Invariant: neither half holds more than `most`.
#[derive(Debug)]
pub struct Buckets<K> {
    most: usize,
    /// Seen since the halves last changed places.
    young: HashMap<K, Bucket>,
    old: HashMap<K, Bucket>,
}

impl<K: Hash + Eq> Buckets<K> {
    /// At most twice as many are kept.
    pub fn new(most: usize) -> Buckets<K> {
        Buckets { most: most.max(1), young: HashMap::new(), old: HashMap::new() }
    }

    pub fn take(&mut self, key: K, rate: Rate, now: Timestamp) -> Result<(), SignedDuration> {
        let mut bucket = self.get(&key);
        let taken = bucket.take(rate, now);
        self.old.remove(&key);
        if self.young.len() >= self.most && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, bucket);
        taken
    }

    pub fn look(&self, key: &K, rate: Rate, now: Timestamp) -> Result<(), SignedDuration> {
        self.get(key).look(rate, now)
    }

    pub fn has(&self, key: &K) -> bool {
        self.young.contains_key(key) || self.old.contains_key(key)
    }

    pub fn forget(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    fn get(&self, key: &K) -> Bucket {
        self.young.get(key).or_else(|| self.old.get(key)).copied().unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { burst: 3, a_minute: 6 };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    #[test]
    fn so_many_at_once_and_then_so_many_a_minute() {
        let mut bucket = Bucket::default();
        for _ in 0..3 {
            assert_eq!(bucket.take(RATE, at(0)), Ok(()));
        }
        // One comes back every ten seconds.
        assert_eq!(bucket.take(RATE, at(0)), Err(SignedDuration::from_secs(10)));
        assert_eq!(bucket.take(RATE, at(4)), Err(SignedDuration::from_secs(6)));
        assert_eq!(bucket.look(RATE, at(9)), Err(SignedDuration::from_secs(1)));
        assert_eq!(bucket.look(RATE, at(10)), Ok(()));
        assert_eq!(bucket.take(RATE, at(10)), Ok(()));
        assert!(bucket.take(RATE, at(10)).is_err());
        // A long rest brings back no more than there were.
        let taken = (0..10).filter(|_| bucket.take(RATE, at(10_000)).is_ok()).count();
        assert_eq!(taken, 3);
    }

    #[test]
    fn whoever_is_refused_does_not_wait_longer_for_asking() {
        let mut bucket = Bucket::default();
        for _ in 0..1000 {
            let _ = bucket.take(RATE, at(0));
        }
        assert_eq!(bucket.take(RATE, at(10)), Ok(()));
    }

    #[test]
    fn a_clock_that_is_set_back_locks_nobody_out() {
        let mut bucket = Bucket::default();
        for _ in 0..3 {
            bucket.take(RATE, at(100_000)).unwrap();
        }
        assert_eq!(bucket.take(RATE, at(0)), Ok(()));
    }

    #[test]
    fn one_of_many_takes_nothing_from_another() {
        let mut all = Buckets::new(100);
        for _ in 0..3 {
            all.take("a", RATE, at(0)).unwrap();
        }
        assert!(all.take("a", RATE, at(0)).is_err());
        assert!(all.look(&"a", RATE, at(0)).is_err());
        assert_eq!(all.take("b", RATE, at(0)), Ok(()));
        all.forget(&"a");
        assert!(!all.has(&"a") && all.has(&"b"));
    }

    #[test]
    fn however_many_come_only_so_many_are_kept() {
        let mut all = Buckets::new(100);
        for n in 0..100_000 {
            all.take(n, RATE, at(0)).unwrap();
            assert!(all.len() <= 200);
        }
        // Who comes often is not forgotten for those who come once.
        let mut all = Buckets::new(100);
        for n in 0..10_000 {
            let _ = all.take(-1, RATE, at(0));
            all.take(n, RATE, at(0)).unwrap();
        }
        assert!(all.take(-1, RATE, at(0)).is_err());
    }
}
