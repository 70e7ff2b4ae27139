//! One analyser for every language and both databases: what a text is found by.
//!
//! Words are stemmed as English; scripts that leave no blanks between words are cut into pairs of
//! characters; dates become terms of their own. Pure, so that a question and what answers it are
//! taken apart by the same rules wherever they are.

use std::collections::BTreeMap;

use jiff::civil::Date;
use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;

use super::{date, stop};

/// Another number whenever the same text would have other terms: what was indexed under an
/// older one must be indexed again.
pub const VERSION: i64 = 1;

/// The longest word that is kept whole: what is longer is no word of any language.
const WORD_MAX: usize = 64;
/// More terms than this are not asked for: a question is not a book.
pub const QUERY_TERMS_MAX: usize = 192;

/// What a text is found by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// Each with how often it occurs.
    counts: BTreeMap<String, u32>,
    length: u32,
}

impl Terms {
    /// The terms of something that is remembered, and of the day that it is about.
    pub fn of_memory(text: &str, day: Option<Date>) -> Terms {
        let mut terms = Terms::default();
        analyse(text, Side::Memory, |term| terms.add(term));
        if let Some(day) = day {
            date::Said::whole(day).terms(|term| terms.add(term));
        }
        terms
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.counts.iter().map(|(term, count)| (term.as_str(), *count))
    }

    /// How many there are, each as often as it occurs.
    pub fn length(&self) -> u32 {
        self.length
    }

    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    fn add(&mut self, term: String) {
        *self.counts.entry(term).or_default() += 1;
        self.length += 1;
    }

    /// How much two texts have in common: the terms that both have, of all that either has.
    pub fn jaccard(&self, other: &Terms) -> f64 {
        let shared = self.counts.keys().filter(|it| other.counts.contains_key(*it)).count();
        let all = self.counts.len() + other.counts.len() - shared;
        if all == 0 { 1.0 } else { shared as f64 / all as f64 }
    }
}

/// The terms of a question, each once, in an order that is always the same.
pub fn query(text: &str) -> Vec<String> {
    let mut terms = BTreeMap::new();
    let mut place = 0usize;
    analyse(text, Side::Query, |term| {
        terms.entry(term).or_insert(place);
        place += 1;
    });
    let mut terms: Vec<(String, usize)> = terms.into_iter().collect();
    if terms.len() > QUERY_TERMS_MAX {
        // What was said last is what is asked.
        terms.sort_by_key(|(_, place)| std::cmp::Reverse(*place));
        terms.truncate(QUERY_TERMS_MAX);
        terms.sort();
    }
    terms.into_iter().map(|(term, _)| term).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Memory,
    Query,
}

fn analyse(text: &str, side: Side, mut each: impl FnMut(String)) {
    let normal: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let stemmer = Stemmer::create(Algorithm::English);
    for said in date::dates(&normal) {
        said.terms(&mut each);
    }
    let mut rest = normal.as_str();
    while let Some(first) = rest.chars().next() {
        let length = match class(first) {
            Class::Other => first.len_utf8(),
            Class::Word => {
                let length = word_length(rest);
                word(&rest[..length], side, &stemmer, &mut each);
                length
            }
            Class::Dense => {
                let length = rest.find(|it| class(it) != Class::Dense).unwrap_or(rest.len());
                pairs(&rest[..length], side, &mut each);
                length
            }
        };
        rest = &rest[length..];
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    /// Of a script that leaves no blanks between words.
    Dense,
    Other,
}

fn class(it: char) -> Class {
    match it {
        _ if it.is_ascii() => {
            if it.is_ascii_alphanumeric() {
                Class::Word
            } else {
                Class::Other
            }
        }
        // Thai, Lao, Burmese, Khmer; kana, bopomofo, Han with its extensions, Hangul.
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => dense(it),
        '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3100}'..='\u{312f}' => dense(it),
        '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => dense(it),
        '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}' => dense(it),
        _ if it.is_alphanumeric() => Class::Word,
        _ => Class::Other,
    }
}

/// Vowel signs belong to the letters before them; the middle dot of names does not.
fn dense(it: char) -> Class {
    if matches!(it, '\u{30fb}' | '\u{0e2f}' | '\u{0e46}' | '\u{104a}' | '\u{104b}') {
        Class::Other
    } else {
        Class::Dense
    }
}

/// A word ends where something else begins, but for an apostrophe within it.
fn word_length(text: &str) -> usize {
    let mut length = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, it)) = chars.next() {
        let inner = matches!(it, '\'' | '\u{2019}')
            && chars.peek().is_some_and(|(_, next)| class(*next) == Class::Word);
        if class(it) != Class::Word && !inner {
            break;
        }
        length = at + it.len_utf8();
    }
    length
}

fn word(word: &str, side: Side, stemmer: &Stemmer, each: &mut impl FnMut(String)) {
    let word = word.replace('\u{2019}', "'");
    if side == Side::Query && stop::is_english(&word) {
        return;
    }
    if word.chars().count() > WORD_MAX {
        each(word.chars().take(WORD_MAX).collect());
        return;
    }
    let bare = word.strip_suffix("'s").unwrap_or(&word);
    each(stemmer.stem(bare).into_owned());
}

fn pairs(run: &str, side: Side, each: &mut impl FnMut(String)) {
    let chars: Vec<char> = run.chars().collect();
    if let [only] = chars[..] {
        if side == Side::Memory || !stop::is_chinese(only) {
            each(only.to_string());
        }
        return;
    }
    for pair in chars.windows(2) {
        if side == Side::Query && pair.iter().all(|it| stop::is_chinese(*it)) {
            continue;
        }
        each(pair.iter().collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        Terms::of_memory(text, None).counts.into_keys().collect()
    }

    #[test]
    fn one_word_is_one_term_however_it_is_written() {
        assert_eq!(terms("running Runs RUN"), ["run"]);
        assert_eq!(terms("Ｆｕｌｌ full"), ["full"]);
        assert_eq!(terms("Lin’s Lin's Lin"), ["lin"]);
        assert_eq!(terms("图书馆"), ["书馆", "图书"]);
        assert_eq!(terms("达·芬奇"), ["芬奇", "达"]);
        assert_eq!(terms("買ったcake"), ["cake", "った", "買っ"]);
        assert_eq!(terms("…!？"), [] as [&str; 0]);
    }

    #[test]
    fn a_question_is_asked_without_its_small_words() {
        assert_eq!(query("What did you tell me about the museums?"), ["museum"]);
        let asked = query("你曾经给我推荐过哪些画家？");
        assert_eq!(asked, ["些画", "我推", "推荐", "画家", "荐过"]);
    }

    #[test]
    fn a_date_in_a_question_is_the_day_of_a_memory() {
        let remembered = Terms::of_memory("we met", Some(Date::constant(2023, 5, 3)));
        for question in ["5月3号", "on May 3rd", "2023-05-03", "五月三日"] {
            let asked = query(question);
            assert!(asked.iter().any(|it| remembered.counts.contains_key(it)), "{asked:?}");
        }
    }

    #[test]
    fn nothing_that_anybody_writes_is_too_much() {
        let long = "x".repeat(100_000);
        assert_eq!(terms(&long)[0].len(), WORD_MAX);
        let many: String = (0..10_000).map(|it| format!("word{it} ")).collect();
        assert_eq!(query(&many).len(), QUERY_TERMS_MAX);
        assert!(query(&many).contains(&"word9999".to_owned()));
        for odd in ["\u{0}\u{202e}", "👍🏽", "\u{1f1e9}\u{1f1ea}", "'", "''''", "n't", "ﷺ"] {
            terms(odd);
            query(odd);
        }
    }

    #[test]
    fn likeness_is_the_share_of_common_terms() {
        let of = |text| Terms::of_memory(text, None);
        assert_eq!(of("a b c").jaccard(&of("c b a")), 1.0);
        assert_eq!(of("a b").jaccard(&of("b c")), 1.0 / 3.0);
        assert_eq!(of("").jaccard(&of("")), 1.0);
        assert_eq!(of("a").jaccard(&of("")), 0.0);
    }
}
