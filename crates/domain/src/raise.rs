//! Raising: a problem goes one level up the reporting line, by mail of type `escalation`. Pure:
//! what follows when nobody answers.

use crate::contract::superiors;
use crate::mail::{BOARD, Draft};
use crate::org::Org;

/// The type of mail that raises a problem.
pub const ESCALATION: &str = "escalation";
/// So many without an answer, and the head of the organisation is told.
pub const UNANSWERED_MAX: u32 = 3;
/// No reporting line is longer than this; one that is, is a circle.
const LINE_MAX: usize = 64;

/// What follows on an escalation that nobody answered in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It may be sent again.
    Again,
    /// The agent at the head of the line is told.
    Head(String),
    /// People are told, through every channel that there is.
    Board,
}

/// `to` has not answered the `count`th escalation of one matter.
pub fn unanswered(org: &Org, to: &str, count: u32) -> Next {
    if count < UNANSWERED_MAX {
        return Next::Again;
    }
    match head(org, to) {
        Some(head) if head != to => Next::Head(head),
        _ => Next::Board,
    }
}

/// Who stands between an agent's line and the board.
pub fn head(org: &Org, of: &str) -> Option<String> {
    let mut at = of.to_owned();
    for _ in 0..LINE_MAX {
        match superiors(org, &at).into_iter().next() {
            Some(above) if above == BOARD => return Some(at).filter(|it| it != BOARD),
            Some(above) => at = above,
            None => return None,
        }
    }
    None
}

/// What tells one problem from another: the contract that it is about, or else what it is called.
pub fn matter(draft: &Draft) -> String {
    match &draft.contract_ref {
        Some(contract) => contract.to_string(),
        None => draft.subject.trim().to_lowercase(),
    }
}
