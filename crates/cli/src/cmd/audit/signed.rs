//! A signed anchor: what is signed, and how it is written down. `docs/audit.md` says the same for
//! those who check it with openssl.

use anyhow::Context as _;
use chancery_api::audit::Anchor;
use chancery_store::audit::{Head, unhex};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::key::{Signer, Verifier};
use crate::outcome::{Misused, Outcome, Stopped};

/// Nothing else that a key signs looks like it.
const KIND: &str = "chancery.audit.anchor.v1";
/// Canonical JSON has no larger whole numbers; no chain is that long.
const SEQ_MAX: u64 = 1 << 53;

#[derive(Debug, Clone, PartialEq)]
pub struct SignedAnchor {
    pub said: Said,
    /// Ed25519 over the canonical JSON of all that is said, in base64.
    signature: String,
}

/// What is signed. Its fields stand in the order of canonical JSON (RFC 8785), and none of them
/// has a letter that could be written in two ways.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Said {
    /// When the last entry was written; `null`: there is none.
    pub at: Option<String>,
    pub hash: String,
    /// The id of the key.
    pub key: String,
    pub kind: String,
    pub seq: u64,
    /// By the clock of whoever signed.
    pub signed_at: String,
}

/// A line of a file: what is said, with its signature.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    at: Option<String>,
    hash: String,
    key: String,
    kind: String,
    seq: u64,
    signature: String,
    signed_at: String,
}

impl SignedAnchor {
    pub fn new(anchor: Anchor, signer: &Signer, now: Timestamp) -> anyhow::Result<SignedAnchor> {
        let said = Said {
            at: anchor.at.map(|it| it.to_string()),
            hash: anchor.hash,
            key: signer.id()?,
            kind: KIND.to_owned(),
            seq: anchor.seq,
            signed_at: now.to_string(),
        };
        anyhow::ensure!(said.head().is_some(), "the server's answer is no anchor");
        let signature = signer.sign(&said.bytes()?);
        Ok(SignedAnchor { said, signature })
    }

    /// As it is written down: a line of JSON, the signature last.
    pub fn line(&self) -> anyhow::Result<String> {
        let said = serde_json::to_string(&self.said)?;
        let open = said.strip_suffix('}').unwrap_or(&said);
        Ok(format!("{open},\"signature\":\"{}\"}}", self.signature))
    }

    /// All that a text holds, one after the other.
    pub fn read_all(text: &str, name: &str) -> anyhow::Result<Vec<SignedAnchor>> {
        let mut anchors = Vec::new();
        for written in serde_json::Deserializer::from_str(text).into_iter::<Written>() {
            let number = anchors.len() + 1;
            let no_anchor = |why: String| Misused(format!("anchor {number} of `{name}` {why}"));
            let Written { at, hash, key, kind, seq, signature, signed_at } =
                written.map_err(|it| no_anchor(format!("cannot be read: {it}")))?;
            let said = Said { at, hash, key, kind, seq, signed_at };
            if said.head().is_none() {
                return Err(no_anchor("is no signed anchor".to_owned()).into());
            }
            anchors.push(SignedAnchor { said, signature });
        }
        Ok(anchors)
    }

    /// Whether this key signed it, as it stands.
    pub fn verify(&self, key: &Verifier) -> anyhow::Result<Head> {
        let Said { seq, key: by, .. } = &self.said;
        let broken = |code, why| Err(Stopped::new(Outcome::Failed, code, why).into());
        if *by != key.id {
            let why = format!("the anchor of entry {seq} is of the key {by}, not of {}", key.id);
            return broken("wrong_key", why);
        }
        if !key.signed(&self.said.bytes()?, &self.signature) {
            let why = format!("the anchor of entry {seq} was changed: its signature does not hold");
            return broken("bad_signature", why);
        }
        self.said.head().context("that is no anchor")
    }
}

impl Said {
    /// The entry that it is of; nothing if it is not in the one form that anchors have.
    pub fn head(&self) -> Option<Head> {
        let time = |it: &str| it.parse::<Timestamp>().is_ok_and(|at| at.to_string() == it);
        let fits = self.kind == KIND
            && self.seq <= SEQ_MAX
            && unhex(&self.key).is_some()
            && time(&self.signed_at)
            && self.at.as_deref().is_none_or(time);
        let hash = unhex(&self.hash).filter(|_| fits)?;
        Some(Head { seq: self.seq, hash })
    }

    fn bytes(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }
}
