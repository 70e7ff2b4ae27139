//! What may be done to a run from outside: pure, a history and a command in, a history with the
//! event recorded out, or a refusal.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::batch::BatchError;
use crate::event::{
    Actor, Answer, CallResult, Cancelled, Decision, Event, PauseAsked, PermissionDecided,
    PermissionEscalated, PermissionExplained, PermissionExtended, PermissionInquired, Recorded,
    Remember, Request, Resumed, Signalled, Unpaused, UserSpoke, WaitExpired, WrapUpAsked,
};
use crate::history::History;
use crate::id::{AgentId, CallId, MessageId, PermissionId, WaitKey};
use crate::run::{Illegal, Run, Wait};

/// How often the agent may be asked about one question. Each time costs the run a reading of its
/// whole context and stands on the card; who knows no more after five answers will not after six.
pub const INQUIRIES_MAX: usize = 5;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("the run is {0}: it takes nothing more")]
    Ended(&'static str),
    #[error("the run does not wait for `{0}`, and has not")]
    UnknownKey(WaitKey),
    #[error("the run has no question `{0}`")]
    UnknownPermission(PermissionId),
    /// Something else was answered before.
    #[error("`{permission}` was answered before: {before}")]
    Decided { permission: PermissionId, before: &'static str },
    #[error("`{0}` does not expire: it needs no more time")]
    NoExpiry(PermissionId),
    #[error("`{0}` stands for as long as a question may already")]
    LongEnough(PermissionId),
    #[error(
        "the agent was asked about `{0}` as often as it may be ({INQUIRIES_MAX} times): decide, or speak into the run"
    )]
    AskedEnough(PermissionId),
    #[error("call `{0}` needs a person's word, each time it is asked for")]
    HumanRequired(CallId),
    #[error(
        "the payload of an answer is `{{\"approved\": true | false}}`, with `result` where a call's outcome is unknown"
    )]
    Payload,
    #[error("`{0}` does not speak in this run")]
    NoSuchMember(AgentId),
    #[error(
        "only a run that is paused, or that failed at the model, can be resumed; this one is {0}"
    )]
    NotResumable(&'static str),
    #[error(transparent)]
    Illegal(#[from] Illegal),
}

/// What a command comes to.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made once a request and taken apart at once")]
pub enum Effect {
    Record(History),
    /// It was so already.
    Already,
}

pub fn cancel(history: History, by: Actor) -> Result<Effect, Refusal> {
    match history.run() {
        Run::Finished(_) if history.run().status() == "cancelled" => Ok(Effect::Already),
        Run::Finished(_) => Err(Refusal::Ended(history.run().status())),
        _ => Ok(Effect::Record(history.record(Cancelled { by })?)),
    }
}

pub fn speak(
    history: History,
    message: MessageId,
    text: String,
    to: Option<AgentId>,
    by: Actor,
) -> Result<Effect, Refusal> {
    let member = |agent: &AgentId| match &history.created().room {
        Some(room) => room.members.iter().any(|it| it.agent == *agent),
        None => history.created().agent == *agent,
    };
    match (history.run(), &to) {
        (Run::Finished(_), _) => Err(Refusal::Ended(history.run().status())),
        (_, Some(to)) if !member(to) => Err(Refusal::NoSuchMember(to.clone())),
        _ => Ok(Effect::Record(history.record(UserSpoke { message, text, by, to })?)),
    }
}

/// Asks whoever speaks to come to an end with what there is.
pub fn wrap_up(history: History, events: &[Recorded], by: Actor) -> Result<Effect, Refusal> {
    match history.run() {
        Run::Finished(_) => Err(Refusal::Ended(history.run().status())),
        _ if events.iter().any(|it| matches!(it.event, Event::WrapUpAsked(_))) => {
            Ok(Effect::Already)
        }
        _ => Ok(Effect::Record(history.record(WrapUpAsked { by })?)),
    }
}

/// Lets a run rest at the next boundary between two steps.
pub fn pause(history: History, by: Actor) -> Result<Effect, Refusal> {
    match history.run() {
        Run::Finished(_) => Err(Refusal::Ended(history.run().status())),
        Run::Waiting(Wait::Pause(_)) => Ok(Effect::Already),
        _ if history.pauses() => Ok(Effect::Already),
        _ => Ok(Effect::Record(history.record(PauseAsked { by })?)),
    }
}

/// Goes on with a run that rests, or that failed at the model.
pub fn resume(history: History, by: Actor) -> Result<Effect, Refusal> {
    match history.run() {
        Run::Finished(_) => {
            let status = history.run().status();
            history
                .record(Resumed { by })
                .map(Effect::Record)
                .map_err(|_| Refusal::NotResumable(status))
        }
        Run::Waiting(Wait::Pause(_)) => Ok(Effect::Record(history.record(Unpaused { by })?)),
        _ if history.pauses() => Ok(Effect::Record(history.record(Unpaused { by })?)),
        other => Err(Refusal::NotResumable(other.status())),
    }
}

/// The answer to one permission request.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub decision: Decision,
    pub comment: Option<String>,
    /// What is granted instead of what was asked for.
    pub arguments: Option<Value>,
    pub remember: Option<Remember>,
}

/// Answers one permission request, whichever door the answer came through.
pub fn decide(
    history: History,
    events: &[Recorded],
    permission: PermissionId,
    reply: Reply,
    by: Actor,
) -> Result<Effect, Refusal> {
    let call = asked(&history)
        .find_map(|(call, request)| (request.id == permission).then(|| call.clone()));
    let Some(call) = call else {
        return answered_before(&history, events, permission, &reply);
    };
    let Reply { decision, comment, arguments, remember } = reply;
    let decided =
        PermissionDecided { call, permission, decision, by, comment, arguments, remember };
    match history.record(decided) {
        Ok(history) => Ok(Effect::Record(history)),
        Err(Illegal::Batch(BatchError::HumanRequired(call))) => Err(Refusal::HumanRequired(call)),
        Err(illegal) => Err(illegal.into()),
    }
}

/// How much longer a question is to stand, and for how long it may in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extension {
    pub by: Duration,
    pub at_most: Duration,
}

/// Gives one question more time. Decides nothing.
pub fn extend(
    history: History,
    events: &[Recorded],
    permission: PermissionId,
    Extension { by: longer, at_most }: Extension,
    by: Actor,
) -> Result<Effect, Refusal> {
    let found = asked(&history).find(|(_, request)| request.id == permission);
    let Some((call, request)) = found else {
        return Err(settled(&history, events, permission));
    };
    let call = call.clone();
    let now = request.expires_at.ok_or(Refusal::NoExpiry(permission))?;
    // Past the end of the calendar there is no more time.
    let end = request.asked_at.checked_add(at_most).unwrap_or(Timestamp::MAX);
    let expires_at = now.checked_add(longer).unwrap_or(Timestamp::MAX).min(end);
    if expires_at <= now {
        return Err(Refusal::LongEnough(permission));
    }
    let extended = PermissionExtended { call, permission, expires_at, by };
    Ok(Effect::Record(history.record(extended)?))
}

/// Asks the agent something about one question. Decides nothing, and moves nothing.
pub fn inquire(
    history: History,
    events: &[Recorded],
    permission: PermissionId,
    message: MessageId,
    text: String,
    by: Actor,
) -> Result<Effect, Refusal> {
    let found = asked(&history).find(|(_, request)| request.id == permission);
    let Some((call, _)) = found else {
        return Err(settled(&history, events, permission));
    };
    let call = call.clone();
    let about = |it: &&Recorded| matches!(&it.event, Event::PermissionInquired(it) if it.permission == permission);
    if events.iter().filter(about).count() >= INQUIRIES_MAX {
        return Err(Refusal::AskedEnough(permission));
    }
    let inquired = PermissionInquired { call, permission, message, text, by };
    Ok(Effect::Record(history.record(inquired)?))
}

/// Records what the agent said to an inquiry, unless the question was answered meanwhile.
pub fn explain(
    history: History,
    events: &[Recorded],
    explained: PermissionExplained,
) -> Result<Effect, Refusal> {
    let inquiry = explained.inquiry;
    let said = |it: &Recorded| matches!(&it.event, Event::PermissionExplained(it) if it.inquiry == inquiry);
    let wanted = |it: &Recorded| {
        matches!(&it.event, Event::PermissionInquired(it)
            if it.message == inquiry && it.permission == explained.permission)
    };
    if events.iter().any(said) {
        return Ok(Effect::Already);
    }
    let open = asked(&history).any(|(_, request)| request.id == explained.permission);
    if !open {
        return Err(settled(&history, events, explained.permission));
    }
    if !events.iter().any(wanted) {
        return Err(Refusal::UnknownPermission(explained.permission));
    }
    Ok(Effect::Record(history.record(explained)?))
}

/// Ends the wait that `key` names, whether it is for a signal or for a person's word.
pub fn signal(
    history: History,
    events: &[Recorded],
    key: &WaitKey,
    payload: Value,
    by: Actor,
) -> Result<Effect, Refusal> {
    if let Run::Waiting(Wait::Signal { key: awaited, .. }) = history.run()
        && awaited == key
    {
        let signalled = Signalled { correlation_key: key.clone(), payload, by };
        return Ok(Effect::Record(history.record(signalled)?));
    }
    let delivered = |it: &Recorded| matches!(&it.event, Event::Signalled(signalled) if signalled.correlation_key == *key);
    if events.iter().any(delivered) {
        return Ok(Effect::Already);
    }
    let question = events.iter().flat_map(|it| requests(&it.event));
    let question = question.map(|(_, it)| it).find(|it| it.correlation_key == *key);
    let permission = question.ok_or_else(|| Refusal::UnknownKey(key.clone()))?.id;
    let reply =
        Reply { decision: decision(&payload)?, comment: None, arguments: None, remember: None };
    decide(history, events, permission, reply, by)
}

/// Ends what was to end by now: a wait for a signal, or a question that nobody answered.
pub fn expire(history: History, key: &WaitKey, now: Timestamp) -> Result<Effect, Refusal> {
    let is_due = |at: Option<Timestamp>| at.is_some_and(|at| at <= now);
    match history.run() {
        Run::Waiting(Wait::Signal { key: awaited, until, .. })
            if awaited == key && is_due(*until) =>
        {
            let correlation_key = key.clone();
            Ok(Effect::Record(history.record(WaitExpired { correlation_key })?))
        }
        Run::Waiting(Wait::Permissions(batch)) => {
            let due = batch.asked().find(|(_, it)| it.correlation_key == *key);
            // Another server may have put it to others since: it has its time again.
            let due = due.filter(|(_, it)| is_due(it.expires_at));
            let Some((call, request)) = due else { return Ok(Effect::Already) };
            let (call, permission) = (call.id.clone(), request.id);
            if request.escalates {
                let again = request.expires_at.map(|it| it.duration_since(request.asked_at));
                let again = again.and_then(|it| now.checked_add(it).ok());
                // Past the end of the calendar there is no second time.
                let expires_at = again.unwrap_or(now);
                let escalated = PermissionEscalated { call, permission, expires_at };
                return Ok(Effect::Record(history.record(escalated)?));
            }
            let (decision, by) = (Decision::Expired, Actor::System);
            let (comment, arguments, remember) = (None, None, None);
            let decided =
                PermissionDecided { call, permission, decision, by, comment, arguments, remember };
            Ok(Effect::Record(history.record(decided)?))
        }
        // A signal or a person was faster.
        _ => Ok(Effect::Already),
    }
}

/// The keys that would end the wait that a run is in.
pub fn awaited_keys(history: &History) -> Vec<WaitKey> {
    match history.run() {
        Run::Waiting(Wait::Signal { key, .. }) => vec![key.clone()],
        _ => asked(history).map(|(_, it)| it.correlation_key.clone()).collect(),
    }
}

/// The questions that an event puts, with the calls that they are about.
pub fn requests(event: &Event) -> Vec<(&CallId, &Request)> {
    match event {
        Event::BatchProposed(batch) => batch
            .calls
            .iter()
            .filter_map(|it| match &it.answer {
                Some(Answer::Request(request)) if it.ruling.asks() => {
                    Some((&it.call.id, &**request))
                }
                _ => None,
            })
            .collect(),
        Event::PermissionRequested(it) => vec![(&it.call, &*it.request)],
        _ => Vec::new(),
    }
}

fn asked(history: &History) -> impl Iterator<Item = (&CallId, &Request)> {
    let batch = match history.run() {
        Run::Waiting(Wait::Permissions(batch)) => Some(batch),
        _ => None,
    };
    batch.into_iter().flat_map(|it| it.asked().map(|(call, request)| (&call.id, &**request)))
}

/// No payload means approved.
fn decision(payload: &Value) -> Result<Decision, Refusal> {
    if payload.is_null() {
        return Ok(Decision::Granted);
    }
    if let Some(result) = payload.get("result") {
        let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
        return Ok(Decision::Supplied(CallResult::ok(text)));
    }
    match payload.get("approved") {
        Some(Value::Bool(true)) => Ok(Decision::Granted),
        Some(Value::Bool(false)) => Ok(Decision::Denied),
        _ => Err(Refusal::Payload),
    }
}

/// The same answer again is no news; another one comes too late.
fn answered_before(
    history: &History,
    events: &[Recorded],
    permission: PermissionId,
    reply: &Reply,
) -> Result<Effect, Refusal> {
    match decided(events, permission) {
        Some(it) if it.decision == reply.decision && it.arguments == reply.arguments => {
            Ok(Effect::Already)
        }
        _ => Err(settled(history, events, permission)),
    }
}

fn decided(events: &[Recorded], permission: PermissionId) -> Option<&PermissionDecided> {
    events.iter().find_map(|it| match &it.event {
        Event::PermissionDecided(decided) if decided.permission == permission => Some(decided),
        _ => None,
    })
}

/// Why a question is not open.
fn settled(history: &History, events: &[Recorded], permission: PermissionId) -> Refusal {
    let asks = |it: &Recorded| requests(&it.event).iter().any(|it| it.1.id == permission);
    match decided(events, permission) {
        Some(it) => {
            let before = match it.decision {
                Decision::Supplied(_) => "a result was supplied",
                _ if it.arguments.is_some() => "granted with other arguments",
                _ => it.decision.as_str(),
            };
            Refusal::Decided { permission, before }
        }
        None if !events.iter().any(asks) => Refusal::UnknownPermission(permission),
        // It was asked and not answered, and is not asked any more: the run has ended.
        None => Refusal::Ended(history.run().status()),
    }
}
