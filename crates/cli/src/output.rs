//! Standard output: data, one way for people and one for programs. A pipe that is closed by its
//! reader ends the command, not with a panic.

use std::fmt::Arguments;
use std::io::Write as _;

pub use chancery_domain::text::visible;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

pub fn line(text: Arguments<'_>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// For people who look on, on standard error; nobody may.
pub fn note(text: Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

pub fn raw(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(format_args!("{}", serde_json::to_string_pretty(value)?))
}

/// A list that is whole, in the form that lists have everywhere.
pub fn list(items: &impl Serialize) -> anyhow::Result<()> {
    json(&serde_json::json!({ "items": items, "next_cursor": null }))
}

pub fn table(head: &[&str], rows: Vec<Vec<String>>) -> anyhow::Result<()> {
    line(format_args!("{}", laid_out(head, rows).trim_fmt()))
}

/// With a column of ids, which are not broken however narrow the terminal is.
pub fn table_of_ids(head: &[&str], rows: Vec<Vec<String>>, ids: usize) -> anyhow::Result<()> {
    let mut table = laid_out(head, rows);
    if let Some(column) = table.column_mut(ids) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    line(format_args!("{}", table.trim_fmt()))
}

fn laid_out(head: &[&str], rows: Vec<Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(head.to_vec());
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)).collect::<Vec<_>>());
    }
    table
}

/// What cannot be seen, or moves what is seen, is spelt out; a line stays a line.
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// A word for a shell to read as it is.
pub fn quoted(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "-_.:/@".contains(it);
    let word = visible(word).replace(['\n', '\t'], "\u{fffd}");
    if !word.is_empty() && word.chars().all(plain) && !word.starts_with('-') {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The first line, shortened.
pub fn short(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= width && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    let cut: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(one_line("a\n\tb\u{202e}"), "a\\n\\tb\\u{202e}");
    }

    #[test]
    fn a_word_for_the_shell_is_one_word() {
        assert_eq!(quoted("demo-go_ahead.1"), "demo-go_ahead.1");
        assert_eq!(quoted("a; rm 'x' y"), r"'a; rm '\''x'\'' y'");
        assert_eq!(quoted("--payload"), "'--payload'");
        assert_eq!(quoted("a\nb"), "'a\u{fffd}b'");
    }

    #[test]
    fn a_long_text_is_cut_where_a_letter_ends() {
        assert_eq!(short("定价定价", 3), "定价…");
        assert_eq!(short("one\ntwo", 10), "one…");
        assert_eq!(short("one", 3), "one");
    }
}
