//! What a person is asked about one call, and on which terms.

use std::time::Duration;

use chancery_domain::event::{Call, Request, RequestKind};
use chancery_domain::id::WaitKey;
use chancery_domain::policy::Ruling;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Gatehouse;
use crate::clock;

/// How long questions stand, and what becomes of those that nobody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub expire_after: Duration,
    pub on_expiry: OnExpiry,
    pub on_partial_deny: OnPartialDeny,
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
        }
    }
}

pub(super) async fn about(
    gate: &Gatehouse<'_>,
    call: &Call,
    ruling: Ruling,
    correlation_key: WaitKey,
) -> Request {
    let mut shown = gate.authority.tools().describe(call).await;
    let arguments_sha256 = arguments_sha256(&call.arguments);
    // What a person must be asked is asked each time.
    let signature = (ruling == Ruling::RequireApproval && shown.kind != RequestKind::Recover)
        .then(|| shown.signature.unwrap_or_else(|| format!("sha256:{arguments_sha256}")));
    // The gate adds; what the tool said of itself stays.
    shown.payload.entry("rememberable").or_insert_with(|| json!(signature.is_some()));
    let expires_at = match gate.terms.on_expiry {
        OnExpiry::Wait => None,
        // A time past the end of the calendar is no limit.
        _ => gate.now.checked_add(gate.terms.expire_after).ok(),
    };
    let facts = gate.authority.policy().facts(&call.tool);
    Request {
        id: clock::new_permission_id(),
        correlation_key,
        kind: shown.kind,
        payload: shown.payload,
        risk: facts.map(|it| it.risk),
        capabilities: facts.map(|it| it.capabilities.clone()).unwrap_or_default(),
        arguments_sha256,
        signature,
        asked_at: gate.now,
        expires_at,
        escalates: gate.terms.on_expiry == OnExpiry::Escalate && expires_at.is_some(),
    }
}

/// Of the canonical form (RFC 8785), so that one call has one digest wherever it is computed.
pub fn arguments_sha256(arguments: &Value) -> String {
    let canonical = serde_json_canonicalizer::to_vec(arguments).unwrap_or_default();
    Sha256::digest(canonical).iter().map(|byte| format!("{byte:02x}")).collect()
}
