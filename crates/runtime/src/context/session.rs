//! What of a session an agent reads: the newest exchanges in full, those before them in short,
//! within a budget of tokens. What is to hold for ever is no part of it: preferences are recalled
//! with every run.

use chancery_store::read::Exchange;

/// In tokens, as far as they can be told without the model.
pub const BUDGET: usize = 8_000;
/// Of these, what the short form of older exchanges may take.
const SHORT_SHARE: usize = 5;
/// In characters, of what each side said.
const SHORT: usize = 120;

/// How many tokens a text is, roughly: four letters, or one character of a script without blanks.
pub fn tokens(text: &str) -> usize {
    let (mut letters, mut dense) = (0usize, 0usize);
    for it in text.chars() {
        if it as u32 >= 0x2e80 {
            dense += 1;
        } else {
            letters += 1;
        }
    }
    letters.div_ceil(4) + dense
}

/// The short form of what is older, and what is read in full. The exchanges come and go oldest
/// first.
pub fn compact(exchanges: Vec<Exchange>, budget: usize) -> (Option<String>, Vec<Exchange>) {
    let size = |it: &Exchange| tokens(&it.input) + tokens(&it.output);
    let all: usize = exchanges.iter().map(size).sum();
    if all <= budget {
        return (None, exchanges);
    }
    let short_budget = budget / SHORT_SHARE;
    let mut left = budget - short_budget;
    let whole = exchanges.iter().rev().take_while(|it| {
        let fits = size(it) <= left;
        left = left.saturating_sub(size(it));
        fits
    });
    let older = exchanges.len() - whole.count();
    let mut exchanges = exchanges;
    let whole = exchanges.split_off(older);
    let mut left = short_budget;
    let mut lines: Vec<String> = Vec::new();
    for it in exchanges.iter().rev() {
        let line = format!("- {} → {}", short(&it.input), short(&it.output));
        if tokens(&line) > left {
            break;
        }
        left -= tokens(&line);
        lines.push(line);
    }
    let dropped = exchanges.len() - lines.len();
    if dropped > 0 {
        lines.push(format!("- ({dropped} exchanges before that are left out)"));
    }
    lines.reverse();
    (Some(lines.join("\n")), whole)
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(n: usize, words: usize) -> Exchange {
        Exchange {
            input: format!("question {n} {}", "why ".repeat(words)),
            output: format!("answer {n}"),
        }
    }

    #[test]
    fn what_fits_is_read_as_it_was() {
        let said: Vec<_> = (0..3).map(|n| exchange(n, 5)).collect();
        assert_eq!(compact(said.clone(), 1_000), (None, said));
    }

    #[test]
    fn the_newest_are_read_in_full_and_the_older_in_short_within_the_budget() {
        let said: Vec<_> = (0..50).map(|n| exchange(n, 60)).collect();
        let (earlier, whole) = compact(said.clone(), 1_000);
        assert_eq!(whole, said[said.len() - whole.len()..], "the newest, oldest first");
        assert!(!whole.is_empty() && whole.len() < 20, "{}", whole.len());
        let earlier = earlier.unwrap();
        let full: usize = whole.iter().map(|it| tokens(&it.input) + tokens(&it.output)).sum();
        assert!(full + tokens(&earlier) <= 1_010, "{full} and {}", tokens(&earlier));
        let newest_short = format!("question {} ", 49 - whole.len());
        assert!(earlier.lines().last().unwrap().contains(&newest_short), "{earlier}");
        assert!(earlier.starts_with("- (") && earlier.contains("left out"), "{earlier}");
    }

    #[test]
    fn one_exchange_that_is_too_long_is_read_in_short() {
        let (earlier, whole) = compact(vec![exchange(0, 5_000)], 1_000);
        assert!(whole.is_empty());
        assert!(earlier.unwrap().starts_with("- question 0 why"));
    }

    #[test]
    fn chinese_counts_by_the_character() {
        assert_eq!(tokens("你好世界"), 4);
        assert_eq!(tokens("hello world!"), 3);
    }
}
