//! What a rule sees of one call. Values are built one by one from the JSON, never read by
//! Cedar's own JSON parser: an object with the key `__entity` is an object.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use cedar_policy::Context;
use jiff::Zoned;
use jiff::civil::Date;
use serde_json::{Map, Value};

use super::Facts;
use super::engine::{self, Cedar};
use super::literals::{KINDS, Kind, Literals, Sets, Side};
use super::named;
use super::number::{decimal, whole};
use super::reads::Part;
use super::shape::{Field, Fields, Scalar, Shape};

/// Values that rules look at in one call. More is data, not an instruction.
const VALUES_MAX: usize = 10_000;
/// Bytes of text that rules look at in one call.
const BYTES_MAX: usize = 4 << 20;
/// Bytes of a person's words that are searched for the texts of one call.
const SEARCHED_MAX: usize = 64 << 20;

/// Builds the parts of the context that are looked at, or says why it cannot be done.
pub(super) fn context(fields: &Fields, part: &Part, facts: &Facts<'_>) -> Result<Context, String> {
    let mut make = Make { values: VALUES_MAX, bytes: BYTES_MAX };
    let mut pairs: Vec<(&str, Cedar)> = Vec::new();
    let mut add = |name, value| pairs.push((name, value));
    let none = Map::new();
    let arguments = match facts.arguments {
        Value::Object(arguments) => arguments,
        Value::Null => &none,
        _ => return Err("the arguments are not an object".to_owned()),
    };
    if let Some(part) = part.under("input") {
        add("input", make.record(fields, arguments, part)?);
    }
    if part.under("extra").is_some() {
        let mut extra = Vec::new();
        unnamed(fields, arguments, "", &mut extra);
        add("extra", make.texts(extra.into_iter())?);
    }
    let today = LazyCell::new(|| facts.now.to_zoned(facts.zone.clone()));
    if let Some(part) = part.under("task") {
        add("task", task(facts.task, part, || today.date()));
    }
    if let Some(part) = part.under("found") {
        let sets = make.found(arguments, part)?;
        let found = looked_at(part).map(|(name, kind)| (name, sets.value(name, kind)));
        let dates = part.under("dates").map(|_| ("dates", dates(&sets, today.date())));
        add("found", engine::record(found.chain(dates)));
    }
    if part.under("said").is_some() {
        let said = make.said(arguments, facts.task)?;
        add("said", make.texts(said.into_iter())?);
    }
    if part.under("named").is_some() || part.under("unnamed").is_some() {
        make.search(named::weight(arguments), facts.task)?;
        let found = named::named(fields, arguments, facts.task, &|| today.date());
        add("named", make.texts(found.named.into_iter())?);
        add("unnamed", make.texts(found.unnamed.into_iter())?);
    }
    if part.under("capabilities").is_some() {
        add("capabilities", make.texts(facts.capabilities.iter())?);
    }
    if part.under("contacts").is_some() {
        add("contacts", facts.contacts.value());
    }
    if let Some(part) = part.under("time") {
        add("time", time(facts, &today, part)?);
    }
    for (name, text) in [("agent", facts.agent), ("role", facts.role), ("user", facts.user)] {
        if part.under(name).is_some() {
            add(name, make.text(text)?);
        }
    }
    Ok(engine::context(pairs))
}

fn task(task: &Literals, part: &Part, today: impl FnOnce() -> Date) -> Cedar {
    let known = looked_at(part).map(|(name, _)| (name, task.value(name)));
    let words = part.under("words").map(|_| ("words", task.value("words")));
    let dates = part.under("dates").map(|_| ("dates", dates(task.sets(), today())));
    engine::record(known.chain(words).chain(dates))
}

/// The kinds of literals that are looked at, and are the same every day.
fn looked_at(part: &Part) -> impl Iterator<Item = (&'static str, Kind)> {
    let lasting = KINDS.into_iter().filter(|it| it.1 != Kind::Dates);
    lasting.filter(|it| part.under(it.0).is_some())
}

fn dates(sets: &Sets, today: Date) -> Cedar {
    engine::set(sets.dates.iter().flat_map(|it| it.dates(today)).map(|it| engine::text(&it)))
}

fn time(facts: &Facts<'_>, today: &Zoned, part: &Part) -> Result<Cedar, String> {
    let mut pairs = Vec::new();
    for (name, number) in [
        ("hour", today.hour()),
        ("minute", today.minute()),
        ("weekday", today.weekday().to_monday_one_offset()),
    ] {
        if part.under(name).is_some() {
            pairs.push((name, engine::long(number.into())));
        }
    }
    if part.under("now").is_some() {
        let now = facts.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        pairs.push(("now", engine::datetime(&now)?));
    }
    if part.under("date").is_some() {
        pairs.push(("date", engine::text(&today.date().to_string())));
    }
    Ok(engine::record(pairs))
}

struct Make {
    values: usize,
    bytes: usize,
}

impl Make {
    fn spend(&mut self, values: usize, bytes: usize) -> Result<(), String> {
        let left = (self.values.checked_sub(values), self.bytes.checked_sub(bytes));
        let (Some(values), Some(bytes)) = left else {
            return Err(format!(
                "they are more than rules look at: {VALUES_MAX} values and {BYTES_MAX} bytes of text"
            ));
        };
        (self.values, self.bytes) = (values, bytes);
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<Cedar, String> {
        self.spend(1, text.len())?;
        Ok(engine::text(text))
    }

    fn texts(&mut self, texts: impl Iterator<Item = impl AsRef<str>>) -> Result<Cedar, String> {
        let texts: Result<Vec<Cedar>, String> =
            texts.map(|text| self.text(text.as_ref())).collect();
        Ok(engine::set(texts?))
    }

    fn record(
        &mut self,
        fields: &Fields,
        values: &Map<String, Value>,
        part: &Part,
    ) -> Result<Cedar, String> {
        let mut pairs = Vec::new();
        for (name, field) in &fields.0 {
            let Some(part) = part.under(name) else { continue };
            match values.get(&field.argument) {
                None | Some(Value::Null) if !field.required => {}
                None => return Err(format!("`{}` is missing", field.argument)),
                Some(value) => {
                    let built = self.value(field, value, part)?;
                    pairs.push((&**name, built));
                }
            }
        }
        Ok(engine::record(pairs))
    }

    fn value(&mut self, field: &Field, value: &Value, part: &Part) -> Result<Cedar, String> {
        let unfit = || format!("`{}` is not what the schema of the tool says", field.argument);
        match (&field.shape, value) {
            (Shape::One(of), value) => self.scalar(*of, value, &field.argument),
            (Shape::Many(of), Value::Array(items)) => {
                let items: Result<Vec<_>, _> =
                    items.iter().map(|it| self.scalar(*of, it, &field.argument)).collect();
                Ok(engine::set(items?))
            }
            (Shape::Many(of), value) => {
                Ok(engine::set([self.scalar(*of, value, &field.argument)?]))
            }
            (Shape::Record(fields), Value::Object(values)) => self.record(fields, values, part),
            (Shape::Rows(columns), Value::Array(rows)) => self.rows(columns, rows, part),
            (Shape::Json, value) => self.json(value),
            (Shape::Record(_) | Shape::Rows(_), _) => Err(unfit()),
        }
    }

    fn rows(&mut self, columns: &Fields, rows: &[Value], part: &Part) -> Result<Cedar, String> {
        let mut pairs = Vec::new();
        for (name, column) in &columns.0 {
            if part.under(name).is_none() {
                continue;
            }
            let mut cells = Vec::new();
            for row in rows {
                let Value::Object(row) = row else {
                    return Err("an array of objects holds something else".to_owned());
                };
                match (row.get(&column.argument), &column.shape) {
                    (None | Some(Value::Null), _) => {}
                    (Some(Value::Array(items)), Shape::Many(of)) => {
                        for it in items {
                            cells.push(self.scalar(*of, it, &column.argument)?);
                        }
                    }
                    (Some(value), Shape::One(of) | Shape::Many(of)) => {
                        cells.push(self.scalar(*of, value, &column.argument)?);
                    }
                    (Some(value), _) => cells.push(self.json(value)?),
                }
            }
            pairs.push((&**name, engine::set(cells)));
        }
        Ok(engine::record(pairs))
    }

    fn scalar(&mut self, of: Scalar, value: &Value, argument: &str) -> Result<Cedar, String> {
        self.spend(1, 0)?;
        let built = match (of, value) {
            (Scalar::Text, Value::String(text)) => {
                self.spend(0, text.len())?;
                Some(engine::text(text))
            }
            (Scalar::Bool, Value::Bool(it)) => Some(engine::bool(*it)),
            (Scalar::Long, value) => whole(value).map(engine::long),
            (Scalar::Decimal, value) => decimal(value).and_then(|it| engine::decimal(&it).ok()),
            _ => None,
        };
        built.ok_or_else(|| match (of, value) {
            (Scalar::Long | Scalar::Decimal, Value::Number(it)) => {
                format!("`{argument}` is {it}, beyond the numbers of rules")
            }
            _ => format!("`{argument}` is not what the schema of the tool says"),
        })
    }

    fn json(&mut self, value: &Value) -> Result<Cedar, String> {
        let text = serde_json_canonicalizer::to_string(value).map_err(|it| it.to_string())?;
        self.text(&text)
    }

    /// The literals in the arguments themselves, of the kinds that are looked at.
    fn found(&mut self, arguments: &Map<String, Value>, part: &Part) -> Result<Sets, String> {
        let mut kinds: Vec<Kind> =
            KINDS.into_iter().filter(|it| part.under(it.0).is_some()).map(|it| it.1).collect();
        kinds.dedup();
        let mut sets = Sets::default();
        let mut texts = Vec::new();
        for (name, value) in arguments {
            texts.push(&**name);
            texts_in(value, Keys::Too, &mut texts);
        }
        self.spend(texts.len(), texts.iter().map(|it| it.len()).sum())?;
        for text in texts {
            for kind in &kinds {
                sets.read(text, *kind, Side::Arguments);
            }
        }
        // What was not kept could not be held against what was said.
        if sets.full {
            return Err("they hold more literals than rules look at".to_owned());
        }
        Ok(sets)
    }

    /// Looking for so many texts in the person's words.
    fn search(&mut self, texts: usize, task: &Literals) -> Result<(), String> {
        self.spend(texts, 0)?;
        if texts.saturating_mul(task.weight()) > SEARCHED_MAX {
            return Err("they are too many texts to look for in the person's words".to_owned());
        }
        Ok(())
    }

    /// The texts among the arguments that the person wrote too.
    fn said<'a>(
        &mut self,
        arguments: &'a Map<String, Value>,
        task: &Literals,
    ) -> Result<BTreeSet<&'a str>, String> {
        let mut texts = Vec::new();
        arguments.values().for_each(|it| texts_in(it, Keys::No, &mut texts));
        self.search(texts.len(), task)?;
        Ok(texts.into_iter().filter(|it| task.says(it)).collect())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    Too,
    No,
}

fn texts_in<'a>(value: &'a Value, keys: Keys, into: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|it| texts_in(it, keys, into)),
        Value::Object(fields) => {
            for (name, value) in fields {
                if keys == Keys::Too {
                    into.push(name);
                }
                texts_in(value, keys, into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The arguments that the schema does not name, with the path to each.
fn unnamed(fields: &Fields, values: &Map<String, Value>, above: &str, into: &mut Vec<String>) {
    for (name, value) in values {
        match fields.by_argument(name).map(|it| &it.shape) {
            None => into.push(format!("{above}{name}")),
            Some(Shape::Record(fields)) => {
                if let Value::Object(values) = value {
                    unnamed(fields, values, &format!("{above}{name}."), into);
                }
            }
            Some(Shape::Rows(columns)) => {
                for row in value.as_array().into_iter().flatten().filter_map(Value::as_object) {
                    unnamed(columns, row, &format!("{above}{name}."), into);
                }
            }
            Some(Shape::One(_) | Shape::Many(_) | Shape::Json) => {}
        }
    }
}
