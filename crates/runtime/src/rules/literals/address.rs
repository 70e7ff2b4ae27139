//! Mail addresses and links in a text. Each stands around a mark that is easy to find, so that a
//! text is read once, whatever is in it.
//!
//! What a person wrote counts only where it is whole; what is held against it counts in pieces,
//! too: a cut link was not said, and is still a link.

use std::collections::BTreeSet;

use super::{Room, Side, fill, is_word, spellings};

/// What is longer is no address.
const NAME_MAX: usize = 64;
const HOST_MAX: usize = 253;

/// Endings under which a bare name is taken for a link. None of them ends the name of a file.
const ENDINGS: [&str; 57] = [
    "com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "io", "co", "ai", "app", "dev",
    "xyz", "site", "online", "top", "shop", "club", "link", "click", "me", "tv", "cc", "cn", "hk",
    "tw", "jp", "kr", "sg", "in", "ru", "ua", "uk", "de", "fr", "it", "es", "nl", "be", "ch", "at",
    "se", "no", "dk", "fi", "pt", "cz", "eu", "us", "ca", "au", "nz", "br", "mx", "za",
];

pub(super) fn emails(text: &str, side: Side, into: &mut BTreeSet<String>) -> Room {
    let found = text.match_indices('@').filter_map(|(at, _)| {
        let name = last_run(&text[..at], NAME_MAX, is_name);
        let host = first_run(&text[at + 1..], HOST_MAX, is_host);
        let name = name.trim_start_matches(['\'', '.']);
        let host = host.trim_end_matches(['.', '-']);
        let ending = host.rsplit_once('.').filter(|it| !it.0.is_empty())?.1;
        let fits = ending.len() >= 2 && ending.bytes().all(|it| it.is_ascii_alphabetic());
        if name.is_empty() || !fits {
            return None;
        }
        let (start, end) = (at - name.len(), at + 1 + host.len());
        let cuts = |it: char| is_word(it) || matches!(it, '_' | '-' | '@' | '+' | '%');
        let whole = !text[..start].chars().next_back().is_some_and(cuts)
            && !text[end..].chars().next().is_some_and(cuts);
        (whole || side == Side::Arguments).then(|| &text[start..end])
    });
    fill(into, found.flat_map(|it| spellings(it, it.to_ascii_lowercase(), side)))
}

pub(super) fn urls(text: &str, side: Side, into: &mut BTreeSet<String>) -> Room {
    let mut done = 0;
    while let Some(mark) = text[done..].find(['.', ':']) {
        // Invariant: a token begins after the last one, so that nothing is read twice.
        let head = last_run(&text[done..done + mark], usize::MAX, is_link);
        let start = done + mark - head.len();
        let token = first_run(&text[start..], usize::MAX, is_link);
        done = start + token.len();
        let before = text[..start].chars().next_back();
        let after = text[done..].chars().next();
        let mut found = Vec::new();
        links(token, Around { before, after, side }, &mut found);
        // A scheme that nothing comes after leads nowhere.
        found.retain(|it| !one_spelling(it).is_empty());
        let spelled = found.into_iter().flat_map(|it| {
            let one = one_spelling(it);
            let more = match side {
                Side::Words => vec![format!("https://{one}"), format!("http://{one}")],
                Side::Arguments => vec![],
            };
            spellings(it, one, side).chain(more)
        });
        if fill(into, spelled) == Room::Full {
            return Room::Full;
        }
    }
    Room::Left
}

struct Around {
    before: Option<char>,
    after: Option<char>,
    side: Side,
}

/// The links in a run of characters that links are made of.
fn links<'a>(token: &'a str, around: Around, into: &mut Vec<&'a str>) {
    let cut_after = around.after.is_some_and(is_word) && around.side == Side::Words;
    let mut at = 0;
    while at < token.len() {
        let rest = &token[at..];
        let run = first_run(rest, usize::MAX, is_host);
        if run.is_empty() {
            at += 1;
            continue;
        }
        let after_run = &rest[run.len()..];
        // With a scheme the rest of the run is the link, whatever is in it.
        if after_run.starts_with("://") && after_run.len() > 3 {
            if !cut_after {
                into.push(without_closing_marks(rest));
            }
            return;
        }
        let host = run.trim_matches(['.', '-']);
        if is_bare(host) {
            let start = at + (run.len() - run.trim_start_matches(['.', '-']).len());
            let path = after_run.starts_with(['/', ':', '?', '#']) && run.ends_with(host);
            let link = if path { &token[start..] } else { host };
            let end = start + link.len();
            let before = token[..start].chars().next_back().or(around.before);
            let after = token[end..].chars().next().or(around.after);
            // The host of an address, or a piece of a longer name.
            let inside =
                before.is_some_and(|it| is_word(it) || matches!(it, '@' | '_' | '-' | '.'));
            let goes_on = after.is_some_and(|it| is_word(it) || matches!(it, '_' | '-' | '@'));
            let address = before == Some('@');
            if !address && (around.side == Side::Arguments || !(inside || goes_on)) {
                into.push(without_closing_marks(link));
            }
            if path {
                return;
            }
        }
        at += run.len();
    }
}

/// Whether a name without a scheme is taken for a host.
fn is_bare(host: &str) -> bool {
    let Some((name, ending)) = host.rsplit_once('.').filter(|it| !it.0.is_empty()) else {
        return false;
    };
    let www = name.len() >= 3 && host.get(..4).is_some_and(|it| it.eq_ignore_ascii_case("www."));
    www || ENDINGS.iter().any(|it| it.eq_ignore_ascii_case(ending))
}

/// Without the scheme and a last slash, the host in lower case.
pub(super) fn one_spelling(url: &str) -> String {
    let lower = url.get(..8).map(str::to_ascii_lowercase).unwrap_or_default();
    let rest = if lower == "https://" {
        &url[8..]
    } else if lower.starts_with("http://") {
        &url[7..]
    } else {
        url
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let path = &rest[end..];
    let path = if path == "/" { "" } else { path };
    rest[..end].to_ascii_lowercase() + path
}

/// Punctuation at the end is the sentence's; a bracket is, unless it was opened inside.
fn without_closing_marks(url: &str) -> &str {
    let mut url = url;
    while let Some(last) = url.chars().next_back() {
        let opened = match last {
            ')' => url.contains('('),
            ']' => url.contains('['),
            '.' | ',' | ';' | ':' | '!' | '?' | '\'' => false,
            _ => return url,
        };
        if opened {
            return url;
        }
        url = &url[..url.len() - last.len_utf8()];
    }
    url
}

fn is_name(it: u8) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'%' | b'+' | b'\'' | b'-')
}

fn is_host(it: u8) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-')
}

fn is_link(it: u8) -> bool {
    matches!(it, b'!' | b'#'..=b';' | b'=' | b'?'..=b'[' | b']' | b'_' | b'a'..=b'z' | b'~')
}

/// The run at the beginning of a text. Only for characters of one byte.
fn first_run(text: &str, max: usize, of: fn(u8) -> bool) -> &str {
    let length = text.bytes().take(max).take_while(|it| of(*it)).count();
    &text[..length]
}

/// The run at the end of a text. Only for characters of one byte.
fn last_run(text: &str, max: usize, of: fn(u8) -> bool) -> &str {
    let length = text.bytes().rev().take(max).take_while(|it| of(*it)).count();
    &text[text.len() - length..]
}
