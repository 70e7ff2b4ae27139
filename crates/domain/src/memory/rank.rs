//! BM25 over exactly the memories that may be read, and the bonus for what was said beside a
//! match. Sums are taken in the order of the terms, so that the same postings give the same
//! scores to the last bit, whichever database they come from.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// How soon a term's repetition stops to count.
const K1: f64 = 0.9;
/// How much a long text is held against it.
const B: f64 = 0.4;
/// What a memory has of the best match beside it.
pub const NEIGHBOUR: f64 = 0.3;

/// One term in one memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    pub doc: i64,
    /// How often the term occurs.
    pub count: u32,
    /// How many terms the memory has.
    pub length: u32,
}

/// What is searched, as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Corpus {
    pub docs: u64,
    /// Of all memories together.
    pub length: u64,
}

/// By memory.
pub type Scores = HashMap<i64, f64, BuildHasherDefault<DocHasher>>;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    pub doc: i64,
    pub score: f64,
}

/// What each term of a question is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    of_terms: Vec<f64>,
    average: f64,
}

impl Weights {
    /// Given, for each term, how many memories have it.
    pub fn new(corpus: Corpus, having: impl IntoIterator<Item = u64>) -> Weights {
        let docs = corpus.docs as f64;
        let weight = |having: u64| {
            let having = having as f64;
            ((docs - having).max(0.0) + 0.5).ln_1p_over(having + 0.5)
        };
        let average = (corpus.length as f64 / docs.max(1.0)).max(1.0);
        Weights { of_terms: having.into_iter().map(weight).collect(), average }
    }

    /// Adds one term's share to the scores of the memories that have it.
    pub fn add(&self, scores: &mut Scores, term: usize, postings: &[Posting]) {
        let Some(weight) = self.of_terms.get(term) else { return };
        for it in postings {
            *scores.entry(it.doc).or_default() += weight * self.saturated(it);
        }
    }

    fn saturated(&self, it: &Posting) -> f64 {
        let count = f64::from(it.count);
        let length = f64::from(it.length) / self.average;
        count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length))
    }
}

trait Logarithm {
    fn ln_1p_over(self, below: f64) -> f64;
}

impl Logarithm for f64 {
    /// ln(1 + self / below): never negative, so that no match counts against a memory.
    fn ln_1p_over(self, below: f64) -> f64 {
        (self / below).ln_1p()
    }
}

/// The best first; of equals, the newest.
pub fn best(scores: impl IntoIterator<Item = (i64, f64)>, limit: usize) -> Vec<Scored> {
    let mut found: Vec<Scored> =
        scores.into_iter().map(|(doc, score)| Scored { doc, score }).collect();
    let order = |a: &Scored, b: &Scored| b.score.total_cmp(&a.score).then(b.doc.cmp(&a.doc));
    if found.len() > limit && limit > 0 {
        found.select_nth_unstable_by(limit - 1, order);
    }
    found.truncate(limit);
    found.sort_unstable_by(order);
    found
}

/// What says nearly the same as an earlier memory may contradict it: both are kept, and the newer
/// one is read first. `near` names the earlier one.
pub fn newer_first(found: &mut [Scored], near: impl Fn(i64) -> Option<i64>) {
    for at in 1..found.len() {
        let earlier = near(found[at].doc);
        let before = found[..at].iter().position(|it| Some(it.doc) == earlier);
        if let Some(before) = before {
            found[before..=at].rotate_right(1);
        }
    }
}

/// The scores of memories once what stands beside them counts, given who stands beside whom.
/// Those of whom nothing is said keep theirs.
pub fn beside(scores: &Scores, candidates: &[Scored], pairs: &[(i64, i64)]) -> Vec<(i64, f64)> {
    let mut bonus = Scores::default();
    for (doc, neighbour) in pairs {
        let theirs = scores.get(neighbour).copied().unwrap_or_default();
        let best = bonus.entry(*doc).or_default();
        *best = best.max(theirs);
    }
    let known = candidates.iter().map(|it| it.doc).filter(|it| !bonus.contains_key(it));
    let mut docs: Vec<i64> = known.collect();
    docs.extend(bonus.keys());
    docs.into_iter()
        .map(|doc| {
            let own = scores.get(&doc).copied().unwrap_or_default();
            (doc, own + NEIGHBOUR * bonus.get(&doc).copied().unwrap_or_default())
        })
        .collect()
}

/// Numbers that we gave out ourselves need no defence against collisions.
#[derive(Debug, Default)]
pub struct DocHasher(u64);

impl Hasher for DocHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_i64(&mut self, doc: i64) {
        self.0 = (doc as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posting(doc: i64, count: u32, length: u32) -> Posting {
        Posting { doc, count, length }
    }

    fn ranked(corpus: Corpus, terms: &[&[Posting]]) -> Vec<i64> {
        let weights = Weights::new(corpus, terms.iter().map(|it| it.len() as u64));
        let mut scores = Scores::default();
        for (term, postings) in terms.iter().enumerate() {
            weights.add(&mut scores, term, postings);
        }
        best(scores, 10).into_iter().map(|it| it.doc).collect()
    }

    const CORPUS: Corpus = Corpus { docs: 100, length: 1000 };

    #[test]
    fn of_two_that_say_nearly_the_same_the_newer_is_read_first() {
        let scored = |docs: &[i64]| -> Vec<Scored> {
            docs.iter().map(|doc| Scored { doc: *doc, score: 1.0 / *doc as f64 }).collect()
        };
        let mut found = scored(&[1, 2, 3, 4, 5]);
        // 4 speaks of what 2 spoke of, and 5 of what 4 did.
        newer_first(&mut found, |doc| {
            [(4, 2), (5, 4)].iter().find(|it| it.0 == doc).map(|it| it.1)
        });
        let order: Vec<i64> = found.iter().map(|it| it.doc).collect();
        assert_eq!(order, [1, 5, 4, 2, 3]);
    }

    #[test]
    fn the_rarer_term_counts_for_more() {
        let common: Vec<Posting> = (1..=50).map(|doc| posting(doc, 1, 10)).collect();
        assert_eq!(ranked(CORPUS, &[&common, &[posting(7, 1, 10)]])[0], 7);
    }

    #[test]
    fn more_of_a_term_and_less_beside_it_count_for_more() {
        assert_eq!(ranked(CORPUS, &[&[posting(1, 1, 10), posting(2, 2, 10)]]), [2, 1]);
        assert_eq!(ranked(CORPUS, &[&[posting(2, 1, 40), posting(1, 1, 10)]]), [1, 2]);
        assert_eq!(ranked(CORPUS, &[&[posting(1, 1, 10), posting(2, 1, 10)]]), [2, 1]);
    }

    #[test]
    fn no_match_counts_against_a_memory() {
        let everywhere: Vec<Posting> = (1..=200).map(|doc| posting(doc, 1, 10)).collect();
        let weights = Weights::new(Corpus { docs: 3, length: 0 }, [200]);
        let mut scores = Scores::default();
        weights.add(&mut scores, 0, &everywhere);
        assert!(scores.values().all(|it| *it > 0.0 && it.is_finite()));
    }

    #[test]
    fn what_was_said_beside_a_match_is_found_with_it() {
        let scores: Scores = [(1, 10.0), (2, 1.0), (3, 2.0)].into_iter().collect();
        let candidates = best(scores.clone(), 10);
        let with = beside(&scores, &candidates, &[(1, 2), (2, 1), (2, 3), (3, 2), (9, 1)]);
        let found = best(with, 10);
        let scored: Vec<(i64, f64)> = found.iter().map(|it| (it.doc, it.score)).collect();
        assert_eq!(scored, [(1, 10.3), (2, 4.0), (9, 3.0), (3, 2.3)]);
    }
}
