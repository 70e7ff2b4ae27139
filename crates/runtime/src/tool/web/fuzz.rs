//! A page as somebody's server sent it: a door for the fuzzer.

use super::page;
use crate::fuzz::halves;

/// The kind that the server says it is, and the page.
pub fn web_page(data: &[u8]) {
    let (kind, body) = halves(data);
    let (_, text) = page::text(&String::from_utf8_lossy(kind), body);
    // Every character of a text has its place in the page, but for what is written for a link.
    assert!(text.len() <= 64 + body.len() * 8, "{} bytes of {}", text.len(), body.len());
}
