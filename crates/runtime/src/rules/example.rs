//! Examples that a rule carries: calls that it must match, and calls that it must not. YAML in
//! the annotations `@matches` and `@matches_not`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::literals::{Contacts, Literals};
use super::schema::Catalogue;
use super::{Facts, Governed, Rule, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Match,
    None,
}

/// A call, as an operator writes it down.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Example {
    tool: Option<String>,
    #[serde(default)]
    input: Map<String, Value>,
    words: Option<Words>,
    #[serde(default)]
    contacts: Vec<String>,
    #[serde(default)]
    capabilities: Vec<String>,
    time: Option<String>,
    agent: Option<String>,
    role: Option<String>,
    user: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Many(Vec<String>),
}

/// What an annotation of this name expects, if it is an example.
pub(super) fn expected(annotation: &str) -> Option<Expected> {
    let numbered = |rest: &str| rest.is_empty() || rest.starts_with('_');
    match annotation.strip_prefix("matches") {
        Some(rest) if rest.strip_prefix("_not").is_some_and(numbered) => Some(Expected::None),
        Some(rest) if numbered(rest) => Some(Expected::Match),
        _ => None,
    }
}

impl Example {
    pub fn read(text: &str) -> Result<Example, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }

    /// Plays the call against the rule alone; says what is wrong if it does not do as expected.
    pub fn check(
        &self,
        expected: Expected,
        rule: &std::sync::Arc<Rule>,
        on: &[&str],
        tools: &Catalogue,
    ) -> Result<(), String> {
        let tool = match (&self.tool, on) {
            (Some(tool), _) if on.contains(&tool.as_str()) => tool.as_str(),
            (Some(tool), _) => return Err(format!("the rule is not on the tool `{tool}`")),
            (None, [one]) => one,
            (None, _) => return Err("the rule is on several tools: say `tool: …`".to_owned()),
        };
        let fields = tools.get(tool).ok_or_else(|| format!("there is no tool `{tool}`"))?;
        if let Some(name) = self.input.keys().find(|name| !fields.shows(name)) {
            return Err(format!("`{tool}` has no argument `{name}`"));
        }
        let mut governed = Governed::new(tool, super::schema::group(tool), fields.clone().into());
        governed.add(rule.clone());
        let words = match &self.words {
            None => &[][..],
            Some(Words::One(one)) => std::slice::from_ref(one),
            Some(Words::Many(many)) => many,
        };
        let (now, zone) = self.time.as_deref().map_or(Ok((NOON, TimeZone::UTC)), time)?;
        let facts = Facts {
            agent: self.agent.as_deref().unwrap_or("agent"),
            role: self.role.as_deref().unwrap_or("role"),
            user: self.user.as_deref().unwrap_or("user"),
            tool,
            capabilities: &self.capabilities,
            arguments: &Value::Object(self.input.clone()),
            task: &Literals::of(words.iter().map(String::as_str)),
            contacts: &Contacts::of(&self.contacts),
            now,
            zone: &zone,
        };
        match (expected, governed.words(&facts)?.as_slice()) {
            (_, [(_, Word::Errs(why))]) => Err(format!("the rule errs on it: {why}")),
            (Expected::Match, []) => Err("the rule does not match it".to_owned()),
            (Expected::None, [_, ..]) => Err("the rule matches it".to_owned()),
            (Expected::Match, [_, ..]) | (Expected::None, []) => Ok(()),
        }
    }
}

/// A Monday at noon.
const NOON: Timestamp = Timestamp::constant(1_767_614_400, 0);

/// A time with its zone or offset, or without: then it is UTC.
fn time(text: &str) -> Result<(Timestamp, TimeZone), String> {
    if let Ok(zoned) = text.parse::<jiff::Zoned>() {
        return Ok((zoned.timestamp(), zoned.time_zone().clone()));
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok((timestamp, TimeZone::UTC));
    }
    let plain: DateTime = text.parse().map_err(|_| format!("`{text}` is no time"))?;
    let zoned = plain.to_zoned(TimeZone::UTC).map_err(|error| error.to_string())?;
    Ok((zoned.timestamp(), TimeZone::UTC))
}
