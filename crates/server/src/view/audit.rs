//! The audit's entries, as the wire shows them.

use chancery_api::audit::{Actor, Entry, RuledNow};
use chancery_domain::audit::Link;
use chancery_domain::event;
use chancery_store::audit::{Kept, hex};

use crate::why::Now;

pub fn entry(kept: &Kept) -> Entry {
    let (prev, hash) = (kept.prev.as_ref().map(hex), hex(&kept.hash));
    let Ok(Link { seq, at, entry }) = kept.link() else { return unreadable(kept.seq, prev, hash) };
    Entry {
        seq,
        id: entry.id.to_string(),
        at,
        kind: entry.kind.into_owned(),
        actor: actor(entry.actor),
        org: entry.org,
        user: entry.user.map(|it| it.0),
        agent: entry.agent.map(|it| it.0),
        role: entry.role.map(|it| it.0),
        tool: entry.tool,
        ruling: entry.ruling.map(|it| it.as_str().to_owned()),
        run_id: entry.run.map(|it| it.to_string()),
        reference: entry.reference,
        reasons: super::reasons(entry.reasons),
        detail: entry.detail,
        prev,
        hash,
        layers: Vec::new(),
        now: None,
        ways: Vec::new(),
    }
}

/// What the rules in force say of the same.
pub fn now(it: Now) -> RuledNow {
    let layers = super::looked(it.layers);
    RuledNow { ruling: it.ruling.as_str().to_owned(), version: it.version, layers }
}

fn actor(actor: event::Actor) -> Actor {
    let (kind, id) = match actor {
        event::Actor::User(it) => ("user", Some(it.0)),
        event::Actor::Service(it) => ("service", Some(it)),
        event::Actor::Agent(it) => ("agent", Some(it.0)),
        event::Actor::System => ("system", None),
    };
    Actor { kind: kind.to_owned(), id }
}

/// One that was tampered with does not hide the others.
fn unreadable(seq: u64, prev: Option<String>, hash: String) -> Entry {
    Entry {
        seq,
        id: String::new(),
        at: jiff::Timestamp::UNIX_EPOCH,
        kind: "unreadable".to_owned(),
        actor: actor(event::Actor::System),
        org: None,
        user: None,
        agent: None,
        role: None,
        tool: None,
        ruling: None,
        run_id: None,
        reference: None,
        reasons: Vec::new(),
        detail: serde_json::Value::Null,
        prev,
        hash,
        layers: Vec::new(),
        now: None,
        ways: Vec::new(),
    }
}

/// A line of an export. The entry is last and byte for byte what was hashed; one that is no JSON
/// any more is quoted, so that the line still is.
pub fn line(kept: &Kept) -> String {
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&kept.text).is_ok()
        && !kept.text.contains(['\n', '\r']);
    let text = match is_json {
        true => kept.text.clone(),
        false => serde_json::Value::String(kept.text.clone()).to_string(),
    };
    let prev = kept.prev.as_ref().map_or("null".to_owned(), |it| format!("\"{}\"", hex(it)));
    format!(
        "{{\"seq\":{},\"prev\":{prev},\"hash\":\"{}\",\"entry\":{text}}}\n",
        kept.seq,
        hex(&kept.hash)
    )
}
