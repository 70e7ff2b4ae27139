//! An export checked line by line, without a store: what `docs/audit.md` says a stranger can do.

use std::collections::BTreeMap;
use std::fmt;

use chancery_domain::audit::Link;
use jiff::Timestamp;
use serde::Deserialize;

use super::chain::{Hash, Head, follow, hex, unhex};

/// How far one has come in an export, and which anchors are still to be met.
#[derive(Debug, Clone)]
pub struct ExportCheck {
    at: Head,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    anchors: BTreeMap<u64, Hash>,
}

/// Why an export is not the whole chain that its anchors were taken of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportError {
    /// A line that no export has: cut in the middle, or written by somebody else.
    NoEntry { line: u64 },
    /// Another entry than the one that comes next.
    OutOfPlace { expected: u64, found: u64 },
    /// It does not follow from the entry before.
    Changed { seq: u64 },
    /// It is not the entry that an anchor was taken of.
    Rewritten { seq: u64 },
    /// The export ends before the entry that an anchor was taken of.
    Cut { seq: u64, ends: u64 },
    /// Two anchors of one entry that differ.
    Contradiction { seq: u64 },
}

/// What holds of an export that was read to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    pub head: Head,
    /// The times of the first and the last entry.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// What stands on a line before the entry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    seq: u64,
    prev: String,
    hash: String,
}

impl ExportCheck {
    /// With the anchors that the export is to be held against.
    ///
    /// # Errors
    ///
    /// Where two of them cannot be of one chain.
    pub fn new(anchors: impl IntoIterator<Item = Head>) -> Result<ExportCheck, ExportError> {
        let mut known = BTreeMap::new();
        for Head { seq, hash } in anchors {
            // Before the first entry there is one hash.
            let first = seq == 0 && hash != Head::NONE.hash;
            if first || known.insert(seq, hash).is_some_and(|it| it != hash) {
                return Err(ExportError::Contradiction { seq });
            }
        }
        known.remove(&0);
        Ok(ExportCheck { at: Head::NONE, from: None, to: None, anchors: known })
    }

    /// The next line, without what ends it.
    pub fn line(&mut self, line: &str) -> Result<(), ExportError> {
        let expected = self.at.seq + 1;
        let (place, text) = split(line).ok_or(ExportError::NoEntry { line: expected })?;
        if place.seq != expected {
            return Err(ExportError::OutOfPlace { expected, found: place.seq });
        }
        let hash = follow(&self.at.hash, text);
        if place.prev != hex(&self.at.hash) || unhex(&place.hash) != Some(hash) {
            return Err(ExportError::Changed { seq: expected });
        }
        let link: Link =
            serde_json::from_str(text).map_err(|_| ExportError::NoEntry { line: expected })?;
        if link.seq != expected {
            return Err(ExportError::Changed { seq: expected });
        }
        if self.anchors.remove(&expected).is_some_and(|it| it != hash) {
            return Err(ExportError::Rewritten { seq: expected });
        }
        self.at = Head { seq: expected, hash };
        self.from.get_or_insert(link.at);
        self.to = Some(link.at);
        Ok(())
    }

    /// There are no more lines.
    pub fn end(self) -> Result<Exported, ExportError> {
        match self.anchors.keys().next() {
            Some(seq) => Err(ExportError::Cut { seq: *seq, ends: self.at.seq }),
            None => Ok(Exported { head: self.at, from: self.from, to: self.to }),
        }
    }
}

/// The place that a line says, and the bytes of its entry.
fn split(line: &str) -> Option<(Place, &str)> {
    const ENTRY: &str = "\"entry\":";
    let (before, after) = line.split_once(ENTRY)?;
    let place = serde_json::from_str(&format!("{}}}", before.strip_suffix(',')?)).ok()?;
    Some((place, after.strip_suffix('}')?))
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExportError::NoEntry { line } => write!(f, "line {line} of the export is no entry"),
            ExportError::OutOfPlace { expected, found } => write!(
                f,
                "the export has entry {found} where entry {expected} must be: it is not whole"
            ),
            ExportError::Changed { seq } => write!(
                f,
                "entry {seq} was changed, or the one before it: its hash is not the one that follows"
            ),
            ExportError::Rewritten { seq } => {
                write!(f, "entry {seq} is not the one that the anchor was taken of")
            }
            ExportError::Cut { seq, ends } => {
                write!(f, "the anchor was taken of entry {seq}, and the export ends with {ends}")
            }
            ExportError::Contradiction { seq } => {
                write!(f, "the anchors of entry {seq} cannot be of one chain")
            }
        }
    }
}

impl std::error::Error for ExportError {}

#[cfg(test)]
mod tests {
    use super::super::chain::Draft;
    use super::*;
    use chancery_domain::audit::{Entry, kind};
    use chancery_domain::event::Actor;
    use chancery_domain::id::AuditId;
    use serde_json::json;
    use uuid::Uuid;

    /// An export of so many entries, whose details are meant to mislead.
    fn export(entries: u128) -> (Vec<String>, Vec<Head>) {
        let (mut head, mut lines, mut heads) = (Head::NONE, Vec::new(), Vec::new());
        for id in 1..=entries {
            let mut entry = Entry::new(AuditId(Uuid::from_u128(id)), kind::RULING, Actor::System);
            entry.detail = json!({"entry": {"seq": 9, "said": "\"entry\":{}}"}});
            let prev = hex(&head.hash);
            let draft = Draft::new(Timestamp::UNIX_EPOCH, entry).unwrap();
            let row = head.extend(&draft).unwrap();
            let (seq, hash, text) = (row.seq, hex(&row.hash), row.text);
            lines.push(format!(
                "{{\"seq\":{seq},\"prev\":\"{prev}\",\"hash\":\"{hash}\",\"entry\":{text}}}"
            ));
            heads.push(head);
        }
        (lines, heads)
    }

    fn check(lines: &[String], anchors: &[Head]) -> Result<Head, ExportError> {
        let mut check = ExportCheck::new(anchors.iter().copied())?;
        lines.iter().try_for_each(|it| check.line(it))?;
        check.end().map(|it| it.head)
    }

    #[test]
    fn a_whole_export_holds_against_every_anchor_that_was_taken_of_it() {
        let (lines, heads) = export(5);
        assert_eq!(check(&lines, &heads), Ok(heads[4]));
        assert_eq!(check(&lines, &[Head::NONE, heads[2], heads[2]]), Ok(heads[4]));
        assert_eq!(check(&[], &[Head::NONE]), Ok(Head::NONE));
    }

    #[test]
    fn what_was_done_to_an_export_is_said() {
        let (lines, heads) = export(5);
        let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat();
        let with = |at: usize, line: String| {
            let mut lines = lines.clone();
            lines[at] = line;
            lines
        };
        let changed = with(2, lines[2].replace("said", "sajd"));
        assert_eq!(check(&changed, &[]), Err(ExportError::Changed { seq: 3 }));
        let other_place = with(2, lines[2].replacen("\"seq\":3", "\"seq\":4", 1));
        let moved = ExportError::OutOfPlace { expected: 3, found: 4 };
        assert_eq!(check(&other_place, &[]), Err(moved.clone()));
        assert_eq!(check(&without(2), &[]), Err(moved));
        let first = ExportError::OutOfPlace { expected: 1, found: 2 };
        assert_eq!(check(&without(0), &[]), Err(first));
        let half = with(4, lines[4][..lines[4].len() / 2].to_owned());
        assert_eq!(check(&half, &[]), Err(ExportError::NoEntry { line: 5 }));
        let more = with(1, lines[1].replacen("\"prev\"", "\"x\":1,\"prev\"", 1));
        assert_eq!(check(&more, &[]), Err(ExportError::NoEntry { line: 2 }));
        // What an anchor alone can show.
        assert_eq!(check(&lines[..3], &[]), Ok(heads[2]));
        let cut = ExportError::Cut { seq: 5, ends: 3 };
        assert_eq!(check(&lines[..3], &[heads[1], heads[4]]), Err(cut));
        let other = Head { seq: 4, hash: [7; 32] };
        assert_eq!(check(&lines, &[other]), Err(ExportError::Rewritten { seq: 4 }));
        let both = ExportError::Contradiction { seq: 4 };
        assert_eq!(check(&lines, &[heads[3], other]), Err(both));
        let nothing = Head { seq: 0, hash: [7; 32] };
        assert_eq!(check(&lines, &[nothing]), Err(ExportError::Contradiction { seq: 0 }));
    }
}
