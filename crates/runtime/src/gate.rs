//! Rules on a whole batch before any of it runs, and once more on each call before it does. What
//! the model wrote becomes calls here, every call gets its ruling here, and what a person must be
//! asked is put together here; nothing reaches a tool around it.

mod raw;
mod request;

use std::sync::Arc;

use chancery_domain::batch::{Clearance, Refusal};
use chancery_domain::event::{
    Answer, Call, CallResult, Created, Member, Proposal, Request, RequestKind,
};
use chancery_domain::id::{MessageId, RunId, WaitKey, permission_key};
use chancery_domain::policy::{Delegation, Fitness, Reason, Ruling};
use chancery_store::StoreError;
use chancery_store::rule::Wanted;
use jiff::Timestamp;

use crate::authority::{Authority, Case, Given, Judgment};
use crate::journal::Journal;
use crate::model::RawCall;
use crate::rules::Literals;

pub use request::{OnExpiry, OnPartialDeny, Terms, arguments_sha256};

/// Where the gate stands: one run's batches under one version of the law.
#[derive(Debug)]
pub struct Gatehouse<'g> {
    /// What is staged in it is not lost while the store is away.
    pub journal: &'g Journal<'g>,
    pub authority: &'g Authority,
    pub terms: &'g Terms,
    pub run: RunId,
    pub created: &'g Created,
    /// Who calls.
    pub speaker: Member,
    pub delegated: Option<Delegation>,
    /// Of the person's own words; absent where no rule asks for them.
    pub task: Option<Literals>,
    pub now: Timestamp,
}

/// What the rules say of a call that is about to run.
#[derive(Debug, PartialEq)]
pub enum Again {
    Run,
    Refuse(Vec<Reason>),
    Ask { ruling: Ruling, reasons: Vec<Reason> },
}

impl Gatehouse<'_> {
    /// Turns the calls that a model wrote into proposals with their rulings.
    pub async fn rule_on(
        &self,
        message: MessageId,
        raw: Vec<RawCall>,
    ) -> Result<Vec<Proposal>, StoreError> {
        let mut proposals = Vec::with_capacity(raw.len());
        for raw::Read { call, unfit } in raw::read(raw) {
            let Judgment { ruling, reasons } = self.judge(&call, unfit.as_ref());
            let call = Arc::new(call);
            let answer =
                if ruling.asks() { Some(self.answer(message, &call, ruling).await?) } else { None };
            proposals.push(Proposal { call, ruling, reasons, answer });
        }
        Ok(proposals)
    }

    /// Rules once more, with the law as it is now. Only ever stricter: what was refused stays
    /// refused, and what was cleared runs if its clearance still covers the ruling.
    pub async fn again(&self, call: &Call, clearance: Clearance) -> Result<Again, StoreError> {
        let Judgment { ruling, reasons } = self.judge(call, None);
        let covered = match (ruling, clearance) {
            (Ruling::Allow, _) => true,
            (Ruling::Deny, _) => return Ok(Again::Refuse(reasons)),
            (_, Clearance::Granted { human: true }) => true,
            (Ruling::RequireApproval, Clearance::Granted { human: false }) => true,
            (Ruling::RequireApproval, Clearance::Rule(rule)) => {
                self.journal.rule_holds(rule, self.now).await?
            }
            _ => false,
        };
        Ok(if covered { Again::Run } else { Again::Ask { ruling, reasons } })
    }

    /// Puts the question together that a person is asked about a call.
    pub async fn request(&self, call: &Call, ruling: Ruling, key: WaitKey) -> Arc<Request> {
        Arc::new(request::about(self, call, ruling, key).await)
    }

    /// The question what became of a call that had started.
    pub async fn recover_request(&self, call: &Call, key: WaitKey) -> Arc<Request> {
        let mut request = request::about(self, call, Ruling::RequireHuman, key).await;
        request.kind = RequestKind::Recover;
        // Whoever lost the outcome cannot say that it did not happen: this waits for a person.
        (request.expires_at, request.escalates) = (None, false);
        Arc::new(request)
    }

    /// A rule that somebody made, or a question.
    async fn answer(
        &self,
        message: MessageId,
        call: &Call,
        ruling: Ruling,
    ) -> Result<Answer, StoreError> {
        let key = permission_key(self.run, message, &call.id);
        let request = self.request(call, ruling, key).await;
        if let Some(signature) = &request.signature {
            let wanted = Wanted {
                user: &self.created.user,
                agent: &self.speaker.agent,
                run: self.run,
                tool: &call.tool,
                signature,
                now: self.now,
            };
            if let Some(rule) = self.journal.rule_for(&wanted).await? {
                return Ok(Answer::Rule(rule));
            }
        }
        Ok(Answer::Request(request))
    }

    fn judge(&self, call: &Call, unfit: Option<&Fitness>) -> Judgment {
        self.authority.judge(Case {
            agent: self.speaker.agent.as_str(),
            user: self.created.user.as_str(),
            delegated: self.delegated.as_ref(),
            call,
            given: unfit.map_or(Given::Whole, Given::Unfit),
            task: self.task.as_ref(),
            now: self.now,
            limits: &[],
        })
    }
}

/// What the model reads about a call that may not run.
pub fn refusal_result(tool: &str, refusal: &Refusal) -> CallResult {
    match refusal {
        Refusal::Policy(reasons) => policy_result(tool, reasons),
        Refusal::Person => CallResult::error("DENIED", "User denied the request."),
        Refusal::Expired => CallResult::error(
            "EXPIRED",
            "Nobody answered the request in time, so it was not carried out.",
        ),
        Refusal::Unknown => CallResult::error(
            "OUTCOME_UNKNOWN",
            format!(
                "`{tool}` had started when the server stopped; whether it took effect is unknown"
            ),
        ),
    }
}

/// What the model reads about a call that was to run after one that was denied.
pub fn aborted_result() -> CallResult {
    CallResult::error("ABORTED", "Another call of the same batch was denied, so none of it ran.")
}

fn policy_result(tool: &str, reasons: &[Reason]) -> CallResult {
    let Some(first) = reasons.first() else {
        return CallResult::error("PERMISSION_DENIED", format!("`{tool}` is denied"));
    };
    let code = match &*first.rule {
        "UNKNOWN_TOOL" | "INVALID_ARGUMENTS" => &*first.rule,
        _ => "PERMISSION_DENIED",
    };
    let text = format!("{code}: {} (layer `{}`, rule `{}`)", first.detail, first.layer, first.rule);
    CallResult::error(code, text)
}
