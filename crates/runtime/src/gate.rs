//! Rules on a whole batch before any of it runs, and once more on each call before it does. What
//! the model wrote becomes calls here, every call gets its ruling here, and what a person must be
//! asked is put together here; nothing reaches a tool around it.

#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod limits;
mod raw;
mod request;

use std::sync::Arc;

use chancery_domain::batch::{Clearance, Cover, Refusal};
use chancery_domain::contract::Warrant;
use chancery_domain::escalation;
use chancery_domain::event::{
    Answer, Call, CallResult, Created, Member, Proposal, Request, RequestKind,
};
use chancery_domain::id::{MessageId, RuleId, RunId, WaitKey, permission_key};
use chancery_domain::policy::{Delegation, Fitness, Layer, Limits, Reason, Ruling, Spent};
use chancery_store::StoreError;
use chancery_store::rule::Wanted;
use jiff::Timestamp;
use metrics::counter;

use crate::authority::{Authority, Case, Given, Judgment};
use crate::journal::Journal;
use crate::model::RawCall;
use crate::rules::Literals;
use crate::tool::Prospect;
use crate::tool::group::EscalateToGroup;

pub use limits::{on_budget, on_rate};
pub use request::{OnExpiry, OnPartialDeny, Terms};

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
    /// What its contracts let it reach.
    pub warrant: Arc<Warrant>,
    pub delegated: Option<Delegation>,
    /// Of the person's own words; absent where no rule asks for them.
    pub task: Option<Literals>,
    /// How deep goals may be handed on.
    pub depth_max: usize,
    /// What the run has used up.
    pub spent: Spent,
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
        let mut proposals: Vec<Proposal> = Vec::with_capacity(raw.len());
        let budget = self.on_budget().await?;
        for raw::Read { call, unfit } in raw::read(raw) {
            let to_be_made =
                |it: &&Proposal| it.call.tool == call.tool && it.ruling != Ruling::Deny;
            let before = proposals.iter().filter(to_be_made).count();
            let mut limits = budget.clone();
            limits.extend(self.on_depth(&call.tool));
            limits
                .extend(self.on_rate(&call.tool, u32::try_from(before).unwrap_or(u32::MAX)).await?);
            let record = self.on_record(&call).await?;
            let case = self.case(&call, unfit.as_ref(), record.as_ref(), &limits);
            let Judgment { ruling, reasons } = self.first(case);
            let call = Arc::new(call);
            let answer =
                if ruling.asks() { Some(self.answer(message, &call, ruling).await?) } else { None };
            proposals.push(Proposal { call, ruling, reasons, answer });
        }
        Ok(proposals)
    }

    /// Rules once more, with the law as it is now. Only ever stricter: what was refused stays
    /// refused, and what was cleared runs if its clearance still covers the ruling.
    ///
    /// `granted_as` is what its tool was when it was granted: a grant is for no other tool, though
    /// it has the same name.
    pub async fn again(
        &self,
        call: &Call,
        clearance: Clearance,
        granted_as: Option<&str>,
    ) -> Result<Again, StoreError> {
        let mut budget = self.on_budget().await?;
        budget.extend(self.on_depth(&call.tool));
        let record = self.on_record(call).await?;
        let case = self.case(call, None, record.as_ref(), &budget);
        let Judgment { ruling, mut reasons } = self.authority.judge(case);
        let is_now = self.authority.tools().definition_sha256(&call.tool);
        let covered = match clearance.covers(ruling, granted_as, is_now) {
            Cover::Denied => return Ok(Again::Refuse(reasons)),
            Cover::AnotherTool => {
                let ruling = ruling.max(Ruling::RequireApproval);
                reasons.insert(0, another_tool(&call.tool, ruling));
                return Ok(Again::Ask { ruling, reasons });
            }
            Cover::Whole => true,
            // Not that rule alone: one that covers the call as it is now.
            Cover::ByRule => {
                let request = self.request(call, ruling, WaitKey::from("")).await?;
                self.rule_for(call, &request).await?.is_some()
            }
            Cover::TooLittle => false,
        };
        if !covered {
            return Ok(Again::Ask { ruling, reasons });
        }
        // The last thing before it runs: a share that is taken is gone.
        Ok(self.take_share(&call.tool).await?.map_or(Again::Run, |it| Again::Refuse(vec![it])))
    }

    /// Goals are handed on only so deep.
    fn on_depth(&self, tool: &str) -> Option<Reason> {
        let hands_on = tool == EscalateToGroup::NAME;
        let too_deep = || escalation::too_deep(self.created, self.depth_max);
        hands_on.then(too_deep).flatten().map(|it| it.reason())
    }

    async fn on_record(&self, call: &Call) -> Result<Option<Reason>, StoreError> {
        let who = Prospect {
            agent: &self.speaker.agent,
            user: &self.created.user,
            org: self.authority.org(),
            contract: self.created.contract.as_ref(),
        };
        let (tools, who) = (self.authority.tools(), &who);
        self.journal.held(|_| async move { tools.denied(call, who).await }).await
    }

    async fn on_budget(&self) -> Result<Vec<Reason>, StoreError> {
        let (limits, run, spent) = (self.limits(), self.run, self.spent);
        let ask = |store| async move { limits::on_budget(&store, limits, run, spent).await };
        self.journal.held(ask).await
    }

    async fn on_rate(&self, tool: &str, before: u32) -> Result<Option<Reason>, StoreError> {
        let (limits, agent) = (self.limits(), &self.speaker.agent);
        let ask = |store| async move { limits::on_rate(&store, limits, agent, tool, before).await };
        self.journal.held(ask).await
    }

    async fn take_share(&self, tool: &str) -> Result<Option<Reason>, StoreError> {
        let (limits, agent) = (self.limits(), &self.speaker.agent);
        let ask = |store| async move { limits::take_share(&store, limits, agent, tool).await };
        self.journal.held(ask).await
    }

    fn limits(&self) -> &Limits {
        &self.authority.org().policy.limits
    }

    /// Puts the question together that a person is asked about a call.
    pub async fn request(
        &self,
        call: &Call,
        ruling: Ruling,
        key: WaitKey,
    ) -> Result<Arc<Request>, StoreError> {
        Ok(Arc::new(request::about(self, call, ruling, key).await?))
    }

    /// The question what became of a call that had started.
    pub async fn recover_request(
        &self,
        call: &Call,
        key: WaitKey,
    ) -> Result<Arc<Request>, StoreError> {
        let mut request = request::about(self, call, Ruling::RequireHuman, key).await?;
        request.kind = RequestKind::Recover;
        // Whoever lost the outcome cannot say that it did not happen: this waits for a person.
        (request.expires_at, request.escalates) = (None, false);
        Ok(Arc::new(request))
    }

    /// A rule that somebody made, or a question.
    async fn answer(
        &self,
        message: MessageId,
        call: &Call,
        ruling: Ruling,
    ) -> Result<Answer, StoreError> {
        let key = permission_key(self.run, message, &call.id);
        let request = self.request(call, ruling, key).await?;
        let rule = self.rule_for(call, &request).await?;
        Ok(rule.map_or(Answer::Request(request), Answer::Rule))
    }

    /// A rule that covers what would be asked.
    async fn rule_for(&self, call: &Call, request: &Request) -> Result<Option<RuleId>, StoreError> {
        let Some(signature) = &request.signature else { return Ok(None) };
        let wanted = Wanted {
            user: &self.created.user,
            agent: &self.speaker.agent,
            run: self.run,
            tool: &call.tool,
            signature,
            now: request.asked_at,
        };
        let wanted = &wanted;
        self.journal.held(|store| async move { store.rule_for(wanted).await }).await
    }

    /// The first ruling on a call, which is counted.
    fn first(&self, case: Case<'_>) -> Judgment {
        let judgment = self.authority.judge(case);
        if judgment.ruling != Ruling::Allow {
            return judgment;
        }
        counter!("chancery_rulings_allowed_total").increment(1);
        if self.terms.record_allows { self.authority.explain(case).0 } else { judgment }
    }

    fn case<'c>(
        &'c self,
        call: &'c Call,
        unfit: Option<&'c Fitness>,
        record: Option<&'c Reason>,
        limits: &'c [Reason],
    ) -> Case<'c> {
        Case {
            agent: self.speaker.agent.as_str(),
            user: self.created.user.as_str(),
            delegated: self.delegated.as_ref(),
            call,
            given: unfit.map_or(Given::Whole, Given::Unfit),
            task: self.task.as_ref(),
            now: self.now,
            warrant: &self.warrant,
            record,
            limits,
        }
    }
}

fn another_tool(tool: &str, outcome: Ruling) -> Reason {
    Reason {
        layer: Layer::Tool.as_str().to_owned(),
        rule: "definition".to_owned(),
        outcome,
        detail: format!("`{tool}` is not what it was when this was granted"),
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

/// What the model reads about a call that does not run because another of its batch was denied:
/// also which calls of the batch were begun before that.
pub fn aborted_result<'c>(begun: impl Iterator<Item = &'c Arc<Call>>) -> CallResult {
    let begun: Vec<String> = begun.map(|it| format!("`{}` ({})", it.tool, it.id)).collect();
    let rest = match begun.len() {
        0 => "no call of the batch was begun".to_owned(),
        _ => format!("begun before that: {}", begun.join(", ")),
    };
    let text =
        format!("Another call of the same batch was denied, so this one did not run; {rest}.");
    CallResult::error("ABORTED", text)
}

fn policy_result(tool: &str, reasons: &[Reason]) -> CallResult {
    let Some(first) = reasons.first() else {
        return CallResult::error("PERMISSION_DENIED", format!("`{tool}` is denied"));
    };
    let code = match &*first.rule {
        "UNKNOWN_TOOL" | "INVALID_ARGUMENTS" => &*first.rule,
        _ => "PERMISSION_DENIED",
    };
    let text = format!("{} (layer `{}`, rule `{}`)", first.detail, first.layer, first.rule);
    CallResult::error(code, text)
}
