//! Mail and contracts, on the wire.

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::audit::RuledNow;
use crate::permission::{Looked, Way};

/// A file that a mail points to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MailAttachment {
    /// Beneath the workspace, and within what the sender may read.
    pub path: String,
    #[serde(default)]
    pub description: String,
}

/// A mail to send. Who sends it is who calls: a `from` is ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NewMail {
    pub to: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub subject: String,
    pub body: String,
    /// `low`, `medium`, `high` or `critical`; `medium` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(low|medium|high|critical)$")]
    pub priority: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<MailAttachment>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_ref: Option<String>,
    /// What its type says beside these.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Mail {
    pub id: String,
    pub from: String,
    pub to: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub subject: String,
    pub body: String,
    pub priority: String,
    pub attachments: Vec<MailAttachment>,
    #[schema(required = true)]
    pub reply_to: Option<String>,
    /// The first mail of the thread.
    pub thread: String,
    #[schema(required = true)]
    pub contract_ref: Option<String>,
    /// What its type says beside these.
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
    /// `sent`, `delivered`, `read` or `failed`
    pub status: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub delivered_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub read_at: Option<Timestamp>,
    /// The person behind it.
    pub user: String,
    /// The run that sent it, and the one that answers it.
    #[schema(required = true)]
    pub run_id: Option<String>,
    #[schema(required = true)]
    pub answered_by_run_id: Option<String>,
}

/// A mail that was not delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MailRejection {
    pub id: String,
    pub from_agent: String,
    pub to_agent: String,
    pub mail_type: String,
    /// The step that rejected it: `sender`, `recipient`, `contact`, `type`, `contract`,
    /// `attachments` or `fields`.
    pub step: String,
    pub reason: String,
    #[schema(value_type = String, format = DateTime)]
    pub attempted_at: Timestamp,
    #[schema(required = true)]
    pub run_id: Option<String>,
    /// The audit's entry of it, which `chancery why` is asked for: for people, and `null` where the
    /// audit has none.
    #[serde(default)]
    #[schema(required = true)]
    pub audit_id: Option<String>,
}

/// One of them, with why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RejectionStory {
    #[serde(flatten)]
    pub rejection: MailRejection,
    /// Every step as it was then.
    pub layers: Vec<Looked>,
    /// What the rules in force say of the same mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<RuledNow>,
    /// What would let it through now.
    pub ways: Vec<Way>,
}

/// Whether a mail would be delivered, as things are now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CanMail {
    pub allowed: bool,
    /// The step that would reject it.
    #[schema(required = true)]
    pub step: Option<String>,
    #[schema(required = true)]
    pub reason: Option<String>,
    /// Whether the two may write this to one another only under an active contract.
    pub needs_contract: bool,
    /// Whom the sender may write to.
    pub contacts: Vec<String>,
}

/// A contract to issue. Who issues it is who calls: a `from` is ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewContract {
    /// Read so that it is not taken for a mistake, and never looked at.
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub from: IgnoredAny,
    #[serde(default, skip_serializing)]
    #[schema(ignore)]
    pub from_agent: IgnoredAny,
    pub to: String,
    pub title: String,
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(low|medium|high|critical)$")]
    pub priority: Option<String>,
    /// A time (RFC 3339) or a date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// A text, or several.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub deliverables: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub acceptance_criteria: Value,
    /// What its holder may reach in the workspace: a path, or several.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub workspace_scope: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cross_department: Option<bool>,
    /// The contract under which this one is issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Contract {
    pub id: String,
    pub mail_id: String,
    pub from: String,
    pub to: String,
    pub title: String,
    pub body: String,
    pub priority: String,
    #[schema(required = true)]
    pub deadline: Option<String>,
    pub deliverables: Value,
    pub acceptance_criteria: Value,
    pub workspace_scope: Value,
    #[schema(required = true)]
    pub assigned_branch: Option<String>,
    pub cross_department: bool,
    /// `pending`, `accepted`, `in_progress`, `review`, `passed`, `failed`, `escalated` or
    /// `cancelled`
    pub state: String,
    /// The same, by the name that it has of runs and mails.
    pub status: String,
    pub failures: u32,
    #[schema(required = true)]
    pub parent: Option<String>,
    pub user: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// A contract with all that has come of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContractStory {
    #[serde(flatten)]
    pub contract: Contract,
    /// The steps that were made, the first first.
    pub history: Vec<ContractStep>,
    /// What was written about it, the oldest first.
    pub mails: Vec<Mail>,
    /// The contracts that were issued under it.
    pub children: Vec<Contract>,
    /// The runs that were made to answer mail about it.
    pub run_ids: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContractStep {
    pub from: String,
    pub to: String,
    pub by: String,
    #[schema(required = true)]
    pub note: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// A step to make.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    #[schema(
        pattern = "^(pending|accepted|in_progress|review|passed|failed|escalated|cancelled)$"
    )]
    pub to: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
