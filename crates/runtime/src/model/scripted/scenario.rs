//! A scenario as it is written, and checked: everything that is wrong with a file is said when
//! it is read, not in the middle of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ScenarioError;

/// A longer pause is a typing error, or a test that nobody will wait for.
const DELAY_MAX_MS: u64 = 60_000;

#[derive(Debug)]
pub(super) struct Scenario {
    languages: Vec<String>,
    agents: BTreeMap<String, Vec<Entry>>,
    pub(super) fallback: Words,
    pub(super) delay: Duration,
    pub(super) suggestions: Vec<Suggestion>,
}

/// Something that the scenario has lines for: whom to ask, and in which words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suggestion {
    pub agent: String,
    pub project: Option<String>,
    text: Words,
}

impl Suggestion {
    pub fn text(&self, language: &str) -> &str {
        self.text.in_language(language)
    }
}

/// One thing to say or do.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) when: When,
    pub(super) say: Option<Words>,
    pub(super) calls: Vec<ScriptedCall>,
    /// How often in a run.
    pub(super) repeat: u32,
    pub(super) delay: Option<Duration>,
    expect: Option<Expect>,
}

/// What should come of the calls of an entry, for `chancery test`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Expect {
    /// `expect: allow`
    Allow,
    /// `expect: ask`: a person is asked.
    Ask,
    /// `expect: deny`, whatever the reason.
    Deny,
    /// `expect: {denied: RULE}`: for that reason.
    Denied(String),
}

/// One call of a scenario, and what should come of it.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'s> {
    /// As the scenario names it: `backend_worker`, or `pa/lin` for someone's.
    pub agent: &'s str,
    /// Which of its entries, from 1.
    pub entry: usize,
    pub tool: &'s str,
    pub arguments: &'s Map<String, Value>,
    pub expect: Option<&'s Expect>,
}

/// Without any of them it always holds.
#[derive(Debug, Default)]
pub(super) struct When {
    pub(super) user_matches: Option<Regex>,
    pub(super) tool_result: Option<String>,
    pub(super) result_matches: Option<Regex>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptedCall {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) args: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text, or one for each language as in `{en: …, zh: …}`")]
pub(super) enum Words {
    One(String),
    ByLanguage(BTreeMap<String, String>),
}

impl Words {
    /// In that language, or whatever there is: better the wrong language than no word.
    pub(super) fn in_language(&self, language: &str) -> &str {
        match self {
            Words::One(text) => text,
            Words::ByLanguage(texts) => texts
                .get(language)
                .or_else(|| texts.values().next())
                .map(String::as_str)
                .unwrap_or_default(),
        }
    }
}

impl Scenario {
    pub(super) fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let file: File =
            serde_saphyr::from_str(text).map_err(|it| ScenarioError::Syntax(it.to_string()))?;
        let mut agents = BTreeMap::new();
        for (agent, written) in file.agents {
            let mut entries = Vec::with_capacity(written.len());
            for (at, entry) in written.into_iter().enumerate() {
                let entry = entry.checked().map_err(|detail| ScenarioError::Entry {
                    agent: agent.clone(),
                    number: at + 1,
                    detail,
                })?;
                entries.push(entry);
            }
            agents.insert(agent, entries);
        }
        let languages = match file.lang {
            None => Vec::new(),
            Some(Languages::One(language)) => vec![language],
            Some(Languages::Many(languages)) => languages,
        };
        let delay = delay(file.delay_ms).map_err(ScenarioError::Syntax)?.unwrap_or_default();
        let File { fallback, suggestions, .. } = file;
        Ok(Scenario { languages, agents, fallback, delay, suggestions })
    }

    pub(super) fn expected(&self) -> impl Iterator<Item = Expected<'_>> {
        let entries = self.agents.iter().flat_map(|(agent, entries)| {
            entries.iter().zip(1..).map(move |(it, number)| (agent, number, it))
        });
        entries.flat_map(|(agent, entry, it)| {
            it.calls.iter().map(move |call| Expected {
                agent,
                entry,
                tool: &call.tool,
                arguments: &call.args,
                expect: it.expect.as_ref(),
            })
        })
    }

    /// The lines written for an agent by its id, for someone in its office (`pa/lin` for `pa`),
    /// or for whoever has none.
    pub(super) fn entries_of(&self, agent: &str) -> &[Entry] {
        let in_office = || {
            let mut offices = self.agents.iter();
            let found =
                offices.find(|(key, _)| key.split_once('/').is_some_and(|it| it.0 == agent));
            found.map(|(_, entries)| entries)
        };
        self.agents
            .get(agent)
            .or_else(in_office)
            .or_else(|| self.agents.get("*"))
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Chinese to whoever writes Chinese, otherwise the first language of the scenario.
    pub(super) fn language(&self, input: &str) -> &str {
        let speaks =
            |language| self.languages.is_empty() || self.languages.iter().any(|it| it == language);
        let is_han =
            |letter: char| matches!(letter, '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{323af}');
        if speaks("zh") && input.chars().any(is_han) {
            return "zh";
        }
        self.languages.first().map_or("en", String::as_str)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    lang: Option<Languages>,
    #[serde(default)]
    agents: BTreeMap<String, Vec<Written>>,
    #[serde(default = "no_lines")]
    fallback: Words,
    delay_ms: Option<u64>,
    #[serde(default)]
    suggestions: Vec<Suggestion>,
}

fn no_lines() -> Words {
    Words::One("I am the scripted model and have no lines left.".to_owned())
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a language or a list of them, as in `[en, zh]`")]
enum Languages {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    when: Option<WrittenWhen>,
    say: Option<Words>,
    call: Option<ScriptedCall>,
    calls: Option<Vec<ScriptedCall>>,
    /// For `chancery test`: what should come of it.
    expect: Option<Expect>,
    repeat: Option<u32>,
    delay_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWhen {
    user_matches: Option<String>,
    tool_result: Option<String>,
    /// What one of the results that came last must say.
    result_matches: Option<String>,
}

impl Written {
    fn checked(self) -> Result<Entry, String> {
        let calls = match (self.call, self.calls) {
            (Some(_), Some(_)) => return Err("has both `call` and `calls`".to_owned()),
            (Some(call), None) => vec![call],
            (None, calls) => calls.unwrap_or_default(),
        };
        if self.say.is_none() && calls.is_empty() {
            return Err("neither says nor calls anything".to_owned());
        }
        let repeat = self.repeat.unwrap_or(1);
        if repeat == 0 {
            return Err("would never be used: `repeat` is 0".to_owned());
        }
        let when = match self.when {
            None => When::default(),
            Some(when) => When {
                user_matches: when.user_matches.map(|it| pattern("user", &it)).transpose()?,
                tool_result: when.tool_result,
                result_matches: when.result_matches.map(|it| pattern("result", &it)).transpose()?,
            },
        };
        if self.expect.is_some() && calls.is_empty() {
            return Err("expects something of no call".to_owned());
        }
        let delay = delay(self.delay_ms)?;
        Ok(Entry { when, say: self.say, calls, repeat, delay, expect: self.expect })
    }
}

fn pattern(of: &str, text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|it| format!("has a `{of}_matches` that is no pattern: {it}"))
}

fn delay(millis: Option<u64>) -> Result<Option<Duration>, String> {
    match millis {
        Some(millis) if millis > DELAY_MAX_MS => {
            Err(format!("`delay_ms` is {millis}, more than {DELAY_MAX_MS}"))
        }
        millis => Ok(millis.map(Duration::from_millis)),
    }
}
