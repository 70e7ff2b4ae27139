//! Which arguments hold what the person named, whatever tool they are for. Pure.
//!
//! This is what a rule for a tool that nobody knows can stand on: not what its arguments mean, but
//! whether each of them came from the person.

use std::collections::BTreeSet;

use jiff::civil::{Date, DateTime};
use serde_json::{Map, Value};

use super::literals::{Literals, UNIT};
use super::shape::{Fields, Shape};

/// Longer than any time of day with its date.
const TIME_MAX: usize = 29;

/// The arguments by whether the person named what is in them, each by its name in the schema. One
/// with several values may be in both; one without any, an empty list or an empty text, in
/// neither, and so is yes or no: it says nothing, and so it grounds nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub named: BTreeSet<&'a str>,
    pub unnamed: BTreeSet<&'a str>,
}

/// How many texts a look at these arguments searches for.
pub(super) fn weight(arguments: &Map<String, Value>) -> usize {
    arguments.values().map(weight_of).sum()
}

fn weight_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(weight_of).sum(),
        Value::Object(fields) => fields.values().map(|it| 1 + weight_of(it)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

pub(super) fn named<'a>(
    fields: &Fields,
    arguments: &'a Map<String, Value>,
    task: &Literals,
    today: &impl Fn() -> Date,
) -> Named<'a> {
    let mut found = Named::default();
    for (name, value) in arguments {
        let look = Look { task, today };
        let shape = fields.by_argument(name).map(|it| &it.shape);
        let Seen { named, unnamed } = look.at(value, shape);
        if named {
            found.named.insert(name);
        }
        if unnamed {
            found.unnamed.insert(name);
        }
    }
    found
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    named: bool,
    unnamed: bool,
}

impl Seen {
    fn and(self, other: Seen) -> Seen {
        Seen { named: self.named || other.named, unnamed: self.unnamed || other.unnamed }
    }
}

struct Look<'l, F> {
    task: &'l Literals,
    today: &'l F,
}

impl<F: Fn() -> Date> Look<'_, F> {
    fn at(&self, value: &Value, shape: Option<&Shape>) -> Seen {
        let seen = |named: bool| Seen { named, unnamed: !named };
        match value {
            // Yes and no are in nobody's words, and lead nowhere.
            Value::Null | Value::Bool(_) => Seen::default(),
            Value::String(text) if text.trim().is_empty() => Seen::default(),
            Value::String(text) => seen(self.task.names(text, self.today)),
            Value::Number(_) => seen(self.is_amount(value)),
            Value::Array(items) => {
                let each = items.iter().map(|it| self.at(it, shape));
                each.fold(Seen::default(), Seen::and)
            }
            Value::Object(inner) => inner.iter().fold(Seen::default(), |seen, (key, it)| {
                // What the schema calls its own parts was not written by the model.
                let field = match shape {
                    Some(Shape::Record(fields) | Shape::Rows(fields)) => fields.by_argument(key),
                    _ => None,
                };
                let name = match field {
                    Some(_) => Seen::default(),
                    None => Seen { named: false, unnamed: !self.task.names(key, self.today) },
                };
                seen.and(name).and(self.at(it, field.map(|it| &it.shape)))
            }),
        }
    }

    /// An amount of money that the person named: a bare number grounds nothing.
    fn is_amount(&self, value: &Value) -> bool {
        let units = match value.as_i64() {
            Some(whole) => whole.checked_mul(UNIT),
            None => super::number::units(value),
        };
        units.is_some_and(|it| self.task.sets().amounts.contains(&it))
    }
}

impl Literals {
    /// Whether the person named this, in any spelling of it: in these words, as an address, a
    /// link or an account, or as a day, of which the time is free.
    pub(super) fn names(&self, text: &str, today: &impl Fn() -> Date) -> bool {
        let text = text.trim();
        let sets = self.sets();
        self.says(text)
            || sets.emails.contains(&text.to_ascii_lowercase())
            || self.names_link(text)
            || self.names_account(text)
            || date_of(text).is_some_and(|it| {
                let date = it.to_string();
                sets.dates.iter().flat_map(|it| it.dates(today())).any(|it| it == date)
            })
    }
}

fn date_of(text: &str) -> Option<Date> {
    let plain = text.len() <= TIME_MAX && !text.contains('[');
    plain.then(|| text.parse::<DateTime>().ok()).flatten().map(DateTime::date)
}

#[cfg(test)]
mod tests;
