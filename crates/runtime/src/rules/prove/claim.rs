//! What the solver is asked, in Cedar: one `permit` that is satisfied where the rules leave a call
//! at a ruling or weaker, and nowhere else.

use super::super::engine::{self, Cedar};
use super::super::literals::{KINDS, Kind, Literals};
use super::super::{Contacts, Governed, Rules, uid};
use chancery_domain::policy::Ruling;

/// Somebody who calls, as far as rules see them.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    pub agent: &'a str,
    pub role: &'a str,
    pub user: &'a str,
    /// Roles that there are beside their own.
    pub other_roles: &'a [String],
    pub contacts: &'a Contacts,
    /// Of the tool.
    pub capabilities: &'a [String],
}

/// A rule that is stricter than `most` must not match; and none may err, for one that errs denies.
/// `permit` is not satisfied where its condition errs, so `c || true` says that much of `c`.
pub(super) fn leaves(governed: Option<&Governed>, most: Ruling, assumed: &[String]) -> String {
    let rules = governed.map_or(&[][..], |it| &it.rules);
    let mut all = assumed.to_vec();
    if governed.is_some_and(|it| !it.waiting.is_empty()) {
        all.push("false".to_owned());
    }
    all.extend(rules.iter().map(|rule| match (rule.outcome > most, rule.condition.text()) {
        (true, text) => format!("!({text})"),
        (false, text) => format!("(({text}) || true)"),
    }));
    if all.is_empty() {
        all.push("true".to_owned());
    }
    format!("permit (principal, action, resource) when {{ {} }};", all.join(" && "))
}

/// What holds of every call.
pub(super) fn always() -> Vec<String> {
    [("hour", 0, 23), ("minute", 0, 59), ("weekday", 1, 7)]
        .map(|(name, least, most)| {
            format!("context.time.{name} >= {least} && context.time.{name} <= {most}")
        })
        .to_vec()
}

pub(super) fn of_who(who: &Who<'_>) -> Vec<String> {
    let text = |it: &str| engine::written(&engine::text(it));
    let (agent, role, user) = (text(who.agent), text(who.role), text(who.user));
    let mut all = vec![
        format!("principal == {}", uid("Agent", who.agent)),
        format!("principal in {}", uid("Role", who.role)),
        format!("principal.role == {role} && principal.user == {user}"),
        format!("context.agent == {agent} && context.role == {role} && context.user == {user}"),
        is("capabilities", &engine::set(who.capabilities.iter().map(|it| engine::text(it)))),
        is("contacts", &who.contacts.value()),
    ];
    let others = who.other_roles.iter().filter(|it| *it != who.role);
    all.extend(others.map(|it| format!("!(principal in {})", uid("Role", it))));
    all
}

/// Literals are those of these words. A date without a year depends on the day, and is left open
/// unless there is none.
pub(super) fn of_words(words: &[String]) -> Vec<String> {
    let task = Literals::of(words.iter().map(String::as_str));
    let lasting = KINDS.into_iter().filter(|it| it.1 != Kind::Dates || words.is_empty());
    let mut all: Vec<String> =
        lasting.map(|(name, _)| is(&format!("task.{name}"), &task.value(name))).collect();
    all.push(is("task.words", &task.value("words")));
    if words.is_empty() {
        let nothing = engine::set([]);
        all.extend(["said", "named"].map(|it| is(it, &nothing)));
    }
    all.push(is("extra", &engine::set([])));
    all
}

fn is(place: &str, value: &Cedar) -> String {
    match engine::written(value) {
        // An empty set has no type of its own.
        text if text == "[]" => format!("context.{place}.isEmpty()"),
        text => format!("context.{place} == {text}"),
    }
}

/// Words with a literal of every kind: some that name no amount that the rules on a tool speak of,
/// and some that name them all.
pub fn words_worth_trying(sides: [&Rules; 2], tool: &str) -> [Vec<String>; 2] {
    let governed = sides.into_iter().filter_map(|it| it.tools.get(tool));
    let texts = governed.flat_map(|it| &it.rules).map(|it| it.condition.text());
    let plain = "Write to ann@example.com and bob@example.org about “minutes”, see \
                 https://example.com/a, and pay DE89370400440532013000 $100.37";
    let mut amounts = plain.to_owned();
    for number in texts.flat_map(|it| numbers(&it)) {
        for near in [number - 1, number, number + 1] {
            amounts.push_str(&format!(", ${near} or ${near}.01"));
        }
    }
    [vec![plain.to_owned()], vec![amounts]]
}

/// The whole numbers in a text, none of them large.
fn numbers(text: &str) -> Vec<i64> {
    let digits = text.split(|it: char| !it.is_ascii_digit());
    digits.filter(|it| !it.is_empty() && it.len() < 10).filter_map(|it| it.parse().ok()).collect()
}
