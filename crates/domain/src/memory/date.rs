//! Dates as terms: the third of May is one term, however it is written and in whichever language,
//! so that "what did I do on 5月3号" finds what is dated 2023-05-03.

use jiff::civil::Date;

/// As much of a date as was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Said {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
}

impl Said {
    pub(super) fn whole(date: Date) -> Said {
        Said { year: Some(date.year()), month: Some(date.month()), day: Some(date.day()) }
    }

    fn is_real(self) -> bool {
        self.year.is_none_or(|it| (1900..=2199).contains(&it))
            && self.month.is_none_or(|it| (1..=12).contains(&it))
            && self.day.is_none_or(|it| (1..=31).contains(&it))
    }

    /// The terms of a date: itself, and every vaguer way of saying it. No word has an `@`.
    pub(super) fn terms(self, mut each: impl FnMut(String)) {
        let Said { year, month, day } = self;
        if let (Some(year), Some(month), Some(day)) = (year, month, day) {
            each(format!("@{year:04}-{month:02}-{day:02}"));
        }
        if let (Some(month), Some(day)) = (month, day) {
            each(format!("@{month:02}-{day:02}"));
        }
        if let (Some(year), Some(month)) = (year, month) {
            each(format!("@{year:04}-{month:02}"));
        }
        if let Some(month) = month {
            each(format!("@{month:02}"));
        }
        if let (None, Some(day)) = (month, day) {
            each(format!("@-{day:02}"));
        }
    }
}

/// Every date that a text speaks of. The text is in its normal form and in lower case.
pub(super) fn dates(text: &str) -> Vec<Said> {
    let pieces = pieces(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        let read = numeric(&pieces[at..])
            .or_else(|| chinese(&pieces[at..]))
            .or_else(|| english(&pieces[at..]));
        match read {
            Some((said, length)) if said.is_real() => {
                found.push(said);
                at += length;
            }
            _ => at += 1,
        }
    }
    found
}

/// What dates are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Piece<'t> {
    /// A number with the count of its digits.
    Number(u32, usize),
    /// A number in Chinese numerals, below a hundred.
    Numeral(u32),
    Word(&'t str),
    /// `年`, `月`, `日`, `号`, a separator, anything else.
    Mark(char),
    Blank,
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (piece, length) = if first.is_ascii_digit() {
            let length = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
            // A longer number is no part of a date.
            (Piece::Number(rest[..length].parse().unwrap_or(u32::MAX), length), length)
        } else if numeral(first).is_some() {
            let length = rest.find(|it| numeral(it).is_none()).unwrap_or(rest.len());
            (numerals(&rest[..length]).map_or(Piece::Mark(first), Piece::Numeral), length)
        } else if first.is_alphabetic() && first.is_ascii() {
            let length = rest.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(rest.len());
            (Piece::Word(&rest[..length]), length)
        } else if first.is_whitespace() {
            let length = rest.find(|it: char| !it.is_whitespace()).unwrap_or(rest.len());
            (Piece::Blank, length)
        } else {
            (Piece::Mark(first), first.len_utf8())
        };
        pieces.push(piece);
        rest = &rest[length..];
    }
    pieces
}

fn numeral(it: char) -> Option<u32> {
    "〇一二三四五六七八九十".chars().position(|known| known == it).map(|it| it as u32)
}

/// 三, 十, 十二, 二十, 三十一; and 二〇二三, digit by digit.
fn numerals(text: &str) -> Option<u32> {
    let digits: Vec<u32> = text.chars().filter_map(numeral).collect();
    match *digits.as_slice() {
        [one] => Some(one),
        [10, units] if units < 10 => Some(10 + units),
        [tens, 10] if tens < 10 => Some(tens * 10),
        [tens, 10, units] if tens < 10 && units < 10 => Some(tens * 10 + units),
        [a, b, c, d] if [a, b, c, d].iter().all(|it| *it < 10) => {
            Some(a * 1000 + b * 100 + c * 10 + d)
        }
        _ => None,
    }
}

type Read = Option<(Said, usize)>;

/// `2023-05-03`, `2023/5/3`, `2023.5.3`.
fn numeric(pieces: &[Piece<'_>]) -> Read {
    let [
        Piece::Number(year, 4),
        Piece::Mark(first),
        Piece::Number(month, 1 | 2),
        Piece::Mark(second),
        Piece::Number(day, 1 | 2),
        ..,
    ] = *pieces
    else {
        return None;
    };
    let whole = first == second && matches!(first, '-' | '/' | '.');
    whole.then(|| (said(Some(year), Some(month), Some(day)), 5))
}

/// `2023年5月3日`, `5月3号`, `五月`, `3号`.
fn chinese(pieces: &[Piece<'_>]) -> Read {
    let mut parts: [Option<u32>; 3] = [None; 3];
    let mut at = 0;
    while let Some((number, unit, length)) = counted(&pieces[at..]) {
        let place = match unit {
            '年' => 0,
            '月' => 1,
            _ => 2,
        };
        // A later part of the date comes after an earlier one, and once.
        if parts[place..].iter().any(Option::is_some) {
            break;
        }
        parts[place] = Some(number);
        at += length;
    }
    let [year, month, day] = parts;
    // A year alone is a number like any other, and is found as one.
    (month.is_some() || day.is_some()).then(|| (said(year, month, day), at))
}

/// A number and the mark that says what it counts, with blanks between them.
fn counted(pieces: &[Piece<'_>]) -> Option<(u32, char, usize)> {
    let blanks = pieces.iter().take_while(|it| **it == Piece::Blank).count();
    let (Piece::Number(number, _) | Piece::Numeral(number)) = *pieces.get(blanks)? else {
        return None;
    };
    let between = usize::from(pieces.get(blanks + 1) == Some(&Piece::Blank));
    match *pieces.get(blanks + 1 + between)? {
        Piece::Mark(unit @ ('年' | '月' | '日' | '号' | '號')) => {
            Some((number, unit, blanks + between + 2))
        }
        _ => None,
    }
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn month_named(word: &str) -> Option<u32> {
    let short = word.len() == 3 || word == "sept";
    let position = MONTHS.iter().position(|month| {
        *month == word || (short && month.starts_with(&word[..3.min(word.len())]))
    });
    position.map(|it| it as u32 + 1)
}

/// `May 3, 2023`, `3rd of May 2023`, `May 2023`, `3 May`; a month's name alone, but for those
/// that are words too.
fn english(pieces: &[Piece<'_>]) -> Read {
    let mut reader = Reader { pieces, at: 0 };
    if let Some(day) = reader.day() {
        reader.word("of");
        let month = reader.month()?;
        let year = reader.year();
        return Some((said(year, Some(month), Some(day)), reader.at));
    }
    let month = reader.month()?;
    let after_month = reader.at;
    if let Some(year) = reader.year() {
        return Some((said(Some(year), Some(month), None), reader.at));
    }
    if let Some(day) = reader.day() {
        let year = reader.year();
        return Some((said(year, Some(month), Some(day)), reader.at));
    }
    let is_word_too = matches!(
        pieces.first(),
        Some(Piece::Word("may" | "march" | "mar" | "sep" | "dec" | "jan"))
    );
    (!is_word_too).then(|| (said(None, Some(month), None), after_month))
}

struct Reader<'r, 't> {
    pieces: &'r [Piece<'t>],
    at: usize,
}

impl<'t> Reader<'_, 't> {
    /// The next piece that is neither blank nor a comma, and where it ends.
    fn next(&self) -> Option<(Piece<'t>, usize)> {
        let skip = |it: &&Piece<'_>| matches!(it, Piece::Blank | Piece::Mark(',' | '.'));
        let from = &self.pieces[self.at..];
        let blanks = if self.at == 0 { 0 } else { from.iter().take_while(skip).count() };
        from.get(blanks).map(|it| (*it, self.at + blanks + 1))
    }

    fn take<T>(&mut self, read: impl FnOnce(Piece<'t>) -> Option<T>) -> Option<T> {
        let (piece, end) = self.next()?;
        let value = read(piece)?;
        self.at = end;
        Some(value)
    }

    fn word(&mut self, wanted: &str) {
        self.take(|it| (it == Piece::Word(wanted)).then_some(()));
    }

    fn month(&mut self) -> Option<u32> {
        self.take(|it| match it {
            Piece::Word(word) => month_named(word),
            _ => None,
        })
    }

    fn year(&mut self) -> Option<u32> {
        self.take(|it| match it {
            Piece::Number(year, 4) => Some(year),
            _ => None,
        })
    }

    fn day(&mut self) -> Option<u32> {
        let day = self.take(|it| match it {
            Piece::Number(day @ 1..=31, 1 | 2) => Some(day),
            _ => None,
        })?;
        if let Some(Piece::Word("st" | "nd" | "rd" | "th")) = self.pieces.get(self.at) {
            self.at += 1;
        }
        Some(day)
    }
}

fn said(year: Option<u32>, month: Option<u32>, day: Option<u32>) -> Said {
    // What does not fit is no date, and `is_real` says so.
    let small = |it: Option<u32>| it.map(|it| i8::try_from(it).unwrap_or(i8::MAX));
    let year = year.map(|it| i16::try_from(it).unwrap_or(i16::MAX));
    Said { year, month: small(month), day: small(day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        for it in dates(text) {
            it.terms(|term| terms.push(term));
        }
        terms
    }

    #[test]
    fn one_day_is_one_term_however_it_is_written() {
        for text in [
            "2023-05-03",
            "on 2023/5/3.",
            "2023年5月3日",
            "二〇二三年五月三号",
            "2023 年 5 月 3 日",
            "may 3, 2023",
            "may 3rd 2023",
            "the 3rd of may, 2023",
            "3 may 2023",
        ] {
            let found = terms(text);
            assert!(found.contains(&"@2023-05-03".to_owned()), "{text}: {found:?}");
        }
        for text in ["在5月3号", "5月3日", "五月三日", "may 3", "3 may"] {
            let found = terms(text);
            assert!(found.contains(&"@05-03".to_owned()), "{text}: {found:?}");
            assert!(!found.iter().any(|it| it.contains("2023")), "{text}: {found:?}");
        }
    }

    #[test]
    fn parts_of_dates_are_dates() {
        assert_eq!(terms("in may 2023"), ["@2023-05", "@05"]);
        assert_eq!(terms("2023年5月"), ["@2023-05", "@05"]);
        assert_eq!(terms("last june"), ["@06"]);
        assert_eq!(terms("十一月"), ["@11"]);
        assert_eq!(terms("三十一号"), ["@-31"]);
        let mut whole = Vec::new();
        Said::whole(Date::constant(2023, 5, 3)).terms(|it| whole.push(it));
        assert_eq!(whole, ["@2023-05-03", "@05-03", "@2023-05", "@05"]);
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "i may go",
            "version 1.2.3",
            "2023-13-40",
            "13月",
            "the 99th",
            "call 139-1234-5678",
            "12345678901234567890年1",
            "三百号楼",
            "",
        ] {
            assert_eq!(terms(text), [] as [&str; 0], "{text}");
        }
    }
}
