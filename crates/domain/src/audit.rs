//! What the audit says: who did or was refused what, and by which rule. Written once and never
//! changed; the store chains it, so that a change shows.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::Builder;

use crate::event::{Actor, Created};
use crate::id::{AgentId, AuditId, RoleId, RunId, UserId};
use crate::policy::{Reason, Ruling};

/// One entry. All but the id, the kind and the actor may be absent. Fields are added, never
/// renamed: what is written stays readable for ever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What `chancery why` is asked for.
    pub id: AuditId,
    /// A dotted word, of [`kind`].
    pub kind: Cow<'static, str>,
    pub actor: Actor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Whom it concerns: they may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "run_id")]
    pub run: Option<RunId>,
    /// The id of what it is about: a permission request, a rule, a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Whatever else belongs to this kind of entry.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

/// An entry in its place in the chain. This, as canonical JSON, is what is hashed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// The first entry has 1.
    pub seq: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub entry: Entry,
}

/// The kinds of entries.
pub mod kind {
    pub const RULING: &str = "ruling";
    pub const PERMISSION_REQUESTED: &str = "permission.requested";
    pub const PERMISSION_DECIDED: &str = "permission.decided";
    pub const PERMISSION_ESCALATED: &str = "permission.escalated";
    /// Somebody gave a question more time.
    pub const PERMISSION_EXTENDED: &str = "permission.extended";
    pub const PERMISSION_INQUIRED: &str = "permission.inquired";
    pub const PERMISSION_EXPIRED: &str = "permission.expired";
    pub const CALL_OUTCOME: &str = "call.outcome";
    pub const RULE_MADE: &str = "rule.made";
    pub const RULE_REVOKED: &str = "rule.revoked";
    pub const RULE_NARROWED: &str = "rule.narrowed";
    pub const ORG_CHANGED: &str = "org.changed";
    pub const TOKEN_MADE: &str = "token.made";
    pub const TOKEN_REVOKED: &str = "token.revoked";
    pub const SIGN_IN: &str = "sign_in";
    /// Somebody whom the issuer sent back was not let in.
    pub const SIGN_IN_REFUSED: &str = "sign_in.refused";
    /// Visits were ended by hand, from another one.
    pub const SIGN_OUT: &str = "sign_out";
    pub const RUN_CANCELLED: &str = "run.cancelled";
    /// A goal was handed to a group, with what was delegated.
    pub const CHILD_SPAWNED: &str = "child.spawned";
    pub const PERSON_SPOKE: &str = "person.spoke";
    pub const WRAPUP_REQUESTED: &str = "wrapup.requested";
    pub const PAUSE_REQUESTED: &str = "pause.requested";
    pub const RUN_UNPAUSED: &str = "run.unpaused";
    pub const MEMORY_FORGOTTEN: &str = "memory.forgotten";
    pub const MAIL_REJECTED: &str = "mail.rejected";
    pub const CONTRACT_CHANGED: &str = "contract.changed";
}

impl Entry {
    pub fn new(id: AuditId, kind: &'static str, actor: Actor) -> Entry {
        Entry {
            id,
            kind: Cow::Borrowed(kind),
            actor,
            org: None,
            user: None,
            agent: None,
            role: None,
            tool: None,
            ruling: None,
            run: None,
            reference: None,
            reasons: Vec::new(),
            detail: Value::Null,
        }
    }

    /// An entry about a run, with all that the run was made with.
    pub fn of_run(
        id: AuditId,
        kind: &'static str,
        actor: Actor,
        run: RunId,
        created: &Created,
    ) -> Entry {
        Entry {
            org: Some(created.org.clone()),
            user: Some(created.user.clone()),
            agent: Some(created.agent.clone()),
            role: Some(created.role.clone()),
            run: Some(run),
            ..Entry::new(id, kind, actor)
        }
    }
}

impl AuditId {
    /// The id of the `ordinal`-th entry about the event at `seq` of a run's log: the same however
    /// often and wherever it is asked for, so that a refusal can name its entry.
    pub fn of_event(run: RunId, seq: u64, ordinal: u32) -> AuditId {
        let digest = Sha256::new()
            .chain_update(run.0.as_bytes())
            .chain_update(seq.to_be_bytes())
            .chain_update(ordinal.to_be_bytes())
            .finalize();
        AuditId::within(run, &digest)
    }

    /// The id of the entry about what a call of a run came to, by the call's idempotency key.
    pub fn of_call(run: RunId, key: &str) -> AuditId {
        let digest = Sha256::new().chain_update(run.0.as_bytes()).chain_update(key).finalize();
        AuditId::within(run, &digest)
    }

    fn within(run: RunId, digest: &[u8]) -> AuditId {
        // Its time is the run's: only so can everyone who knows the place in the log know the id.
        let mut bytes = *run.0.as_bytes();
        bytes[6..].copy_from_slice(&digest[..10]);
        let version = uuid::Version::SortRand;
        let variant = uuid::Variant::RFC4122;
        let built = Builder::from_bytes(bytes).with_version(version).with_variant(variant);
        AuditId(built.into_uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RunId;

    #[test]
    fn the_entries_of_a_run_have_ids_of_their_own_that_never_change() {
        let run =
            |n: u128| RunId(uuid::Uuid::from_u128(0x0192_0000_0000_7000_8000_0000_0000_0000 + n));
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..4 {
            for (seq, ordinal) in [(1, 0), (1, 1), (2, 0), (256, 0), (u64::MAX, u32::MAX)] {
                let id = AuditId::of_event(run(n), seq, ordinal);
                assert_eq!(id, AuditId::of_event(run(n), seq, ordinal));
                assert_eq!(id.0.get_version_num(), 7);
                assert!(seen.insert(id), "{id}");
            }
        }
        let id = AuditId::of_event(run(0), 2, 0).to_string();
        assert!(id.starts_with("aud_0192000000007"), "{id}");
    }

    #[test]
    fn a_ruling_is_written_here_as_it_is_everywhere() {
        for ruling in [Ruling::Allow, Ruling::RequireApproval, Ruling::RequireHuman, Ruling::Deny] {
            assert_eq!(serde_json::to_value(ruling).unwrap(), ruling.as_str());
        }
    }

    #[test]
    fn an_entry_is_read_back_as_it_was_written() {
        let id = AuditId(uuid::Uuid::from_u128(7));
        let bare = Entry::new(id, kind::SIGN_IN, Actor::System);
        let full = Entry {
            ruling: Some(Ruling::Deny),
            reference: Some("perm_1".to_owned()),
            detail: serde_json::json!({"a": [1]}),
            ..bare.clone()
        };
        for entry in [bare, full] {
            let link = Link { seq: 1, at: Timestamp::UNIX_EPOCH, entry };
            let text = serde_json::to_string(&link).unwrap();
            assert_eq!(serde_json::from_str::<Link>(&text).unwrap(), link, "{text}");
        }
    }
}
