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

/// Whether nobody would see it, or would see something else for it: all that Unicode lets a font
/// leave out (`Default_Ignorable_Code_Point`), and what reorders or is drawn as a blank.
pub fn is_hidden(it: char) -> bool {
    match it {
        '\n' | '\t' => false,
        _ if it.is_control() => true,
        // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul fillers.
        '\u{ad}' | '\u{34f}' | '\u{61c}' => true,
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => true,
        // Khmer vowels that are not drawn, Mongolian selectors and separator, the Braille blank.
        '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' => true,
        // Zero-width characters, directional marks, embeddings, overrides and isolates, line and
        // paragraph separators, invisible operators.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff0}'..='\u{fffb}' => true,
        // Format characters of shorthand and of musical notation.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
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

    /// `Default_Ignorable_Code_Point` of Unicode 17: what is not drawn where a font does not know
    /// it. With what reorders, and a letter that is drawn as a blank.
    #[test]
    fn whatever_unicode_does_not_draw_is_hidden() {
        let ignorable = [
            ('\u{ad}', '\u{ad}'),
            ('\u{34f}', '\u{34f}'),
            ('\u{61c}', '\u{61c}'),
            ('\u{115f}', '\u{1160}'),
            ('\u{17b4}', '\u{17b5}'),
            ('\u{180b}', '\u{180f}'),
            ('\u{200b}', '\u{200f}'),
            ('\u{202a}', '\u{202e}'),
            ('\u{2060}', '\u{206f}'),
            ('\u{3164}', '\u{3164}'),
            ('\u{fe00}', '\u{fe0f}'),
            ('\u{feff}', '\u{feff}'),
            ('\u{ffa0}', '\u{ffa0}'),
            ('\u{fff0}', '\u{fff8}'),
            ('\u{1bca0}', '\u{1bca3}'),
            ('\u{1d173}', '\u{1d17a}'),
            ('\u{e0000}', '\u{e0fff}'),
        ];
        let more = [('\u{2028}', '\u{2029}'), ('\u{2800}', '\u{2800}'), ('\u{fff9}', '\u{fffb}')];
        let shown: Vec<char> = ignorable
            .into_iter()
            .chain(more)
            .flat_map(|(first, last)| first..=last)
            .filter(|it| !is_hidden(*it))
            .collect();
        assert_eq!(shown, []);
        let hidden = '\u{20}'..='\u{10ffff}';
        let hidden = hidden.filter(|it| is_hidden(*it) && !it.is_control()).count();
        let listed = |(first, last): (char, char)| last as usize - first as usize + 1;
        assert_eq!(hidden, ignorable.into_iter().chain(more).map(listed).sum::<usize>());
    }
}
