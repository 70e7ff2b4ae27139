//! What agents write to one another, and the contracts among it. A mail is routed, written and
//! delivered in one transaction, or its rejection is: see `domain::mail::route`.

mod alert;
mod attempt;
mod contract;
mod hand;
mod raise;
mod row;
mod send;

use chancery_domain::audit::Entry;
use chancery_domain::id::{ContractId, MailId, ProjectId, RunId, UserId};
use chancery_domain::mail::{Draft, Rejection};
use chancery_domain::policy::Bounds;
use jiff::{SignedDuration, Timestamp};

pub use attempt::{Attempt, Attempts};
pub use contract::{ContractFilter, ContractRow, Stepped, WantedStep};
pub use hand::{Handed, Rates};
pub use raise::{Raise, Raised};
pub use row::{MailRow, RejectionRow, Whose};

/// A mail that somebody wants to send.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub id: MailId,
    /// Of the contract that it becomes, where it is one.
    pub contract: ContractId,
    /// Who calls: an agent, the board or the system.
    pub from: String,
    pub draft: Draft,
    pub at: Timestamp,
    pub behalf: Behalf,
    /// The call that sends it; the same key is the same mail.
    pub key: Option<String>,
    /// How long an escalation waits for its answer.
    pub answer_within: SignedDuration,
    /// What the audit says of it, should it be rejected.
    pub entry: Entry,
}

/// On whose behalf a mail is sent, and within what.
#[derive(Debug, Clone, PartialEq)]
pub struct Behalf {
    pub user: UserId,
    pub project: Option<ProjectId>,
    pub delegated: Option<Bounds>,
    pub run: Option<RunId>,
    /// The contract that the sender works under.
    pub contract: Option<ContractId>,
}

/// What became of it.
#[derive(Debug, Clone)]
pub enum Sent {
    Delivered(Box<MailRow>),
    Rejected(Rejection),
}
