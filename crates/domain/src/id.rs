//! Names of things: every id has a type of its own, so that one cannot stand for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An id that is not of the form that its kind has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an id of the form `{prefix}…`")]
pub struct BadId {
    pub given: String,
    pub prefix: &'static str,
}

/// Ids that the system makes: a prefix that says the kind, and a UUID (version 7, so that they
/// sort by the time they were made).
macro_rules! made_ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(given: &str) -> Result<$name, BadId> {
                given
                    .strip_prefix($prefix)
                    // The simple form only: one id has one spelling.
                    .filter(|rest| rest.len() == 32 && !rest.bytes().any(|it| it.is_ascii_uppercase()))
                    .and_then(|rest| Uuid::try_parse(rest).ok())
                    .map($name)
                    .ok_or_else(|| BadId { given: given.chars().take(64).collect(), prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let given = std::borrow::Cow::<str>::deserialize(deserializer)?;
                given.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

/// Ids that people and models choose: names.
macro_rules! given_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> $name {
                $name(name.to_owned())
            }
        }
    )*};
}

made_ids! {
    /// One goal pursued to an outcome.
    RunId = "run_";
    /// One thing said in a run: by a person or by the model.
    MessageId = "msg_";
    /// One call's need for a decision.
    PermissionId = "perm_";
    /// A standing rule: a decision that was to be remembered.
    RuleId = "rul_";
    /// A token's record (not its secret).
    TokenId = "tok_";
    /// One process that drives runs.
    WorkerId = "wkr_";
    /// One entry of the audit; what `chancery why` is asked for.
    AuditId = "aud_";
    /// Something that is remembered.
    MemoryId = "mem_";
}

given_ids! {
    /// The model's name for one of its tool calls; unique within a batch.
    CallId;
    /// What a signal must name to end a wait (on the wire: `correlation_key`).
    WaitKey;
    AgentId;
    RoleId;
    GroupId;
    UserId;
    ProjectId;
    /// The thread of talk that a run belongs to.
    SessionKey;
    /// `MAIL-<time>-<random>`: made by the system, as text, because people read it out.
    MailId;
    /// `CTR-<time>-<random>`.
    ContractId;
}

/// What a tool can use to recognise a call that it has seen before.
pub fn idempotency_key(run: RunId, message: MessageId, call: &CallId) -> String {
    format!("{run}:{message}:{call}")
}

/// The wait key of a call that a person must answer for.
pub fn permission_key(run: RunId, message: MessageId, call: &CallId) -> WaitKey {
    WaitKey(format!("cap-approval-{}", idempotency_key(run, message, call)))
}

/// The wait key of the question what became of a call. A call may be asked about more than
/// once, so the place in the log where it is asked is part of the key: a late copy of one answer
/// is never taken for the answer to another question.
pub fn recover_key(run: RunId, message: MessageId, call: &CallId, seq: u64) -> WaitKey {
    WaitKey(format!("cap-recover-{seq}-{}", idempotency_key(run, message, call)))
}

/// The wait key of a question that is put a second time, because the rules have become stricter
/// than the answer covers.
pub fn again_key(run: RunId, message: MessageId, call: &CallId, seq: u64) -> WaitKey {
    WaitKey(format!("cap-approval-{seq}-{}", idempotency_key(run, message, call)))
}

impl WaitKey {
    /// Keys that the system gives to its own questions; nothing else may wait for them.
    pub fn is_reserved(&self) -> bool {
        ["cap-approval-", "cap-recover-", "cap-child-"].iter().any(|it| self.0.starts_with(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let id = RunId(Uuid::from_u128(7));
        assert_eq!(id.to_string(), "run_00000000000000000000000000000007");
        assert_eq!(id.to_string().parse(), Ok(id));
        for other in [
            "run_00000000-0000-0000-0000-000000000007",
            "msg_00000000000000000000000000000007",
            "run_{00000000000000000000000000000007}",
            "run_0000000000000000000000000000000A",
            "run_",
            "",
        ] {
            assert!(other.parse::<RunId>().is_err(), "{other}");
        }
    }
}
