//! Reading meaning out of a tree: what is expected where, and what to say when it is not there.
//!
//! Everything goes on after a mistake, so that all of them are found at once.

use std::ops::RangeInclusive;

use chancery_domain::org::Stated;
use chancery_domain::policy::{Bounds, Ruling};
use chancery_domain::text::{is_hidden, visible_line};

use super::mistake::{At, Mistakes, meant};
use super::tree::{Key, Node, Value, as_bool};

/// A mapping with keys that are known.
#[derive(Debug, Clone, Copy)]
pub struct Table<'n> {
    node: &'n Node,
}

impl<'n> Table<'n> {
    /// `path` is what it is called in messages: `roles.ceo`.
    pub fn read(
        node: &'n Node,
        path: &str,
        known: &[&str],
        mistakes: &mut Mistakes,
    ) -> Option<Table<'n>> {
        for (key, _) in map(node, path, mistakes)? {
            if known.contains(&&*key.name) {
                continue;
            }
            let hint = if key.name == "<<" {
                Some("merge keys are not read: write the keys out".to_owned())
            } else {
                let listed = || format!("known are {}", listed(known));
                Some(meant(&key.name, known.iter().copied()).unwrap_or_else(listed))
            };
            let within = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
            mistakes.add_with(
                key.at,
                "E105",
                format!("`{}` is not a key that is known{within}", key.name),
                hint,
            );
        }
        Some(Table { node })
    }

    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.node.get(name)
    }

    /// One that must be there.
    pub fn need(&self, name: &str, path: &str, mistakes: &mut Mistakes) -> Option<&'n Node> {
        let found = self.get(name);
        if found.is_none() {
            mistakes.add(self.node.at, "E106", format!("`{path}` has no `{name}`"));
        }
        found
    }
}

/// A mapping from names that somebody chose.
pub fn map<'n>(node: &'n Node, path: &str, mistakes: &mut Mistakes) -> Option<&'n [(Key, Node)]> {
    match &node.value {
        Value::Map(entries) => Some(entries),
        _ => {
            expected(node, path, "a mapping", mistakes);
            None
        }
    }
}

pub fn text(node: &Node, path: &str, mistakes: &mut Mistakes) -> Option<String> {
    match &node.value {
        Value::Scalar { text, .. } if node.kind() == "text" => Some(text.clone()),
        _ => {
            expected(node, path, "text", mistakes);
            None
        }
    }
}

pub fn boolean(node: &Node, path: &str, mistakes: &mut Mistakes) -> Option<bool> {
    match &node.value {
        Value::Scalar { text, plain: true } if as_bool(text).is_some() => as_bool(text),
        _ => {
            expected(node, path, "`true` or `false`", mistakes);
            None
        }
    }
}

pub fn whole(
    node: &Node,
    path: &str,
    range: RangeInclusive<u32>,
    mistakes: &mut Mistakes,
) -> Option<u32> {
    if let Value::Scalar { text, plain: true } = &node.value
        && let Ok(number) = text.parse::<u32>()
        && range.contains(&number)
    {
        return Some(number);
    }
    let (from, to) = range.into_inner();
    expected(node, path, &format!("a whole number from {from} to {to}"), mistakes);
    None
}

/// One of a few words.
pub fn word(node: &Node, path: &str, words: &[&str], mistakes: &mut Mistakes) -> Option<String> {
    let given = text(node, path, mistakes)?;
    if words.contains(&&*given) {
        return Some(given);
    }
    let detail = format!("`{path}` is `{given}`, which is none of {}", listed(words));
    mistakes.add_with(node.at, "E107", detail, meant(&given, words.iter().copied()));
    None
}

pub fn ruling(node: &Node, path: &str, mistakes: &mut Mistakes) -> Option<Stated<Ruling>> {
    const ALL: [Ruling; 4] =
        [Ruling::Allow, Ruling::RequireApproval, Ruling::RequireHuman, Ruling::Deny];
    let given = word(node, path, &ALL.map(Ruling::as_str), mistakes)?;
    let value = ALL.into_iter().find(|it| it.as_str() == given)?;
    Some(Stated { value, place: Some(node.at.place()) })
}

/// A list of texts, each with its place. What is no text is a mistake, and left out.
pub fn texts(node: &Node, path: &str, mistakes: &mut Mistakes) -> Option<Vec<(String, At)>> {
    let Value::List(items) = &node.value else {
        expected(node, path, "a list", mistakes);
        return None;
    };
    let mut texts: Vec<(String, At)> = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        if let Some(text) = text(item, &format!("{path}[{place}]"), mistakes) {
            texts.push((text, item.at));
        }
    }
    Some(texts)
}

/// Entries for tools: names, and globs. One that could match no tool's name is a mistake.
pub fn patterns(
    node: &Node,
    path: &str,
    mistakes: &mut Mistakes,
) -> Option<Vec<(Stated<String>, At)>> {
    let mut found: Vec<(Stated<String>, At)> = Vec::new();
    for (text, at) in texts(node, path, mistakes)? {
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | '*');
        if text.is_empty() || text.len() > 128 || !text.chars().all(plain) {
            let detail = format!("`{text}` in `{path}` is neither a tool's name nor a pattern");
            let hint = "letters, digits, `_`, `-` and `.`, with `*` for any of them";
            mistakes.add_with(at, "E108", detail, Some(hint.to_owned()));
            continue;
        }
        found.push((Stated { value: text, place: Some(at.place()) }, at));
    }
    Some(found)
}

/// `{allowed_tools, denied_tools}` of a table that may have other keys too.
pub fn bounds(
    table: Table<'_>,
    path: &str,
    entries: &mut Vec<(String, At)>,
    mistakes: &mut Mistakes,
) -> Bounds {
    let mut list = |name: &str| {
        let path = format!("{path}.{name}");
        let found = patterns(table.get(name)?, &path, mistakes)
            // A limit that cannot be read is not no limit.
            .unwrap_or_default();
        entries.extend(found.iter().map(|(it, at)| (it.value.clone(), *at)));
        Some(found.into_iter().map(|(it, _)| it.value).collect::<Vec<_>>())
    };
    let allowed_tools = list("allowed_tools");
    Bounds { allowed_tools, denied_tools: list("denied_tools").unwrap_or_default() }
}

/// A name for a role, an agent, a group or a person.
pub fn is_name(key: &Key, path: &str, mistakes: &mut Mistakes) -> bool {
    let given = &key.name;
    let bad = |it: char| it.is_whitespace() || is_hidden(it) || "*{}\"'`".contains(it);
    let fits = (1..=64).contains(&given.chars().count()) && !given.chars().any(bad);
    if !fits {
        let detail = format!("`{}` in `{path}` cannot be a name", visible_line(given));
        let hint = "1 to 64 characters, none of them a blank, a quote, a brace, `*` or one that \
                    is not drawn";
        let hint = hint.to_owned();
        mistakes.add_with(key.at, "E108", detail, Some(hint));
    }
    fits
}

/// Says what was found instead.
pub fn expected(node: &Node, path: &str, what: &str, mistakes: &mut Mistakes) {
    let found = match &node.value {
        Value::Scalar { text, .. } if !node.is_null() => format!("{} (`{text}`)", node.kind()),
        _ => node.kind().to_owned(),
    };
    let detail = match path {
        "" => format!("the file is {found} where {what} belongs"),
        path => format!("`{path}` is {found} where {what} belongs"),
    };
    let hint = match (&node.value, what) {
        (Value::Scalar { .. }, "a list") if !node.is_null() => {
            Some("write it in brackets: `[…]`".to_owned())
        }
        (_, "a list") if node.is_null() => {
            Some("leave the key out, or write `[]` for an empty list".to_owned())
        }
        (Value::Scalar { plain: true, .. }, "text") if !node.is_null() => {
            Some("put it in quotes".to_owned())
        }
        _ => None,
    };
    mistakes.add_with(node.at, "E104", detail, hint);
}

pub fn listed(words: &[&str]) -> String {
    words.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
}
