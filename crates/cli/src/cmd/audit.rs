//! `audit`: look at it, carry it away, check it.

use std::path::Path;

use anyhow::Context as _;
use chancery_api::audit::{Anchor, Entry, Verified};
use chancery_api::client::Client;
use clap::Subcommand;

use crate::Global;
use crate::outcome::{Misused, Outcome};
use crate::output::{self, short};
use crate::server::client;

#[derive(Debug, clap::Args)]
pub struct Which {
    #[arg(long)]
    agent: Option<String>,
    #[arg(long)]
    tool: Option<String>,
    /// allow, require_approval, require_human or deny
    #[arg(long)]
    ruling: Option<String>,
    /// A kind of entry, such as token.made
    #[arg(long)]
    kind: Option<String>,
    /// Whom it concerns
    #[arg(long)]
    user: Option<String>,
    #[arg(long)]
    run: Option<String>,
    /// Then or later: a time (RFC 3339), or how long ago, such as 7d
    #[arg(long)]
    since: Option<String>,
    /// Before: a time, or how long ago
    #[arg(long)]
    until: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// The newest entries first
    Ls {
        #[command(flatten)]
        which: Which,
        #[arg(long, default_value_t = 50)]
        limit: u32,
    },
    /// Every entry, oldest first, a line of JSON each
    Export {
        #[command(flatten)]
        which: Which,
    },
    /// Recomputes the chain; exit code 1 when it is broken
    Verify {
        /// What `audit anchor` printed: a file with it, or SEQ:HASH
        #[arg(long, value_name = "FILE|SEQ:HASH")]
        anchor: Option<String>,
    },
    /// Where the chain ends, to be kept elsewhere
    Anchor,
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    // What was misused on the command line needs no server to say so.
    let anchor = match &command {
        Command::Verify { anchor: Some(given) } => Some(read_anchor(given)?),
        _ => None,
    };
    let client = client(global)?;
    match command {
        Command::Ls { which, limit } => list(global, &client, which, limit).await,
        Command::Export { which } => export(&client, which).await,
        Command::Verify { .. } => {
            let verified = client.audit_verify(anchor.as_deref()).await?;
            told(global, &verified, anchor.as_deref())?;
            Ok(if verified.ok { Outcome::Done } else { Outcome::Failed })
        }
        Command::Anchor => {
            let anchor = client.audit_anchor().await?;
            if global.json {
                output::json(&anchor)?;
            } else {
                let at = anchor.at.map(|it| it.to_string()).unwrap_or_default();
                let line = format!("{}:{} {at}", anchor.seq, anchor.hash);
                output::line(format_args!("{}", line.trim_end()))?;
            }
            Ok(Outcome::Done)
        }
    }
}

async fn list(
    global: &Global,
    client: &Client,
    which: Which,
    limit: u32,
) -> anyhow::Result<Outcome> {
    let mut query = which.query();
    query.push(("limit", limit.to_string()));
    let page = client.audit(&query).await?;
    if global.json {
        output::json(&page)?;
        return Ok(Outcome::Done);
    }
    let rows = page.items.iter().map(row).collect();
    output::table(&["SEQ", "TIME", "WHO", "WHAT", "RESULT", "ABOUT", "ID"], rows)?;
    Ok(Outcome::Done)
}

fn row(entry: &Entry) -> Vec<String> {
    let who = entry.actor.id.as_ref().unwrap_or(&entry.actor.kind);
    let what = match &entry.tool {
        Some(tool) => format!("{} {tool}", entry.kind),
        None => entry.kind.clone(),
    };
    let about = entry.run_id.as_ref().or(entry.reference.as_ref());
    vec![
        entry.seq.to_string(),
        entry.at.to_string(),
        short(who, 40),
        short(&what, 60),
        entry.ruling.clone().unwrap_or_default(),
        short(about.map_or("", String::as_str), 40),
        entry.id.clone(),
    ]
}

/// An export that breaks off is an error: what was printed is not the whole.
async fn export(client: &Client, which: Which) -> anyhow::Result<Outcome> {
    let mut lines = client.audit_export(&which.query()).await?;
    while let Some(chunk) = lines.chunk().await.context("the export broke off")? {
        output::raw(&chunk)?;
    }
    Ok(Outcome::Done)
}

fn told(global: &Global, verified: &Verified, anchor: Option<&str>) -> anyhow::Result<()> {
    if global.json {
        return output::json(verified);
    }
    let since = verified.from.map(|it| it.strftime("%Y-%m-%d").to_string());
    let span = since.map(|it| format!(", {it} .. now")).unwrap_or_default();
    let (count, head) = (grouped(verified.entries), shortened(&verified.head));
    if let Some(why) = &verified.why {
        output::line(format_args!("{count} entries hold{span}   chain BROKEN   head {head}"))?;
        return output::line(format_args!("{}", output::visible(why)));
    }
    output::line(format_args!("{count} entries{span}   chain ok   head {head}"))?;
    match anchor.and_then(|it| it.split_once(':')) {
        None => output::line(format_args!(
            "Shows edits, insertions and deletions inside the log. \
             Cannot show a cut-off tail: compare the head with your anchor."
        )),
        Some((seq, _)) => output::line(format_args!(
            "The anchor holds: up to entry {seq} nothing was changed, cut off or written anew. \
             Cannot show a tail cut off after it: take a new anchor."
        )),
    }
}

impl Which {
    fn query(self) -> Vec<(&'static str, String)> {
        [
            ("agent", self.agent),
            ("tool", self.tool),
            ("ruling", self.ruling),
            ("kind", self.kind),
            ("user", self.user),
            ("run", self.run),
            ("since", self.since),
            ("until", self.until),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.map(|it| (name, it)))
        .collect()
    }
}

/// An anchor as it was given, or the last one in a file, as `audit anchor` printed it.
fn read_anchor(given: &str) -> anyhow::Result<String> {
    if let Some(anchor) = anchor(given) {
        return Ok(anchor);
    }
    if !Path::new(given).exists() {
        return Err(Misused(format!("`{given}` is neither a file nor of the form SEQ:HASH")).into());
    }
    let text = std::fs::read_to_string(given).with_context(|| format!("cannot read `{given}`"))?;
    if let Ok(Anchor { seq, hash, .. }) = serde_json::from_str(&text) {
        return anchor(&format!("{seq}:{hash}")).context("that is no anchor");
    }
    let last = text.lines().rev().find(|it| !it.trim().is_empty());
    let word = last.and_then(|it| it.split_whitespace().next());
    word.and_then(anchor)
        .ok_or_else(|| Misused(format!("the last line of `{given}` is no anchor")).into())
}

fn anchor(given: &str) -> Option<String> {
    let (seq, hash) = given.split_once(':')?;
    let seq: u64 = seq.parse().ok()?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit());
    is_hash.then(|| format!("{seq}:{}", hash.to_lowercase()))
}

/// `10482` as `10 482`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut grouped = digits[..first].to_owned();
    for at in (first..digits.len()).step_by(3) {
        if !grouped.is_empty() {
            grouped.push(' ');
        }
        grouped.push_str(&digits[at..at + 3]);
    }
    grouped
}

/// `7be1…c2`, for the eye; the whole is in the anchor.
fn shortened(hash: &str) -> String {
    match (hash.get(..4), hash.get(hash.len().saturating_sub(2)..)) {
        (Some(head), Some(tail)) => format!("{head}…{tail}"),
        _ => hash.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1 000"), (10_482, "10 482"), (1_234_567, "1 234 567")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
