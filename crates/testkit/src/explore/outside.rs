//! What others do to the run. A command that finds the log grown decides again, so the moment that
//! counts is its append; that each records what is said here, [`super::view`] sees to.

use super::fact::{Fact, How};
use super::view::{View, answers};
use super::worker::Hand;
use super::{Plan, State};

/// Everything that others can do now.
pub fn moves(plan: &Plan, state: &State, view: &View) -> Vec<State> {
    let mut next = Vec::new();
    let mut after = |fact: Fact, change: fn(&mut State)| {
        let mut state = state.clone();
        state.log.push(fact);
        change(&mut state);
        next.push(state);
    };
    for question in &view.open {
        for how in answers(*question).filter(|it| *it != How::Expired) {
            after(Fact::Decided { question: *question, how }, |_| {});
        }
    }
    for fact in &view.expiries {
        after(*fact, |_| {});
    }
    let ended = view.stage == super::view::Stage::Finished;
    if state.cancel && !ended {
        after(Fact::Cancelled, |it| it.cancel = false);
    }
    if state.speak && !ended {
        after(Fact::Spoke, |it| it.speak = false);
    }
    if let Some((call, ruling)) = plan.stricter.filter(|_| state.stricter && !ended) {
        let mut state = state.clone();
        (state.law[usize::from(call)], state.stricter) = (ruling, false);
        // A worker that is at work may have asked just before.
        let idle = state.hands.iter().all(|it| *it == Hand::Idle);
        state.stricter_at = idle.then_some(state.log.len());
        next.push(state);
    }
    next
}
