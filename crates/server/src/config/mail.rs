//! `[mail]`: what comes of what agents write to one another.

use chancery_runtime::mailroom::Terms;
use serde::{Deserialize, Serialize};

use super::Config;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MailConfig {
    /// Whether mail makes runs that answer it.
    pub drives_work: bool,
    /// How many runs mail may make for one agent in a minute.
    pub runs_a_minute: u32,
}

impl Default for MailConfig {
    fn default() -> MailConfig {
        let terms = Terms::default();
        MailConfig { drives_work: terms.drives_work, runs_a_minute: terms.runs_a_minute }
    }
}

impl Config {
    /// Without a model nobody can answer: mail waits.
    pub fn mail_terms(&self) -> Terms {
        Terms {
            drives_work: self.mail.drives_work && !self.models.is_empty(),
            runs_a_minute: self.mail.runs_a_minute,
            unanswered_after: self.escalation.unanswered_after.0,
        }
    }
}
