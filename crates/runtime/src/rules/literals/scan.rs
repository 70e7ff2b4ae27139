//! Accounts, files and quotations in a text. Every pattern is bounded, so that hostile text costs
//! no more than other text.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Room, Side, fill, is_word, spellings};

/// A quotation that is longer is prose.
const QUOTED_MAX: usize = 500;

pub(super) fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "the patterns are constants, and every one is tested")]
    Regex::new(text).expect("a valid pattern")
}

pub(super) fn accounts(text: &str, side: Side, into: &mut BTreeSet<String>) -> Room {
    // An IBAN, or at least eight digits that stand in groups of three or more.
    static ACCOUNT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,4})?",
            r"|[0-9]{3,34}(?:[ -][0-9]{3,34}){0,8}"
        ))
    });
    let found = ACCOUNT.find_iter(text).filter(|it| {
        let digits = it.as_str().bytes().filter(u8::is_ascii_digit).count();
        let before = text[..it.start()].chars().next_back();
        let after = text[it.end()..].chars().next();
        let joined = |it: char| is_word(it) || matches!(it, '_' | '-' | '.');
        let ends = after.is_none_or(|it| it == '.' || !joined(it));
        let whole = !before.is_some_and(joined) && ends;
        (8..=34).contains(&digits) && (whole || side == Side::Arguments)
    });
    let spelled = found.flat_map(|it| spellings(it.as_str(), one_account(it.as_str()), side));
    fill(into, spelled)
}

/// An account without what groups its digits.
pub(super) fn one_account(text: &str) -> String {
    text.chars().filter(|it| !matches!(it, ' ' | '-')).collect()
}

pub(super) fn files(text: &str, into: &mut BTreeSet<String>) -> Room {
    static FILE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"(?:[A-Za-z]:\\|~/|\.{1,2}/|/)?(?:[A-Za-z0-9_.\-]{1,128}[/\\]){0,16}",
            r"[A-Za-z0-9_\-]{1,128}(?:\.[A-Za-z0-9]{1,8}){1,3}",
            r"|(?:[A-Za-z]:\\|~/|\.{1,2}/|/)(?:[A-Za-z0-9_.\-]{1,128}[/\\]){0,16}[A-Za-z0-9_\-]{1,128}"
        ))
    });
    let found = FILE.find_iter(text).filter_map(|it| {
        let before = text[..it.start()].chars().next_back();
        let after = text[it.end()..].chars().next();
        let cuts = |it: char| is_word(it) || matches!(it, '_' | '-' | '@' | '/' | '\\' | ':');
        let named = it.as_str().bytes().any(|it| it.is_ascii_alphabetic());
        let whole = !before.is_some_and(|it| cuts(it) || it == '.') && !after.is_some_and(cuts);
        (named && whole).then(|| it.as_str().to_owned())
    });
    fill(into, found)
}

/// What stands between quotation marks, in one pass: of each kind of mark the last one that was
/// opened is remembered.
pub(super) fn quoted(text: &str, into: &mut BTreeSet<String>) -> Room {
    const PAIRS: [(char, char); 14] = [
        ('"', '"'),
        ('\'', '\''),
        ('`', '`'),
        ('＂', '＂'),
        ('＇', '＇'),
        ('“', '”'),
        ('‘', '’'),
        ('„', '“'),
        ('«', '»'),
        ('「', '」'),
        ('『', '』'),
        ('《', '》'),
        ('〈', '〉'),
        ('【', '】'),
    ];
    let mut open: [Option<usize>; PAIRS.len()] = [None; PAIRS.len()];
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, it)) = chars.next() {
        let after = chars.peek().map(|(_, it)| *it);
        for (pair, open) in PAIRS.iter().zip(&mut open) {
            if it != pair.0 && it != pair.1 {
                continue;
            }
            // A mark that is both opens before a word and closes after one: "can't" does neither.
            let closes = it == pair.1 && (pair.0 != pair.1 || !after.is_some_and(is_word));
            if closes && let Some(start) = open.take() {
                let inside = &text[start..at];
                let fits = !inside.trim().is_empty() && inside.len() <= QUOTED_MAX;
                if fits && fill(into, std::iter::once(inside.to_owned())) == Room::Full {
                    return Room::Full;
                }
            } else if it == pair.0 && (pair.0 != pair.1 || !before.is_some_and(is_word)) {
                *open = Some(at + it.len_utf8());
            }
        }
        before = Some(it);
    }
    Room::Left
}
