//! What a log comes to, worked out by the rules once for each log; and what must hold of every
//! log whoever holds it: both doors, late answers, the clock, permits.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use chancery_domain::batch::{Clearance, Turn};
use chancery_domain::command::{self, Effect, Refusal, Reply};
use chancery_domain::event::{Actor, Decision, Event};
use chancery_domain::history::History;
use chancery_domain::id::{AgentId, CallId, MessageId};
use chancery_domain::policy::Ruling;
use chancery_domain::run::{Run, Wait, Work};
use serde_json::json;
use uuid::Uuid;

use super::fact::{Fact, How, Question, Why, asked_for, call_id, edited, time};
use super::{Plan, canonical, fold, recorded, same};
use crate::conformance::ada;

#[derive(Debug)]
pub struct View {
    pub stage: Stage,
    pub wants_worker: bool,
    /// The questions that are open,
    pub open: Vec<Question>,
    /// and what the clock makes of them in the end.
    pub expiries: Vec<Fact>,
}

#[derive(Debug, PartialEq)]
pub enum Stage {
    Pending,
    Generate,
    Close,
    Refuse(u8),
    Unknown(u8),
    /// The next call, and those that are cleared right behind it.
    Execute(Vec<(u8, Clearance)>),
    Waiting,
    Finished,
}

#[derive(Debug)]
pub struct Views<'v> {
    pub plan: &'v Plan,
    known: HashMap<Vec<Fact>, Result<Rc<View>, String>>,
    pub checked: HashSet<Vec<Fact>>,
}

impl<'v> Views<'v> {
    pub fn new(plan: &'v Plan) -> Views<'v> {
        Views { plan, known: HashMap::new(), checked: HashSet::new() }
    }

    /// What a log comes to. An error: it is not legal.
    pub fn of(&mut self, log: &[Fact]) -> Result<Rc<View>, String> {
        let key = canonical(log);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let view = view(self.plan, log).map(Rc::new);
        self.known.insert(key, view.clone());
        view
    }

    /// The same, for a log that was come to: with all that must hold of it.
    pub fn checked(&mut self, log: &[Fact]) -> Result<Rc<View>, String> {
        let view = self.of(log)?;
        let key = canonical(log);
        if !self.checked.contains(&key) {
            check(self.plan, log, &view)?;
            self.checked.insert(key);
        }
        Ok(view)
    }
}

fn view(plan: &Plan, log: &[Fact]) -> Result<View, String> {
    let history = fold(plan, log)?;
    let stage = match history.run() {
        Run::Pending => Stage::Pending,
        Run::Running(Work::Generate) => Stage::Generate,
        Run::Running(Work::Execute(batch)) => match batch.next() {
            None => Stage::Close,
            Some(Turn::Refuse { call, .. }) => Stage::Refuse(number(&call.id)?),
            Some(Turn::Unknown(call)) => Stage::Unknown(number(&call.id)?),
            Some(Turn::Execute { call, clearance }) => {
                let mut calls = vec![(number(&call.id)?, clearance)];
                for it in batch.cleared().skip(1) {
                    let clearance = batch.clearance(&it.id).ok_or("not cleared")?;
                    calls.push((number(&it.id)?, clearance));
                }
                Stage::Execute(calls)
            }
        },
        Run::Waiting(_) => Stage::Waiting,
        Run::Finished(_) => Stage::Finished,
    };
    let open = open(plan, &history, log);
    let expiries = open.iter().filter_map(|it| expiry(plan, log, *it)).collect();
    Ok(View { stage, wants_worker: history.run().wants_worker(), open, expiries })
}

fn number(id: &CallId) -> Result<u8, String> {
    let digits = id.as_str().strip_prefix('c');
    digits.and_then(|it| it.parse().ok()).ok_or_else(|| format!("no call {id}"))
}

/// The questions that are open, as the run has them.
pub fn open(plan: &Plan, history: &History, log: &[Fact]) -> Vec<Question> {
    let Run::Waiting(Wait::Permissions(batch)) = history.run() else { return Vec::new() };
    let ids: Vec<_> = batch.asked().map(|(_, request)| request.id).collect();
    let with_batch = (0u8..).zip(&plan.rulings).map(|(call, ruling)| {
        let human = *ruling == Ruling::RequireHuman;
        Question { call, human, why: Why::Proposed }
    });
    let later = log.iter().filter_map(|it| match it {
        Fact::Asked { question } => Some(*question),
        _ => None,
    });
    with_batch.chain(later).filter(|it| ids.contains(&it.permission())).collect()
}

/// The answers that somebody could give to a question and that it takes.
pub fn answers(question: Question) -> impl Iterator<Item = How> {
    How::ALL.into_iter().filter(move |how| match how {
        How::GrantedByPerson | How::Denied => true,
        How::GrantedByService => !question.human,
        How::Edited => !question.recovers(),
        How::Supplied => question.recovers(),
        How::Expired => !question.recovers(),
    })
}

fn check(plan: &Plan, log: &[Fact], view: &View) -> Result<(), String> {
    permits(plan, log)?;
    if !plan.doors {
        return Ok(());
    }
    for question in &view.open {
        for how in answers(*question) {
            decided(plan, log, *question, how)?;
            both_doors(plan, log, *question, how)?;
        }
        by_the_clock(plan, log, *question)?;
    }
    late_answers(plan, log, &view.open)?;
    from_outside(plan, log, view.stage == Stage::Finished)
}

fn reply(how: How) -> Reply {
    Reply { decision: how.decision(), comment: None, arguments: how.arguments(), remember: None }
}

/// A decision records what it says, and nothing else.
fn decided(plan: &Plan, log: &[Fact], question: Question, how: How) -> Result<(), String> {
    if how == How::Expired {
        return Ok(());
    }
    let (history, id) = (fold(plan, log)?, question.permission());
    match command::decide(history, &recorded(plan, log), id, reply(how), how.by()) {
        Ok(Effect::Record(history)) => same(plan, Fact::Decided { question, how }, &history),
        other => Err(format!("{question:?} was answered {how:?}: {other:?}")),
    }
}

/// The door of signals comes to the same; and who may not answer is refused at both.
fn both_doors(plan: &Plan, log: &[Fact], question: Question, how: How) -> Result<(), String> {
    let events = recorded(plan, log);
    let payload = match how {
        How::GrantedByPerson | How::GrantedByService => json!({"approved": true}),
        How::Denied => json!({"approved": false}),
        How::Supplied => json!({"result": "found"}),
        // There is no such answer through this door.
        How::Edited | How::Expired => return Ok(()),
    };
    let signal = |by: Actor| {
        let history = fold(plan, log)?;
        Ok::<_, String>(command::signal(history, &events, &question.key(), payload.clone(), by))
    };
    match signal(how.by())? {
        Ok(Effect::Record(history)) => same(plan, Fact::Decided { question, how }, &history)?,
        other => return Err(format!("{question:?} was signalled {how:?}: {other:?}")),
    }
    let agent = Actor::Agent(AgentId::from("clerk"));
    let id = question.permission();
    for by in [agent, Actor::System] {
        let decided = command::decide(fold(plan, log)?, &events, id, reply(how), by.clone());
        if signal(by.clone())?.is_ok() || decided.is_ok() {
            return Err(format!("{by:?} decided {question:?}"));
        }
    }
    let service = How::GrantedByService;
    let decided = command::decide(fold(plan, log)?, &events, id, reply(service), service.by());
    if question.human && !matches!(decided, Err(Refusal::HumanRequired(_))) {
        return Err(format!("a service stood in for a person: {question:?}: {decided:?}"));
    }
    Ok(())
}

/// What the clock makes of a question, in the end.
fn expiry(plan: &Plan, log: &[Fact], question: Question) -> Option<Fact> {
    let escalated = log.contains(&Fact::Escalated { question });
    if question.recovers() {
        None
    } else if plan.escalates && !escalated {
        Some(Fact::Escalated { question })
    } else {
        Some(Fact::Decided { question, how: How::Expired })
    }
}

/// Nothing ends before its time, and what ends is what was to.
fn by_the_clock(plan: &Plan, log: &[Fact], question: Question) -> Result<(), String> {
    let escalated = log.contains(&Fact::Escalated { question });
    let (early, due) = if escalated { (time(1), time(2)) } else { (time(0), time(1)) };
    let expire = |now| {
        let history = fold(plan, log)?;
        command::expire(history, &question.key(), now).map_err(|it| it.to_string())
    };
    if let Effect::Record(_) = expire(early)? {
        return Err(format!("{question:?} ended before its time"));
    }
    match (expire(due)?, expiry(plan, log, question)) {
        (Effect::Record(history), Some(fact)) => same(plan, fact, &history),
        (Effect::Already, None) => Ok(()),
        (_, due) => Err(format!("{question:?} was to end as {due:?}")),
    }
}

/// What was answered stays so: the same again is no news, anything else comes too late.
fn late_answers(plan: &Plan, log: &[Fact], open: &[Question]) -> Result<(), String> {
    let events = recorded(plan, log);
    for fact in log {
        let Fact::Decided { question, how: before } = fact else { continue };
        if open.contains(question) {
            return Err(format!("{question:?} is open though it was answered"));
        }
        for how in [How::GrantedByPerson, How::Edited, How::Denied] {
            let history = fold(plan, log)?;
            let decided =
                command::decide(history, &events, question.permission(), reply(how), ada());
            let same =
                reply(how).decision == before.decision() && how.arguments() == before.arguments();
            match decided {
                Ok(Effect::Already) if same => {}
                Err(Refusal::Decided { .. }) if !same => {}
                other => return Err(format!("{before:?}, then {how:?}: {other:?}")),
            }
        }
        let payload = json!({"approved": true});
        let history = fold(plan, log)?;
        let signalled = command::signal(history, &events, &question.key(), payload, ada());
        let granted = before.decision() == Decision::Granted && before.arguments().is_none();
        if matches!(signalled, Ok(Effect::Record(_))) || signalled.is_ok() != granted {
            return Err(format!("{before:?}, then a signal: {signalled:?}"));
        }
    }
    Ok(())
}

/// A run that has ended takes nothing more; any other may be cancelled and spoken to.
fn from_outside(plan: &Plan, log: &[Fact], ended: bool) -> Result<(), String> {
    match command::cancel(fold(plan, log)?, ada()) {
        Ok(Effect::Record(history)) if !ended => same(plan, Fact::Cancelled, &history)?,
        Ok(Effect::Already) | Err(Refusal::Ended(_)) if ended => {}
        other => return Err(format!("cancelled: {other:?}")),
    }
    let message = MessageId(Uuid::from_u128(9));
    match command::speak(fold(plan, log)?, message, "wait".to_owned(), None, ada()) {
        Ok(Effect::Record(history)) if !ended => same(plan, Fact::Spoke, &history),
        Err(Refusal::Ended(_)) if ended => Ok(()),
        other => Err(format!("spoken to: {other:?}")),
    }
}

/// The permits that starts hand out are for the calls as they were granted.
fn permits(plan: &Plan, log: &[Fact]) -> Result<(), String> {
    let Some((Fact::Begun { call }, before)) = log.split_last() else { return Ok(()) };
    let Event::CallStarted(started) = (Fact::Begun { call: *call }).event(plan) else {
        return Err("no start".to_owned());
    };
    let (_, permit) = fold(plan, before)?.start(started).map_err(|it| it.to_string())?;
    let was_edited = |it: &Fact| matches!(it, Fact::Decided { question, how: How::Edited } if question.call == *call);
    let due = if log.iter().any(was_edited) { edited() } else { asked_for() };
    if permit.call().arguments != due || permit.call().id != call_id(*call) {
        return Err(format!("{permit:?} is not for what was granted: {due}"));
    }
    Ok(())
}
