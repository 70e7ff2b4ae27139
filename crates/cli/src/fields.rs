//! Labelled text for people who decide by it. Whatever a stranger wrote stays behind the gutter
//! of its own field: it can neither begin a line of its own nor hide a letter.

use serde_json::Value;

use crate::output::{one_line, visible};
use crate::terminal::Terminal;

/// Labels are padded to this.
const LABEL: usize = 12;

#[derive(Debug)]
pub struct Fields {
    terminal: Terminal,
    indent: usize,
    text: String,
}

impl Fields {
    pub fn new(terminal: Terminal, indent: usize) -> Fields {
        Fields { terminal, indent, text: String::new() }
    }

    pub fn into_text(self) -> String {
        self.text
    }

    /// What was put together elsewhere.
    pub fn append(&mut self, other: Fields) {
        self.text.push_str(&other.text);
    }

    /// One line of ours.
    pub fn line(&mut self, text: &str) {
        let indent = self.indent;
        self.text.push_str(&format!("{:indent$}{text}\n", ""));
    }

    /// A label with words that others wrote, in full: beside the label where they are short, else
    /// beneath it behind a gutter.
    pub fn field(&mut self, label: &str, words: &str) {
        self.labelled(label, LABEL, words, |_, line| line.to_owned());
    }

    /// The same, with the colours of a difference.
    pub fn diff(&mut self, label: &str, words: &str) {
        self.gutter(label, words, Terminal::of_diff);
    }

    /// Every argument on a line of its own, as it would be used.
    pub fn arguments(&mut self, arguments: &Value) {
        let Some(arguments) = arguments.as_object() else {
            return self.labelled("", 0, &literal(arguments), |_, line| line.to_owned());
        };
        // In the order in which their digest has them, whatever order the model chose.
        let mut arguments: Vec<(&String, &Value)> = arguments.iter().collect();
        arguments.sort_unstable_by_key(|(name, _)| *name);
        let names: Vec<String> = arguments.iter().map(|(it, _)| name(it)).collect();
        let width = names.iter().map(|it| it.chars().count()).max().unwrap_or(0).min(24);
        for (name, (_, value)) in names.iter().zip(arguments) {
            match value.as_str().filter(|it| it.contains('\n')) {
                Some(text) => {
                    let lines = text.split('\n').count();
                    let label = format!("{name:width$}  (text, {lines} lines)");
                    self.gutter(&label, text, |_, line| line.to_owned());
                }
                None => self.labelled(name, width, &literal(value), |_, line| line.to_owned()),
            }
        }
    }

    fn labelled(
        &mut self,
        label: &str,
        width: usize,
        words: &str,
        paint: fn(Terminal, &str) -> String,
    ) {
        let shown = visible(words);
        let gap = if width == 0 { 0 } else { 2 };
        let room = self.room(width.max(label.chars().count()) + gap);
        if shown.contains('\n') || columns(&shown) > room {
            return self.gutter(label, words, paint);
        }
        let label = self.terminal.dim(&format!("{label:width$}"));
        self.line(&format!("{label}{:gap$}{}", "", paint(self.terminal, &shown)));
    }

    fn gutter(&mut self, label: &str, words: &str, paint: fn(Terminal, &str) -> String) {
        let label = self.terminal.dim(label);
        self.line(&label);
        let room = self.room(4);
        for line in visible(words).strip_suffix('\n').unwrap_or(&visible(words)).split('\n') {
            for (at, piece) in wrapped(line, room).into_iter().enumerate() {
                let gutter = if at == 0 { "│" } else { "┊" };
                let gutter = self.terminal.dim(gutter);
                let piece = paint(self.terminal, piece);
                self.line(&format!("  {gutter} {piece}"));
            }
        }
    }

    /// How many columns are left after an indent of that many more.
    fn room(&self, more: usize) -> usize {
        let used = self.indent + more;
        self.terminal.width.map_or(usize::MAX, |it| it.saturating_sub(used).max(16))
    }
}

/// A value as JSON has it, on one line, with nothing hidden.
pub fn literal(value: &Value) -> String {
    one_line(&value.to_string())
}

/// A name that is not plain is quoted: it would look like something else.
fn name(name: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_owned();
    }
    literal(&Value::from(name))
}

/// More than it takes rather than less: what is not ASCII may be wide.
fn columns(text: &str) -> usize {
    text.chars().map(width).fold(0, usize::saturating_add)
}

fn width(letter: char) -> usize {
    match letter {
        '\t' => 8,
        it if it.is_ascii() => 1,
        _ => 2,
    }
}

/// Pieces that fit, cut where a letter ends.
fn wrapped(line: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut begin, mut used) = (0, 0);
    for (at, letter) in line.char_indices() {
        let wide = width(letter);
        if used > 0 && used + wide > room {
            pieces.push(&line[begin..at]);
            (begin, used) = (at, 0);
        }
        used += wide;
    }
    pieces.push(&line[begin..]);
    pieces
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(width: Option<usize>, arguments: &Value) -> String {
        let mut fields = Fields::new(Terminal { colours: false, width }, 2);
        fields.arguments(arguments);
        fields.into_text()
    }

    #[test]
    fn arguments_are_one_a_line_and_unmistakable() {
        let arguments = json!({
            "to": "lin", "amount": 10, "really": "true", "bidi": "a\u{202e}b", "odd key\n": [1, "x"],
        });
        let said = "  amount       10\n  bidi         \"a\\u{202e}b\"\n  \"odd key\\n\"  [1,\"x\"]\n  \
                    really       \"true\"\n  to           \"lin\"\n";
        assert_eq!(shown(None, &arguments), said);
    }

    #[test]
    fn no_value_can_begin_a_line_of_its_own() {
        let forged = json!({"text": "harmless\nto      \"mallory\"\n"});
        let said = "  text  (text, 3 lines)\n    │ harmless\n    │ to      \"mallory\"\n";
        assert_eq!(shown(None, &forged), said);
        // Nor by being so long that the terminal would break it.
        let long = format!("x{:60}to \"mallory\"", "");
        let said = shown(Some(40), &json!({ "text": long }));
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "  text");
        assert!(lines[1].starts_with("    │ \"x"), "{said}");
        assert!(lines[2..].iter().all(|it| it.starts_with("    ┊ ")), "{said}");
        assert!(lines.iter().all(|it| it.chars().count() <= 40), "{said}");
        let whole: String =
            lines[1..].iter().map(|it| it.chars().skip(6).collect::<String>()).collect();
        assert_eq!(whole, literal(&json!(long)));
    }

    #[test]
    fn nothing_is_left_out() {
        let text = "定价\n".repeat(10_000);
        let said = shown(Some(80), &json!({ "text": text }));
        assert_eq!(said.matches("定价").count(), 10_000);
    }
}
