//! The blanks in a scenario's lines: `{{input}}`, `{{result}}` and `{{result.a.b}}`. Filled in
//! once: what is filled in is never read for blanks again.

use serde_json::{Map, Value};

use crate::model::Message;

/// What the blanks are filled with.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    /// The first thing that the user said.
    pub(super) input: &'a str,
    /// The text of the last result.
    result: &'a str,
    /// The same, if it is JSON.
    parsed: Option<Value>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(messages: &'a [Message]) -> Facts<'a> {
        let input = messages.iter().find_map(|it| match it {
            Message::User { text } => Some(text.as_str()),
            Message::Assistant { .. } | Message::Tool { .. } => None,
        });
        let result = messages.iter().rev().find_map(|it| match it {
            Message::Tool { result, .. } => Some(result.text.as_str()),
            Message::User { .. } | Message::Assistant { .. } => None,
        });
        let result = result.unwrap_or_default();
        Facts {
            input: input.unwrap_or_default(),
            result,
            parsed: serde_json::from_str(result).ok(),
        }
    }

    /// Braces around anything else are left alone: they may be meant for a tool.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            filled.push_str(&rest[..open]);
            let inner = &rest[open + 2..];
            let found = inner
                .find("}}")
                .and_then(|close| Some((self.value(inner[..close].trim())?, &inner[close + 2..])));
            match found {
                Some((value, after)) => {
                    filled.push_str(&value);
                    rest = after;
                }
                None => {
                    filled.push_str("{{");
                    rest = inner;
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// Every string in the arguments, however deep.
    pub(super) fn fill_all(&self, arguments: &Map<String, Value>) -> Value {
        let filled = arguments.iter().map(|(key, value)| (key.clone(), self.fill_value(value)));
        Value::Object(filled.collect())
    }

    fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|it| self.fill_value(it)).collect(),
            Value::Object(fields) => self.fill_all(fields),
            other => other.clone(),
        }
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "input" => Some(self.input.to_owned()),
            "result" => Some(self.result.to_owned()),
            _ => {
                let path = name.strip_prefix("result.")?;
                // Said aloud, so that whoever wrote the scenario sees what it hoped for.
                let missing = || format!("[no {name}]");
                Some(self.at(path).unwrap_or_else(missing))
            }
        }
    }

    fn at(&self, path: &str) -> Option<String> {
        let found = path.split('.').try_fold(self.parsed.as_ref()?, |value, step| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            value => value.get(step),
        })?;
        Some(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
    }
}
