//! What a person is asked about one call, and on which terms.

use std::time::Duration;

use chancery_domain::event::{Call, Request, RequestKind};
use chancery_domain::id::WaitKey;
use chancery_domain::policy::{Access, Ruling};
use chancery_domain::text::visible;
use chancery_store::StoreError;
use serde_json::{Value, json};

use super::Gatehouse;
use crate::clock;
use crate::digest::sha256;
use crate::tool::{Caller, Description, Touched};

/// How long questions stand, and what becomes of those that nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub expire_after: Duration,
    pub on_expiry: OnExpiry,
    pub on_partial_deny: OnPartialDeny,
    /// Whether an allow is put in words, which the audit then keeps.
    pub record_allows: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExpiry {
    Deny,
    /// Others are told, and have as long again; then it is denied.
    Escalate,
    /// It does not expire.
    Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPartialDeny {
    Continue,
    AbortBatch,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            expire_after: Duration::from_secs(24 * 60 * 60),
            on_expiry: OnExpiry::Deny,
            on_partial_deny: OnPartialDeny::Continue,
            record_allows: false,
        }
    }
}

pub(super) async fn about(
    gate: &Gatehouse<'_>,
    call: &Call,
    ruling: Ruling,
    correlation_key: WaitKey,
) -> Result<Request, StoreError> {
    let tools = gate.authority.tools();
    let mut shown = tools.describe(call).await;
    add_paths(gate, call, &mut shown);
    shown.payload.values_mut().for_each(make_visible);
    let definition_sha256 = tools.definition_sha256(&call.tool).map(str::to_owned);
    // The very same call of the very same tool.
    let same = || sha256(&json!([call.arguments, definition_sha256]));
    // What a person must be asked is asked each time.
    let signature = (ruling == Ruling::RequireApproval && shown.kind != RequestKind::Recover)
        .then(|| shown.signature.unwrap_or_else(|| format!("sha256:{}", same())));
    // The gate adds; what the tool said of itself stays.
    shown.payload.entry("rememberable").or_insert_with(|| json!(signature.is_some()));
    // By the clock that will judge it.
    let asked_at = gate.journal.held(|store| async move { store.now().await }).await?;
    let expires_at = match gate.terms.on_expiry {
        OnExpiry::Wait => None,
        // A time past the end of the calendar is no limit.
        _ => asked_at.checked_add(gate.terms.expire_after).ok(),
    };
    let facts = gate.authority.policy().facts(&call.tool);
    Ok(Request {
        id: clock::new_permission_id(),
        correlation_key,
        kind: shown.kind,
        payload: shown.payload,
        risk: facts.map(|it| it.risk),
        capabilities: facts.map(|it| it.capabilities.clone()).unwrap_or_default(),
        arguments_sha256: sha256(&call.arguments),
        definition_sha256,
        signature,
        asked_at,
        expires_at,
        escalates: gate.terms.on_expiry == OnExpiry::Escalate && expires_at.is_some(),
    })
}

/// A tool that says nothing of a call itself still says which paths it touches.
fn add_paths(gate: &Gatehouse<'_>, call: &Call, shown: &mut Description) {
    let (authority, agent) = (gate.authority, &gate.speaker.agent);
    let Some(role) = authority.org().role_of(agent) else { return };
    if shown.kind != RequestKind::All || shown.payload.contains_key("paths") {
        return;
    }
    let org = authority.org();
    let caller = Caller { agent: agent.as_str(), role, org, warrant: &gate.warrant };
    let touched = authority.tools().touches(call, caller).into_iter();
    let paths: Vec<(Access, String)> = touched
        .filter_map(|it| match it {
            Touched::Path(access, path) => Some((access, path)),
            Touched::Branch(_) => None,
        })
        .collect();
    if paths.is_empty() {
        return;
    }
    let writes = paths.iter().any(|(access, _)| *access == Access::Write);
    shown.kind = if writes { RequestKind::Write } else { RequestKind::Read };
    let paths: Vec<&str> = paths.iter().map(|(_, path)| &**path).collect();
    shown.payload.insert("paths".to_owned(), json!(paths));
}

/// Whatever a tool says of a call: nothing in it is hidden from the person who reads it.
fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => *text = visible(text),
        Value::Array(items) => items.iter_mut().for_each(make_visible),
        Value::Object(fields) => fields.values_mut().for_each(make_visible),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
