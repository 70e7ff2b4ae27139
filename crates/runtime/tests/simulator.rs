//! Every fault at every point of every scenario; then faults, scenarios and points at random.

use chancery_runtime::UnknownOutcome::{self, Ask, Fail, Retry};
use chancery_testkit::simulator::dice::Dice;
use chancery_testkit::simulator::people::{Law, People, Says};
use chancery_testkit::simulator::world::Act::{
    self, AskHuman, Denied, Look, Nonsense, Safe, Wait, Write,
};
use chancery_testkit::simulator::{Fault, Recover, Report, Scenario, Simulator};

fn scenario(script: &[&[Act]], on_unknown: UnknownOutcome, recover: Recover) -> Scenario {
    let script = script.iter().map(|it| it.to_vec()).collect();
    Scenario { script, on_unknown, recover, attempts: u32::MAX, people: People::default() }
}

fn scripts() -> Vec<Scenario> {
    let ask = |script: &[&[Act]]| scenario(script, Ask, Recover::Supply);
    vec![
        ask(&[]),
        ask(&[&[Write]]),
        ask(&[&[Write], &[Write]]),
        ask(&[&[Write, Write, Write]]),
        ask(&[&[Look, Look, Look]]),
        ask(&[&[Look, Write, Look]]),
        ask(&[&[Denied]]),
        ask(&[&[Denied, Nonsense, Write]]),
        ask(&[&[Write, Denied, Look, Look]]),
        ask(&[&[Wait]]),
        ask(&[&[Write, Wait, Write]]),
        ask(&[&[Wait, Wait], &[Look, Wait]]),
        ask(&[&[Safe, Write, Safe]]),
    ]
}

/// The same scripts with every way to deal with an unknown outcome.
fn unknowns() -> Vec<Scenario> {
    let scripts: [&[&[Act]]; 3] = [&[&[Write]], &[&[Look, Look, Look]], &[&[Safe], &[Write, Wait]]];
    let mut all = Vec::new();
    for script in scripts {
        all.push(scenario(script, Ask, Recover::RunAgain));
        all.push(scenario(script, Ask, Recover::Fail));
        all.push(scenario(script, Fail, Recover::Supply));
        all.push(scenario(script, Retry, Recover::Supply));
    }
    all
}

/// Calls that somebody is asked about, with every answer, and with rules that change meanwhile.
fn asking() -> Vec<Scenario> {
    let scripts: [&[&[Act]]; 4] = [
        &[&[AskHuman]],
        &[&[Write, Act::Ask, Look]],
        &[&[Act::Ask, AskHuman, Act::Ask]],
        &[&[Act::Ask], &[Act::Ask, Write]],
    ];
    let says = Says::ALL.map(|says| People { says, law: Law::Usual });
    let laws = Law::ALL.map(|law| People { says: Says::Yes, law });
    let all = || says.into_iter().chain(laws.into_iter().skip(1));
    let with =
        |script: &[&[Act]], people| Scenario { people, ..scenario(script, Ask, Recover::RunAgain) };
    scripts.iter().flat_map(|script| all().map(|people| with(script, people))).collect()
}

async fn explore(scenarios: Vec<Scenario>, fault: Fault) {
    let simulator = Simulator::new().await;
    let mut points = 0;
    for scenario in &scenarios {
        points += simulator.explore(scenario, fault).await;
    }
    println!("{fault:?}: {points} points in {} scenarios", scenarios.len());
}

macro_rules! at_every_point {
    ($($name:ident: $fault:ident;)*) => {$(
        #[tokio::test]
        async fn $name() {
            explore(scripts(), Fault::$fault).await;
            explore(unknowns(), Fault::$fault).await;
            explore(asking(), Fault::$fault).await;
        }
    )*};
}

at_every_point! {
    a_run_survives_a_crash_at_every_point: Crash;
    a_word_is_heard_at_every_point: Speak;
    a_word_before_a_crash_is_heard: SpeakAndCrash;
    a_run_is_cancelled_at_every_point: Cancel;
    a_run_that_is_cancelled_is_halted_at_every_point: CancelAndHalt;
    a_signal_before_a_crash_is_delivered: AnswerAndCrash;
    a_run_is_handed_over_at_every_point: Stop;
    a_word_during_a_handover_is_heard: SpeakAndStop;
    a_run_is_cancelled_during_a_handover: CancelAndStop;
    a_worker_that_lost_its_lease_does_no_harm_at_any_point: Takeover;
    a_worker_writes_nothing_once_another_has_claimed: Reclaim;
    a_rule_that_is_taken_back_clears_nothing_more: Revoke;
}

/// Without faults every effect happens once, and the model is asked once an output.
#[tokio::test]
async fn a_quiet_run_does_everything_once() {
    let simulator = Simulator::new().await;
    for scenario in scripts() {
        let report = simulator.play(&scenario, |_| None).await.unwrap();
        let acts = scenario.script.iter().flatten();
        let effects = acts.filter(|it| matches!(it, Write | Look | Safe)).count() as u32;
        let model_calls = scenario.script.len() as u64 + 1;
        let log = report.log.clone();
        let due = Report { faults: 0, log, status: "completed", model_calls, effects };
        assert_eq!(report, due);
    }
}

/// A store that does not answer for a while costs time and nothing else: what a tool said is held
/// until it can be written, so that nobody is asked about it and nothing is done twice.
#[tokio::test(start_paused = true)]
async fn what_is_known_is_not_forgotten_while_the_store_is_away() {
    let simulator = Simulator::new().await;
    // Whose answer comes first while the store is away is open, and only a person's holds where
    // the rules have come to want one: that the question is put again then is as it should be.
    let asking = asking().into_iter().filter(|it| !matches!(it.people.law, Law::Human));
    for scenario in scripts().into_iter().chain(unknowns()).chain(asking) {
        let quiet = simulator.play(&scenario, |_| None).await.unwrap();
        for point in 0.. {
            let mut plan = vec![(point, Fault::Away)];
            let played = simulator.play(&scenario, |_| plan.pop()).await;
            let report = played.unwrap_or_else(|wrong| panic!("{point} of {scenario:?}: {wrong}"));
            if report.faults == 0 {
                break;
            }
            assert_eq!(report, Report { faults: 1, ..quiet.clone() }, "{point} of {scenario:?}");
        }
    }
}

/// Without faults: each answer has its effect, and rules that change while a run waits hold.
#[tokio::test]
async fn an_answer_is_carried_out_under_the_rules_of_its_day() {
    let simulator = Simulator::new().await;
    for (says, law, effects) in [
        (Says::Yes, Law::Usual, 3),
        (Says::Edited, Law::Usual, 3),
        (Says::Always, Law::Usual, 3),
        (Says::No, Law::Usual, 1),
        (Says::Nothing, Law::Usual, 1),
        (Says::NothingTwice, Law::Usual, 1),
        (Says::Yes, Law::Human, 3),
        (Says::Yes, Law::Denied, 2),
        (Says::Yes, Law::Gone, 2),
        (Says::Yes, Law::Dismissed, 0),
    ] {
        let script: &[&[Act]] = &[&[Write, Act::Ask, AskHuman]];
        let people = People { says, law };
        let asking = Scenario { people, ..scenario(script, Ask, Recover::Fail) };
        let report = simulator.play(&asking, |_| None).await.unwrap();
        let status = if law == Law::Dismissed { "failed" } else { "completed" };
        assert_eq!((report.effects, report.status), (effects, status), "{says:?} {law:?}");
    }
}

/// A call that takes its server down every time is not tried for ever, though every try moves
/// the log.
#[tokio::test]
async fn a_poisonous_call_is_given_up() {
    for (act, on_unknown) in [(Safe, Fail), (Safe, Retry), (Write, Retry)] {
        let poisonous = Scenario { attempts: 3, ..scenario(&[&[act]], on_unknown, Recover::Fail) };
        let simulator = Simulator::new().await;
        // In the tool: after claim, words and start in the first life, after claim and start in
        // the others.
        let played = simulator.play(&poisonous, |life| match life {
            0 => Some((6, Fault::Crash)),
            1..=2 => Some((4, Fault::Crash)),
            _ => None,
        });
        let report = played.await.unwrap();
        let count = |kind| report.log.iter().filter(|it| **it == kind).count();
        assert_eq!(
            (count("tool.retried"), count("tool.started"), count("tool.finished"), report.status),
            (2, 3, 0, "failed")
        );
    }
}

/// Two crashes: at every pair of points of a small scenario.
#[tokio::test]
async fn a_run_survives_a_crash_in_the_recovery_from_a_crash() {
    let simulator = Simulator::new().await;
    for scenario in [
        scenario(&[&[Look, Wait]], Ask, Recover::RunAgain),
        scenario(&[&[Safe]], Fail, Recover::Fail),
    ] {
        let mut games = 0;
        for first in 0.. {
            for second in 0.. {
                let mut plan = vec![(second, Fault::Crash), (first, Fault::Crash)];
                let played = simulator.play(&scenario, |_| plan.pop()).await;
                let report = played.unwrap_or_else(|wrong| {
                    panic!("{first}, then {second}, {scenario:?}: {wrong}")
                });
                games += 1;
                if report.faults < 2 {
                    break;
                }
            }
            let mut plan = vec![(first, Fault::Crash)];
            if simulator.play(&scenario, |_| plan.pop()).await.unwrap().faults == 0 {
                break;
            }
        }
        println!("{games} pairs of crashes");
    }
}

fn drawn(dice: &mut Dice) -> Scenario {
    let script = (0..dice.roll(4))
        .map(|_| (0..1 + dice.roll(4)).map(|_| dice.pick(&Act::ALL)).collect())
        .collect();
    Scenario {
        script,
        on_unknown: dice.pick(&[Ask, Fail, Retry]),
        recover: dice.pick(&[Recover::RunAgain, Recover::Fail, Recover::Supply]),
        attempts: u32::MAX,
        people: People { says: dice.pick(&Says::ALL), law: dice.pick(&Law::ALL) },
    }
}

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

/// `CHANCERY_SIM_EVENTS` is how many events are to be recorded, `CHANCERY_SIM_SEED` the game to
/// begin with: a failure names the seed of its game, and that seed alone plays it again.
#[tokio::test(start_paused = true)]
async fn heavy_random_faults_at_random_points() {
    let simulator = Simulator::new().await;
    let budget = number("CHANCERY_SIM_EVENTS", 15_000);
    let mut seed = number("CHANCERY_SIM_SEED", 1);
    let (mut events, mut games, mut faults) = (0, 0, 0);
    while events < budget {
        let mut dice = Dice::new(seed);
        let scenario = drawn(&mut dice);
        let played = simulator
            .play(&scenario, |life| {
                // Ever fewer faults, so that there is an end.
                let faulty = life < 12 && dice.roll(8) > 0;
                faulty.then(|| (dice.roll(16), dice.pick(&Fault::ALL)))
            })
            .await;
        let report = played
            .unwrap_or_else(|wrong| panic!("CHANCERY_SIM_SEED={seed}, {scenario:?}: {wrong}"));
        events += report.log.len() as u64;
        faults += report.faults;
        games += 1;
        seed += 1;
    }
    println!("{games} games, {faults} faults, {events} events, last seed {}", seed - 1);
}
