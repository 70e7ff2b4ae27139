//! What others wrote, held against rules: doors for the fuzzer.

use jiff::Timestamp;
use jiff::civil::date;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::literals::LITERALS_MAX;
use super::{Contacts, Facts, Literals, Rules};
use crate::fuzz::halves;

/// A person's words, and something that may or may not be in them.
pub fn literals(data: &[u8]) {
    let (words, other) = halves(data);
    let (words, other) = (String::from_utf8_lossy(words), String::from_utf8_lossy(other));
    let literals = Literals::of([&*words].into_iter());
    let sets = literals.sets();
    let lower = words.to_lowercase();
    for literal in sets.emails.iter().chain(&sets.quoted).chain(&sets.files) {
        assert!(lower.contains(&literal.to_lowercase()), "{literal:?} is not in {words:?}");
    }
    for length in [sets.emails.len(), sets.urls.len(), sets.accounts.len(), sets.dates.len()] {
        assert!(length <= LITERALS_MAX);
    }
    let today = || date(2026, 11, 16);
    let named = literals.names(&other, &today);
    if literals.says(&other) {
        assert!(named);
        assert!(lower.contains(&other.trim().to_lowercase()), "{other:?} is not in {words:?}");
    }
    let short_number = other.len() < 8 && other.bytes().all(|it| it.is_ascii_digit());
    assert!(!(short_number && named), "{other:?} is grounded by {words:?}");
    assert!(!Literals::default().names(&other, &today), "{other:?} is grounded by nothing");
}

/// A file of rules.
pub fn rules(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let schema = json!({"type": "object", "properties": {
        "to": {"type": "array", "items": {"type": "string"}},
        "amount": {"type": "number"},
    }, "required": ["to"]});
    let files = [("rules/a.cedar".to_owned(), text.to_owned())];
    let lines = text.lines().count().max(1);
    match Rules::load(&files, [("send", &schema)].into_iter()) {
        Ok(rules) => {
            speak(&rules, &json!({"to": ["bob@corp.com"], "amount": 5}), "write to bob@corp.com");
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            for it in mistakes {
                assert!((1..=lines + 1).contains(&it.line) && it.column >= 1, "{it:?}");
            }
        }
    }
}

/// A tool's schema and a call's arguments, under rules that look at everything that there is.
pub fn arguments(data: &[u8]) {
    const LOOKS: &str = r#"
        @id("looks")
        forbid (principal, action, resource)
        when {
            context.named.contains("a") && context.unnamed.contains("b") &&
            context.said.contains("c") && context.extra.contains("d") &&
            context.found.emails.contains("e") && context.found.urls.contains("f") &&
            context.found.accounts.contains("g") && context.found.dates.contains("h") &&
            context.found.amounts.contains(decimal("1.0")) && context.found.files.contains("i")
        };
        @id("always")
        forbid (principal, action, resource);
    "#;
    let (schema, rest) = halves(data);
    let (arguments, words) = halves(rest);
    let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return };
    let Ok(arguments) = serde_json::from_slice::<Value>(arguments) else { return };
    let files = [("rules/a.cedar".to_owned(), LOOKS.to_owned())];
    let Ok(rules) = Rules::load(&files, [("send", &schema)].into_iter()) else { return };
    let reasons = speak(&rules, &arguments, &String::from_utf8_lossy(words));
    assert!(reasons > 0, "a rule on every call is silent about {arguments}");
}

fn speak(rules: &Rules, arguments: &Value, words: &str) -> usize {
    let reasons = rules.speak(&Facts {
        agent: "a",
        role: "r",
        user: "u",
        tool: "send",
        capabilities: &[],
        arguments,
        task: &Literals::of([words].into_iter()),
        contacts: &Contacts::default(),
        now: Timestamp::UNIX_EPOCH,
        zone: &TimeZone::UTC,
    });
    reasons.len()
}
