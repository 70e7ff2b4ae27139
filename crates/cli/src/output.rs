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
            '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}' => '\u{fffd}',
            it if it.is_control() => '\u{fffd}',
            it => it,
        })
        .collect()
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
