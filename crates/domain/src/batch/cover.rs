//! How far what a call was cleared by reaches when the call is ruled on once more.

use super::Clearance;
use crate::policy::Ruling;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover {
    Whole,
    /// As far as a standing rule covers the call as it is now.
    ByRule,
    /// It was given for another tool of the same name.
    AnotherTool,
    TooLittle,
    /// Nothing covers what is denied.
    Denied,
}

impl Clearance {
    /// `granted_as` is the digest of the tool that was granted, `is_now` that of the tool that
    /// there is.
    pub fn covers(self, ruling: Ruling, granted_as: Option<&str>, is_now: Option<&str>) -> Cover {
        let granted = matches!(self, Clearance::Granted { .. });
        match (ruling, self) {
            (Ruling::Deny, _) => Cover::Denied,
            _ if granted && granted_as.is_some_and(|it| Some(it) != is_now) => Cover::AnotherTool,
            (Ruling::Allow, _) => Cover::Whole,
            (_, Clearance::Granted { human: true }) => Cover::Whole,
            (Ruling::RequireApproval, Clearance::Granted { human: false }) => Cover::Whole,
            (Ruling::RequireApproval, Clearance::Rule(_)) => Cover::ByRule,
            _ => Cover::TooLittle,
        }
    }
}
