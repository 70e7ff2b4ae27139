//! The literals of a person's own words: what they named, by its kind. Pure.
//!
//! An argument that occurs here was named by the person. Text of an agent, a tool or a page is
//! never passed in, so that nothing that was read can ground what is done.

mod address;
mod amount;
mod date;
mod scan;

use std::collections::BTreeSet;

use super::engine::{self, Cedar};
use super::number::in_units;

pub(super) use amount::UNIT;
pub(super) use date::Day;

/// Of one kind. A person names a handful; more is pasted text, and sets of this size are quick.
pub(super) const LITERALS_MAX: usize = 512;
/// The newest words are kept up to here: as much as a person pastes, and read in milliseconds.
const WORDS_MAX: usize = 1 << 20;
/// What is longer is prose, not a name.
const SAID_MAX: usize = 500;

/// What a person said, and the literals in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literals {
    /// The words in lower case.
    folded: String,
    sets: Sets,
    values: Vec<(&'static str, Cedar)>,
}

/// Literals by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sets {
    pub emails: BTreeSet<String>,
    pub urls: BTreeSet<String>,
    pub accounts: BTreeSet<String>,
    pub quoted: BTreeSet<String>,
    pub files: BTreeSet<String>,
    pub dates: BTreeSet<Day>,
    /// In ten-thousandths, as Cedar's `decimal` has four digits.
    pub amounts: BTreeSet<i64>,
    /// Some kind had more literals than are kept.
    pub full: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Emails,
    Urls,
    Accounts,
    Quoted,
    Files,
    Dates,
    Amounts,
}

/// How a rule names each kind.
pub(super) const KINDS: [(&str, Kind); 8] = [
    ("emails", Kind::Emails),
    ("urls", Kind::Urls),
    ("accounts", Kind::Accounts),
    ("quoted", Kind::Quoted),
    ("files", Kind::Files),
    ("dates", Kind::Dates),
    ("amounts", Kind::Amounts),
    ("whole_amounts", Kind::Amounts),
];

/// Whose text is read. What a person wrote is kept in all spellings that mean the same; what is
/// held against it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Words,
    Arguments,
}

impl Default for Literals {
    /// Of somebody who said nothing.
    fn default() -> Literals {
        Literals::of(std::iter::empty())
    }
}

impl Literals {
    /// Reads a person's messages, oldest first.
    pub fn of<'a>(words: impl Iterator<Item = &'a str>) -> Literals {
        let mut left = WORDS_MAX;
        let mut kept = Vec::new();
        for text in words.collect::<Vec<_>>().into_iter().rev() {
            let head = head(text, left);
            left -= head.len();
            kept.push(head);
        }
        kept.reverse();
        let mut sets = Sets::default();
        for text in &kept {
            for (_, kind) in KINDS.into_iter().filter(|it| it.0 != "whole_amounts") {
                sets.read(text, kind, Side::Words);
            }
        }
        let words = kept.join("\n\n");
        let folded = words.to_lowercase();
        let lasting = KINDS.into_iter().filter(|it| it.1 != Kind::Dates);
        let mut values: Vec<_> =
            lasting.map(|(name, kind)| (name, sets.value(name, kind))).collect();
        values.push(("words", engine::text(&words)));
        Literals { folded, sets, values }
    }

    /// What a rule sees, made once for all calls. Dates are not here: what a day without a year
    /// means depends on today.
    pub(super) fn value(&self, name: &str) -> Cedar {
        let known = self.values.iter().find(|it| it.0 == name);
        known.map_or_else(|| engine::set([]), |it| it.1.clone())
    }

    pub(super) fn sets(&self) -> &Sets {
        &self.sets
    }

    /// What one look through the words costs.
    pub(super) fn weight(&self) -> usize {
        self.folded.len()
    }

    pub(super) fn names_link(&self, text: &str) -> bool {
        self.sets.urls.contains(&address::one_spelling(text))
    }

    pub(super) fn names_account(&self, text: &str) -> bool {
        self.sets.accounts.contains(&scan::one_account(text))
    }

    /// Whether the person wrote this text, as whole words. A bare number is never said: the 13
    /// of June 13 is no file's id.
    pub(super) fn says(&self, text: &str) -> bool {
        let text = text.trim();
        let nameable = text.len() <= SAID_MAX
            && text.chars().nth(1).is_some()
            && text.chars().any(char::is_alphabetic);
        if !nameable {
            return false;
        }
        let needle = text.to_lowercase();
        self.folded.match_indices(&*needle).any(|(at, it)| {
            let before = self.folded[..at].chars().next_back();
            let mut after = self.folded[at + it.len()..].chars();
            !joins(before, it.chars().next()) && !goes_on(it.chars().next_back(), &mut after)
        })
    }
}

impl Sets {
    pub fn read(&mut self, text: &str, kind: Kind, side: Side) {
        let full = match kind {
            Kind::Emails => address::emails(text, side, &mut self.emails),
            Kind::Urls => address::urls(text, side, &mut self.urls),
            Kind::Accounts => scan::accounts(text, side, &mut self.accounts),
            Kind::Quoted => scan::quoted(text, &mut self.quoted),
            Kind::Files => scan::files(text, &mut self.files),
            Kind::Dates => date::dates(text, &mut self.dates),
            Kind::Amounts => amount::amounts(text, &mut self.amounts),
        };
        self.full |= full == Room::Full;
    }

    /// One kind, as a rule sees it.
    pub fn value(&self, name: &str, kind: Kind) -> Cedar {
        let texts = |it: &BTreeSet<String>| engine::set(it.iter().map(|it| engine::text(it)));
        match kind {
            Kind::Emails => texts(&self.emails),
            Kind::Urls => texts(&self.urls),
            Kind::Accounts => texts(&self.accounts),
            Kind::Quoted => texts(&self.quoted),
            Kind::Files => texts(&self.files),
            // Without a day to look from there are none: see `Day::dates`.
            Kind::Dates => engine::set([]),
            Kind::Amounts if name == "whole_amounts" => {
                let whole = self.amounts.iter().filter(|it| *it % UNIT == 0);
                engine::set(whole.map(|it| engine::long(it / UNIT)))
            }
            // Every one of them fits: they are ten-thousandths already.
            Kind::Amounts => engine::set(
                self.amounts.iter().filter_map(|it| engine::decimal(&in_units(*it)).ok()),
            ),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Left,
    Full,
}

/// Whom an agent may write to, as a rule sees it: made once for many calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contacts(Cedar);

impl Contacts {
    pub fn of(contacts: impl IntoIterator<Item = impl AsRef<str>>) -> Contacts {
        let spelled = contacts.into_iter().flat_map(|it| {
            let (lower, written) = (it.as_ref().to_ascii_lowercase(), engine::text(it.as_ref()));
            [engine::text(&lower), written]
        });
        Contacts(engine::set(spelled))
    }

    pub(super) fn value(&self) -> Cedar {
        self.0.clone()
    }
}

impl Default for Contacts {
    fn default() -> Contacts {
        Contacts(engine::set([]))
    }
}

/// Takes literals into a set until it is full.
fn fill<T: Ord>(set: &mut BTreeSet<T>, found: impl Iterator<Item = T>) -> Room {
    for literal in found {
        if set.len() >= LITERALS_MAX && !set.contains(&literal) {
            return Room::Full;
        }
        set.insert(literal);
    }
    Room::Left
}

/// The one spelling of a literal, and on a person's side the written one too.
fn spellings(written: &str, one: String, side: Side) -> impl Iterator<Item = String> + use<> {
    let written = (side == Side::Words && written != one).then(|| written.to_owned());
    std::iter::once(one).chain(written)
}

/// A letter or digit of a script that puts spaces between words. Chinese does not: there a
/// literal may stand next to any character.
fn is_word(it: char) -> bool {
    it.is_alphanumeric() && !is_unspaced(it)
}

fn is_unspaced(it: char) -> bool {
    matches!(it,
        '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{30ff}' | '\u{3100}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}

/// Whether the character before a name makes it the end of a longer one.
fn joins(before: Option<char>, first: Option<char>) -> bool {
    let (Some(before), Some(first)) = (before, first) else { return false };
    let glue = matches!(before, '_' | '-' | '@' | '.' | '/' | '\\' | '+' | '%' | '&' | '=' | '#');
    glue || (is_word(before) && is_word(first))
}

/// Whether a name goes on after its last character.
fn goes_on(last: Option<char>, after: &mut std::str::Chars<'_>) -> bool {
    let (Some(last), Some(next)) = (last, after.next()) else { return false };
    match next {
        '_' | '-' | '@' | '/' | '\\' | '+' | '%' | '&' | '=' => true,
        '.' => after.next().is_some_and(is_word),
        _ => is_word(last) && is_word(next),
    }
}

/// As much of a text as fits, cut between words: half a literal was not said.
fn head(text: &str, room: usize) -> &str {
    if text.len() <= room {
        return text;
    }
    let mut cut = room;
    while !text.is_char_boundary(cut) {
        cut -= 1;
    }
    let end = text[..cut].rfind(char::is_whitespace).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests;
