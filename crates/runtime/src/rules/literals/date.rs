//! Dates in a text, in the forms that leave no doubt which day is meant.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::civil::Date;
use regex::{Captures, Regex};

use super::scan::pattern;
use super::{Room, amount, fill};

/// A day that was named, with its year or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day {
    year: Option<i16>,
    month: i8,
    day: i8,
}

impl Day {
    fn new(year: Option<i16>, month: i8, day: i8) -> Option<Day> {
        // Without a year it must exist in some year.
        Date::new(year.unwrap_or(2000), month, day).ok()?;
        Some(Day { year, month, day })
    }

    /// The dates that it can mean. Without a year: of this year, the last and the next.
    pub fn dates(self, today: Date) -> impl Iterator<Item = String> {
        let this = today.year();
        let years = match self.year {
            Some(year) => [Some(year), None, None],
            None => [this.checked_sub(1), Some(this), this.checked_add(1)],
        };
        let exists = move |year| Date::new(year, self.month, self.day).ok();
        years.into_iter().flatten().filter_map(exists).map(|it| it.to_string())
    }
}

pub(super) fn dates(text: &str, into: &mut BTreeSet<Day>) -> Room {
    const MONTH: &str = "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?\
        |aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
    type Read = fn(&Captures<'_>) -> Option<Day>;
    static FORMS: LazyLock<[(Regex, Read); 6]> = LazyLock::new(|| {
        let month_first = format!(
            r"(?i)(?-u:\b){MONTH}\.?\s{{1,3}}([0-9]{{1,2}})(?:st|nd|rd|th)?(?-u:\b)(?:,?\s{{1,3}}([0-9]{{4}})(?-u:\b))?"
        );
        let day_first = format!(
            r"(?i)(?-u:\b)([0-9]{{1,2}})(?:st|nd|rd|th)?\s{{1,3}}(?:of\s{{1,3}})?{MONTH}(?-u:\b)\.?(?:,?\s{{1,3}}([0-9]{{4}})(?-u:\b))?"
        );
        [
            (pattern(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})"), |it| day(it, [1, 2, 3])),
            (pattern(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})"), |it| day(it, [3, 2, 1])),
            (pattern(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})"), either_order),
            (
                pattern(concat!(
                    r"(?:([0-9]{4}|[〇零一二三四五六七八九]{4})\s?年\s?)?",
                    r"([0-9]{1,2}|[一二三四五六七八九十]{1,3})\s?月\s?",
                    r"([0-9]{1,2}|[一二三四五六七八九十]{1,3})\s?[日号號]"
                )),
                |it| day(it, [1, 2, 3]),
            ),
            (pattern(&month_first), |it| day(it, [3, 1, 2])),
            (pattern(&day_first), |it| day(it, [3, 2, 1])),
        ]
    });
    for (form, read) in &*FORMS {
        let found = form.captures_iter(text).filter_map(|it| {
            let whole = it.get(0)?;
            let before = text[..whole.start()].chars().next_back();
            let after = text[whole.end()..].chars().next();
            // A piece of a longer number, or a year that was not understood.
            let cut = before.is_some_and(|it| it.is_ascii_digit() || it == '年')
                || after.is_some_and(|it| it.is_ascii_digit());
            if cut { None } else { read(&it) }
        });
        if fill(into, found) == Room::Full {
            return Room::Full;
        }
    }
    Room::Left
}

fn day(captured: &Captures<'_>, [year, month, day]: [usize; 3]) -> Option<Day> {
    let year = match captured.get(year) {
        Some(it) => Some(i16::try_from(number(it.as_str())?).ok()?),
        None => None,
    };
    let month = captured.get(month)?.as_str();
    let month = month_named(month).or_else(|| i8::try_from(number(month)?).ok())?;
    let day = i8::try_from(number(captured.get(day)?.as_str())?).ok()?;
    Day::new(year, month, day)
}

/// `04/05/2026` is one day here and another there: only what can be read one way is read.
fn either_order(captured: &Captures<'_>) -> Option<Day> {
    let readings = (day(captured, [3, 1, 2]), day(captured, [3, 2, 1]));
    match readings {
        (Some(one), None) | (None, Some(one)) => Some(one),
        (Some(one), Some(other)) if one == other => Some(one),
        _ => None,
    }
}

fn number(text: &str) -> Option<i64> {
    if text.is_ascii() {
        return text.parse().ok();
    }
    // A year is read digit by digit: 二〇二六.
    if text.chars().count() == 4 {
        return text.chars().try_fold(0, |sum, it| Some(sum * 10 + amount::digit(it)?));
    }
    amount::chinese(text)
}

fn month_named(text: &str) -> Option<i8> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let head = text.get(..3)?.to_ascii_lowercase();
    let place = MONTHS.iter().position(|it| *it == head)?;
    i8::try_from(place + 1).ok()
}
