//! Standard output: data, one way for people and one for programs. A pipe that is closed by its
//! reader ends the command, not with a panic.

use std::fmt::Arguments;
use std::io::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
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

pub fn table(head: &[&str], rows: Vec<Vec<String>>) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(head.to_vec());
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)).collect::<Vec<_>>());
    }
    line(format_args!("{}", table.trim_fmt()))
}

/// Text of agents and strangers, without what would move the cursor or hide a letter.
pub fn visible(text: &str) -> String {
    text.chars()
        .map(|it| match it {
            '\n' | '\t' => it,
            // Soft hyphen, marks of direction, joiners, separators, fillers, tags.
            '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
            it if it.is_control() => '\u{fffd}',
            it => it,
        })
        .collect()
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
    fn what_moves_the_cursor_or_hides_is_made_visible() {
        let given = "a\u{1b}[2Jb\u{202e}c\u{e0041}\r\u{9b}d";
        assert_eq!(visible(given), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}\u{fffd}\u{fffd}d");
        assert_eq!(visible("two\n\tlines: 定价"), "two\n\tlines: 定价");
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
