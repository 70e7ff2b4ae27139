//! What a run begins with that goes on from another one, by their logs alone.

use chancery_domain::event::{BatchClosed, CallResult, Room, UserSpoke, WrapUpAsked};
use chancery_domain::policy::Ruling;
use chancery_testkit::conformance::{
    ada, call_ended, call_started, completed, created, failed, proposed, spoke, started,
};

use super::*;
use crate::clock;

fn run() -> RunId {
    RunId(uuid::Uuid::from_u128(7))
}

fn log(events: impl IntoIterator<Item = Event>) -> Vec<Recorded> {
    let at = jiff::Timestamp::UNIX_EPOCH;
    (1..).zip(events).map(|(seq, event)| Recorded { seq, at, event }).collect()
}

fn closed() -> Event {
    BatchClosed { message: clock::new_message_id() }.into()
}

/// One batch that was asked about and is done, words after it, and one that is under way.
fn story() -> Vec<Recorded> {
    log([
        created("goal").into(),                                            // 1
        started(),                                                         // 2
        proposed(&[("a", Ruling::RequireHuman)], 1),                       // 3
        spoke("overheard"),                                                // 4
        call_started("a"),                                                 // 5
        call_ended("a"),                                                   // 6
        closed(),                                                          // 7
        spoke("louder"),                                                   // 8
        proposed(&[("b", Ruling::Allow), ("c", Ruling::RequireHuman)], 1), // 9
        call_started("b"),                                                 // 10
        call_ended("b"),                                                   // 11
    ])
}

fn said(text: &str) -> Carried {
    Carried::Said { text: text.to_owned() }
}

fn answered(id: &str) -> Carried {
    let call =
        Call { id: CallId::from(id), tool: "act".to_owned(), arguments: serde_json::json!({}) };
    Carried::Answered { text: String::new(), calls: vec![Arc::new(call)] }
}

fn ended(id: &str) -> Carried {
    Carried::Ended { call: CallId::from(id), result: CallResult::ok("done") }
}

fn from(log: &[Recorded], at: Option<u64>) -> Result<Beginning, Refusal> {
    begin(run(), log, Vec::new(), Wanted { at, says: None })
}

/// The place that was found, and what stands after the goal there.
fn check(log: &[Recorded], at: Option<u64>, expected: (u64, &[Carried])) {
    let Beginning { input, forked, .. } = from(log, at).unwrap();
    assert_eq!((&*input, &*forked.before), ("goal", &[][..]));
    assert_eq!((forked.at, &*forked.after), expected, "{at:?}");
}

#[test]
fn a_place_amid_a_batch_is_the_one_before_it() {
    let one = [answered("a"), ended("a"), said("overheard")];
    let two = [&one[..], &[said("louder")]].concat();
    for at in [1, 2] {
        check(&story(), Some(at), (at, &[]));
    }
    for at in 3..=6 {
        check(&story(), Some(at), (2, &[]));
    }
    check(&story(), Some(7), (7, &one));
    for at in [Some(8), Some(9), Some(11), None] {
        check(&story(), at, (8, &two));
    }
    for at in [0, 12, u64::MAX] {
        assert_eq!(from(&story(), Some(at)), Err(Refusal::NoSuchPlace { at, end: 11 }));
    }
}

#[test]
fn what_was_answered_is_asked_anew_unless_something_new_is_said() {
    let log = log([created("goal").into(), started(), completed("so it is")]);
    check(&log, None, (2, &[]));
    let by = ada();
    let says = Some(("and then?", &by));
    let Beginning { input, persons_words, forked } =
        begin(run(), &log, Vec::new(), Wanted { at: None, says }).unwrap();
    let answer = Carried::Answered { text: "so it is".to_owned(), calls: Vec::new() };
    assert_eq!((&*input, forked.at), ("and then?", 3));
    assert_eq!(forked.before, [said("goal"), answer]);
    assert_eq!(forked.after, []);
    assert_eq!(persons_words, ["goal", "and then?"]);
    // What failed is gone on from where it had come to; that it was to wrap up was said to it.
    let wraps = WrapUpAsked { by: ada() }.into();
    let log = self::log([created("goal").into(), started(), wraps, failed()]);
    check(&log, None, (4, &[]));
}

#[test]
fn only_the_persons_own_words_are_theirs_in_what_goes_on() {
    let of = |created: Created, by: Actor| {
        let message = clock::new_message_id();
        let (text, to) = ("spoken".to_owned(), None);
        let spoke = UserSpoke { message, text, by, to }.into();
        let batch = [proposed(&[("a", Ruling::Allow)], 1), call_started("a"), call_ended("a")];
        let log =
            log([created.into(), started(), spoke].into_iter().chain(batch).chain([closed()]));
        let Beginning { input, persons_words, forked } = from(&log, None).unwrap();
        // The same again from the one that went on: what was not theirs does not become it.
        let by_ada = Created {
            persons_words: persons_words.clone(),
            input,
            by: ada(),
            forked: Some(Arc::new(forked)),
            ..super::tests::created("goal")
        };
        let again = from(&self::log([by_ada.into(), started()]), None).unwrap();
        assert_eq!(again.persons_words, persons_words);
        assert_eq!(again.forked.after.len(), 3);
        (persons_words, again.forked.by)
    };
    let agent = || Actor::Agent("mallory".into());
    let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert_eq!(of(created("goal"), ada()), (words(&["goal", "spoken"]), ada()));
    assert_eq!(of(created("goal"), agent()), (words(&["goal"]), ada()));
    let an_agents = || Created { by: agent(), ..created("goal") };
    assert_eq!(of(an_agents(), ada()), (words(&["spoken"]), agent()));
    assert_eq!(of(an_agents(), Actor::System), (words(&[]), agent()));
}

#[test]
fn what_goes_on_reads_what_the_other_had_read() {
    let before = || vec![Exchange { input: "hello".to_owned(), output: "hi".to_owned() }];
    let mut read = Context::new(created("goal"), before());
    story().iter().take(8).for_each(|it| read.follow(&it.event));
    let by = ada();
    for says in [None, Some(("now this", &by))] {
        let begins = begin(run(), &story(), before(), Wanted { at: None, says }).unwrap();
        let made =
            Created { input: begins.input, forked: Some(Arc::new(begins.forked)), ..created("") };
        let reads = Context::new(made, Vec::new());
        let new = says.map(|(text, _)| Message::User { text: text.to_owned() });
        let expected: Vec<Message> = read.messages().iter().cloned().chain(new).collect();
        assert_eq!(reads.messages(), expected);
    }
}

#[test]
fn runs_without_one_talk_of_their_own_are_not_gone_on_from() {
    let room = Room { members: vec![], lead: None, rounds: 1 };
    let call = Call { id: "a".into(), tool: "act".to_owned(), arguments: serde_json::json!({}) };
    for (created, refusal) in [
        (Created { room: Some(Arc::new(room)), ..created("x") }, Refusal::Group),
        (Created { parent: Some(run()), ..created("x") }, Refusal::Beneath),
        (Created { call: Some(Arc::new(call)), ..created("x") }, Refusal::Outside),
    ] {
        let log = log([created.into()]);
        assert_eq!(from(&log, None), Err(refusal));
        assert_eq!(places(&log), []);
    }
    let log = log([created(&"x".repeat(CARRIED_MAX + 1)).into(), started(), spoke("y")]);
    // The goal is the run's own input, and no part of what is carried.
    assert!(from(&log, None).is_ok());
    let by = ada();
    let long = begin(run(), &log, Vec::new(), Wanted { at: None, says: Some(("z", &by)) });
    assert!(matches!(long, Err(Refusal::TooLong(_))), "{long:?}");
}

#[test]
fn every_call_is_carried_over_or_left_behind() {
    let known: Vec<_> = known(&story(), 8)
        .into_iter()
        .map(|it| (it.call.id.0.clone(), it.carried, it.ran, it.asked))
        .collect();
    let call = |id: &str, carried, ran, asked| (id.to_owned(), carried, ran, asked);
    assert_eq!(
        known,
        [call("a", true, true, true), call("b", false, true, false), call("c", false, false, true),]
    );
    assert_eq!(places(&story()), [(1, vec![]), (7, vec!["act"])]);
}
