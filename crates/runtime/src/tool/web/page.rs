//! The text of a page: what a person would read, without what runs or hides. Pure.

/// What is inside of these is not for reading.
const SKIPPED: &[&str] = &[
    "script", "style", "noscript", "template", "svg", "iframe", "object", "head", "title", "canvas",
];
/// These begin a line of their own.
const BLOCKS: &[&str] = &[
    "p",
    "div",
    "br",
    "li",
    "ul",
    "ol",
    "tr",
    "table",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "article",
    "header",
    "footer",
    "main",
    "nav",
    "blockquote",
    "pre",
    "dd",
    "dt",
    "hr",
    "form",
    "figure",
    "aside",
];

/// How far a quoted value is followed: a page of quotes that never end is not read for ever.
const TAG_MAX: usize = 1024;

pub(super) fn is_text(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or(kind).trim();
    let others = ["application/json", "application/xml", "application/xhtml+xml"];
    kind.starts_with("text/")
        || others.contains(&kind)
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
}

/// The title, where there is one, and the text.
pub(super) fn text(kind: &str, bytes: &[u8]) -> (Option<String>, String) {
    let content = decoded(kind, bytes);
    if kind.contains("html") {
        let title = inside(&content, "title").map(|it| plain(&it)).filter(|it| !it.is_empty());
        (title, plain(&content))
    } else {
        (None, content)
    }
}

/// By the charset that the answer or the page names; UTF-8 unless it does.
fn decoded(kind: &str, bytes: &[u8]) -> String {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]).to_ascii_lowercase();
    let named = charset(kind).or_else(|| charset(&head));
    let encoding = named.and_then(|it| encoding_rs::Encoding::for_label(it.as_bytes()));
    encoding.unwrap_or(encoding_rs::UTF_8).decode(bytes).0.into_owned()
}

fn charset(text: &str) -> Option<String> {
    let after = text.split("charset=").nth(1)?.trim_start_matches(['"', '\'']);
    let plain = |it: &char| it.is_ascii_alphanumeric() || "-_".contains(*it);
    let name: String = after.chars().take_while(plain).collect();
    (!name.is_empty()).then_some(name)
}

fn inside(content: &str, tag: &str) -> Option<String> {
    // Lower case of ASCII alone: places stay what they are.
    let lower = content.to_ascii_lowercase();
    let open = lower.find(&format!("<{tag}"))?;
    let from = open + lower[open..].find('>')? + 1;
    let to = from + lower[from..].find(&format!("</{tag}"))?;
    Some(content[from..to].to_owned())
}

fn plain(html: &str) -> String {
    let lower = html.to_ascii_lowercase();
    let mut out = String::new();
    let mut at = 0;
    while let Some(open) = html[at..].find('<').map(|it| at + it) {
        push(&mut out, &html[at..open]);
        let rest = &lower[open..];
        if rest.starts_with("<!--") {
            at = rest.find("-->").map_or(html.len(), |it| open + it + 3);
            continue;
        }
        let is_tag =
            rest[1..].starts_with(|it: char| it.is_ascii_alphabetic() || "/!?".contains(it));
        if !is_tag {
            out.push('<');
            at = open + 1;
            continue;
        }
        let end = tag_end(rest).map_or(html.len(), |it| open + it + 1);
        let name: String = rest[1..]
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        at = end;
        if rest.starts_with("</") {
            if BLOCKS.contains(&&*name) {
                out.push('\n');
            }
            continue;
        }
        if SKIPPED.contains(&&*name) && !html[open..end].ends_with("/>") {
            let close = format!("</{name}");
            let after = lower[end..].find(&close).map_or(html.len(), |it| end + it);
            at = lower[after..].find('>').map_or(html.len(), |it| after + it + 1);
        } else if BLOCKS.contains(&&*name) {
            out.push('\n');
            if name == "li" {
                out.push_str("- ");
            }
        } else if name == "a"
            && let Some(to) = link(&html[open..end])
        {
            out.push_str(&format!("[{to}] "));
        } else if ["td", "th"].contains(&&*name) {
            out.push('\t');
        }
    }
    push(&mut out, &html[at..]);
    tidy(&out)
}

/// Where a tag ends: a `>` in a quoted value is no end.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, it) in tag.char_indices().take(TAG_MAX) {
        match (quote, it) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(it),
            (Some(open), it) if open == it => quote = None,
            _ => {}
        }
    }
    // A quote that never ends hides nothing.
    tag.find('>')
}

/// Where a link leads, if it leads out of the page and to another.
fn link(tag: &str) -> Option<String> {
    let lower = tag.to_ascii_lowercase();
    let value = &tag[lower.find("href=")? + 5..];
    let value = match value.chars().next()? {
        quote @ ('"' | '\'') => value[1..].split(quote).next()?,
        _ => value.split([' ', '>', '\n', '\t']).next()?,
    };
    let leads = value.starts_with("http://") || value.starts_with("https://");
    leads.then(|| value.chars().take(500).collect())
}

fn push(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.char_indices().take(12).find(|(_, it)| *it == ';').map(|it| it.0);
        match end.and_then(|end| Some((end, entity(&rest[1..end])?))) {
            Some((end, it)) => {
                out.push(it);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let number = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(number).filter(|it| !it.is_control() || *it == '\n');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        "laquo" => '«',
        "raquo" => '»',
        "middot" => '·',
        "bull" => '•',
        _ => return None,
    })
}

/// Lines without the space around them, and no more than one empty line between two.
fn tidy(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.is_empty() || lines.last().is_some_and(|it| !it.is_empty()) {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(html: &str) -> String {
        text("text/html; charset=utf-8", html.as_bytes()).1
    }

    #[test]
    fn a_page_is_what_a_person_would_read() {
        for (html, expected) in [
            ("<p>One</p><p>Two &amp; three</p>", "One\n\nTwo & three"),
            ("a<script>evil('</p>')</script>b", "ab"),
            ("a<SCRIPT src=x>evil</SCRIPT >b", "ab"),
            ("a<style>p{}</style><!-- no --><noscript>no</noscript>b", "ab"),
            ("a<script>never ends", "a"),
            ("a<!-- never ends", "a"),
            ("1 < 2 and <b>3</b> > 2", "1 < 2 and 3 > 2"),
            ("<img alt=\"a > b\">x", "x"),
            ("<img alt=\"never ends>x", "x"),
            ("<ul><li>a<li>b</ul>", "- a\n- b"),
            (
                "<a href=\"https://x.example/\">x</a> <a href='javascript:x'>y</a>",
                "[https://x.example/] x y",
            ),
            ("&#x4e2d;&#25991;&nosuch;&", "中文&nosuch;&"),
            ("<", "<"),
            ("<é>", "<é>"),
        ] {
            assert_eq!(read(html), expected, "{html}");
        }
    }

    #[test]
    fn a_page_is_read_in_its_own_letters() {
        let page = b"<head><meta charset=\"gbk\"><title>\xd6\xd0</title></head>\xce\xc4";
        assert_eq!(text("text/html", page), (Some("中".to_owned()), "文".to_owned()));
        assert_eq!(text("text/plain; charset=iso-8859-1", b"\xe9").1, "é");
        assert_eq!(text("application/json", b"{\"a\": \"<b>\"}").1, "{\"a\": \"<b>\"}");
    }
}
