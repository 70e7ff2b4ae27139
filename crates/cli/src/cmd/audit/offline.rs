//! `audit verify` without a server: anchors by their signatures, an export by itself.

use std::path::Path;

use chancery_store::audit::{Exported, Head, hex};
use serde_json::json;

use super::key::Verifier;
use super::read::{self, Anchors};
use super::{grouped, shortened};
use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output;

/// What the anchors say, once they hold.
#[derive(Debug, Default)]
struct Anchored {
    heads: Vec<Head>,
    /// The key that signed them, and when it signed the last.
    signed: Option<(String, String)>,
}

pub fn verify(
    global: &Global,
    anchor: Option<&str>,
    key: Option<&Path>,
    export: Option<&Path>,
) -> anyhow::Result<Outcome> {
    let anchored = match anchor {
        Some(given) => anchored(given, key)?,
        None => Anchored::default(),
    };
    let exported = match export {
        Some(path) => Some(read::export(path, anchored.heads.iter().copied())?),
        // Two that contradict each other tell of a rewritten chain, too.
        None => read::one_chain(anchored.heads.iter().copied()).map(|()| None)?,
    };
    match global.json {
        true => as_json(&anchored, exported.as_ref())?,
        false => in_words(&anchored, exported.as_ref())?,
    }
    Ok(Outcome::Done)
}

fn anchored(given: &str, key: Option<&Path>) -> anyhow::Result<Anchored> {
    let key = key.map(Verifier::read).transpose()?;
    match (read::anchors(given)?, key) {
        (Anchors::Plain(_), Some(_)) => {
            Err(Misused(format!("`{given}` is not signed: leave `--key` out")).into())
        }
        (Anchors::Plain(head), None) => Ok(Anchored { heads: vec![head], signed: None }),
        (Anchors::Signed(_), None) => {
            Err(Misused(format!("`{given}` is signed: name the public key with `--key`")).into())
        }
        (Anchors::Signed(anchors), Some(key)) => {
            let heads: anyhow::Result<Vec<Head>> =
                anchors.iter().map(|it| it.verify(&key)).collect();
            let last = anchors.iter().max_by_key(|it| it.said.seq);
            let signed = last.map(|it| (key.id, it.said.signed_at.clone()));
            Ok(Anchored { heads: heads?, signed })
        }
    }
}

impl Anchored {
    fn last(&self) -> Option<&Head> {
        self.heads.iter().max_by_key(|it| it.seq)
    }
}

fn as_json(anchored: &Anchored, exported: Option<&Exported>) -> anyhow::Result<()> {
    let last = anchored.last();
    let signed = anchored.signed.as_ref();
    output::json(&json!({
        "ok": true,
        "anchors": anchored.heads.len(),
        "seq": last.map(|it| it.seq),
        "hash": last.map(|it| hex(&it.hash)),
        "key": signed.map(|it| &it.0),
        "signed_at": signed.map(|it| &it.1),
        "entries": exported.map(|it| it.head.seq),
        "head": exported.map(|it| hex(&it.head.hash)),
        "from": exported.and_then(|it| it.from),
        "to": exported.and_then(|it| it.to),
    }))
}

fn in_words(anchored: &Anchored, exported: Option<&Exported>) -> anyhow::Result<()> {
    let last = anchored.last();
    if let (Some((key, at)), Some(last)) = (&anchored.signed, last) {
        let (count, hash) = (anchored.heads.len(), shortened(&hex(&last.hash)));
        let (anchors, seq) = (if count == 1 { "anchor" } else { "anchors" }, last.seq);
        output::line(format_args!(
            "{count} {anchors} signed by {key}   the last of entry {seq}, {hash}, signed {at}"
        ))?;
    }
    let Some(Exported { head, from, to }) = exported else {
        return output::line(format_args!(
            "The signature holds. What it was taken of was not looked at: name an export with \
             `--export`."
        ));
    };
    let day = |it: &jiff::Timestamp| it.strftime("%Y-%m-%d").to_string();
    let span = from.as_ref().zip(to.as_ref());
    let span = span.map(|(from, to)| format!(", {} .. {}", day(from), day(to)));
    let (count, hash) = (grouped(head.seq), shortened(&hex(&head.hash)));
    let span = span.unwrap_or_default();
    output::line(format_args!("{count} entries{span}   chain ok   head {hash}"))?;
    match last {
        None => output::line(format_args!(
            "Shows edits, insertions and deletions inside the export. \
             Cannot show a cut-off tail: hold it against an anchor."
        )),
        Some(Head { seq, .. }) => output::line(format_args!(
            "The anchor holds: up to entry {seq} nothing was changed, cut off or written anew."
        )),
    }
}
