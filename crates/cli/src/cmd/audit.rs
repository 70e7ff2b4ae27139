//! `audit`: look at it, carry it away, check it.

mod key;
mod offline;
mod read;
mod signed;

use std::path::PathBuf;

use anyhow::Context as _;
use chancery_api::audit::{Entry, Verified};
use chancery_api::client::Client;
use chancery_runtime::clock;
use chancery_store::audit::{Head, hex};
use clap::Subcommand;

use self::key::Signer;
use self::read::Anchors;
use self::signed::SignedAnchor;
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
        /// The public key that the anchors must be signed with; no server is asked
        #[arg(long, value_name = "FILE", requires = "anchor")]
        key: Option<PathBuf>,
        /// What `audit export` printed, `-` for standard input; no server is asked
        #[arg(long, value_name = "FILE")]
        export: Option<PathBuf>,
    },
    /// Where the chain ends, to be kept elsewhere
    Anchor {
        /// Sign it with this private key (`audit key new`)
        #[arg(long, value_name = "FILE")]
        sign: Option<PathBuf>,
    },
    /// Keys that sign anchors
    #[command(subcommand)]
    Key(key::Command),
}

pub async fn run(global: &Global, command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Ls { which, limit } => list(global, &client(global)?, which, limit).await,
        Command::Export { which } => export(&client(global)?, which).await,
        Command::Verify { anchor, key: None, export: None } => {
            // What was misused on the command line needs no server to say so.
            let anchor = anchor.as_deref().map(latest).transpose()?;
            verify(global, &client(global)?, anchor).await
        }
        Command::Verify { anchor, key, export } => {
            offline::verify(global, anchor.as_deref(), key.as_deref(), export.as_deref())
        }
        Command::Anchor { sign } => take_anchor(global, sign).await,
        Command::Key(command) => key::run(global, command),
    }
}

async fn verify(global: &Global, client: &Client, anchor: Option<Head>) -> anyhow::Result<Outcome> {
    let given = anchor.map(|it| format!("{}:{}", it.seq, hex(&it.hash)));
    let verified = client.audit_verify(given.as_deref()).await?;
    told(global, &verified, anchor)?;
    Ok(if verified.ok { Outcome::Done } else { Outcome::Failed })
}

/// The one that an unsigned check is held against.
fn latest(given: &str) -> anyhow::Result<Head> {
    match read::anchors(given)? {
        Anchors::Plain(head) => Ok(head),
        Anchors::Signed(anchors) => {
            output::note(format_args!(
                "Its signature was not looked at: name the public key with `--key`."
            ));
            let last = anchors.iter().filter_map(|it| it.said.head()).max_by_key(|it| it.seq);
            last.ok_or_else(|| Misused(format!("`{given}` holds no anchor")).into())
        }
    }
}

async fn take_anchor(global: &Global, sign: Option<PathBuf>) -> anyhow::Result<Outcome> {
    let signer = sign.as_deref().map(Signer::read).transpose()?;
    let anchor = client(global)?.audit_anchor().await?;
    if let Some(signer) = signer {
        let signed = SignedAnchor::new(anchor, &signer, clock::now())?;
        output::line(format_args!("{}", signed.line()?))?;
    } else if global.json {
        output::json(&anchor)?;
    } else {
        let at = anchor.at.map(|it| it.to_string()).unwrap_or_default();
        let line = format!("{}:{} {at}", anchor.seq, anchor.hash);
        output::line(format_args!("{}", line.trim_end()))?;
    }
    Ok(Outcome::Done)
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

fn told(global: &Global, verified: &Verified, anchor: Option<Head>) -> anyhow::Result<()> {
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
    match anchor {
        None => output::line(format_args!(
            "Shows edits, insertions and deletions inside the log. \
             Cannot show a cut-off tail: compare the head with your anchor."
        )),
        Some(Head { seq, .. }) => output::line(format_args!(
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
