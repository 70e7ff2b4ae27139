//! A folder of documents: a file for each, with a head that says what it is, and an index that a
//! person can read.
//!
//! Whoever writes at the same time loses nothing: every document is a file of its own, and the
//! index is made anew of what is there until it says what is there.

use std::sync::{Mutex, PoisonError};

use chancery_domain::text::visible_line;
use jiff::{SignedDuration, Timestamp};

use super::desk::TEXT_MAX;
use super::files::{FileError, Listed, Reach};

pub(super) const INDEX: &str = "INDEX.md";

/// The newest are in the index; the others are in the folder.
const INDEXED_MAX: usize = 1000;
/// How often an index is made again while others write beside us.
const ROUNDS_MAX: usize = 8;
/// Writers that take one name in one millisecond.
const NAMES_MAX: i64 = 1000;
/// How far back a call that is repeated looks for what it has written.
const REPEATED_MAX: usize = 20;

/// Of one process: writers of others are found out by looking again.
static INDEXING: Mutex<()> = Mutex::new(());

/// A text with a head: `key: "value"` lines between two lines of `---`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Document {
    pub head: Vec<(String, String)>,
    pub body: String,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Shelf<'s> {
    pub reach: &'s Reach,
    pub folder: &'s str,
    /// What the index is called, and what it says of each: entries of the head.
    pub title: &'s str,
    pub columns: &'s [&'s str],
}

impl Document {
    pub fn new(head: &[(&str, &str)], body: &str) -> Document {
        let head = head.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Document { head: head.collect(), body: body.to_owned() }
    }

    /// A text without a head is a body.
    pub fn parse(text: &str) -> Document {
        let whole = || Document { head: Vec::new(), body: text.to_owned() };
        let Some(rest) = text.strip_prefix("---\n") else { return whole() };
        let Some((head, body)) = rest.split_once("\n---\n") else { return whole() };
        let head = head.lines().filter_map(|line| {
            let (key, value) = line.split_once(": ")?;
            // By other hands it may be without quotes.
            let value = serde_json::from_str(value).unwrap_or_else(|_| value.to_owned());
            Some((key.to_owned(), value))
        });
        Document { head: head.collect(), body: body.trim_start_matches('\n').to_owned() }
    }

    /// A value is one line of JSON, which is YAML too: no text can pass for another key.
    pub fn text(&self) -> String {
        let mut text = "---\n".to_owned();
        for (key, value) in &self.head {
            text.push_str(&format!("{key}: {}\n", serde_json::Value::from(value.as_str())));
        }
        text.push_str("---\n\n");
        text.push_str(self.body.trim_end());
        text.push('\n');
        text
    }

    pub fn get(&self, key: &str) -> &str {
        self.head.iter().find(|it| it.0 == key).map_or("", |it| &it.1)
    }

    pub fn set(&mut self, key: &str, value: &str) {
        match self.head.iter_mut().find(|it| it.0 == key) {
            Some(entry) => entry.1 = value.to_owned(),
            None => self.head.push((key.to_owned(), value.to_owned())),
        }
    }
}

impl Shelf<'_> {
    /// Writes a document under the time and its title, and answers where. A call that is repeated
    /// finds what it has written.
    pub fn add(
        &self,
        document: &Document,
        title: &str,
        key: &str,
        now: Timestamp,
    ) -> Result<String, FileError> {
        if let Some(written) = self.written_by(key)? {
            return Ok(written);
        }
        let mut document = document.clone();
        document.set("call", key);
        for later in 0..NAMES_MAX {
            let at = now.checked_add(SignedDuration::from_millis(later)).unwrap_or(now);
            let path =
                format!("{}/{}-{}.md", self.folder, at.strftime("%Y%m%dT%H%M%S%3fZ"), slug(title));
            match self.reach.create(&path, &document.text(), TEXT_MAX) {
                Err(FileError::Exists(_)) => {}
                done => {
                    done?;
                    // What is written is written: the next writer makes the index.
                    if let Err(error) = self.index() {
                        tracing::warn!(%error, "A folder has no index: {error}");
                    }
                    return Ok(path);
                }
            }
        }
        Err(FileError::Exists(self.folder.to_owned()))
    }

    fn written_by(&self, key: &str) -> Result<Option<String>, FileError> {
        for name in self.names()?.iter().rev().take(REPEATED_MAX) {
            if self.read(name).is_ok_and(|it| it.get("call") == key) {
                return Ok(Some(format!("{}/{name}", self.folder)));
            }
        }
        Ok(None)
    }

    pub fn read(&self, name: &str) -> Result<Document, FileError> {
        let path = format!("{}/{name}", self.folder);
        self.reach.read(&path, 2 * TEXT_MAX).map(|it| Document::parse(&it))
    }

    /// The documents that there are, by name.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        let listed = self.reach.list(self.folder)?.into_iter();
        Ok(listed.filter(is_document).map(|it| it.name).collect())
    }

    pub fn index(&self) -> Result<(), FileError> {
        self.index_in(|names| names.reverse())
    }

    /// Makes the index anew, in an order. Again, where somebody wrote meanwhile.
    pub fn index_in(&self, order: impl Fn(&mut Vec<String>)) -> Result<(), FileError> {
        let _alone = INDEXING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut there = self.listed()?;
        for _ in 0..ROUNDS_MAX {
            let mut names: Vec<String> = there.iter().map(|it| it.name.clone()).collect();
            order(&mut names);
            names.truncate(INDEXED_MAX);
            let path = format!("{}/{INDEX}", self.folder);
            self.reach.write(&path, &self.table(&names), 4 * TEXT_MAX)?;
            let now = self.listed()?;
            if now == there {
                break;
            }
            there = now;
        }
        Ok(())
    }

    fn listed(&self) -> Result<Vec<Listed>, FileError> {
        Ok(self.reach.list(self.folder)?.into_iter().filter(is_document).collect())
    }

    fn table(&self, names: &[String]) -> String {
        let mut text = format!("# {}\n\n| file | {} |\n", self.title, self.columns.join(" | "));
        text.push_str(&format!("|---|{}\n", "---|".repeat(self.columns.len())));
        for name in names {
            // One that is gone meanwhile, or that nobody can read, is a name without more.
            let document = self.read(name).unwrap_or_default();
            let cells: Vec<String> = self.columns.iter().map(|it| cell(document.get(it))).collect();
            text.push_str(&format!("| [{}](<{name}>) | {} |\n", cell(name), cells.join(" | ")));
        }
        text
    }
}

fn is_document(it: &Listed) -> bool {
    !it.folder && it.name.ends_with(".md") && it.name != INDEX
}

fn cell(text: &str) -> String {
    let short: String = visible_line(text).chars().take(200).collect();
    short.replace('\\', "\\\\").replace('|', "\\|")
}

/// What a title is called in a file's name.
pub(super) fn slug(title: &str) -> String {
    let mut slug = String::new();
    for it in title.chars().flat_map(char::to_lowercase) {
        if it.is_alphanumeric() {
            slug.push(it);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= 60 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "untitled".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_document_says_of_itself_is_read_as_it_was_written() {
        for value in ["plain", "two\nauthor: \"me\"\n---\n", "\"quoted\"", "", "a: b"] {
            let document = Document::new(&[("title", value), ("author", "ceo")], "---\nbody\n---");
            let read = Document::parse(&document.text());
            assert_eq!((read.get("title"), read.get("author")), (value, "ceo"));
            assert_eq!(read.body, "---\nbody\n---\n");
        }
        assert_eq!(Document::parse("no head").body, "no head");
        assert_eq!(Document::parse("---\ntitle: by hand\n---\nx").get("title"), "by hand");
    }

    #[test]
    fn a_title_is_a_name() {
        for (title, name) in [
            ("Q3: what now?", "q3-what-now"),
            ("../../etc/passwd", "etc-passwd"),
            ("季度报告", "季度报告"),
            ("...", "untitled"),
            (".env", "env"),
        ] {
            assert_eq!(slug(title), name);
        }
        assert!(slug(&"ab ".repeat(100)).len() <= 64);
    }
}
