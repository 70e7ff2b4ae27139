//! Anchors and exports from files, with a limit on everything.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::Context as _;
use chancery_api::audit::Anchor;
use chancery_store::audit::{ExportCheck, Exported, Head, unhex};

use super::signed::SignedAnchor;
use crate::outcome::{Misused, Outcome, Stopped};

/// Some thousand anchors: one a day for ten years.
const ANCHORS_MAX: u64 = 2 * 1024 * 1024;
/// An entry is less than a megabyte.
const LINE_MAX: u64 = 2 * 1024 * 1024;

/// What a file of anchors holds.
#[derive(Debug)]
pub enum Anchors {
    /// As `audit anchor` prints them; the last one.
    Plain(Head),
    /// As `audit anchor --sign` prints them, one or more.
    Signed(Vec<SignedAnchor>),
}

/// An anchor as it was given, or those in a file.
pub fn anchors(given: &str) -> anyhow::Result<Anchors> {
    if let Some(head) = head(given) {
        return Ok(Anchors::Plain(head));
    }
    let path = Path::new(given);
    if !path.exists() {
        return Err(Misused(format!("`{given}` is neither a file nor of the form SEQ:HASH")).into());
    }
    let text = text_of(path, ANCHORS_MAX)?;
    if let Ok(Anchor { seq, hash, .. }) = serde_json::from_str(&text)
        && !text.contains("\"signature\"")
    {
        let head = head(&format!("{seq}:{hash}"));
        return Ok(Anchors::Plain(head.ok_or_else(|| Misused(format!("`{given}` is no anchor")))?));
    }
    if text.trim_start().starts_with('{') {
        return Ok(Anchors::Signed(SignedAnchor::read_all(&text, given)?));
    }
    let last = text.lines().rev().find(|it| !it.trim().is_empty());
    let word = last.and_then(|it| it.split_whitespace().next());
    let head = word.and_then(head);
    let head = head.ok_or_else(|| Misused(format!("the last line of `{given}` is no anchor")))?;
    Ok(Anchors::Plain(head))
}

fn head(given: &str) -> Option<Head> {
    let (seq, hash) = given.split_once(':')?;
    Some(Head { seq: seq.parse().ok()?, hash: unhex(&hash.to_lowercase())? })
}

/// A small file, whole.
pub fn text_of(path: &Path, most: u64) -> anyhow::Result<String> {
    let name = path.display();
    let mut text = String::new();
    let read = File::open(path).and_then(|it| it.take(most + 1).read_to_string(&mut text));
    let length = read.with_context(|| format!("cannot read `{name}`"))?;
    if length as u64 > most {
        let message = format!("`{name}` is longer than the {most} bytes that such a file may have");
        return Err(Misused(message).into());
    }
    Ok(text)
}

/// Whether anchors can be of one chain.
pub fn one_chain(anchors: impl IntoIterator<Item = Head>) -> anyhow::Result<()> {
    ExportCheck::new(anchors).map_err(broken)?;
    Ok(())
}

/// Reads an export, or the standard input, and holds it against anchors.
pub fn export(path: &Path, anchors: impl IntoIterator<Item = Head>) -> anyhow::Result<Exported> {
    let mut check = ExportCheck::new(anchors).map_err(broken)?;
    let name = path.display().to_string();
    let mut from: Box<dyn BufRead> = match &*name {
        "-" => Box::new(std::io::stdin().lock()),
        _ => {
            let file = File::open(path).with_context(|| format!("cannot read `{name}`"))?;
            Box::new(BufReader::new(file))
        }
    };
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        number += 1;
        let read = from.by_ref().take(LINE_MAX + 1).read_until(b'\n', &mut line);
        match read.with_context(|| format!("cannot read `{name}`"))? {
            0 => break,
            length if length as u64 > LINE_MAX => {
                let why = format!("line {number} of the export is longer than any entry");
                return Err(broken(why).into());
            }
            _ => {}
        }
        let text = std::str::from_utf8(&line).unwrap_or_default();
        check.line(text.trim_end_matches('\n')).map_err(broken)?;
    }
    Ok(check.end().map_err(broken)?)
}

fn broken(why: impl ToString) -> Stopped {
    Stopped::new(Outcome::Failed, "chain_broken", why.to_string())
}
