//! Where time and new ids come from: the one place of this crate that asks the machine.

use chancery_domain::id::{
    AuditId, MemoryId, MessageId, PermissionId, RuleId, RunId, TokenId, WorkerId,
};
use jiff::Timestamp;
use uuid::Uuid;

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

pub fn new_run_id() -> RunId {
    RunId(new_uuid())
}

pub fn new_message_id() -> MessageId {
    MessageId(new_uuid())
}

pub fn new_permission_id() -> PermissionId {
    PermissionId(new_uuid())
}

pub fn new_rule_id() -> RuleId {
    RuleId(new_uuid())
}

pub fn new_worker_id() -> WorkerId {
    WorkerId(new_uuid())
}

pub fn new_token_id() -> TokenId {
    TokenId(new_uuid())
}

pub fn new_audit_id() -> AuditId {
    AuditId(new_uuid())
}

pub fn new_memory_id() -> MemoryId {
    MemoryId(new_uuid())
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
fn new_uuid() -> Uuid {
    Uuid::now_v7()
}

/// A secret that nobody guesses: 244 random bits.
#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
pub fn new_secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
