//! Doors for a fuzzer to what reads files, pages and questions from outside. Each takes any bytes,
//! and panics where something does not hold that must. Only built with the feature `fuzz`.

use std::collections::BTreeMap;

use chancery_domain::id::{MemoryId, PermissionId, RunId};

use crate::commands::{self, Command, Line};
use crate::console;
use crate::extract::asked_id;
use crate::organisation::files::NAMES;
use crate::organisation::reload::load_texts;
use crate::routes::audit::parse_anchor;

/// One of the organisation's files; the first byte says which.
pub fn organisation(data: &[u8]) {
    let Some((which, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let name = NAMES[usize::from(*which) % NAMES.len()];
    if let Err(mistakes) = load_texts(BTreeMap::from([(name.to_owned(), text.to_owned())])) {
        assert!(!mistakes.is_empty(), "refused without a reason: {text:?}");
        for it in mistakes {
            assert!(it.line >= 1 && it.column >= 1, "{it:?}");
            assert!(!it.detail.is_empty(), "{it:?}");
        }
    }
}

/// An agent's words, as a page draws them: nothing in them acts, and nothing is fetched.
pub fn markdown(data: &[u8]) {
    const TAGS: [&str; 20] = [
        "p",
        "br",
        "strong",
        "em",
        "del",
        "code",
        "pre",
        "ul",
        "ol",
        "li",
        "blockquote",
        "a",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "hr",
        "mark",
    ];
    let Ok(text) = std::str::from_utf8(data) else { return };
    for drawn in [console::markdown(text), console::shown(text), console::line(text)] {
        for piece in drawn.split('<').skip(1) {
            let (tag, _) = piece.split_once('>').unwrap_or_else(|| panic!("open: {drawn}"));
            let tag = tag.trim_start_matches('/').trim_end_matches('/').trim();
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            assert!(TAGS.contains(&name), "<{tag}> in {drawn}");
            let href = attributes.split("href=\"").nth(1).unwrap_or_default();
            // A scheme begins with a letter and has no other characters: else the link is relative.
            let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.');
            let scheme = href.split_once(':').filter(|(it, _)| {
                it.starts_with(|it: char| it.is_ascii_alphabetic()) && it.chars().all(plain)
            });
            let fits = scheme.is_none_or(|(it, _)| {
                ["http", "https", "mailto"].iter().any(|known| it.eq_ignore_ascii_case(known))
            });
            assert!(fits, "<{tag}> in {drawn}");
        }
    }
    assert!(!console::line(text).contains('\n'));
}

/// Where a list goes on, and what is asked for by its id.
pub fn cursor(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for prefix in ["MAIL-", "CTR-"] {
        if let Ok(Some(id)) = asked_id("cursor", prefix, Some(text.to_owned())) {
            assert_eq!(id, text);
            assert!(id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-'), "{id:?}");
        }
    }
    if let Ok(id) = text.parse::<MemoryId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(id) = text.parse::<RunId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(head) = parse_anchor(text) {
        assert!(i64::try_from(head.seq).is_ok());
    }
}

/// What a person types in a chat: nothing but the exact form decides.
pub fn command(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Line::Command(Command::Approve(id)) = commands::read(text) {
        let line = text.lines().next().unwrap_or_default().trim_end();
        assert_eq!(line, format!("/approve {id}"));
        assert!(id.to_string().parse::<PermissionId>().is_ok());
    }
}
