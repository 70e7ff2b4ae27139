//! A file of rules as text: where each rule begins and ends, where an annotation stands, and
//! which line a place is on. Cedar reads the rules; this only finds them, so that a mistake in
//! one does not hide those in the next.

/// The text of one rule, and where in its file it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// Where the text begins, blanks and comments before the rule included.
    pub offset: usize,
    pub text: &'a str,
    /// Where in the file the rule itself begins.
    pub start: usize,
}

/// The rules of a file: each ends with a semicolon.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut offset, mut start) = (0, None);
    for (at, it) in code(text) {
        if it.is_whitespace() {
            continue;
        }
        let first = *start.get_or_insert(at);
        if it == ';' {
            pieces.push(Piece { offset, text: &text[offset..=at], start: first });
            (offset, start) = (at + 1, None);
        }
    }
    if let Some(start) = start {
        pieces.push(Piece { offset, text: &text[offset..], start });
    }
    pieces
}

/// Where in a rule an annotation stands.
pub(super) fn annotation(text: &str, name: &str) -> Option<usize> {
    code(text).filter(|(_, it)| *it == '@').map(|(at, _)| at).find(|at| {
        let rest = text[at + 1..].trim_start();
        let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '_');
        &rest[..end.unwrap_or(rest.len())] == name
    })
}

/// Line and column of a place, from one; a column is a character.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |it| it + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The characters that are neither in a string nor in a comment; of a string its first quote.
fn code(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, it) = chars.next()?;
            match it {
                '"' => {
                    while let Some((_, inner)) = chars.next() {
                        match inner {
                            '\\' => drop(chars.next()),
                            '"' => break,
                            _ => {}
                        }
                    }
                    return Some((at, it));
                }
                '/' if chars.peek().is_some_and(|(_, next)| *next == '/') => {
                    while chars.next_if(|(_, it)| !matches!(it, '\n' | '\r')).is_some() {}
                }
                _ => return Some((at, it)),
            }
        }
    })
}
