//! Amounts of money in a text: a number beside a currency, as ten-thousandths.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::scan::pattern;
use super::{Room, fill, is_word};

/// Cedar's `decimal` has four digits after the point.
pub const UNIT: i64 = 10_000;

pub(super) fn amounts(text: &str, into: &mut BTreeSet<i64>) -> Room {
    const NUMBER: &str =
        r"([0-9]{1,3}(?:[,'’ .][0-9]{3}){1,4}(?:[.,][0-9]{1,4})?|[0-9]{1,14}(?:[.,][0-9]{1,4})?)";
    const TIMES: &str = r"(百万|千万|[kKmM]|thousand|million|billion|bn|百|千|万|萬|亿|億)?";
    const CODES: &str = "USD|EUR|GBP|CHF|CNY|RMB|JPY|HKD|AUD|CAD|INR|SGD|KRW|SEK|NOK|DKK|PLN";
    const CHINESE: &str =
        "([零〇一二两兩三四五六七八九十百千万萬亿億]{1,20}|[0-9]{1,14}[百千万萬亿億]{1,4})";
    const AFTER: &str = r"(?:US ?|HK ?)?[$€£¥￥₹₩]|dollars?|bucks|euros?|pounds?|yuan|renminbi|yen|francs?|rupees?|元|圆|圓|块|塊|美元|美金|欧元|歐元|英镑|英鎊|日元|日圆|港币|港元|人民币|人民幣|瑞郎";
    static FORMS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [
            pattern(&format!(
                r"(?:(?:US|HK|NT|A|C)?[$€£¥￥₹₩]|(?-u:\b)(?i:{CODES})(?-u:\b))\s?{NUMBER}\s?{TIMES}"
            )),
            pattern(&format!(r"{NUMBER}\s?{TIMES}\s?(?:(?i:{CODES})(?-u:\b)|{AFTER})")),
            pattern(&format!("{CHINESE}()(?:{AFTER})")),
        ]
    });
    for form in &*FORMS {
        let found = form.captures_iter(text).filter_map(|it| {
            let (whole, number) = (it.get(0)?, it.get(1)?);
            let times = it.get(2).map_or("", |it| it.as_str());
            let before = text[..number.start()].chars().next_back();
            let mut after = text[whole.end()..].chars();
            let next = after.next();
            // A piece of a longer number or word is not what was said.
            let cut = before.is_some_and(|it| it.is_ascii_digit() || matches!(it, '.' | ','))
                || next.is_some_and(|it| it.is_ascii_digit())
                || matches!(next, Some('.' | ','))
                    && after.next().is_some_and(|it| it.is_ascii_digit())
                || ends_in_word(whole.as_str()) && next.is_some_and(is_word);
            if cut {
                return None;
            }
            let value = number.as_str();
            let units = if value.is_ascii() || value.contains('’') {
                decimal(value)?
            } else {
                chinese(value)?.checked_mul(UNIT)?
            };
            units.checked_mul(factor(times)?)
        });
        if fill(into, found) == Room::Full {
            return Room::Full;
        }
    }
    Room::Left
}

fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_word)
}

fn factor(word: &str) -> Option<i64> {
    Some(match word {
        "" => 1,
        "百" => 100,
        "k" | "K" | "thousand" | "千" => 1000,
        "万" | "萬" => 10_000,
        "m" | "M" | "million" | "百万" => 1_000_000,
        "千万" => 10_000_000,
        "亿" | "億" => 100_000_000,
        "billion" | "bn" => 1_000_000_000,
        _ => return None,
    })
}

/// Ten-thousandths of `1,234.56`, `1.234,56` or `1234`. The last mark is the decimal one if it is
/// of its own kind and not followed by three digits.
fn decimal(text: &str) -> Option<i64> {
    let marks: Vec<(usize, char)> =
        text.char_indices().filter(|(_, it)| !it.is_ascii_digit()).collect();
    let point = match marks.as_slice() {
        [] => None,
        [(at, '.')] => Some(*at),
        [(at, ',')] if text.len() - at - 1 != 3 => Some(*at),
        [_] => None,
        [rest @ .., (at, mark)] => {
            let own = rest.iter().all(|(_, it)| it != mark);
            (own && matches!(mark, '.' | ',')).then_some(*at)
        }
    };
    let (whole, part) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    let whole: i64 = whole.parse().ok()?;
    let part: i64 = format!("{part:0<4}").parse().ok()?;
    whole.checked_mul(UNIT)?.checked_add(part)
}

/// `三百五十` is 350, `一万两千` 12,000; digits may stand before the larger units: `5万`.
pub(super) fn chinese(text: &str) -> Option<i64> {
    let (mut total, mut section, mut last) = (0_i64, 0_i64, None::<i64>);
    for it in text.chars() {
        if let Some(digit) = it.to_digit(10).map(i64::from).or_else(|| digit(it)) {
            last = Some(last.unwrap_or(0).checked_mul(10)?.checked_add(digit)?);
            continue;
        }
        let unit = match it {
            '十' => 10,
            '百' => 100,
            '千' => 1000,
            '万' | '萬' => 10_000,
            '亿' | '億' => 100_000_000,
            _ => return None,
        };
        if unit < 10_000 {
            section = section.checked_add(last.take().unwrap_or(1).checked_mul(unit)?)?;
        } else {
            let below = section.checked_add(last.take().unwrap_or(0))?;
            total = match unit {
                10_000 => total.checked_add(below.checked_mul(unit)?)?,
                _ => total.checked_add(below)?.checked_mul(unit)?,
            };
            section = 0;
        }
    }
    total.checked_add(section)?.checked_add(last.unwrap_or(0))
}

pub(super) fn digit(it: char) -> Option<i64> {
    let digit = match it {
        '零' | '〇' => 0,
        '一' => 1,
        '二' | '两' | '兩' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        _ => return None,
    };
    Some(digit)
}
