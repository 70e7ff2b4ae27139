//! What somebody wants to send.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{OUTCOME, REPORT};
use crate::id::{ContractId, MailId};

/// What the system says of a mail, and never its sender: ignored, silently, whoever gives it.
pub const NOT_THE_SENDERS: [&str; 7] =
    ["from", "from_agent", "id", "status", "created_at", "read_at", "thread"];

#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    Low,
    #[default]
    Medium,
    High,
    Critical,
}

impl Priority {
    pub const ALL: [Priority; 4] =
        [Priority::Low, Priority::Medium, Priority::High, Priority::Critical];

    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Low => "low",
            Priority::Medium => "medium",
            Priority::High => "high",
            Priority::Critical => "critical",
        }
    }

    pub fn parse(text: &str) -> Option<Priority> {
        Priority::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub path: String,
    #[serde(default)]
    pub description: String,
}

/// What somebody wants to send. Who that is, is not in it: it is never the sender's to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    pub to: String,
    pub kind: String,
    pub subject: String,
    pub body: String,
    pub priority: Priority,
    pub attachments: Vec<Attachment>,
    pub reply_to: Option<MailId>,
    pub contract_ref: Option<ContractId>,
    /// What its type says beside a subject and a body.
    pub fields: Map<String, Value>,
}

impl Draft {
    /// The contract whose work it hands in.
    pub fn hands_in(&self) -> Option<&ContractId> {
        let done = self.fields.get(OUTCOME).is_some_and(|it| it == "completed");
        self.contract_ref.as_ref().filter(|_| self.kind == REPORT && done)
    }

    /// A mail that says as little as one can.
    pub fn bare(to: &str, kind: &str) -> Draft {
        Draft {
            to: to.to_owned(),
            kind: kind.to_owned(),
            subject: "-".to_owned(),
            body: String::new(),
            priority: Priority::default(),
            attachments: Vec::new(),
            reply_to: None,
            contract_ref: None,
            fields: Map::new(),
        }
    }
}
