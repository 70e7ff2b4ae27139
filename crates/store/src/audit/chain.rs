//! The chain, pure: what is written of an entry, and how each hash follows from the one before.
//! `docs/audit.md` says the same for those who check it without us.

use chancery_domain::audit::{Entry, Link};
use chancery_domain::event::Actor;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::StoreError;
use crate::log::timestamp;
use crate::projection::storable;

/// A longer name is nobody's; it may be one that a model made up. Indexes have a limit too.
const NAME_MAX: usize = 256;
const REASONS_MAX: usize = 64;
const WORDS_MAX: usize = 1000;
/// A page of entries is held in memory. What is omitted is known by its digest.
const DETAIL_MAX: usize = 32 * 1024;
/// What is deeper could not be read back.
const DEPTH_MAX: usize = 64;
/// Canonical JSON has no larger whole numbers: beyond, two of them would look like one.
const EXACT_MAX: u64 = 1 << 53;

pub type Hash = [u8; 32];

/// Where the chain ends. What is kept of it elsewhere is an anchor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// How many entries there are.
    pub seq: u64,
    pub hash: Hash,
}

/// An entry to be written, and under which time.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    at: Timestamp,
    entry: Entry,
}

/// An entry as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub seq: i64,
    pub copies: Copies,
    pub text: String,
    pub hash: Hash,
}

/// What of an entry stands in columns of its own, to look for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Copies {
    pub id: Uuid,
    pub at: i64,
    pub kind: String,
    pub agent: Option<String>,
    pub tool: Option<String>,
    pub ruling: Option<String>,
    pub user: Option<String>,
    pub run: Option<Uuid>,
}

impl Head {
    /// Before the first entry.
    pub const NONE: Head = Head { seq: 0, hash: [0; 32] };

    /// Puts an entry at the end of the chain, which then ends there.
    pub(crate) fn extend(&mut self, draft: &Draft) -> Result<Row, StoreError> {
        let Draft { at, entry } = draft;
        let link = Link { seq: self.seq + 1, at: *at, entry: entry.clone() };
        let text = canonical(&link)?;
        *self = Head { seq: link.seq, hash: follow(&self.hash, &text) };
        let copies = Copies::of(&link);
        Ok(Row { seq: self.seq as i64, copies, text, hash: self.hash })
    }
}

/// The hash of an entry.
pub(crate) fn follow(before: &Hash, text: &str) -> Hash {
    Sha256::new().chain_update(before).chain_update(text.as_bytes()).finalize().into()
}

impl Draft {
    pub(crate) fn new(at: Timestamp, entry: Entry) -> Result<Draft, StoreError> {
        // As exact as the column beside it.
        Ok(Draft { at: timestamp(at.as_microsecond())?, entry: fit(entry)? })
    }

    pub(crate) fn id(&self) -> Uuid {
        self.entry.id.0
    }
}

impl Copies {
    pub(crate) fn of(link: &Link) -> Copies {
        let entry = &link.entry;
        let text = |it: Option<&str>| it.map(storable);
        Copies {
            id: entry.id.0,
            at: link.at.as_microsecond(),
            kind: storable(&entry.kind),
            agent: text(entry.agent.as_ref().map(|it| it.as_str())),
            tool: text(entry.tool.as_deref()),
            ruling: entry.ruling.map(|it| it.as_str().to_owned()),
            user: text(entry.user.as_ref().map(|it| it.as_str())),
            run: entry.run.map(|it| it.0),
        }
    }
}

fn canonical(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json_canonicalizer::to_string(value).map_err(|it| StoreError::Failed(it.to_string()))
}

/// Whatever an entry quotes, it is of a size that can be kept and read back.
fn fit(mut entry: Entry) -> Result<Entry, StoreError> {
    entry.kind = cut(entry.kind.into_owned(), NAME_MAX).into();
    match &mut entry.actor {
        Actor::User(it) => shorten(&mut it.0),
        Actor::Service(it) => shorten(it),
        Actor::Agent(it) => shorten(&mut it.0),
        Actor::System => {}
    }
    entry.org.iter_mut().for_each(shorten);
    entry.user.iter_mut().for_each(|it| shorten(&mut it.0));
    entry.agent.iter_mut().for_each(|it| shorten(&mut it.0));
    entry.role.iter_mut().for_each(|it| shorten(&mut it.0));
    entry.tool.iter_mut().for_each(shorten);
    entry.reference.iter_mut().for_each(shorten);
    entry.reasons.truncate(REASONS_MAX);
    for reason in &mut entry.reasons {
        for text in [&mut reason.layer, &mut reason.rule, &mut reason.detail] {
            *text = cut(std::mem::take(text), WORDS_MAX);
        }
    }
    if is_deeper(&entry.detail, DEPTH_MAX) {
        entry.detail = json!({ "omitted": "nested too deep" });
        return Ok(entry);
    }
    make_exact(&mut entry.detail);
    let text = canonical(&entry.detail)?;
    if text.len() > DETAIL_MAX {
        let digest = hex(&Sha256::digest(text.as_bytes()).into());
        entry.detail = json!({ "omitted": { "bytes": text.len(), "sha256": digest } });
    }
    Ok(entry)
}

fn shorten(name: &mut String) {
    *name = cut(std::mem::take(name), NAME_MAX);
}

fn cut(text: String, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text,
        Some(_) => text.chars().take(chars - 1).chain(['…']).collect(),
    }
}

/// Whole numbers that canonical JSON would round are written as text.
fn make_exact(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let inexact = number.as_u64().is_some_and(|it| it > EXACT_MAX)
                || number.as_i64().is_some_and(|it| it.unsigned_abs() > EXACT_MAX);
            if inexact {
                *value = Value::String(number.to_string());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_exact),
        Value::Object(fields) => fields.values_mut().for_each(make_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn is_deeper(value: &Value, than: usize) -> bool {
    let Some(less) = than.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|it| is_deeper(it, less)),
        Value::Object(fields) => fields.values().any(|it| is_deeper(it, less)),
        _ => false,
    }
}

/// A hash as people copy it.
pub fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What `hex` wrote; in lower case only.
pub fn unhex(text: &str) -> Option<Hash> {
    let digit = |it: u8| match it {
        b'0'..=b'9' => Some(it - b'0'),
        b'a'..=b'f' => Some(it - b'a' + 10),
        _ => None,
    };
    let bytes = text.as_bytes();
    let mut hash = [0; 32];
    if bytes.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(bytes.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_domain::audit::kind;
    use chancery_domain::id::AuditId;
    use chancery_domain::policy::{Reason, Ruling};

    fn entry() -> Entry {
        Entry::new(AuditId(Uuid::from_u128(7)), kind::RULING, Actor::System)
    }

    fn written(entry: Entry) -> Row {
        let mut head = Head::NONE;
        head.extend(&Draft::new(Timestamp::UNIX_EPOCH, entry).unwrap()).unwrap()
    }

    #[test]
    fn an_entry_is_canonical_json_with_its_place_and_its_time() {
        let row = written(Entry { detail: json!({"z": 1, "a": 1.0}), ..entry() });
        let text = r#"{"actor":{"kind":"system"},"at":"1970-01-01T00:00:00Z","detail":{"a":1,"z":1},"id":"aud_00000000000000000000000000000007","kind":"ruling","seq":1}"#;
        assert_eq!(row.text, text);
        let mut whole = vec![0; 32];
        whole.extend(text.as_bytes());
        assert_eq!(row.hash, <Hash>::from(Sha256::digest(&whole)));
        assert_eq!(unhex(&hex(&row.hash)), Some(row.hash));
    }

    #[test]
    fn whatever_an_entry_quotes_it_can_be_kept_and_read_back() {
        let deep = (0..500).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let long = "名".repeat(20_000);
        let reason = Reason {
            layer: long.clone(),
            rule: long.clone(),
            outcome: Ruling::Deny,
            detail: long.clone(),
        };
        for detail in [deep, json!(long), json!({"n": u64::MAX, "m": i64::MIN, "f": 1e308})] {
            let row = written(Entry {
                tool: Some(format!("\0{long}")),
                actor: Actor::Service(long.clone()),
                reasons: vec![reason.clone(); 1000],
                detail,
                ..entry()
            });
            assert!(row.text.len() < 1024 * 1024, "{}", row.text.len());
            assert!(row.copies.tool.as_ref().unwrap().len() <= 4 * NAME_MAX);
            let read: Link = serde_json::from_str(&row.text).unwrap();
            assert_eq!(canonical(&read).unwrap(), row.text);
            assert_eq!(Copies::of(&read), row.copies);
        }
    }

    #[test]
    fn a_number_is_what_it_was() {
        let detail =
            json!({"n": 9_007_199_254_740_993_u64, "m": -9_007_199_254_740_993_i64, "k": 9});
        let row = written(Entry { detail, ..entry() });
        let exact = r#"{"k":9,"m":"-9007199254740993","n":"9007199254740993"}"#;
        assert!(row.text.contains(exact), "{}", row.text);
    }
}
