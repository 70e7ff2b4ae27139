//! The keys that memories are kept under: the partition, four bytes, and then the term. Beside
//! the terms that are searched for stand a few that near-duplicates are recognised by.

use std::cmp::Reverse;

use chancery_domain::memory::analyse::Terms;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::session::Line;

/// No term begins with it: it is no byte of any text.
const MARK: u8 = 0xff;
/// Texts that have so much in common, of a hundred, say the same.
const LIKENESS: usize = 90;

/// The terms of a memory and of its day, as it is everywhere.
pub(super) fn of_memory(content: &str, at: Timestamp) -> Terms {
    Terms::of_memory(content, Some(at.to_zoned(TimeZone::UTC).date()))
}

/// The terms of the words alone, which is what near-duplicates have in common.
pub(super) fn of_words(content: &str) -> Terms {
    Terms::of_memory(content, None)
}

pub(super) fn are_alike(one: &Terms, other: &Terms) -> bool {
    one.jaccard(other) >= LIKENESS as f64 / 100.0
}

pub(super) fn key(partition: u32, term: &str) -> Vec<u8> {
    [&partition.to_be_bytes()[..], term.as_bytes()].concat()
}

/// Everything that is kept of a memory, in the order of its keys.
pub(super) fn lines(partition: u32, content: &str, at: Timestamp) -> Vec<Line> {
    let terms = of_memory(content, at);
    let length = terms.length();
    let mut lines: Vec<Line> = terms
        .iter()
        .map(|(term, count)| Line { key: key(partition, term), count, length })
        .collect();
    let words = of_words(content);
    let distinct = words.distinct() as u32;
    lines.extend(marks(partition, &words).into_iter().map(|key| Line {
        key,
        count: distinct,
        length: 0,
    }));
    lines
}

/// Keys of which texts that are alike share at least one: of terms in an order that is the same
/// for all texts, the first tenth and one. Long terms first, for they are rare.
pub(super) fn marks(partition: u32, words: &Terms) -> Vec<Vec<u8>> {
    let mut terms: Vec<&str> = words.iter().map(|(term, _)| term).collect();
    terms.sort_by_key(|it| (Reverse(it.len()), *it));
    let shared = (terms.len() * LIKENESS).div_ceil(100);
    let first = terms.len() - shared + usize::from(!terms.is_empty());
    let key = |term: &&str| [&partition.to_be_bytes()[..], &[MARK], term.as_bytes()].concat();
    terms[..first].iter().map(key).collect()
}

/// How many terms a text may have that is like one with so many.
pub(super) fn sizes_alike(distinct: usize) -> std::ops::RangeInclusive<usize> {
    (distinct * LIKENESS).div_ceil(100)..=distinct * 100 / LIKENESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_alike_share_a_mark() {
        let words: Vec<String> = (0..40).map(|it| format!("word{it}")).collect();
        let whole = of_words(&words.join(" "));
        let marks_of = |terms: &Terms| marks(7, terms);
        for left_out in 0..words.len() {
            let mut fewer = words.clone();
            fewer.remove(left_out);
            fewer.push("another".to_owned());
            let fewer = of_words(&fewer.join(" "));
            assert!(are_alike(&whole, &fewer));
            assert!(sizes_alike(whole.distinct()).contains(&fewer.distinct()));
            assert!(marks_of(&whole).iter().any(|it| marks_of(&fewer).contains(it)), "{left_out}");
        }
        assert_eq!(marks_of(&of_words("")), Vec::<Vec<u8>>::new());
        assert_eq!(marks_of(&of_words("one")).len(), 1);
    }
}
