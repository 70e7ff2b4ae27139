//! Chunks of a completion, put together. Never looks into the arguments of a call.

use chancery_domain::event::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::model::calls::Calls;
use crate::model::exchange::{Progress, Reading, unreadable};
use crate::model::fault::Fault;
use crate::model::{Message, RawCall, Reply, sse};

#[derive(Debug)]
pub(super) struct Answer<'a> {
    earlier: &'a [Message],
    text: String,
    calls: Calls,
    usage: Usage,
    model: String,
    finish_reason: Option<String>,
    done: bool,
}

impl<'a> Answer<'a> {
    pub(super) fn new(model: &str, earlier: &'a [Message]) -> Answer<'a> {
        Answer {
            earlier,
            text: String::new(),
            calls: Calls::default(),
            usage: Usage::default(),
            model: model.to_owned(),
            finish_reason: None,
            done: false,
        }
    }

    fn chunk(&mut self, chunk: Chunk) -> Result<(), Fault> {
        if let Some(error) = chunk.error {
            return Err(Fault::of_error(&error));
        }
        if let Some(model) = chunk.model.filter(|it| !it.is_empty()) {
            self.model = model;
        }
        if let Some(usage) = chunk.usage {
            let count = |name| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
            self.usage = Usage {
                input_tokens: count("prompt_tokens"),
                output_tokens: count("completion_tokens"),
                ..Usage::default()
            };
        }
        // We ask for one answer; whoever gives more is heard only to the first.
        let choices = chunk.choices.unwrap_or_default();
        for choice in choices.into_iter().filter(|it| it.index.unwrap_or(0) == 0) {
            if let Some(delta) = choice.delta.or(choice.message) {
                self.delta(delta)?;
            }
            // Some write an empty one until there is one.
            if let Some(reason) = choice.finish_reason.filter(|it| !it.is_empty()) {
                self.finish_reason = Some(reason);
            }
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta) -> Result<(), Fault> {
        for content in [delta.content, delta.refusal].into_iter().flatten() {
            push_text(&mut self.text, &content);
        }
        for fragment in delta.tool_calls.unwrap_or_default() {
            let function = fragment.function.unwrap_or_default();
            let id = fragment.id.unwrap_or_default();
            let name = function.name.unwrap_or_default();
            let call = call_of(&mut self.calls, fragment.index, &id, &name)?;
            if call.id.is_empty() {
                call.id = id;
            }
            if call.tool.is_empty() {
                call.tool = name;
            }
            match function.arguments {
                None | Some(Value::Null) => {}
                Some(Value::String(piece)) => call.arguments.push_str(&piece),
                // Not text but the thing itself: whole, then.
                Some(whole) => call.arguments = whole.to_string(),
            }
        }
        Ok(())
    }
}

/// Which call a fragment belongs to. By the protocol its index says so; some servers leave it
/// out, and some number every call 0 and tell them apart by their ids.
fn call_of<'c>(
    calls: &'c mut Calls,
    index: Option<u64>,
    id: &str,
    name: &str,
) -> Result<&'c mut RawCall, Fault> {
    let known = match index {
        Some(_) => calls
            .latest(|it| it.index == index)
            .is_some_and(|call| id.is_empty() || call.id.is_empty() || call.id == id),
        None if !id.is_empty() => calls.latest(|it| it.call.id == id).is_some(),
        None => name.is_empty() && !calls.is_empty(),
    };
    if !known {
        return calls.begin(index);
    }
    let by_id = index.is_none() && !id.is_empty();
    let found = calls.latest(|it| match by_id {
        true => it.call.id == id,
        false => index.is_none() || it.index == index,
    });
    found.ok_or_else(|| Fault::Malformed("a fragment of no call".to_owned()))
}

impl Reading for Answer<'_> {
    type Whole = Reply;

    fn event(&mut self, event: &sse::Event) -> Result<Progress, Fault> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(Progress::Done);
        }
        let chunk = serde_json::from_str(&event.data)
            .map_err(|it| unreadable(&it, event.data.as_bytes()))?;
        self.chunk(chunk)?;
        Ok(Progress::More)
    }

    fn document(&mut self, document: &Value) -> Result<(), Fault> {
        let chunk = Chunk::deserialize(document)
            .map_err(|it| unreadable(&it, document.to_string().as_bytes()))?;
        let is_answer =
            chunk.error.is_some() || chunk.choices.as_ref().is_some_and(|it| !it.is_empty());
        if !is_answer {
            return Err(Fault::Malformed(format!("a completion without choices: {document}")));
        }
        self.done = true;
        self.chunk(chunk)
    }

    fn is_complete(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    fn whole(self) -> Result<Reply, Fault> {
        if self.text.is_empty() && self.calls.is_empty() {
            match self.finish_reason.as_deref() {
                Some("content_filter") => {
                    return Err(Fault::Refused("the answer was withheld by a filter".to_owned()));
                }
                Some("length") => {
                    return Err(Fault::Refused(
                        "the token limit was reached before any words".to_owned(),
                    ));
                }
                _ => {}
            }
        }
        let calls = self.calls.finish(self.earlier)?;
        Ok(Reply { text: self.text, calls, usage: self.usage, model: self.model })
    }
}

/// Content is a text, or a list of parts of which some are texts.
fn push_text(text: &mut String, content: &Value) {
    match content {
        Value::String(piece) => text.push_str(piece),
        Value::Array(parts) => {
            parts.iter().filter_map(|it| it.get("text")?.as_str()).for_each(|it| text.push_str(it));
        }
        _ => {}
    }
}

/// A chunk of a stream (with `delta`), or a whole completion (with `message`).
#[derive(Debug, Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Value>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Delta>,
    message: Option<Delta>,
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Delta {
    content: Option<Value>,
    refusal: Option<Value>,
    tool_calls: Option<Vec<Fragment>>,
}

#[derive(Debug, Deserialize)]
struct Fragment {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Debug, Default, Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}
