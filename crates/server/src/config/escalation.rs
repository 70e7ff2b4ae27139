//! `[escalation]`: on which terms goals are handed to groups, and problems to superiors.

use chancery_runtime::escalation::{self, Terms};
use chancery_runtime::mailroom;
use chancery_runtime::tool::config::Span;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EscalationConfig {
    /// How long a group may take, the time aside that it waits for a person: `300s`, `1h`.
    pub timeout: Span,
    /// What becomes of a group that takes longer: `cancel` or `detach`.
    pub on_timeout: OnTimeout,
    /// How deep goals are handed on.
    pub depth: usize,
    /// How long a problem that an agent hands up by mail waits for its answer.
    pub unanswered_after: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    Cancel,
    Detach,
}

impl Default for EscalationConfig {
    fn default() -> EscalationConfig {
        let terms = Terms::default();
        EscalationConfig {
            timeout: Span(terms.timeout),
            on_timeout: OnTimeout::Cancel,
            depth: terms.depth_max,
            unanswered_after: Span(mailroom::Terms::default().unanswered_after),
        }
    }
}

impl EscalationConfig {
    pub fn terms(&self) -> Terms {
        Terms {
            timeout: self.timeout.0,
            on_timeout: match self.on_timeout {
                OnTimeout::Cancel => escalation::OnTimeout::Cancel,
                OnTimeout::Detach => escalation::OnTimeout::Detach,
            },
            depth_max: self.depth,
        }
    }
}
