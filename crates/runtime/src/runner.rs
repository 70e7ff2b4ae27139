//! `drive`: the loop. Where a run starts and where it resumes, which is the same.
//!
//! The order that makes a run safe to kill at any moment: a call's start is durable before the
//! tool is called, its result is durable before the model is called, and a run that waits or
//! has ended is durable before its worker turns to another. Everything in between shares the
//! next commit.

mod relay;
mod speak;

use std::sync::Arc;
use std::time::Duration;

use chancery_domain::batch::{Batch, Clearance, Permit, Refusal, Settled, Turn};
use chancery_domain::contract::Warrant;
use chancery_domain::event::{
    BatchClosed, Call, CallEnded, CallRefused, CallResult, CallRetried, CallStarted, Concluded,
    Failed, Member, Paused, PermissionRequested, Recorded, Request as Question, Started, WaitBegan,
};
use chancery_domain::id::{
    MessageId, WaitKey, again_key, idempotency_key, permission_key, recover_key,
};
use chancery_domain::org::Role;
use chancery_domain::policy::{Reason, Ruling};
use chancery_domain::run::{Run, Work};
use chancery_store::Store;
use chancery_store::queue::Lease;
use futures_util::future::join_all;
use metrics::counter;
use tokio_util::sync::CancellationToken;

use crate::authority::Authority;
use crate::clock;
use crate::escalation;
use crate::gate::{self, Again, Gatehouse, OnPartialDeny};
use crate::journal::{Journal, JournalError};
use crate::recall::recall;
use crate::rules::Literals;
use crate::tool::{CallContext, Done, Effect};
use crate::worker::Pulse;
use crate::{Parts, UnknownOutcome};

/// For each attempt that a run has, a call may be begun this often: others may be to blame.
const RETRIES: u32 = 4;

/// What a drive is told while it is under way.
#[derive(Debug, Clone)]
pub struct Reins {
    /// The run has ended by another hand, or the lease is lost: stop where you are.
    pub halt: CancellationToken,
    /// The server stops: end the step, then hand over.
    pub stop: CancellationToken,
    /// Another run is to be driven alone: the same.
    pub aside: CancellationToken,
    /// Whether the worker was heard of lately enough to act on its lease.
    pub pulse: Arc<Pulse>,
}

impl Reins {
    fn hands_over(&self) -> bool {
        self.stop.is_cancelled() || self.aside.is_cancelled()
    }
}

/// How a drive ended, when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driven {
    /// The run waits or has ended: it holds no lease any more.
    Parked,
    /// The server stops, another run is to be driven alone, or this one need not be any more: the
    /// lease is to be given back.
    Handover,
}

/// Drives a run until it waits, ends, or the server stops.
pub async fn drive(
    parts: &Parts,
    lease: &Lease,
    log: &[Recorded],
    reins: &Reins,
) -> Result<Driven, JournalError> {
    let mut journal = Journal::open(&parts.store, lease, log, reins.stop.clone()).await?;
    if lease.failures() >= parts.limits.attempts {
        give_up(&mut journal, lease.failures())?;
    }
    loop {
        let stepped = match journal.run()? {
            Run::Pending => begin(parts, &mut journal).await,
            Run::Running(_) if reins.hands_over() || journal.is_cleared() => {
                match journal.commit().await {
                    Ok(()) => return Ok(Driven::Handover),
                    error => error,
                }
            }
            Run::Running(_) if journal.history()?.pauses() => journal.record(Paused {}),
            Run::Running(Work::Generate) => match journal.context().created().call.clone() {
                Some(call) => relay::relay(parts, &mut journal, &call).await,
                None => speak::take_turn(parts, &mut journal, reins).await,
            },
            Run::Running(Work::Execute(batch)) => match batch.next() {
                None => {
                    let message = batch.message();
                    journal.record(BatchClosed { message })
                }
                Some(Turn::Refuse { call, refusal }) => {
                    let result = gate::refusal_result(&call.tool, &refusal);
                    journal.record(CallRefused { call: call.id.clone(), result })
                }
                Some(Turn::Unknown(call)) => {
                    let (message, tries) = (batch.message(), batch.retries(&call.id));
                    settle_unknown(parts, &mut journal, message, call, tries).await
                }
                Some(Turn::Execute { call, .. })
                    if batch.has_denied()
                        && parts.terms.on_partial_deny == OnPartialDeny::AbortBatch =>
                {
                    let result = gate::aborted_result(batch.begun());
                    journal.record(CallRefused { call: call.id.clone(), result })
                }
                Some(Turn::Execute { call, clearance }) => {
                    let message = batch.message();
                    let authority = parts.authority.get();
                    let gatehouse = gatehouse(parts, &authority, &journal).await?;
                    let granted_as = batch.granted_as(&call.id);
                    match gatehouse.again(&call, clearance, granted_as).await? {
                        Again::Run => {
                            let calls = overlapping(&authority, batch, &gatehouse).await?;
                            let warrant = gatehouse.warrant.clone();
                            let law = Law { authority: &authority, warrant };
                            execute(parts, law, &mut journal, message, calls, reins).await
                        }
                        Again::Refuse(reasons) => {
                            let refusal = Refusal::Policy(reasons);
                            let result = gate::refusal_result(&call.tool, &refusal);
                            journal.record(CallRefused { call: call.id.clone(), result })
                        }
                        Again::Ask { ruling, reasons } => {
                            let key = asked_key(&journal, message, &call, clearance)?;
                            let request = gatehouse.request(&call, ruling, key).await?;
                            journal.record(asked(message, &call, ruling, reasons, request))
                        }
                    }
                }
            },
            Run::Waiting(_) | Run::Finished(_) => match journal.commit().await {
                Ok(()) => return Ok(Driven::Parked),
                error => error,
            },
        };
        match stepped {
            // The log was read again: look at it anew.
            Err(JournalError::Overtaken) => {}
            other => other?,
        }
    }
}

/// A run begins with what is remembered.
async fn begin(parts: &Parts, journal: &mut Journal<'_>) -> Result<(), JournalError> {
    let created = journal.context().created().clone();
    journal.record(Started {})?;
    // What is remembered is for a model to read.
    if created.call.is_some() {
        return Ok(());
    }
    let (authority, embeddings) = (parts.authority.get(), parts.embeddings.as_deref());
    recall(journal, &authority, embeddings, &created, &created.agent).await
}

/// What calls were ruled under.
struct Law<'l> {
    authority: &'l Authority,
    warrant: Arc<Warrant>,
}

/// Carries out calls. The one place where permits are taken and spent: the start first, then
/// the commit, then the call.
async fn execute(
    parts: &Parts,
    Law { authority, warrant }: Law<'_>,
    journal: &mut Journal<'_>,
    message: MessageId,
    calls: Vec<Arc<Call>>,
    reins: &Reins,
) -> Result<(), JournalError> {
    let run = journal.history()?.id();
    let tools = authority.tools();
    let created = journal.context().created().clone();
    let speaker = journal.speaker()?;
    let mut permits: Vec<(Permit, CallContext)> = Vec::with_capacity(calls.len());
    for call in &calls {
        let idempotency_key = idempotency_key(run, message, &call.id);
        let context = CallContext {
            run,
            created: created.clone(),
            speaker: speaker.clone(),
            org: authority.org().clone(),
            warrant: warrant.clone(),
            idempotency_key: idempotency_key.clone(),
            cancelled: reins.halt.clone(),
        };
        let permit = journal.start(CallStarted { call: call.id.clone(), idempotency_key })?;
        permits.push((permit, context));
    }
    // A tool whose effect is in the log needs no durable start: start and effect are one append.
    let in_log = calls
        .iter()
        .all(|call| tools.spec(&call.tool).is_some_and(|spec| spec.effect != Effect::Outside));
    if !in_log {
        journal.commit().await?;
        // A worker that slept past its lease may have been replaced: it must not act.
        if !reins.pulse.is_alive() && !is_still_ours(parts, journal.lease()).await {
            reins.halt.cancel();
        }
    }
    if reins.halt.is_cancelled() {
        return halted(journal).await;
    }
    let acts = join_all(
        permits.into_iter().map(async |(permit, context)| tools.call(permit, &context).await),
    );
    let done = tokio::select! {
        biased;
        () = reins.halt.cancelled() => return halted(journal).await,
        done = acts => done,
    };
    for (call, done) in calls.iter().zip(done) {
        match done {
            Done::Result(result) => {
                count(&call.tool, &result);
                journal.record(CallEnded { call: call.id.clone(), result })?;
            }
            Done::Wait { key, timeout } => begin_wait(journal, call, key, timeout).await?,
            Done::Escalate(goal) => {
                escalation::spawn(journal, authority, &parts.escalation, call, *goal).await?;
            }
            Done::Conclude(answer) => {
                journal.record(Concluded { call: call.id.clone(), answer })?;
            }
        }
    }
    Ok(())
}

fn count(tool: &str, result: &CallResult) {
    let outcome = if result.is_error { "error" } else { "ok" };
    let tool = tool.to_owned();
    counter!("chancery_tool_calls_total", "tool" => tool, "result" => outcome).increment(1);
}

/// Whether a lease that ran out was left to us. Renewed first and looked at after, so that nobody
/// takes it over in between.
async fn is_still_ours(parts: &Parts, lease: &Lease) -> bool {
    let renewed = parts.store.beat(parts.limits.lease).await;
    renewed.is_ok() && parts.store.holds(lease).await.unwrap_or(false)
}

async fn begin_wait(
    journal: &mut Journal<'_>,
    call: &Call,
    key: WaitKey,
    timeout: Option<Duration>,
) -> Result<(), JournalError> {
    if journal.history()?.has_waited_for(&key) {
        let text = format!("this run has waited for `{key}` before: choose another key");
        let result = CallResult::error("KEY_USED", text);
        return journal.record(CallEnded { call: call.id.clone(), result });
    }
    let until = match timeout {
        None => None,
        // By the clock that will judge it. A time past the end of the calendar is no limit.
        Some(timeout) => journal.database_now().await?.checked_add(timeout).ok(),
    };
    journal.record(WaitBegan { call: call.id.clone(), correlation_key: key, until })
}

/// A call that started in an earlier life and never ended. Whatever the reason is, and though no
/// failure may have been counted for it, it is not begun for ever.
async fn settle_unknown(
    parts: &Parts,
    journal: &mut Journal<'_>,
    message: MessageId,
    call: Arc<Call>,
    tries: u32,
) -> Result<(), JournalError> {
    let id = call.id.clone();
    let authority = parts.authority.get();
    let spec = authority.tools().spec(&call.tool);
    let again = spec.is_some_and(|spec| spec.idempotent || spec.effect != Effect::Outside);
    let unknown = if again { UnknownOutcome::Retry } else { parts.limits.on_unknown_outcome };
    let attempts = tries + 1;
    match unknown {
        UnknownOutcome::Retry if attempts >= parts.limits.attempts.saturating_mul(RETRIES) => {
            give_up(journal, attempts)
        }
        UnknownOutcome::Retry => journal.record(CallRetried { call: id }),
        UnknownOutcome::Fail => {
            let result = gate::refusal_result(&call.tool, &Refusal::Unknown);
            journal.record(CallEnded { call: id, result })
        }
        UnknownOutcome::Ask => {
            let history = journal.history()?;
            let key = recover_key(history.id(), message, &id, history.seq());
            let gatehouse = gatehouse(parts, &authority, journal).await?;
            let request = gatehouse.recover_request(&call, key).await?;
            let (ruling, reasons) = (Ruling::RequireHuman, Vec::new());
            journal.record(asked(message, &call, ruling, reasons, request))
        }
    }
}

/// The calls to run now: the next one, and those after it as long as all of them may overlap and
/// the rules let them run still.
async fn overlapping(
    authority: &Authority,
    batch: &Batch<Settled>,
    gatehouse: &Gatehouse<'_>,
) -> Result<Vec<Arc<Call>>, JournalError> {
    let overlaps = |call: &Call| {
        authority.tools().spec(&call.tool).is_some_and(|spec| match spec.effect {
            Effect::Outside => spec.supports_parallel,
            Effect::Log => false,
            Effect::Child => true,
        })
    };
    let effect = |call: &Call| authority.tools().spec(&call.tool).map(|it| it.effect);
    let mut calls: Vec<Arc<Call>> = Vec::new();
    for call in batch.cleared() {
        let alone = calls.is_empty();
        if !alone {
            let alike = effect(call) == effect(&calls[0]);
            let clearance = batch.clearance(&call.id).filter(|_| alike && overlaps(call));
            let Some(clearance) = clearance.filter(|_| overlaps(&calls[0])) else { break };
            let granted_as = batch.granted_as(&call.id);
            if gatehouse.again(call, clearance, granted_as).await? != Again::Run {
                break;
            }
        }
        calls.push(call.clone());
    }
    Ok(calls)
}

async fn gatehouse<'g>(
    parts: &'g Parts,
    authority: &'g Authority,
    journal: &'g Journal<'_>,
) -> Result<Gatehouse<'g>, JournalError> {
    let created = journal.context().created();
    let speaker = journal.speaker()?;
    let warrant = warrant(journal, authority, &speaker).await?;
    Ok(Gatehouse {
        journal,
        authority,
        terms: &parts.terms,
        run: journal.history()?.id(),
        created,
        speaker,
        warrant,
        delegated: authority.delegation(created),
        task: authority.has_rules().then(|| Literals::of(journal.context().persons_words())),
        depth_max: parts.escalation.depth_max,
        spent: journal.context().spent(),
        now: clock::now(),
    })
}

/// What the speaker's contracts let it reach; not asked for where its role is silent about them.
async fn warrant(
    journal: &Journal<'_>,
    authority: &Authority,
    speaker: &Member,
) -> Result<Arc<Warrant>, JournalError> {
    let role = authority.org().role_of(&speaker.agent);
    if !role.is_some_and(Role::works_under_contracts) {
        return Ok(Arc::default());
    }
    let under = journal.context().created().contract.clone();
    let ask = |store: Store| {
        let under = under.clone();
        async move { store.warrant(&speaker.agent, under.as_ref()).await }
    };
    Ok(Arc::new(journal.held(ask).await?))
}

fn asked(
    message: MessageId,
    call: &Call,
    ruling: Ruling,
    reasons: Vec<Reason>,
    request: Arc<Question>,
) -> PermissionRequested {
    let Call { id: call, tool, arguments } = call.clone();
    PermissionRequested { message, call, tool, arguments, ruling, reasons, request }
}

/// The key of a question about a call that is about to run: its own, unless that was answered.
fn asked_key(
    journal: &Journal<'_>,
    message: MessageId,
    call: &Call,
    clearance: Clearance,
) -> Result<WaitKey, JournalError> {
    let history = journal.history()?;
    Ok(match clearance {
        Clearance::Granted { .. } => again_key(history.id(), message, &call.id, history.seq()),
        _ => permission_key(history.id(), message, &call.id),
    })
}

/// Something outside ended this drive: what it has staged is void, the log says what holds.
async fn halted(journal: &mut Journal<'_>) -> Result<(), JournalError> {
    journal.reread().await?;
    match journal.run()? {
        // Ended by another hand: the loop sees it.
        Run::Finished(_) => Ok(()),
        _ => Err(JournalError::Append(chancery_store::AppendError::LeaseLost(
            journal.history()?.id(),
        ))),
    }
}

fn give_up(journal: &mut Journal<'_>, attempts: u32) -> Result<(), JournalError> {
    match journal.run()? {
        Run::Pending | Run::Running(_) => {
            let error = format!(
                "gave up after {attempts} attempts that ended at the same place: the worker was lost or failed each time"
            );
            let run = journal.history()?.id();
            tracing::error!(run.id = %run, "Run {run} {error}");
            journal.record(Failed { error })
        }
        Run::Waiting(_) | Run::Finished(_) => Ok(()),
    }
}
