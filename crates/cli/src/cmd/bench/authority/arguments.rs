//! What rules over a call's arguments cost: from parsed arguments to what every rule says, with
//! nothing of it known from the call before.

use std::hint::black_box;
use std::time::{Duration, Instant};

use chancery_runtime::clock;
use chancery_runtime::rules::{Contacts, Facts, Literals, Rules};
use jiff::tz::TimeZone;
use serde_json::json;

/// Of the kinds that the cookbook has; none of them matches the call below, so that all are asked.
pub const RULES: [&str; 8] = [
    "context.input.amount > 1000000",
    "context.input.to like \"*@elsewhere.example\"",
    "!context.task.emails.contains(context.input.to)",
    "context.input.lines.contains(\"gift card\")",
    "context.unnamed.contains(\"to\")",
    "context.input has urgent && context.input.urgent",
    "context.extra.contains(\"bcc\")",
    "context.time.hour > 23",
];

/// Nanoseconds for one call.
pub fn spoken(time: Duration) -> anyhow::Result<f64> {
    let schema = json!({"type": "object", "required": ["to", "amount", "lines"], "properties": {
        "to": {"type": "string"}, "amount": {"type": "integer"}, "urgent": {"type": "boolean"},
        "lines": {"type": "array", "items": {"type": "string"}},
    }});
    let text: String = RULES
        .iter()
        .map(|it| {
            format!("forbid (principal, action == Action::\"pay\", resource) when {{ {it} }};\n")
        })
        .collect();
    let files = [("rules/bench.cedar".to_owned(), text)];
    let rules = Rules::load(&files, [("pay", &schema)].into_iter());
    let rules = rules.map_err(|it| anyhow::anyhow!("the rules of the bench: {it:?}"))?;
    let words = "Pay ada@example.org 120 euros for the paper and the ink";
    let task = Literals::of(std::iter::once(words));
    let contacts = Contacts::of(["ceo"]);
    let arguments = json!({"to": "ada@example.org", "amount": 120, "lines": ["paper", "ink"]});
    let facts = Facts {
        agent: "pa",
        role: "pa",
        user: "lin",
        tool: "pay",
        capabilities: &[],
        arguments: &arguments,
        task: &task,
        contacts: &contacts,
        now: clock::now(),
        zone: &TimeZone::UTC,
    };
    let said = rules.speak(&facts);
    anyhow::ensure!(said.is_empty(), "a rule of the bench matches: {said:?}");
    let (began, mut asked) = (Instant::now(), 0u64);
    while began.elapsed() < time {
        for _ in 0..64 {
            black_box(rules.speak(black_box(&facts)));
        }
        asked += 64;
    }
    Ok(began.elapsed().as_secs_f64() * 1e9 / asked as f64)
}
