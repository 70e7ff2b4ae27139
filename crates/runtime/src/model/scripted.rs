//! A model that reads its lines from a scenario: for demos, for tests, and for `chancery test`.
//! What it answers is a function of the conversation alone, so that a replay gives the same. It
//! never claims to understand anything.

mod scenario;
mod template;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use chancery_domain::event::Usage;

use self::scenario::{Entry, Scenario, When};
pub use self::scenario::{Expect, Expected, Suggestion};
use self::template::Facts;
use super::calls::tell_apart;
use super::{Message, Model, ModelError, RawCall, Reply, Request};

/// What it answers for whoever gave it no scenario.
const DEFAULT: &str = r#"
lang: [en, zh]
agents:
  # What the first visit practises on.
  pa:
    - when: {user_matches: "(Write a note that says|写一条便签)"}
      call: {tool: write_note, args: {title: First note, content: "{{input}}"}}
    - when: {tool_result: write_note, result_matches: "(denied|not carried out)"}
      say: {en: "It was not to be, so nothing is written.", zh: 既然不允许，就什么也没有写。}
    - when: {tool_result: write_note}
      say: {en: The note is written., zh: 便签已写好。}
fallback:
  en: I am the scripted model and have no lines for this. Give me a scenario, or connect a real model.
  zh: 我是脚本模型，这里没有我的台词。请给我一个场景文件，或者连接一个真正的模型。
"#;

#[derive(Debug)]
pub struct ScriptedModel {
    /// As replies name it: everyone shall see that nobody is thinking here.
    name: String,
    scenario: Scenario,
}

#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("cannot read the scenario `{}`", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// With the line, and a caret where it went wrong.
    #[error("the scenario cannot be read: {0}")]
    Syntax(String),
    #[error("entry {number} of agent `{agent}` {detail}")]
    Entry { agent: String, number: usize, detail: String },
    #[error("in the scenario `{}`", path.display())]
    In { path: PathBuf, source: Box<ScenarioError> },
}

impl ScriptedModel {
    pub fn parse(text: &str) -> Result<ScriptedModel, ScenarioError> {
        Ok(ScriptedModel { name: "scripted".to_owned(), scenario: Scenario::parse(text)? })
    }

    /// Named after its file: `pricing.yaml` answers as `scripted/pricing`.
    pub fn load(path: &Path) -> Result<ScriptedModel, ScenarioError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        let model = ScriptedModel::parse(&text).map_err(|source| ScenarioError::In {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(ScriptedModel { name: format!("scripted/{stem}"), ..model })
    }

    /// With no lines but the one that says so.
    pub fn without_scenario() -> Result<ScriptedModel, ScenarioError> {
        ScriptedModel::parse(DEFAULT)
    }

    /// What it would call, and what should come of it.
    pub fn expected(&self) -> impl Iterator<Item = Expected<'_>> {
        self.scenario.expected()
    }

    fn reply(&self, request: &Request<'_>, entry: Option<&Entry>) -> Reply {
        let facts = Facts::of(request.messages);
        let language = self.scenario.language(facts.input);
        let words = match entry {
            Some(entry) => entry.say.as_ref(),
            None => Some(&self.scenario.fallback),
        };
        let text = words.map(|it| facts.fill(it.in_language(language))).unwrap_or_default();
        let mut calls: Vec<RawCall> = entry
            .into_iter()
            .flat_map(|it| &it.calls)
            .map(|it| RawCall {
                id: String::new(),
                tool: it.tool.clone(),
                arguments: facts.fill_all(&it.args).to_string(),
            })
            .collect();
        tell_apart(&mut calls, request.messages);
        let usage = Usage {
            input_tokens: words_in(request.system) + request.messages.iter().map(size).sum::<u64>(),
            output_tokens: words_in(&text)
                + calls.iter().map(|it| words_in(&it.arguments)).sum::<u64>(),
            ..Usage::default()
        };
        Reply { text, calls, usage, model: self.name.clone() }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        let entries = self.scenario.entries_of(request.agent.as_str());
        let entry = next_entry(entries, request.messages);
        let delay = entry.and_then(|it| it.delay).unwrap_or(self.scenario.delay);
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        Ok(self.reply(&request, entry))
    }

    fn suggestions(&self) -> &[Suggestion] {
        &self.scenario.suggestions
    }
}

/// Walks the conversation from its start: every answer in it has used up an entry, the one that
/// was the first to fit at that point.
fn next_entry<'s>(entries: &'s [Entry], messages: &[Message]) -> Option<&'s Entry> {
    let mut left: Vec<u32> = entries.iter().map(|it| it.repeat).collect();
    let mut pick = |before: &[Message]| {
        let moment = Moment::of(before);
        let chosen =
            (0..entries.len()).find(|at| left[*at] > 0 && moment.fits(&entries[*at].when))?;
        left[chosen] -= 1;
        Some(&entries[chosen])
    };
    for (at, message) in messages.iter().enumerate() {
        if matches!(message, Message::Assistant { .. }) {
            pick(&messages[..at]);
        }
    }
    pick(messages)
}

/// What an entry's `when` can ask about, at one point of a conversation.
#[derive(Debug, Default)]
struct Moment<'a> {
    last_user_text: Option<&'a str>,
    /// The tools whose results came since the last answer, and what these say.
    fresh_results: Vec<&'a str>,
    fresh_texts: Vec<&'a str>,
}

impl<'a> Moment<'a> {
    fn of(messages: &'a [Message]) -> Moment<'a> {
        let mut moment = Moment::default();
        let mut tools = BTreeMap::new();
        for message in messages {
            match message {
                Message::User { text } => moment.last_user_text = Some(text),
                Message::Assistant { calls, .. } => {
                    moment.fresh_results.clear();
                    moment.fresh_texts.clear();
                    tools = calls.iter().map(|it| (&it.id, it.tool.as_str())).collect();
                }
                Message::Tool { call, result } => {
                    moment.fresh_results.extend(tools.get(call).copied());
                    moment.fresh_texts.push(&result.text);
                }
            }
        }
        moment
    }

    fn fits(&self, when: &When) -> bool {
        let user = when
            .user_matches
            .as_ref()
            .is_none_or(|pattern| self.last_user_text.is_some_and(|text| pattern.is_match(text)));
        let tool = when
            .tool_result
            .as_ref()
            .is_none_or(|tool| self.fresh_results.contains(&tool.as_str()));
        let result = when
            .result_matches
            .as_ref()
            .is_none_or(|pattern| self.fresh_texts.iter().any(|text| pattern.is_match(text)));
        user && tool && result
    }
}

fn size(message: &Message) -> u64 {
    match message {
        Message::User { text } => words_in(text),
        Message::Assistant { text, calls } => {
            words_in(text) + calls.iter().map(|it| words_in(&it.arguments.to_string())).sum::<u64>()
        }
        Message::Tool { result, .. } => words_in(&result.text),
    }
}

/// Roughly what a tokenizer would count, and good enough to see budgets at work.
fn words_in(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

#[cfg(test)]
mod tests;
