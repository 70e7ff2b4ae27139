//! A sentence is read by its pattern, and said in Chinese with what stood in its gaps. Which
//! sentences there are is for others to say; one that fits no pattern of theirs is not guessed at.

#[cfg(test)]
pub mod sources;

/// English and Chinese. A gap is `{}`; in Chinese it has its number, from 1. `{1~}` is a gap that
/// is itself read, where the same table has its words.
pub type Pattern = (&'static str, &'static str);

/// A sentence, one within it, and one within that: deeper goes only what somebody has forged.
const DEPTH_MAX: usize = 3;

/// The sentence in Chinese; `None` where it fits no pattern.
pub fn in_chinese(table: &[Pattern], sentence: &str) -> Option<String> {
    read(table, sentence, DEPTH_MAX)
}

fn read(table: &[Pattern], sentence: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    table.iter().find_map(|(english, chinese)| {
        let gaps = gaps(english, sentence)?;
        filled(chinese, |number, is_read| {
            let gap = *gaps.get(number.checked_sub(1)?)?;
            let inner = is_read.then(|| read(table, gap, depth)).flatten();
            Some(inner.unwrap_or_else(|| gap.to_owned()))
        })
    })
}

/// What stands in the gaps of a sentence; `None` where it is another.
fn gaps<'s>(pattern: &str, sentence: &'s str) -> Option<Vec<&'s str>> {
    let mut parts = pattern.split("{}");
    let first = parts.next()?;
    let mut rest = sentence.strip_prefix(first)?;
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty().then(Vec::new);
    };
    let mut gaps = Vec::new();
    for part in between {
        let (gap, after) = rest.split_once(part)?;
        gaps.push(gap);
        rest = after;
    }
    gaps.push(rest.strip_suffix(last)?);
    // A name that could end its quotation might make one sentence look like another.
    let before = std::iter::once(&first).chain(between);
    let mut quoted = before.zip(&gaps).filter(|(before, _)| before.ends_with('`'));
    if quoted.any(|(_, gap)| gap.contains('`')) { None } else { Some(gaps) }
}

/// A Chinese sentence with what `gap` has for each number. Other braces are what they are.
fn filled(chinese: &str, gap: impl Fn(usize, bool) -> Option<String>) -> Option<String> {
    let mut text = String::new();
    let mut rest = chinese;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let named = after.split_once('}').and_then(|(name, after)| {
            let number = name.strip_suffix('~').unwrap_or(name).parse().ok()?;
            Some((number, name.ends_with('~'), after))
        });
        match named {
            Some((number, is_read, after)) => {
                text.push_str(&gap(number, is_read)?);
                rest = after;
            }
            None => {
                text.push('{');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Pattern] = &[
        ("`{}` is {} where {} belongs", "`{1}` 处应为{3~}，却是{2~}"),
        ("a list", "列表"),
        ("text (`{}`)", "文本（`{1}`）"),
        ("write `{x: […]}`", "写成 `{x: […]}`"),
        ("within {}", "在{1~}之内"),
    ];

    #[track_caller]
    fn check(sentence: &str, chinese: Option<&str>) {
        assert_eq!(in_chinese(TABLE, sentence).as_deref(), chinese);
    }

    #[test]
    fn a_gap_is_read_where_the_table_has_its_words_and_kept_where_it_has_not() {
        check("`a` is text (`b`) where a list belongs", Some("`a` 处应为列表，却是文本（`b`）"));
        check("`a` is odd where a list belongs", Some("`a` 处应为列表，却是odd"));
        check("write `{x: […]}`", Some("写成 `{x: […]}`"));
        check("`a` is odd", None);
    }

    #[test]
    fn what_is_forged_is_not_followed_far() {
        let deep = format!("{}a list", "within ".repeat(200_000));
        let read = in_chinese(TABLE, &deep).unwrap();
        assert_eq!(read.matches('在').count(), DEPTH_MAX);
        check("`a` is b` where a list belongs", Some("`a` 处应为列表，却是b`"));
        check("`a` b` is x where a list belongs", None);
    }
}
