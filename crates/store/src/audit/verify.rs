//! Reads the chain from its beginning and says where it first breaks, if it does.

use std::fmt;

use chancery_domain::audit::Link;
use jiff::Timestamp;

use super::chain::{Copies, Hash, Head, follow};
use super::place;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

/// Entries read at once: in the worst case some ten megabytes.
const PAGE: i64 = 256;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    /// How many entries hold, from the first on.
    pub entries: u64,
    /// What the store says where the chain ends.
    pub head: Head,
    /// The times of the first and the last entry that hold.
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub first_bad: Option<Bad>,
}

/// Where the chain breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad {
    pub seq: i64,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// There is no entry where one must be.
    Missing,
    /// There is one where none can be.
    Stray,
    /// Its hash is not that of its text and the hash before.
    Hash,
    /// What stands beside its text is not what the text says.
    Copies,
    Unreadable,
    /// Entries and head do not end together.
    Head,
    /// The chain is not the one that the anchor was taken of.
    Anchor,
    /// The chain ends before the anchor: its tail was cut off.
    CutOff,
}

impl Verification {
    pub fn ok(&self) -> bool {
        self.first_bad.is_none()
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seq = self.seq;
        match self.why {
            Why::Missing => write!(f, "entry {seq} is missing"),
            Why::Stray => write!(f, "entry {seq} does not belong to the chain"),
            Why::Hash => write!(
                f,
                "entry {seq} was changed, or the one before it: its hash is not the one that follows"
            ),
            Why::Copies => {
                write!(f, "the columns beside entry {seq} were changed: they are not what it says")
            }
            Why::Unreadable => write!(f, "entry {seq} cannot be read"),
            Why::Head => write!(f, "the head is not that of entry {seq}, the last one"),
            Why::Anchor => write!(f, "entry {seq} is not the one that the anchor was taken of"),
            Why::CutOff => write!(f, "the anchor was taken of entry {seq}, which is gone"),
        }
    }
}

/// A row as it is found, whatever was done to it.
struct Found {
    seq: i64,
    kept: Option<(Copies, String, Hash)>,
}

impl Store {
    /// Recomputes the whole chain, as it is at this moment. With an anchor, the head of an earlier
    /// day that was kept elsewhere, it also shows a tail that was cut off and a past that was
    /// written anew.
    pub async fn audit_verify(&self, anchor: Option<Head>) -> Result<Verification, StoreError> {
        let mut walk = Walk { anchor, at: Head::NONE, from: None, to: None };
        // In one statement: head and last entry are of one moment.
        let ends = "SELECT h.seq, h.hash, (SELECT max(seq) FROM audit) FROM audit_head h";
        let ends = self.query(ends, vec![], |row| Ok((head(row)?, row.opt_int(2)?))).await?;
        let Some((head, last)) = ends.into_iter().next() else {
            return Ok(walk.end(Head::NONE, Some(Bad { seq: 0, why: Why::Head })));
        };
        let mut next = i64::MIN;
        while walk.at.seq < head.seq {
            let page = self
                .query(
                    "SELECT seq, id, at, kind, agent, tool, ruling, user_id, run_id, entry, hash
                     FROM audit WHERE seq >= $1 ORDER BY seq LIMIT $2",
                    vec![Param::Int(next), Param::Int(PAGE)],
                    found,
                )
                .await?;
            if page.is_empty() {
                break;
            }
            // What lies behind the head has been written since.
            for row in page.iter().filter(|it| it.seq <= place(head.seq)) {
                if let Err(why) = walk.step(row) {
                    let seq = if why == Why::Missing { walk.next() } else { row.seq };
                    return Ok(walk.end(head, Some(Bad { seq, why })));
                }
            }
            next = page.last().map_or(i64::MAX, |it| it.seq.saturating_add(1));
        }
        let bad = walk.bad_end(head, last);
        Ok(walk.end(head, bad))
    }
}

/// How far one has come.
struct Walk {
    anchor: Option<Head>,
    at: Head,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
}

impl Walk {
    fn step(&mut self, row: &Found) -> Result<(), Why> {
        let expected = self.next();
        if row.seq != expected {
            return Err(if row.seq < expected { Why::Stray } else { Why::Missing });
        }
        let Some((copies, text, hash)) = &row.kept else { return Err(Why::Unreadable) };
        if follow(&self.at.hash, text) != *hash {
            return Err(Why::Hash);
        }
        let link: Link = serde_json::from_str(text).map_err(|_| Why::Unreadable)?;
        if link.seq != row.seq as u64 || Copies::of(&link) != *copies {
            return Err(Why::Copies);
        }
        if self.anchor.is_some_and(|it| it.seq == link.seq && it.hash != *hash) {
            return Err(Why::Anchor);
        }
        self.at = Head { seq: link.seq, hash: *hash };
        self.from.get_or_insert(link.at);
        self.to = Some(link.at);
        Ok(())
    }

    fn bad_end(&self, head: Head, last: Option<i64>) -> Option<Bad> {
        let bad = |seq, why| Some(Bad { seq, why });
        if self.at.seq < head.seq {
            return bad(self.next(), Why::Missing);
        }
        if self.at != head {
            return bad(place(self.at.seq), Why::Head);
        }
        if let Some(last) = last.filter(|it| *it < 1 || *it > place(head.seq)) {
            return bad(last, Why::Stray);
        }
        match self.anchor {
            Some(anchor) if anchor.seq > self.at.seq => bad(place(anchor.seq), Why::CutOff),
            // Before the first entry there is one hash.
            Some(anchor) if anchor.seq == 0 && anchor != Head::NONE => bad(0, Why::Anchor),
            _ => None,
        }
    }

    /// Where the next entry must be.
    fn next(&self) -> i64 {
        place(self.at.seq + 1)
    }

    fn end(self, head: Head, first_bad: Option<Bad>) -> Verification {
        let Walk { at, from, to, .. } = self;
        Verification { entries: at.seq, head, from, to, first_bad }
    }
}

/// What no head can be is not that of the last entry either.
fn head(row: &dyn Columns) -> Result<Head, StoreError> {
    let hash = row.hash(1).unwrap_or([u8::MAX; 32]);
    Ok(Head { seq: u64::try_from(row.int(0)?).unwrap_or(u64::MAX), hash })
}

fn found(row: &dyn Columns) -> Result<Found, StoreError> {
    let kept = || -> Result<_, StoreError> {
        let copies = Copies {
            id: row.uuid(1)?,
            at: row.int(2)?,
            kind: row.text(3)?,
            agent: row.opt_text(4)?,
            tool: row.opt_text(5)?,
            ruling: row.opt_text(6)?,
            user: row.opt_text(7)?,
            run: row.opt_uuid(8)?,
        };
        Ok((copies, row.text(9)?, row.hash(10)?))
    };
    Ok(Found { seq: row.int(0)?, kept: kept().ok() })
}
