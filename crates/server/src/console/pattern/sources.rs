//! The sentences that stand in our own code, for the tests that none of them lacks its Chinese.

/// The texts of a file's code that say something, without its comments and its tests.
pub fn texts(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut texts = literals(code);
    texts.retain(|it| it.contains(' ') && it.contains(char::is_alphabetic));
    texts
}

/// What of a file lies between two of its texts.
pub fn between(source: &str, from: &str, to: &str) -> String {
    let (_, rest) = source.split_once(from).unwrap_or_else(|| panic!("{from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("{to}")).0.to_owned()
}

/// Every text in the code, as the compiler reads it.
pub fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (sign, after) = (&rest[at..=at], &rest[at + 1..]);
        rest = match sign {
            "/" if after.starts_with('/') => after.split_once('\n').map_or("", |it| it.1),
            "/" => after,
            "'" => past_character(after),
            _ if rest[..at].ends_with(['r', '#']) => {
                let (text, after) = after.split_once('"').unwrap();
                found.push(text.to_owned());
                after
            }
            _ => {
                let (text, after) = text(after);
                found.push(text);
                after
            }
        };
    }
    found
}

/// What follows on a quote that is one character's, or a lifetime's.
fn past_character(after: &str) -> &str {
    let mut chars = after.char_indices();
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, it))) => {
            let rest = &after[at + it.len_utf8()..];
            rest.split_once('\'').map_or("", |it| it.1)
        }
        (Some(_), Some((at, '\''))) => &after[at + 1..],
        _ => after,
    }
}

/// The text that has begun, and what follows on it.
fn text(code: &str) -> (String, &str) {
    let mut text = String::new();
    let mut rest = code;
    loop {
        let at = rest.find(['"', '\\']).unwrap();
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if rest[at..].starts_with('"') {
            return (text, after);
        }
        let escaped = after.chars().next().unwrap();
        rest = &after[escaped.len_utf8()..];
        match escaped {
            '\n' => rest = rest.trim_start(),
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'u' => rest = rest.split_once('}').unwrap().1,
            other => text.push(other),
        }
    }
}

/// A text with its gaps filled, once for each word that may stand in each; `words` knows them by
/// the gap's name.
pub fn told(text: &str, words: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut told = vec![String::new()];
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        told.iter_mut().for_each(|it| it.push_str(&rest[..at]));
        let (sign, after) = (&rest[at..=at], &rest[at + 1..]);
        if after.starts_with(sign) {
            told.iter_mut().for_each(|it| it.push_str(sign));
            rest = &after[1..];
            continue;
        }
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let words = words(name);
        let with = |it: String| words.iter().map(move |word| format!("{it}{word}")).collect();
        told = told.into_iter().flat_map::<Vec<String>, _>(with).collect();
        rest = after;
    }
    told.iter_mut().for_each(|it| it.push_str(rest));
    told
}

/// What Chinese calls by its Latin name.
const NAMES: &[&str] = &[
    "API", "JSON", "MB", "MCP", "NUL", "RFC", "Schema", "URL", "UTF", "YAML", "http", "https",
    "ssh",
];

/// The Latin words of a sentence that are neither quoted nor names.
pub fn english(text: &str) -> Vec<String> {
    let mut outside = String::new();
    let mut until = None;
    for it in text.chars() {
        match until {
            Some(end) if it == end => until = None,
            Some(_) => {}
            None if it == '`' => until = Some('`'),
            None if it == '“' => until = Some('”'),
            None => outside.push(it),
        }
    }
    let words = outside.split(|it: char| !it.is_ascii_alphanumeric() && !"._".contains(it));
    // What is written with a dot or a line within it is a machine's name for something.
    let plain = |it: &&str| it.len() > 1 && it.chars().all(|it| it.is_ascii_alphabetic());
    words.filter(plain).filter(|it| !NAMES.contains(it)).map(str::to_owned).collect()
}

pub fn is_chinese(text: &str) -> bool {
    text.chars().any(|it| ('\u{4e00}'..='\u{9fff}').contains(&it))
}
