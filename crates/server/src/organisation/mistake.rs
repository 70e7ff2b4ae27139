//! What is wrong with an organisation's files: where, what, and what might have been meant.

use std::borrow::Cow;
use std::fmt;

use chancery_domain::org::Place;

/// Files are small; whoever has more mistakes than this has another problem.
const MISTAKES_MAX: usize = 1000;
/// How many words a wrong one is compared with.
const COMPARED_MAX: usize = 500;

/// A place in a file. Columns count characters, from one, as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub file: &'static str,
    pub line: u32,
    pub column: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The files cannot be used.
    Error,
    /// They can, but hardly as they were meant.
    Warning,
}

/// The codes are for programs and for searching: a number is never given a new meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub file: Cow<'static, str>,
    pub line: u32,
    pub column: u32,
    pub severity: Severity,
    pub code: &'static str,
    pub detail: String,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mistakes {
    found: Vec<Mistake>,
    left_out: usize,
}

impl At {
    pub fn file(file: &'static str) -> At {
        At { file, line: 1, column: 1 }
    }

    pub fn place(self) -> Place {
        Place { file: self.file.into(), line: self.line }
    }

    pub fn is_built_in(self) -> bool {
        self.file.starts_with("builtin/")
    }
}

impl Mistakes {
    /// The letter of the code says how bad it is.
    pub fn add(&mut self, at: At, code: &'static str, detail: impl Into<String>) {
        self.push(at, code, detail.into(), None);
    }

    pub fn add_with(&mut self, at: At, code: &'static str, detail: String, hint: Option<String>) {
        self.push(at, code, detail, hint);
    }

    fn push(&mut self, at: At, code: &'static str, detail: String, hint: Option<String>) {
        let severity = if code.starts_with('E') { Severity::Error } else { Severity::Warning };
        let At { file, line, column } = at;
        let detail = cut(detail);
        self.take(Mistake { file: file.into(), line, column, severity, code, detail, hint });
    }

    pub fn take(&mut self, mistake: Mistake) {
        if self.found.len() < MISTAKES_MAX {
            self.found.push(mistake);
        } else {
            self.left_out += 1;
        }
    }

    pub fn extend(&mut self, other: Mistakes) {
        self.left_out += other.left_out;
        other.found.into_iter().for_each(|it| self.take(it));
    }

    pub fn has_errors(&self) -> bool {
        self.left_out > 0 || self.found.iter().any(|it| it.severity == Severity::Error)
    }

    /// By file, then by place.
    pub fn sorted(mut self) -> Vec<Mistake> {
        let left_out = std::mem::take(&mut self.left_out);
        self.found.sort_by(|a, b| {
            let key = |it: &Mistake| (it.line, it.column, it.code);
            a.file.cmp(&b.file).then_with(|| key(a).cmp(&key(b)))
        });
        if left_out > 0 {
            self.found.pop();
            let detail = format!("{} more mistakes are not shown", left_out + 1);
            self.add(At::file("…"), "E100", detail);
        }
        self.found
    }
}

/// It quotes what it was given, and that may be anything.
fn cut(detail: String) -> String {
    match detail.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &detail[..end]),
        None => detail,
    }
}

/// The known word that was probably meant.
pub fn meant<'k>(given: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    // Long ones are no slips of a finger, and would take long to compare.
    if given.chars().count() > 64 {
        return None;
    }
    let near = known.into_iter().take(COMPARED_MAX).map(|it| (distance(given, it), it)).min()?;
    let allowed = (given.chars().count() / 3).min(3);
    (near.0 <= allowed).then(|| format!("did you mean `{}`?", near.1))
}

/// How many letters must be typed, taken out or changed, or neighbours swapped.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, to) in b.iter().enumerate() {
            let mut least =
                (last[j] + usize::from(from != to)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *to && b[j - 1] == *from {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { file, line, column, code, detail, .. } = self;
        write!(f, "{file}:{line}:{column}: {code} {detail}")?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let known = ["deny_tools", "tools", "prompt"];
        for (given, hint) in [
            ("tool", Some("tools")),
            ("to", None),
            ("toosl", Some("tools")),
            ("promt", Some("prompt")),
            ("denied_tools", Some("deny_tools")),
            ("colour", None),
            ("x", None),
        ] {
            let expected = hint.map(|it| format!("did you mean `{it}`?"));
            assert_eq!(meant(given, known), expected, "{given}");
        }
    }
}
