//! Entries and hashes of the audit: doors for the fuzzer.

use chancery_domain::audit::{Entry, Link, kind};
use chancery_domain::event::Actor;
use chancery_domain::id::AuditId;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::chain::{Draft, Head, follow, hex, unhex};
use super::export::ExportCheck;

/// Whatever an entry quotes, it is kept, read back as it was, and followed by its hash.
pub fn audit_entry(data: &[u8]) {
    let Ok(detail) = serde_json::from_slice::<Value>(data) else { return };
    let text = String::from_utf8_lossy(data).into_owned();
    let mut entry = Entry::new(AuditId(Uuid::from_u128(7)), kind::RULING, Actor::System);
    (entry.detail, entry.tool) = (detail, Some(text));
    let Ok(draft) = Draft::new(Timestamp::UNIX_EPOCH, entry) else { panic!("it is not kept") };
    let mut head = Head::NONE;
    let Ok(row) = head.extend(&draft) else { panic!("it is not written") };
    assert_eq!(head.hash, follow(&Head::NONE.hash, &row.text));
    let Ok(read) = serde_json::from_str::<Link>(&row.text) else { panic!("{}", row.text) };
    let Ok(again) = serde_json_canonicalizer::to_string(&read) else { panic!("{}", row.text) };
    assert_eq!(again, row.text);
}

/// A hash has one spelling.
pub fn audit_hash(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(hash) = unhex(text) {
        assert_eq!(hex(&hash), text);
    }
}

/// What holds of an export is a chain: every line that is taken follows from the one before, and
/// one that is left out or said twice is not taken.
pub fn audit_export(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(mut check) = ExportCheck::new([]) else { panic!("nothing contradicts itself") };
    let mut hash = Head::NONE.hash;
    for line in text.lines() {
        if check.line(line).is_err() {
            break;
        }
        let Some((_, entry)) = line.split_once("\"entry\":") else { panic!("{line}") };
        let Some(entry) = entry.strip_suffix('}') else { panic!("{line}") };
        hash = follow(&hash, entry);
        assert!(check.clone().line(line).is_err(), "{line}");
    }
    assert_eq!(check.end().map(|it| it.head.hash), Ok(hash));
}
