//! The latch under random batches and random hands: what must hold whatever anyone does.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

mod samples;

use chancery_domain::batch::{Batch, BatchError, Clearance, Gate, Settled, Turn};
use chancery_domain::event::{Actor, CallResult, Decision, RequestKind};
use chancery_domain::id::CallId;
use chancery_domain::policy::Ruling::{self, Allow, Deny, RequireApproval, RequireHuman};
use proptest::prelude::*;
use samples::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn rulings() -> impl Strategy<Value = Vec<Ruling>> {
    let one = prop_oneof![Just(Allow), Just(RequireApproval), Just(RequireHuman), Just(Deny)];
    proptest::collection::vec(one, 1..=5)
}

/// Someone's answer about some call, as likely as not out of place.
fn answers() -> impl Strategy<Value = Vec<(usize, Decision, Actor)>> {
    let decision = prop_oneof![
        3 => Just(Decision::Granted),
        2 => Just(Decision::Denied),
        1 => Just(Decision::Supplied(CallResult::ok("found"))),
        1 => Just(Decision::Expired),
    ];
    let by = prop_oneof![3 => Just(ada()), 2 => Just(service()), 1 => Just(Actor::System), 1 => Just(agent())];
    proptest::collection::vec((0..5usize, decision, by), 0..24)
}

fn gate(rulings: &[Ruling]) -> Gate {
    let proposals: Vec<_> = NAMES.iter().zip(rulings).map(|(id, it)| proposal(id, *it)).collect();
    Gate::new(MESSAGE, &proposals).unwrap()
}

/// What is known of one call, kept beside the latch in the plainest way.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Known {
    Open { human: bool },
    Granted,
    Refused,
}

fn known(ruling: Ruling) -> Known {
    match ruling {
        Allow => Known::Granted,
        RequireApproval => Known::Open { human: false },
        RequireHuman => Known::Open { human: true },
        Deny => Known::Refused,
    }
}

/// What a decision must come to, from the rules as the design words them.
fn judge(known: Option<Known>, decision: &Decision, by: &Actor) -> Result<Known, &'static str> {
    let Some(known) = known else { return Err("no such call") };
    let Known::Open { human } = known else { return Err("not asked") };
    match (by, decision) {
        (Actor::System, Decision::Expired) => Ok(Known::Refused),
        (Actor::Agent(_) | Actor::System, _) => Err("not a decider"),
        (_, Decision::Denied) => Ok(Known::Refused),
        (Actor::Service(_), _) if human => Err("human"),
        (_, Decision::Supplied(_) | Decision::Expired) => Err("no such answer"),
        (_, Decision::Granted) => Ok(Known::Granted),
    }
}

fn word(error: &BatchError) -> &'static str {
    match error {
        BatchError::NoSuchCall(_) => "no such call",
        BatchError::NotAsked(_) => "not asked",
        BatchError::NotADecider => "not a decider",
        BatchError::HumanRequired(_) => "human",
        BatchError::NoSuchAnswer(_) => "no such answer",
        _ => "other",
    }
}

/// Decides what is still open as ada would, and runs the batch to its end. Answers which calls
/// were given a permit and which were refused, in order.
fn run_out(mut batch: Batch<Settled>) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (mut ran, mut refused, mut order) = (vec![], vec![], vec![]);
    while let Some(turn) = batch.next() {
        batch = match turn {
            Turn::Execute { call, .. } => {
                // No other call may start, end or be refused out of its turn.
                let (batch, permit) = batch.start(&call.id).unwrap();
                assert_eq!(permit.call(), &*call);
                ran.push(call.id.0.clone());
                order.push(call.id.0.clone());
                batch.ended(&call.id).unwrap()
            }
            Turn::Refuse { call, .. } => {
                refused.push(call.id.0.clone());
                order.push(call.id.0.clone());
                batch.refused(&call.id).unwrap()
            }
            Turn::Unknown(call) => panic!("{call:?} was started by nobody"),
        };
    }
    (ran, refused, order)
}

proptest! {
    /// An open batch has no `start` at all (see the module's `compile_fail` tests), so that
    /// "nothing starts while a request is open" is: it stays open until the last is answered.
    #[test]
    fn the_latch_holds_until_the_last_answer_and_no_longer(rulings in rulings(), answers in answers()) {
        let mut known: Vec<Known> = rulings.iter().copied().map(known).collect();
        let mut now = gate(&rulings);
        for (at, decision, by) in answers {
            let open = known.iter().any(|it| matches!(it, Known::Open { .. }));
            let batch = match now {
                Gate::Open(batch) => { prop_assert!(open); batch }
                Gate::Settled(_) => { prop_assert!(!open); break }
            };
            let open: Vec<_> = batch.asked().map(|(call, it)| (call.id.0.clone(), it.id)).collect();
            let expected: Vec<_> = known.iter().zip(NAMES)
                .filter(|(it, _)| matches!(it, Known::Open { .. }))
                .map(|(_, id)| (id.to_owned(), asked(id))).collect();
            prop_assert_eq!(open, expected);

            let verdict = judge(known.get(at).copied(), &decision, &by);
            match (batch.decide(&decision_on(asked(NAMES[at]), NAMES[at], decision.clone(), by.clone())), verdict) {
                (Ok(next), Ok(standing)) => { known[at] = standing; now = next; }
                (Err(error), Err(expected)) => {
                    prop_assert_eq!(word(&error), expected);
                    // The batch is used up by a refusal: fold it again, as the store would.
                    now = replay(&rulings, &known);
                }
                (found, expected) => panic!("{found:?} where {expected:?} was due"),
            }
        }
        let settled = loop {
            now = match now {
                Gate::Settled(batch) => break batch,
                Gate::Open(batch) => {
                    let call = batch.asked().next().unwrap().0.id.clone();
                    let at = NAMES.iter().position(|it| *it == call.as_str()).unwrap();
                    known[at] = Known::Granted;
                    batch.decide(&decision_on(asked(call.as_str()), call.as_str(), Decision::Granted, ada())).unwrap()
                }
            };
        };
        let names = |wanted: Known| -> Vec<String> {
            known.iter().zip(NAMES).filter(|(it, _)| **it == wanted).map(|(_, id)| id.to_owned()).collect()
        };
        let (ran, refused, order) = run_out(settled);
        prop_assert_eq!(ran, names(Known::Granted));
        prop_assert_eq!(refused, names(Known::Refused));
        prop_assert_eq!(order, NAMES[..known.len()].to_vec());
    }

    #[test]
    fn a_decision_is_taken_once(human in any::<bool>(), first in any::<bool>(), second in any::<bool>()) {
        let ruling = if human { RequireHuman } else { RequireApproval };
        let word = |yes| if yes { Decision::Granted } else { Decision::Denied };
        let Gate::Open(batch) = gate(&[ruling, RequireHuman]) else { panic!("nothing was asked") };
        let Gate::Open(batch) = batch.decide(&decision_on(asked("a"), "a", word(first), ada())).unwrap() else {
            panic!("the other request is open")
        };
        let again = batch.decide(&decision_on(asked("a"), "a", word(second), ada()));
        prop_assert_eq!(again.unwrap_err(), BatchError::NotAsked(CallId::from("a")));
    }

    /// Calls may start side by side; their results are still recorded in the model's order, and
    /// nothing but the first unfinished call can move.
    #[test]
    fn out_of_turn_nothing_moves(count in 2..=5usize, started in 0..=5usize, picked in 0..5usize) {
        let started = started.min(count);
        let picked = picked.min(count - 1);
        let build = || {
            let Gate::Settled(mut batch) = gate(&vec![Allow; count]) else { panic!("nothing asks") };
            for id in &NAMES[..started] {
                batch = batch.start(&CallId::from(*id)).unwrap().0;
            }
            batch
        };
        let id = CallId::from(NAMES[picked]);
        prop_assert_eq!(build().start(&id).is_ok(), picked == started);
        let first_and_running = picked == 0 && started > 0;
        prop_assert_eq!(build().ended(&id).is_ok(), first_and_running);
        prop_assert_eq!(build().retried(&id).is_ok(), first_and_running);
        prop_assert_eq!(build().running(&id).is_ok(), first_and_running);
        let recovers = request("r", RequestKind::Recover);
        prop_assert_eq!(build().reopened(&id, RequireHuman, recovers).is_ok(), first_and_running);
        // A rule that has become stricter stops the first call, whether it has started or not.
        let asks = request("r", RequestKind::All);
        prop_assert_eq!(build().reopened(&id, RequireApproval, asks.clone()).is_ok(), picked == 0);
        prop_assert!(build().reopened(&id, Allow, asks).is_err());
        prop_assert_eq!(build().refused(&id).is_ok(), picked == 0 && started == 0);
        let cleared: Vec<_> = build().cleared().map(|it| it.id.0.clone()).collect();
        let expected = if started == 0 { NAMES[..count].to_vec() } else { vec![] };
        prop_assert_eq!(cleared, expected);
    }
}

/// The gate with the decisions that are known, by whoever may.
fn replay(rulings: &[Ruling], known: &[Known]) -> Gate {
    let mut now = gate(rulings);
    for (at, ruling) in rulings.iter().enumerate() {
        let decision = match (ruling, known[at]) {
            (Allow | Deny, _) | (_, Known::Open { .. }) => continue,
            (_, Known::Granted) => Decision::Granted,
            (_, Known::Refused) => Decision::Denied,
        };
        let Gate::Open(batch) = now else { panic!("settled before the last answer") };
        now = batch.decide(&decision_on(asked(NAMES[at]), NAMES[at], decision, ada())).unwrap();
    }
    now
}

#[test]
fn a_batch_has_calls_and_each_has_its_own_name() {
    assert_eq!(Gate::new(MESSAGE, &[]).unwrap_err(), BatchError::Empty);
    let twice = [proposal("a", Allow), proposal("b", Deny), proposal("a", Allow)];
    assert_eq!(Gate::new(MESSAGE, &twice).unwrap_err(), BatchError::Twice(CallId::from("a")));
}

/// What became of a call that started in an earlier life is for a person to say.
#[test]
fn only_a_person_settles_an_unknown_outcome() {
    let reopened = || {
        let Gate::Settled(batch) = gate(&[Allow, Allow]) else { panic!("nothing asks") };
        let id = CallId::from("a");
        let batch = batch.start(&id).unwrap().0.start(&CallId::from("b")).unwrap().0;
        match batch.reopened(&id, RequireHuman, request("r", RequestKind::Recover)).unwrap() {
            Gate::Open(batch) => batch,
            Gate::Settled(_) => panic!("a request is open"),
        }
    };
    let id = CallId::from("a");
    let supplied = Decision::Supplied(CallResult::ok("it was done"));
    let decide = |decision: &Decision, by: Actor| {
        reopened().decide(&decision_on(permission_of("r"), "a", decision.clone(), by))
    };
    for decision in [&Decision::Granted, &supplied] {
        let refused = decide(decision, service()).unwrap_err();
        assert_eq!(refused, BatchError::HumanRequired(id.clone()));
        assert_eq!(decide(decision, Actor::System).unwrap_err(), BatchError::NotADecider);
    }
    for (decision, turn) in [
        (
            Decision::Granted,
            Turn::Execute { call: call("a"), clearance: Clearance::Granted { human: true } },
        ),
        (
            Decision::Denied,
            Turn::Refuse { call: call("a"), refusal: chancery_domain::batch::Refusal::Unknown },
        ),
        // Its result is known now; the next one's is not.
        (supplied, Turn::Unknown(call("b"))),
    ] {
        let Gate::Settled(batch) = decide(&decision, ada()).unwrap() else {
            panic!("{decision:?} was the last answer")
        };
        assert_eq!(batch.next(), Some(turn));
    }
}
