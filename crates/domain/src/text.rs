//! Words as a person is shown them: nothing in them is invisible, and nothing reorders them.

/// Escapes what cannot be seen or changes what is seen: control characters other than line
/// breaks and tabs, marks that turn the direction of writing, zero-width characters.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for it in text.chars() {
        if is_hidden(it) {
            shown.extend(it.escape_unicode());
        } else {
            shown.push(it);
        }
    }
    shown
}

/// The same on one line: breaks and tabs are spelt out too, so that one name cannot pass for two.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

fn is_hidden(it: char) -> bool {
    match it {
        '\n' | '\t' => false,
        _ if it.is_control() => true,
        // Soft hyphen, Arabic letter mark, Mongolian vowel separator, Hangul fillers.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => {
            true
        }
        // Zero-width characters, directional marks, embeddings, overrides and isolates, line and
        // paragraph separators, invisible operators.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' => true,
        // Variation selectors and tags: text can be hidden in them.
        '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_spelt_out() {
        assert_eq!(visible("pay\u{202e}0001 ot"), "pay\\u{202e}0001 ot");
        assert_eq!(visible("a\u{200b}b\u{0}\u{1b}[31m\r"), "a\\u{200b}b\\u{0}\\u{1b}[31m\\u{d}");
        assert_eq!(visible("工资\n\tgrüße 👍"), "工资\n\tgrüße 👍");
        assert_eq!(visible_line("a\n+b\t\u{202e}c"), "a\\n+b\\t\\u{202e}c");
    }
}
