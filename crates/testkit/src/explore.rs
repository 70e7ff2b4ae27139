//! Every interleaving of everything that can happen to one batch, over the rules themselves and
//! the smallest store that there can be: a log that is appended to only at the place that one
//! has read up to.
//!
//! Who acts: two workers, each of which may crash or lose its lease between any two of its steps;
//! people and services at both doors; the clock; someone who cancels, someone who speaks, someone
//! who makes the rules stricter. After every step the log and the world are held against what is
//! promised. States that have been seen are not gone through again, so there is an end.

mod fact;
mod invariant;
mod outside;
mod view;
mod worker;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use chancery_domain::event::Recorded;
use chancery_domain::history::History;
use chancery_domain::policy::Ruling;
use jiff::Timestamp;

use self::fact::{Fact, RUN};
use self::view::Views;
use self::worker::Hand;

/// What is explored.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Of the calls of the batch.
    pub rulings: Vec<Ruling>,
    /// Whether a question is put to others before it expires.
    pub escalates: bool,
    /// Whether calls that follow each other may overlap.
    pub parallel: bool,
    pub crashes: u8,
    pub takeovers: u8,
    pub cancel: bool,
    pub speak: bool,
    /// Whether every log is tried at both doors, by everyone, and again when it is too late.
    pub doors: bool,
    /// What the rules may come to say of one call after it was ruled on.
    pub stricter: Option<(u8, Ruling)>,
    /// Something that is wrong on purpose.
    pub planted: Option<Planted>,
}

/// What an explorer that is worth its name finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A store that appends wherever its log is.
    BlindStore,
    /// A worker that acts before the start is durable.
    ActsFirst,
    /// A worker that does not ask the rules again.
    TrustsTheRuling,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Explored {
    pub states: u64,
    /// Different logs that were come to.
    pub logs: u64,
    /// Ways from the beginning to an end; `u128::MAX` is "at least so many".
    pub interleavings: u128,
}

#[derive(Debug, Clone)]
struct State {
    log: Vec<Fact>,
    /// What the rules say now.
    law: Vec<Ruling>,
    attempt: u8,
    /// Who has the lease.
    holder: Option<usize>,
    hands: [Hand; 2],
    /// How often each call took effect.
    effects: Vec<u8>,
    crashes: u8,
    takeovers: u8,
    cancel: bool,
    speak: bool,
    stricter: bool,
    /// Where the log was when the rules became stricter, if nobody was at work then.
    stricter_at: Option<usize>,
}

/// Goes everywhere that a plan leads to. Says what went wrong, and how it came to it.
pub fn explore(plan: &Plan) -> Result<Explored, String> {
    let first = State {
        log: vec![Fact::Created],
        law: plan.rulings.clone(),
        attempt: 0,
        holder: None,
        hands: [Hand::Idle, Hand::Idle],
        effects: vec![0; plan.rulings.len()],
        crashes: plan.crashes,
        takeovers: plan.takeovers,
        cancel: plan.cancel,
        speak: plan.speak,
        stricter: plan.stricter.is_some(),
        stricter_at: None,
    };
    let mut explorer = Explorer { plan, views: Views::new(plan), seen: HashMap::new() };
    let interleavings = explorer.visit(first)?;
    let (states, logs) = (explorer.seen.len() as u64, explorer.views.checked.len() as u64);
    Ok(Explored { states, logs, interleavings })
}

struct Explorer<'e> {
    plan: &'e Plan,
    views: Views<'e>,
    /// The ways from a state to an end. A state is known by its fingerprint: of so many bits that
    /// two of them are not taken for one.
    seen: HashMap<u128, u128>,
}

impl Explorer<'_> {
    fn visit(&mut self, state: State) -> Result<u128, String> {
        let key = state.fingerprint();
        if let Some(ways) = self.seen.get(&key) {
            return Ok(*ways);
        }
        let plan = self.plan;
        let told = |wrong: String| format!("{wrong}\n  {state:?}\n  of {plan:?}");
        let view = self.views.checked(&state.log).map_err(told)?;
        invariant::check(plan, &state, &view).map_err(told)?;
        let mut next = worker::moves(&mut self.views, &state, &view).map_err(told)?;
        next.extend(outside::moves(plan, &state, &view));
        let mut ways: u128 = 0;
        if next.is_empty() {
            invariant::at_the_end(&state, &view).map_err(told)?;
            ways = 1;
        }
        for next in next {
            ways = ways.saturating_add(self.visit(next)?);
        }
        self.seen.insert(key, ways);
        Ok(ways)
    }
}

impl State {
    fn fingerprint(&self) -> u128 {
        let log = canonical(&self.log);
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, &log, &self.law, self.attempt, self.holder, &self.hands).hash(&mut hasher);
            (&self.effects, self.crashes, self.takeovers).hash(&mut hasher);
            (self.cancel, self.speak, self.stricter, self.stricter_at).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }
}

/// Answers to different calls commute (see the test of that name), so which came first makes no
/// other state.
fn canonical(log: &[Fact]) -> Vec<Fact> {
    let mut log = log.to_vec();
    let answer = |it: &Fact| matches!(it, Fact::Decided { .. } | Fact::Escalated { .. });
    for stretch in log.chunk_by_mut(|one, next| answer(one) && answer(next)) {
        stretch.sort_unstable();
    }
    log
}

fn recorded(plan: &Plan, log: &[Fact]) -> Vec<Recorded> {
    let at = Timestamp::UNIX_EPOCH;
    (1..).zip(log).map(|(seq, fact)| Recorded { seq, at, event: fact.event(plan) }).collect()
}

fn fold(plan: &Plan, log: &[Fact]) -> Result<History, String> {
    History::fold(RUN, &recorded(plan, log)).map_err(|it| it.to_string())
}

/// What was staged is what the facts say, to the letter.
fn same(plan: &Plan, fact: Fact, history: &History) -> Result<(), String> {
    let due = fact.event(plan);
    match history.staged() {
        [one] if *one == due => Ok(()),
        other => Err(format!("{other:?} was recorded where {due:?} was due")),
    }
}

/// Whether answers to the open questions of a batch come to the same in any order.
pub fn answers_commute(plan: &Plan) -> Result<u64, String> {
    let log = [Fact::Created, Fact::Started, Fact::Proposed];
    let questions = view::open(plan, &fold(plan, &log)?, &log);
    let mut tried = 0;
    for one in &questions {
        for other in questions.iter().filter(|it| it.call != one.call) {
            let pairs = view::answers(*one)
                .flat_map(|how| view::answers(*other).map(move |then| (how, then)));
            for (how, then) in pairs {
                let first = Fact::Decided { question: *one, how };
                let second = Fact::Decided { question: *other, how: then };
                let run = |pair: [Fact; 2]| -> Result<String, String> {
                    let log: Vec<Fact> = log.iter().copied().chain(pair).collect();
                    Ok(format!("{:?}", fold(plan, &log)?.run()))
                };
                if run([first, second])? != run([second, first])? {
                    return Err(format!("{first:?} and {second:?} do not commute"));
                }
                tried += 1;
            }
        }
    }
    Ok(tried)
}
