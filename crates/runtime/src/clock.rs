//! Where time and new ids come from: the one place of this crate that asks the machine.

use chancery_domain::id::{
    AuditId, ContractId, MailId, MemoryId, MessageId, PermissionId, RuleId, RunId, TokenId,
    WorkerId,
};
use jiff::Timestamp;
use uuid::Uuid;

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
pub fn now() -> Timestamp {
    #[cfg(feature = "faults")]
    if let Some(simulated) = chancery_store::fault::clock::now() {
        return simulated;
    }
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

/// With the time that it is made at, for people, and what nobody guesses.
pub fn new_mail_id(at: Timestamp) -> MailId {
    MailId(dated("MAIL", at))
}

pub fn new_contract_id(at: Timestamp) -> ContractId {
    ContractId(dated("CTR", at))
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
fn dated(prefix: &str, at: Timestamp) -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    // The last 64 bits but two are random: twelve letters of five bits.
    let random = Uuid::new_v4().as_u64_pair().1;
    let tail = (0..12).map(|place| LETTERS[(random >> (place * 5)) as usize % 32] as char);
    format!("{prefix}-{}-{}", at.strftime("%Y%m%d%H%M%S"), tail.collect::<String>())
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
fn new_uuid() -> Uuid {
    #[cfg(feature = "faults")]
    if let Some(simulated) = chancery_store::fault::clock::new_uuid() {
        return simulated;
    }
    Uuid::now_v7()
}

/// A secret that nobody guesses: 244 random bits.
#[expect(clippy::disallowed_methods, reason = "this is the place that the lint points to")]
pub fn new_secret() -> String {
    format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
}
