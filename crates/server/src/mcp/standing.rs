//! How a call stands, as its run's log says. Pure.

use chancery_domain::event::{CallResult, Decision, Event, Recorded};
use chancery_domain::history::{FoldError, History};
use chancery_domain::id::{AuditId, PermissionId, RunId};
use chancery_domain::policy::Ruling;
use chancery_domain::run::{Outcome, Run, Wait};
use chancery_runtime::context::Context;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Standing {
    Ended(Ended),
    /// People are asked, and nothing runs before they have answered.
    Asked(Vec<PermissionId>),
    /// It is at work, or waits for something else; in a word.
    UnderWay(&'static str),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ended {
    pub result: CallResult,
    /// The entry of the audit that says why a call was refused.
    pub decision: Option<AuditId>,
}

/// A call that nothing is to be said about.
pub(super) const UNDER_WAY: &str = "is under way";

/// `None`: the run is not one of a call from outside.
pub(super) fn standing(run: RunId, log: &[Recorded]) -> Result<Option<Standing>, FoldError> {
    let history = History::fold(run, log)?;
    let created = history.created();
    let Some(call) = &created.call else { return Ok(None) };
    let mut context = Context::new((**created).clone(), Vec::new());
    log.iter().for_each(|it| context.follow(&it.event));
    let result = context.result_of(&call.id).cloned().or_else(|| match history.run() {
        Run::Finished(Outcome::Failed { error, .. }) => {
            Some(CallResult::error("FAILED", error.clone()))
        }
        Run::Finished(Outcome::Cancelled) => {
            Some(CallResult::error("CANCELLED", "Somebody cancelled the call."))
        }
        Run::Finished(Outcome::Completed { output }) => Some(CallResult::ok(output.clone())),
        _ => None,
    });
    Ok(Some(match (result, history.run()) {
        (Some(result), _) => {
            let decision = result.is_error.then(|| decision(run, log)).flatten();
            Standing::Ended(Ended { result, decision })
        }
        (None, Run::Waiting(Wait::Permissions(batch))) => {
            Standing::Asked(batch.asked().map(|(_, it)| it.id).collect())
        }
        (None, other) => Standing::UnderWay(match other.waiting_for() {
            Some("signal") => "waits for a signal",
            Some("child") => "waits for a group",
            Some(_) => "rests",
            None => UNDER_WAY,
        }),
    }))
}

/// Where the audit says that the call may not run: by the last word on it.
fn decision(run: RunId, log: &[Recorded]) -> Option<AuditId> {
    let refused = log.iter().rev().find(|it| matches!(it.event, Event::CallRefused(_)))?;
    let said = log.iter().rev().find(|it| match &it.event {
        Event::PermissionDecided(it) => {
            matches!(it.decision, Decision::Denied | Decision::Expired)
        }
        Event::BatchProposed(it) => it.calls.iter().any(|it| it.ruling == Ruling::Deny),
        _ => false,
    });
    // A call that had been cleared was refused by a rule that came since.
    Some(AuditId::of_event(run, said.unwrap_or(refused).seq, 0))
}
