//! What may be done to a run from outside: pure, a history and a command in, a history with the
//! event recorded out, or a refusal.

use serde_json::Value;

use crate::event::{
    Actor, CallResult, Cancelled, Decision, Event, PermissionDecided, PermissionRequested,
    Recorded, Resumed, Signalled, UserSpoke,
};
use crate::history::History;
use crate::id::{CallId, MessageId, RunId, WaitKey, permission_key};
use crate::run::{Illegal, Run, Wait};

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    #[error("the run is {0}: it takes nothing more")]
    Ended(&'static str),
    #[error("the run does not wait for `{0}`, and has not")]
    UnknownKey(WaitKey),
    /// The opposite was answered before.
    #[error("`{key}` was answered before: {before}")]
    Decided { key: WaitKey, before: &'static str },
    #[error(
        "the payload of an answer is `{{\"approved\": true | false}}`, with `result` where a call's outcome is unknown"
    )]
    Payload,
    #[error("only a run that failed at the model can be resumed; this one is {0}")]
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
    by: Actor,
) -> Result<Effect, Refusal> {
    match history.run() {
        Run::Finished(_) => Err(Refusal::Ended(history.run().status())),
        _ => Ok(Effect::Record(history.record(UserSpoke { message, text, by })?)),
    }
}

pub fn resume(history: History, by: Actor) -> Result<Effect, Refusal> {
    match history.run() {
        Run::Finished(_) => {
            let status = history.run().status();
            history
                .record(Resumed { by })
                .map(Effect::Record)
                .map_err(|_| Refusal::NotResumable(status))
        }
        other => Err(Refusal::NotResumable(other.status())),
    }
}

/// Ends the wait that `key` names, whether it is for a signal or for a person's word.
pub fn signal(
    history: History,
    events: &[Recorded],
    key: &WaitKey,
    payload: Value,
    by: Actor,
) -> Result<Effect, Refusal> {
    match history.run() {
        Run::Waiting(Wait::Signal { key: awaited, .. }) if awaited == key => {
            let signalled = Signalled { correlation_key: key.clone(), payload, by };
            Ok(Effect::Record(history.record(signalled)?))
        }
        Run::Waiting(Wait::Permissions(batch)) => {
            let (run, message) = (history.id(), batch.message());
            let questions = Questions::of(run, events);
            let asked = batch
                .asked()
                .map(|(call, _)| call.id.clone())
                .find(|call| questions.key(message, call) == *key);
            match asked {
                Some(call) => {
                    let decision = decision(&payload)?;
                    let decided = PermissionDecided { call, decision, by, comment: None };
                    Ok(Effect::Record(history.record(decided)?))
                }
                None => answered_before(run, events, key, &payload),
            }
        }
        _ => answered_before(history.id(), events, key, &payload),
    }
}

/// The keys that would end the wait that a run is in.
pub fn awaited_keys(history: &History, events: &[Recorded]) -> Vec<WaitKey> {
    match history.run() {
        Run::Waiting(Wait::Signal { key, .. }) => vec![key.clone()],
        Run::Waiting(Wait::Permissions(batch)) => {
            let questions = Questions::of(history.id(), events);
            batch.asked().map(|(call, _)| questions.key(batch.message(), &call.id)).collect()
        }
        _ => Vec::new(),
    }
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

/// A signal that was delivered answers the same again; one that nobody waits for is unknown.
fn answered_before(
    run: RunId,
    events: &[Recorded],
    key: &WaitKey,
    payload: &Value,
) -> Result<Effect, Refusal> {
    let mut questions = Questions::new(run);
    for it in events {
        match &it.event {
            Event::Signalled(signalled) if signalled.correlation_key == *key => {
                return Ok(Effect::Already);
            }
            Event::PermissionDecided(decided) if questions.is_key(&decided.call, key) => {
                let before = match decided.decision {
                    Decision::Granted => "granted",
                    Decision::Denied => "denied",
                    Decision::Supplied(_) => "a result was supplied",
                };
                return if decision(payload)? == decided.decision {
                    Ok(Effect::Already)
                } else {
                    Err(Refusal::Decided { key: key.clone(), before })
                };
            }
            event => questions.follow(event),
        }
    }
    Err(Refusal::UnknownKey(key.clone()))
}

/// Which key each question of the batch in hand has. Batches open with `permission_key`s; a
/// question about a call that had started brings its own.
struct Questions<'e> {
    run: RunId,
    message: Option<MessageId>,
    reopened: Vec<&'e PermissionRequested>,
}

impl<'e> Questions<'e> {
    fn new(run: RunId) -> Questions<'e> {
        Questions { run, message: None, reopened: Vec::new() }
    }

    fn of(run: RunId, events: &'e [Recorded]) -> Questions<'e> {
        let mut questions = Questions::new(run);
        events.iter().for_each(|it| questions.follow(&it.event));
        questions
    }

    fn follow(&mut self, event: &'e Event) {
        match event {
            Event::BatchProposed(batch) => {
                self.message = Some(batch.message);
                self.reopened.clear();
            }
            Event::PermissionRequested(request) => self.reopened.push(request),
            _ => {}
        }
    }

    fn key(&self, message: MessageId, call: &CallId) -> WaitKey {
        match self.reopened.iter().rfind(|it| it.call == *call) {
            Some(request) => request.correlation_key.clone(),
            None => permission_key(self.run, message, call),
        }
    }

    fn is_key(&self, call: &CallId, key: &WaitKey) -> bool {
        self.message.is_some_and(|message| self.key(message, call) == *key)
    }
}
