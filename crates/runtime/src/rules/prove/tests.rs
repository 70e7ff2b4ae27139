//! The solver's word, held against the rules themselves: what it finds is played, and what it
//! rules out is looked for by trying everything.

use chancery_domain::policy::Ruling;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::*;
use crate::rules::{Contacts, Facts, Literals};

const LEVELS: [Ruling; 3] = [Ruling::Allow, Ruling::RequireApproval, Ruling::RequireHuman];

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "to": {"type": "string"}, "amount": {"type": "integer"}, "memo": {"type": "string"},
        },
        "required": ["to", "amount"],
    })
}

fn rules(text: &str) -> Rules {
    let files = [("rules.cedar".to_owned(), text.to_owned())];
    Rules::load(&files, [("pay", &schema())].into_iter()).unwrap_or_else(|it| panic!("{it:?}"))
}

fn prover() -> Prover {
    Prover::start([("pay", &schema())].into_iter()).unwrap()
}

/// What the rules come to on one call.
fn ruling(rules: &Rules, sketch: &Sketch) -> Ruling {
    let said = rules.speak(&Facts {
        agent: "pa",
        role: "assistant",
        user: "lin",
        tool: "pay",
        capabilities: &[],
        arguments: &sketch.arguments,
        task: &Literals::of(sketch.words.iter().map(String::as_str)),
        contacts: &Contacts::default(),
        now: sketch.now,
        zone: &TimeZone::UTC,
    });
    said.first().map_or(Ruling::Allow, |it| it.outcome)
}

fn who(contacts: &Contacts) -> Who<'_> {
    Who {
        agent: "pa",
        role: "assistant",
        user: "lin",
        other_roles: &[],
        contacts,
        capabilities: &[],
    }
}

/// At which levels the later rules let something through, each with a call that shows it.
async fn wider(old: &str, new: &str) -> Vec<(Ruling, Sketch)> {
    let (mut prover, contacts) = (prover(), Contacts::default());
    let (old, new, who) = (rules(old), rules(new), who(&contacts));
    let talk = words_worth_trying([&old, &new], "pay");
    let mut all = Vec::new();
    for most in LEVELS {
        let anything = Within { who: Some(&who), words: None };
        let found = prover.weaker(Some(&old), &new, "pay", most, anything).await.unwrap();
        let Some(free) = found else { continue };
        let mut sketches = vec![];
        for words in [&[][..], &talk[0], &talk[1]] {
            let within = Within { who: Some(&who), words: Some(words) };
            let found = prover.weaker(Some(&old), &new, "pay", most, within).await.unwrap();
            sketches.extend(found);
        }
        sketches.push(free);
        let plays = |it: &&Sketch| ruling(&new, it) <= most && ruling(&old, it) > most;
        let played = sketches.iter().find(plays);
        all.push((most, played.unwrap_or_else(|| panic!("{most:?}: {sketches:?}")).clone()));
    }
    all
}

async fn levels(old: &str, new: &str) -> Vec<Ruling> {
    wider(old, new).await.into_iter().map(|it| it.0).collect()
}

fn over(limit: i64) -> String {
    format!(
        "forbid (principal, action == Action::\"pay\", resource) when {{ context.input.amount > {limit} }};"
    )
}

#[tokio::test]
async fn rules_allow_no_more_than_themselves_or_stricter_ones() {
    assert_eq!(levels(&over(1000), &over(1000)).await, []);
    assert_eq!(levels(&over(1000), &over(500)).await, []);
    assert_eq!(levels("", &over(500)).await, []);
    let both = over(1000) + &over(10);
    assert_eq!(levels(&over(10), &both).await, []);
}

#[tokio::test]
async fn a_wider_rule_is_found_with_a_call_that_it_lets_through() {
    let found = wider(&over(1000), &over(2000)).await;
    assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), LEVELS);
    for (_, call) in found {
        let amount = call.arguments["amount"].as_i64().unwrap();
        assert!((1001..=2000).contains(&amount), "{call:?}");
    }
}

#[tokio::test]
async fn asking_instead_of_denying_is_weaker_and_asking_a_person_less_so() {
    let ask = |how: &str| format!("@ask(\"{how}\") {}", over(1000));
    let (approval, human) = (ask("why"), ask("human: why"));
    use Ruling::{Allow, RequireApproval, RequireHuman};
    assert_eq!(levels(&over(1000), &human).await, [RequireHuman]);
    assert_eq!(levels(&over(1000), &approval).await, [RequireApproval, RequireHuman]);
    assert_eq!(levels(&human, &approval).await, [RequireApproval]);
    assert_eq!(levels(&approval, "").await, [Allow]);
    assert_eq!(levels(&approval, &human).await, []);
}

#[tokio::test]
async fn a_rule_that_errs_denies_and_who_does_not_err_any_more_allows_more() {
    // Both match above 4; the first overflows at the very end and denies there too.
    let errs = "forbid (principal, action, resource) when { context.input.amount + 1 > 5 };";
    let most = i64::MAX;
    let ends = format!(
        "forbid (principal, action, resource) \
         when {{ context.input.amount > 4 && context.input.amount < {most} }};"
    );
    let found = wider(errs, &ends).await;
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|it| it.1.arguments["amount"] == most), "{found:?}");
    // An erring rule denies even where it would only ask.
    let asks = format!("@ask(\"why\") {errs}");
    assert_eq!(levels(&asks, errs).await, []);
    assert_eq!(levels(&asks, &ends).await, LEVELS);
}

#[tokio::test]
async fn what_the_person_said_can_be_part_of_an_example() {
    let told = |more: &str| {
        format!(
            "forbid (principal, action, resource) unless {{ \
             context.task.accounts.contains(context.input.to) && \
             (context.task.whole_amounts.contains(context.input.amount){more}) }};"
        )
    };
    let found = wider(&told(""), &told(" || context.input.amount == 7")).await;
    assert_eq!(found.len(), 3);
    for (_, call) in found {
        assert_eq!(call.arguments["amount"], 7, "{call:?}");
        assert!(!call.words.is_empty(), "{call:?}");
    }
}

#[test]
fn without_a_solver_it_is_said() {
    let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
    let error = of_solver(SolverError::Io(missing));
    assert_eq!(error.to_string(), "no solver: there is no program `cvc5`");
}

/// Numbers that are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn condition(&mut self, depth: u32) -> String {
        if depth > 0 && self.roll(3) > 0 {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.roll(3) {
                0 => format!("({a} && {b})"),
                1 => format!("({a} || {b})"),
                _ => format!("!({a})"),
            };
        }
        let number = self.roll(4);
        match self.roll(6) {
            0 => format!("context.input.amount < {number}"),
            1 => format!("context.input.amount == {number}"),
            2 => "context.input.to == \"a\"".to_owned(),
            3 => "context.input.to like \"b*\"".to_owned(),
            4 => "(context.input has memo && context.input.memo == \"x\")".to_owned(),
            _ => "context.time.hour >= 12".to_owned(),
        }
    }

    fn rules(&mut self) -> String {
        let rule = |it: &mut Dice| {
            let how = ["", "@ask(\"why\")", "@ask(\"human\")"][it.roll(3) as usize];
            let condition = it.condition(2);
            // A rule that can match or not, whatever was rolled.
            format!(
                "{how} forbid (principal, action, resource) \
                 when {{ ({condition}) && context.input.amount < 9 }};\n"
            )
        };
        (0..=self.roll(2)).map(|_| rule(self)).collect()
    }
}

/// Every call that these conditions can tell from another.
fn universe() -> Vec<Sketch> {
    let mut all = Vec::new();
    for amount in [-1, 0, 1, 2, 3, 4, 9] {
        for to in ["a", "b", "bc", "c"] {
            for memo in [None, Some("x"), Some("y")] {
                for hour in [0, 12] {
                    let mut arguments = json!({"to": to, "amount": amount});
                    if let Some(memo) = memo {
                        arguments["memo"] = memo.into();
                    }
                    let now = Timestamp::from_second(1_767_571_200 + hour * 3600).unwrap();
                    all.push(Sketch { arguments, words: Vec::new(), now });
                }
            }
        }
    }
    all
}

#[tokio::test]
async fn the_solver_says_what_trying_everything_says() {
    let (mut dice, mut prover, universe) = (Dice(7), prover(), universe());
    let (mut weaker, mut never) = (0, 0);
    for _ in 0..60 {
        let (old, new) = (dice.rules(), dice.rules());
        // One that can never match is refused before.
        let load = |text: &str| {
            let files = [("rules.cedar".to_owned(), text.to_owned())];
            Rules::load(&files, [("pay", &schema())].into_iter())
        };
        let (Ok(old_rules), Ok(new_rules)) = (load(&old), load(&new)) else { continue };
        let most = LEVELS[dice.roll(3) as usize];
        let tried = universe
            .iter()
            .any(|it| ruling(&new_rules, it) <= most && ruling(&old_rules, it) > most);
        let within = Within { who: None, words: None };
        let found = prover.weaker(Some(&old_rules), &new_rules, "pay", most, within).await.unwrap();
        assert_eq!(found.is_some(), tried, "{most:?}\n{old}\n{new}\n{found:?}");
        *(if tried { &mut weaker } else { &mut never }) += 1;
    }
    assert!(weaker > 10 && never > 10, "{weaker} {never}");
}
