//! What the record has against a call that its arguments do not show: a contact that is none, a
//! contract or an approval that is not there. The tool that knows of it says so, and the gate and
//! whoever only asks what would happen hear the same.

use std::sync::Arc;

use chancery_domain::id::{AgentId, ContractId, UserId};
use chancery_domain::org::Org;
use chancery_domain::policy::{Layer, Reason, Ruling};

/// Who would make a call, as far as the record knows them.
#[derive(Debug, Clone, Copy)]
pub struct Prospect<'p> {
    pub agent: &'p AgentId,
    /// On whose behalf.
    pub user: &'p UserId,
    pub org: &'p Arc<Org>,
    /// The contract that the run is under.
    pub contract: Option<&'p ContractId>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Objection {
    /// The call is not made.
    Denied(Reason),
    /// The call is made and tells it then, because that it was tried is to be kept. Whoever only
    /// asks is told before.
    Told(Reason),
}

impl Objection {
    pub(super) fn denied(rule: &str, detail: String) -> Objection {
        Objection::Denied(reason(rule, detail))
    }

    pub(super) fn told(rule: &str, detail: String) -> Objection {
        Objection::Told(reason(rule, detail))
    }
}

fn reason(rule: &str, detail: String) -> Reason {
    let layer = Layer::Arguments.as_str().to_owned();
    Reason { layer, rule: rule.to_owned(), outcome: Ruling::Deny, detail }
}
