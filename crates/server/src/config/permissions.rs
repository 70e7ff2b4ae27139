//! `[permissions]`: on which terms people are asked.

use std::time::Duration;

use chancery_runtime::gate::{OnExpiry, OnPartialDeny, Terms};
use chancery_runtime::tool::config::Span;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PermissionsConfig {
    /// How long a question stands: `30m`, `24h`, `7d`.
    pub expire_after: Span,
    /// How long a question may stand in all, however often it is given more time.
    pub extend_up_to: Span,
    /// What becomes of a question that nobody answers: `deny`, `escalate` or `wait`.
    pub on_expiry: Expiry,
    /// Whether the rest of a batch runs when a call of it was denied: `continue` or
    /// `abort_batch`.
    pub on_partial_deny: PartialDeny,
    /// How long a remembered decision holds, at most.
    pub remember_for: Span,
    /// Whether the person that an agent works for may answer what it asks.
    pub own_requests: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expiry {
    Deny,
    Escalate,
    Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartialDeny {
    Continue,
    AbortBatch,
}

impl Default for PermissionsConfig {
    fn default() -> PermissionsConfig {
        PermissionsConfig {
            expire_after: Span(Terms::default().expire_after),
            extend_up_to: Span(Duration::from_secs(30 * 24 * 60 * 60)),
            on_expiry: Expiry::Deny,
            on_partial_deny: PartialDeny::Continue,
            remember_for: Span(Duration::from_secs(30 * 24 * 60 * 60)),
            own_requests: true,
        }
    }
}

impl PermissionsConfig {
    pub(super) fn terms(&self, record_allows: bool) -> Terms {
        Terms {
            record_allows,
            expire_after: self.expire_after.0,
            on_expiry: match self.on_expiry {
                Expiry::Deny => OnExpiry::Deny,
                Expiry::Escalate => OnExpiry::Escalate,
                Expiry::Wait => OnExpiry::Wait,
            },
            on_partial_deny: match self.on_partial_deny {
                PartialDeny::Continue => OnPartialDeny::Continue,
                PartialDeny::AbortBatch => OnPartialDeny::AbortBatch,
            },
        }
    }
}
