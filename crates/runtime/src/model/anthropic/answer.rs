//! Blocks of a message, put together. Never looks into the arguments of a call.

use chancery_domain::event::Usage;
use serde_json::Value;

use crate::model::calls::Calls;
use crate::model::exchange::{Progress, Reading, unreadable};
use crate::model::fault::Fault;
use crate::model::{Message, Reply, sse};

#[derive(Debug)]
pub(super) struct Answer<'a> {
    earlier: &'a [Message],
    text: String,
    calls: Calls,
    usage: Usage,
    model: String,
    stop_reason: Option<String>,
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
            stop_reason: None,
            done: false,
        }
    }

    /// A `message`: the whole of it, or its head at the start of a stream.
    fn message(&mut self, message: &Value) -> Result<(), Fault> {
        if let Some(model) = message["model"].as_str().filter(|it| !it.is_empty()) {
            model.clone_into(&mut self.model);
        }
        for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            self.block(index as u64, block)?;
        }
        self.end(message, &message["usage"]);
        Ok(())
    }

    fn block(&mut self, index: u64, block: &Value) -> Result<(), Fault> {
        match block["type"].as_str() {
            Some("text") => self.text.push_str(block["text"].as_str().unwrap_or_default()),
            Some("tool_use") => {
                let call = self.calls.begin(Some(index))?;
                block["id"].as_str().unwrap_or_default().clone_into(&mut call.id);
                block["name"].as_str().unwrap_or_default().clone_into(&mut call.tool);
                // In a stream the input begins as an empty object and comes in fragments.
                if block["input"].as_object().is_some_and(|it| !it.is_empty()) {
                    call.arguments = block["input"].to_string();
                }
            }
            // Thinking, or something newer: not part of what is said or done.
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value) -> Result<(), Fault> {
        match delta["type"].as_str() {
            Some("text_delta") => self.text.push_str(delta["text"].as_str().unwrap_or_default()),
            Some("input_json_delta") => {
                let call = self.calls.latest(|it| it.index == Some(index)).ok_or_else(|| {
                    Fault::Malformed(format!("arguments for block {index}, which is no call"))
                })?;
                call.arguments.push_str(delta["partial_json"].as_str().unwrap_or_default());
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts are totals so far: the last ones hold. What came from a cache was read, too.
    fn end(&mut self, holder: &Value, usage: &Value) {
        if let Some(reason) = holder["stop_reason"].as_str() {
            self.stop_reason = Some(reason.to_owned());
        }
        if let Some(input) = usage["input_tokens"].as_u64() {
            let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
            let cached: u64 = cached.iter().filter_map(|name| usage[*name].as_u64()).sum();
            self.usage.input_tokens = input + cached;
        }
        if let Some(output) = usage["output_tokens"].as_u64() {
            self.usage.output_tokens = output;
        }
    }
}

impl Reading for Answer<'_> {
    type Whole = Reply;

    fn event(&mut self, event: &sse::Event) -> Result<Progress, Fault> {
        let data: Value = serde_json::from_str(&event.data)
            .map_err(|it| unreadable(&it, event.data.as_bytes()))?;
        let index = data["index"].as_u64().unwrap_or_default();
        match data["type"].as_str() {
            Some("message_start") => self.message(&data["message"])?,
            Some("content_block_start") => self.block(index, &data["content_block"])?,
            Some("content_block_delta") => self.delta(index, &data["delta"])?,
            Some("message_delta") => self.end(&data["delta"], &data["usage"]),
            Some("message_stop") => {
                self.done = true;
                return Ok(Progress::Done);
            }
            Some("error") => return Err(Fault::of_error(&data["error"])),
            // Pings, ends of blocks, and what may be added: the API asks clients to pass over it.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn document(&mut self, document: &Value) -> Result<(), Fault> {
        if document["type"] == "error" {
            return Err(Fault::of_error(&document["error"]));
        }
        if !document["content"].is_array() {
            return Err(Fault::Malformed(format!("a message without content: {document}")));
        }
        self.done = true;
        self.message(document)
    }

    fn is_complete(&self) -> bool {
        self.done || self.stop_reason.is_some()
    }

    fn whole(self) -> Result<Reply, Fault> {
        if self.text.is_empty() && self.calls.is_empty() {
            match self.stop_reason.as_deref() {
                Some("refusal") => {
                    return Err(Fault::Refused("the model declined to answer".to_owned()));
                }
                Some("max_tokens" | "model_context_window_exceeded") => {
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
