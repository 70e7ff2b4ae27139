//! A worker, step by step, as the runner's loop is: it stages what it may, commits before it acts
//! and before it turns away, and acts between two commits.

use chancery_domain::batch::Clearance;
use chancery_domain::policy::Ruling;

use super::fact::{Fact, Question, Why};
use super::view::{Stage, View, Views};
use super::{Plan, Planted, State};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Hand {
    Idle,
    Holds {
        attempt: u8,
        /// How far it has read the log.
        known: usize,
        staged: Vec<Fact>,
        then: Then,
    },
}

/// What it does next, at a point where it can be stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Then {
    Commit(After),
    /// Start is durable: it calls the tools. Those that are left, and all.
    Act {
        left: Vec<u8>,
        all: Vec<u8>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum After {
    Park,
    Go,
    Act(Vec<u8>),
}

/// Everything that workers can do, and that can be done to them.
pub fn moves(views: &mut Views<'_>, state: &State, view: &View) -> Result<Vec<State>, String> {
    let mut next = Vec::new();
    let idle = state.hands.iter().position(|it| *it == Hand::Idle);
    if let Some(who) = idle.filter(|_| view.wants_worker) {
        // A run that somebody drives is claimed only after they were not heard of for long.
        let taken_over = state.holder.is_some();
        if !taken_over || state.takeovers > 0 {
            let mut claimed = state.clone();
            claimed.takeovers -= u8::from(taken_over);
            claimed.attempt += 1;
            claimed.holder = Some(who);
            let (attempt, known) = (claimed.attempt, claimed.log.len());
            claimed.hands[who] = look(views, &claimed, attempt, known, vec![])?;
            next.push(claimed);
        }
    }
    for who in 0..state.hands.len() {
        let Hand::Holds { then, .. } = &state.hands[who] else { continue };
        if state.crashes > 0 {
            let mut crashed = state.clone();
            crashed.crashes -= 1;
            let_go(&mut crashed, who);
            next.push(crashed);
        }
        match then {
            Then::Commit(_) => next.push(commit(views, state, who)?),
            Then::Act { left, .. } => {
                for call in left {
                    next.push(act(views, state, view, who, *call)?);
                }
            }
        }
    }
    Ok(next)
}

fn let_go(state: &mut State, who: usize) {
    state.hands[who] = Hand::Idle;
    state.holder = state.holder.filter(|it| *it != who);
}

/// Looks at what it knows and stages what comes of it, up to the next point.
fn look(
    views: &mut Views<'_>,
    state: &State,
    attempt: u8,
    known: usize,
    mut staged: Vec<Fact>,
) -> Result<Hand, String> {
    let mut log: Vec<Fact> = state.log[..known].iter().chain(&staged).copied().collect();
    let then = loop {
        let at = log.len() as u8;
        let fact = match &views.of(&log)?.stage {
            Stage::Pending => Fact::Started,
            Stage::Generate if !staged.is_empty() => break Then::Commit(After::Go),
            Stage::Generate if log.contains(&Fact::Proposed) => Fact::Completed,
            Stage::Generate => Fact::Proposed,
            Stage::Close => Fact::Closed,
            Stage::Refuse(call) => Fact::Refused { call: *call },
            Stage::Unknown(call) => {
                let why = Why::Unknown { at };
                Fact::Asked { question: Question { call: *call, human: true, why } }
            }
            Stage::Execute(calls) => {
                let asked = |it: &(u8, Clearance)| again(views.plan, state, it.0, it.1);
                let (call, clearance) = calls[0];
                match asked(&calls[0]) {
                    Again::Run => {
                        let all = if views.plan.parallel { calls.len() } else { 1 };
                        let run = calls[..all].iter().take_while(|it| asked(it) == Again::Run);
                        let calls: Vec<u8> = run.map(|it| it.0).collect();
                        staged.extend(calls.iter().map(|call| Fact::Begun { call: *call }));
                        break match views.plan.planted {
                            Some(Planted::ActsFirst) => {
                                Then::Act { left: calls.clone(), all: calls }
                            }
                            _ => Then::Commit(After::Act(calls)),
                        };
                    }
                    Again::Refuse => Fact::Refused { call },
                    Again::Ask { human } => {
                        let again = matches!(clearance, Clearance::Granted { .. });
                        let why = Why::Stricter { at, again };
                        Fact::Asked { question: Question { call, human, why } }
                    }
                }
            }
            Stage::Waiting | Stage::Finished => break Then::Commit(After::Park),
        };
        log.push(fact);
        staged.push(fact);
    };
    Ok(Hand::Holds { attempt, known, staged, then })
}

#[derive(Debug, PartialEq)]
enum Again {
    Run,
    Refuse,
    Ask { human: bool },
}

/// The rules are asked once more, in the words of the design: Deny denies whatever was granted,
/// a person's word covers all that can be asked, another's only what needs no person.
fn again(plan: &Plan, state: &State, call: u8, clearance: Clearance) -> Again {
    if plan.planted == Some(Planted::TrustsTheRuling) {
        return Again::Run;
    }
    match (state.law[usize::from(call)], clearance) {
        (Ruling::Deny, _) => Again::Refuse,
        (Ruling::Allow, _) | (_, Clearance::Granted { human: true }) => Again::Run,
        (Ruling::RequireApproval, Clearance::Granted { .. }) => Again::Run,
        (ruling, _) => Again::Ask { human: ruling == Ruling::RequireHuman },
    }
}

/// Appends what is staged, if the lease is still held and the log is where it was read up to;
/// if it has grown, only what still fits.
fn commit(views: &mut Views<'_>, state: &State, who: usize) -> Result<State, String> {
    let mut next = state.clone();
    let Hand::Holds { attempt, known, mut staged, then: Then::Commit(after) } =
        next.hands[who].clone()
    else {
        return Err("nothing to commit".to_owned());
    };
    if attempt != state.attempt {
        let_go(&mut next, who);
        return Ok(next);
    }
    let end = state.log.len();
    let blind = views.plan.planted == Some(Planted::BlindStore);
    if known != end && !blind {
        let spoken_to = state.log[known..].contains(&Fact::Spoke);
        let unheard = spoken_to && staged.contains(&Fact::Completed);
        let log: Vec<Fact> = state.log.iter().chain(&staged).copied().collect();
        if unheard || views.of(&log).is_err() {
            // Overtaken: what it staged is void, and it looks anew.
            next.hands[who] = look(views, &next, attempt, end, vec![])?;
            return Ok(next);
        }
    }
    next.log.append(&mut staged);
    let known = next.log.len();
    next.hands[who] = match after {
        After::Park => Hand::Idle,
        After::Go => look(views, &next, attempt, known, vec![])?,
        After::Act(all) => {
            Hand::Holds { attempt, known, staged, then: Then::Act { left: all.clone(), all } }
        }
    };
    if next.hands[who] == Hand::Idle {
        next.holder = None;
    }
    Ok(next)
}

/// A tool takes effect.
fn act(
    views: &mut Views<'_>,
    state: &State,
    view: &View,
    who: usize,
    call: u8,
) -> Result<State, String> {
    let mut next = state.clone();
    let Hand::Holds { attempt, known, mut staged, then: Then::Act { mut left, all } } =
        next.hands[who].clone()
    else {
        return Err("nothing to act on".to_owned());
    };
    // Only a worker that has lost its lease without knowing acts on a run that has moved on.
    if attempt == state.attempt && view.stage == Stage::Waiting {
        return Err(format!("c{call} takes effect while a question is open"));
    }
    next.effects[usize::from(call)] += 1;
    left.retain(|it| *it != call);
    next.hands[who] = if left.is_empty() {
        staged.extend(all.iter().map(|call| Fact::Ended { call: *call }));
        look(views, &next, attempt, known, staged)?
    } else {
        Hand::Holds { attempt, known, staged, then: Then::Act { left, all } }
    };
    Ok(next)
}
