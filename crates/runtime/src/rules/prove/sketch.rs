//! From what a solver found to a call that can be made: arguments, words and a time.

use cedar_policy::Request;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Number, Value};

use super::super::engine;
use super::super::shape::{Field, Fields, Scalar, Shape};

/// A Monday, as the day begins.
const MONDAY: Timestamp = Timestamp::constant(1_767_571_200, 0);

/// A call that may do what was looked for. Whether it does is for the rules to say.
#[derive(Debug, Clone, PartialEq)]
pub struct Sketch {
    pub arguments: Value,
    pub words: Vec<String>,
    pub now: Timestamp,
}

impl Sketch {
    pub(super) fn of(request: &Request, fields: &Fields, words: Option<&[String]>) -> Sketch {
        let context = request.context().map(engine::shown).unwrap_or_default();
        let words = words.map_or_else(|| spoken(&context["task"]), <[String]>::to_vec);
        let arguments = Value::Object(record(fields, &context["input"]));
        Sketch { arguments, words, now: moment(&context["time"]) }
    }
}

/// A sentence with these literals in it.
fn spoken(task: &Value) -> Vec<String> {
    let texts = |name: &str| -> Vec<String> {
        let items = task[name].as_array().into_iter().flatten();
        items.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned)).collect()
    };
    let plain = ["emails", "urls", "accounts", "files", "dates"].into_iter().flat_map(texts);
    let quoted = texts("quoted").into_iter().map(|it| format!("“{it}”"));
    let amounts = ["amounts", "whole_amounts"].into_iter().flat_map(texts);
    let amounts = amounts.map(|it| format!("${it}"));
    let words = task["words"].as_str().map(str::to_owned).filter(|it| !it.is_empty());
    let all: Vec<String> = plain.chain(quoted).chain(amounts).chain(words).collect();
    if all.is_empty() { Vec::new() } else { vec![all.join(" ")] }
}

/// A moment with this weekday, hour and minute.
fn moment(time: &Value) -> Timestamp {
    let part =
        |name: &str, least: i64, most: i64| time[name].as_i64().unwrap_or(least).clamp(least, most);
    let hours = (part("weekday", 1, 7) - 1) * 24 + part("hour", 0, 23);
    let since = SignedDuration::from_mins(hours * 60 + part("minute", 0, 59));
    MONDAY.checked_add(since).unwrap_or(MONDAY)
}

fn record(fields: &Fields, seen: &Value) -> Map<String, Value> {
    let given = fields.0.iter().filter_map(|(name, field)| {
        let seen = seen.get(name)?;
        Some((field.argument.clone(), value(field, seen)))
    });
    given.collect()
}

fn value(field: &Field, seen: &Value) -> Value {
    match &field.shape {
        Shape::One(of) => scalar(*of, seen),
        Shape::Many(of) => {
            seen.as_array().into_iter().flatten().map(|it| scalar(*of, it)).collect()
        }
        Shape::Record(fields) => Value::Object(record(fields, seen)),
        Shape::Rows(columns) => rows(columns, seen),
        // Any text may be here that is the JSON of nothing.
        Shape::Json => {
            let text = seen.as_str().unwrap_or_default();
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }
    }
}

/// As many rows as the longest column has values; a shorter one begins again.
fn rows(columns: &Fields, seen: &Value) -> Value {
    let column = |name: &str| seen[name].as_array().cloned().unwrap_or_default();
    let count = columns.0.keys().map(|it| column(it).len()).max().unwrap_or_default();
    let row = |at: usize| {
        let cells = columns.0.iter().filter_map(|(name, field)| {
            let cells = column(name);
            let cell = cells.get(at.checked_rem(cells.len())?)?;
            let made = match &field.shape {
                Shape::One(of) => scalar(*of, cell),
                Shape::Many(of) => Value::Array(vec![scalar(*of, cell)]),
                _ => cell.as_str().and_then(|it| serde_json::from_str(it).ok())?,
            };
            Some((field.argument.clone(), made))
        });
        Value::Object(cells.collect())
    };
    (0..count).map(row).collect()
}

fn scalar(of: Scalar, seen: &Value) -> Value {
    match (of, seen) {
        // A decimal is text, as it is written.
        (Scalar::Decimal, Value::String(text)) => {
            let number = text.parse::<f64>().ok().and_then(Number::from_f64);
            number.map_or(Value::Null, Value::Number)
        }
        (_, seen) => seen.clone(),
    }
}
