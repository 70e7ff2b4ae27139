//! What the domain and the store say, as the wire says it.

use chancery_api::audit::{Actor, Entry, Reason};
use chancery_api::run::{DelegatedPermissions, Event, Run, Tree, Usage, Wait};
use chancery_api::token;
use chancery_domain::audit::{Link, word};
use chancery_domain::command;
use chancery_domain::event::{self, Recorded};
use chancery_domain::history::History;
use chancery_domain::id::RunId;
use chancery_domain::policy::Bounds;
use chancery_domain::run;
use chancery_store::audit::{Kept, hex};
use chancery_store::read::RunRow;
use chancery_store::token::Token;

use crate::error::{ApiError, Result};

pub fn run(row: RunRow) -> Run {
    Run {
        id: row.id.to_string(),
        status: row.status,
        waiting_for: row.waiting_for,
        wait: None,
        agent: row.agent.0,
        role: row.role.0,
        group: row.group.map(|it| it.0),
        user: row.user.0,
        project: row.project.map(|it| it.0),
        session_key: row.session_key.map(|it| it.0),
        parent_run_id: row.parent.map(|it| it.to_string()),
        delegated_permissions: row.delegated.map(delegated),
        input: row.input,
        output: row.output,
        error: row.error,
        usage: Usage {
            input_tokens: row.usage.input_tokens,
            output_tokens: row.usage.output_tokens,
        },
        attempt: row.attempt,
        created_at: row.created_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
    }
}

fn delegated(bounds: Bounds) -> DelegatedPermissions {
    let denied = (!bounds.denied_tools.is_empty()).then_some(bounds.denied_tools);
    DelegatedPermissions { allowed_tools: bounds.allowed_tools, denied_tools: denied }
}

pub fn bounds(given: DelegatedPermissions) -> Bounds {
    Bounds {
        allowed_tools: given.allowed_tools,
        denied_tools: given.denied_tools.unwrap_or_default(),
    }
}

/// What would end the wait that a run is in.
pub fn wait(history: &History, events: &[Recorded]) -> Option<Wait> {
    let run::Run::Waiting(waiting) = history.run() else { return None };
    let until = match waiting {
        run::Wait::Signal { until, .. } => *until,
        run::Wait::Permissions(_) => None,
    };
    let keys = command::awaited_keys(history, events);
    Some(Wait { correlation_keys: keys.into_iter().map(|it| it.0).collect(), until })
}

pub fn event(recorded: Recorded) -> Result<Event> {
    let body = recorded.event.encode().map_err(|it| ApiError::Internal(it.to_string()))?;
    let data = serde_json::from_str(&body).map_err(|it| ApiError::Internal(it.to_string()))?;
    Ok(Event { seq: recorded.seq, kind: recorded.event.kind().to_owned(), at: recorded.at, data })
}

/// The rows of a tree, parents before children, as one.
pub fn tree(root: RunId, rows: Vec<RunRow>) -> Option<Tree> {
    let mut trees: Vec<(RunId, Option<RunId>, Tree)> = rows
        .into_iter()
        .map(|row| (row.id, row.parent, Tree { run: run(row), children: Vec::new() }))
        .collect();
    // Children come after their parents, so the last one has all of its own already.
    while let Some((id, parent, tree)) = trees.pop() {
        if id == root {
            return Some(tree);
        }
        let above = trees.iter_mut().find(|(id, _, _)| Some(*id) == parent);
        if let Some((_, _, above)) = above {
            above.children.insert(0, tree);
        }
    }
    None
}

pub fn token(token: Token) -> token::Token {
    token::Token {
        id: token.id.to_string(),
        kind: token.kind.as_str().to_owned(),
        name: token.name,
        operator: token.operator,
        approve: token.approve,
        created_at: token.created_at,
        revoked_at: token.revoked_at,
    }
}

pub fn entry(kept: &Kept) -> Entry {
    let (prev, hash) = (kept.prev.as_ref().map(hex), hex(&kept.hash));
    let Ok(Link { seq, at, entry }) = kept.link() else { return unreadable(kept.seq, prev, hash) };
    let reason = |it: chancery_domain::policy::Reason| Reason {
        layer: it.layer,
        rule: it.rule,
        outcome: word(it.outcome).to_owned(),
        detail: it.detail,
    };
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
        ruling: entry.ruling.map(|it| word(it).to_owned()),
        run_id: entry.run.map(|it| it.to_string()),
        reference: entry.reference,
        reasons: entry.reasons.into_iter().map(reason).collect(),
        detail: entry.detail,
        prev,
        hash,
    }
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
