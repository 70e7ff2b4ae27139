//! What is promised of a batch, checked in every state that is come to.

use chancery_domain::policy::Ruling;

use super::fact::{Fact, How};
use super::view::{Stage, View};
use super::worker::Hand;
use super::{Plan, State};

pub fn check(plan: &Plan, state: &State, view: &View) -> Result<(), String> {
    for call in 0..plan.rulings.len() as u8 {
        executed_by_right(plan, state, call)?;
    }
    stricter_holds(plan, state)?;
    in_order(plan, state)?;
    resumed_once(plan, state)?;
    let cancelled = state.log.iter().position(|it| *it == Fact::Cancelled);
    if cancelled.is_some_and(|at| at + 1 != state.log.len()) {
        return Err("something was recorded after the end".to_owned());
    }
    if view.stage == Stage::Waiting && state.holder.is_some() {
        return Err("a run that waits holds a worker".to_owned());
    }
    Ok(())
}

/// A call takes effect at most as often as it was started, and is started only by right.
fn executed_by_right(plan: &Plan, state: &State, call: u8) -> Result<(), String> {
    let mut right = match plan.rulings[usize::from(call)] {
        Ruling::Allow => 1,
        _ => 0,
    };
    let mut granted = 0;
    let (mut starts, mut refused) = (0u8, false);
    for fact in &state.log {
        match fact {
            Fact::Decided { question, how } if question.call == call => {
                if how.grants() {
                    (right, granted) = (1, granted + 1);
                } else if *how != How::Supplied {
                    (right, refused) = (0, true);
                }
            }
            // What must be asked after all has no right until it is answered.
            Fact::Asked { question } if question.call == call => right = 0,
            Fact::Begun { call: it } if *it == call => {
                if right == 0 {
                    return Err(format!("c{call} started without a right to it"));
                }
                (right, starts) = (0, starts + 1);
            }
            Fact::Refused { call: it } if *it == call => (right, refused) = (0, true),
            _ => {}
        }
    }
    let effects = state.effects[usize::from(call)];
    if effects > starts {
        return Err(format!("c{call} took effect {effects} times in {starts} starts"));
    }
    if refused && starts == 0 && effects > 0 {
        return Err(format!("c{call} was refused and took effect"));
    }
    if starts > 1 + granted {
        return Err(format!("c{call} started {starts} times with {granted} grants"));
    }
    Ok(())
}

/// Rules that became stricter while nobody was at work hold for all that starts afterwards.
fn stricter_holds(plan: &Plan, state: &State) -> Result<(), String> {
    let (Some((call, ruling)), Some(at)) = (plan.stricter, state.stricter_at) else {
        return Ok(());
    };
    let starts = (0..).zip(&state.log).skip(at).filter(|it| *it.1 == Fact::Begun { call });
    for (place, _) in starts {
        let covers = |it: &Fact| match it {
            Fact::Decided { question, how } if question.call == call => match ruling {
                Ruling::RequireHuman => matches!(how, How::GrantedByPerson | How::Edited),
                _ => how.grants(),
            },
            _ => false,
        };
        let covered = ruling != Ruling::Deny && state.log[..place].iter().any(covers);
        if !covered && ruling != Ruling::Allow {
            return Err(format!("c{call} started though the rules say {ruling:?}"));
        }
    }
    Ok(())
}

/// Results come in the model's order, one for each call.
fn in_order(plan: &Plan, state: &State) -> Result<(), String> {
    let results: Vec<u8> = state
        .log
        .iter()
        .filter_map(|it| match it {
            Fact::Ended { call } | Fact::Refused { call } => Some(*call),
            Fact::Decided { question, how: How::Supplied } => Some(question.call),
            _ => None,
        })
        .collect();
    let due: Vec<u8> = (0..results.len() as u8).collect();
    if results != due || results.len() > plan.rulings.len() {
        return Err(format!("results of {results:?}"));
    }
    // The model is asked again only when all of them are there.
    let closed = state.log.contains(&Fact::Closed) || state.log.contains(&Fact::Completed);
    if closed && results.len() != plan.rulings.len() {
        return Err(format!("went on with results of {results:?}"));
    }
    Ok(())
}

/// Questions that are put together are answered one by one, and nothing of the batch moves until
/// the last of them is; that answer resumes it, and it alone.
fn resumed_once(plan: &Plan, state: &State) -> Result<(), String> {
    let asks = |it: &&Ruling| it.asks();
    let (mut open, mut resumed, mut asked) = (0, 0, 0);
    for fact in &state.log {
        match fact {
            Fact::Proposed => {
                open = plan.rulings.iter().filter(asks).count();
                asked += u32::from(open > 0);
            }
            Fact::Asked { .. } => (open, asked) = (open + 1, asked + 1),
            Fact::Decided { .. } => {
                open -= 1;
                resumed += u32::from(open == 0);
            }
            Fact::Begun { .. } | Fact::Ended { .. } | Fact::Refused { .. } | Fact::Closed
                if open > 0 =>
            {
                return Err(format!("{fact:?} while {open} questions were open"));
            }
            _ => {}
        }
    }
    let spoken = state.log.iter().filter(|it| **it == Fact::Completed).count();
    if resumed > asked || spoken > 1 {
        return Err(format!("resumed {resumed} times for {asked} questions"));
    }
    Ok(())
}

/// When nobody can do anything more, the run is over, and nobody holds it.
pub fn at_the_end(state: &State, view: &View) -> Result<(), String> {
    if view.stage != Stage::Finished {
        return Err(format!("nothing goes on in a run that is {:?}", view.stage));
    }
    if state.hands.iter().any(|it| *it != Hand::Idle) {
        return Err("somebody holds a run that is over".to_owned());
    }
    Ok(())
}
