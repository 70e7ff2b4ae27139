//! An answer in the words of each protocol, as the real servers write them.

use bytes::Bytes;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    ChatCompletions,
    Messages,
}

impl Protocol {
    pub(super) fn of_path(path: &str) -> Option<Protocol> {
        match path {
            _ if path.ends_with("/chat/completions") => Some(Protocol::ChatCompletions),
            _ if path.ends_with("/messages") => Some(Protocol::Messages),
            _ => None,
        }
    }
}

/// What a model says.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub text: String,
    pub calls: Vec<FakeCall>,
    pub model: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The text and the arguments are streamed in fragments of so many letters.
    pub fragment: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FakeCall {
    pub id: String,
    pub tool: String,
    pub arguments: String,
}

impl Answer {
    pub fn text(text: &str) -> Answer {
        Answer {
            text: text.to_owned(),
            calls: Vec::new(),
            model: "fake-1".to_owned(),
            input_tokens: 12,
            output_tokens: 7,
            fragment: 4,
        }
    }

    /// One call and no words. More are added by [`Answer::and_call`].
    pub fn call(tool: &str, arguments: &str) -> Answer {
        Answer::text("").and_call(tool, arguments)
    }

    /// Ids are `fake_1`, `fake_2` and so on.
    pub fn and_call(mut self, tool: &str, arguments: &str) -> Answer {
        let id = format!("fake_{}", self.calls.len() + 1);
        self.calls.push(FakeCall { id, tool: tool.to_owned(), arguments: arguments.to_owned() });
        self
    }

    /// Ids that are unique over many answers, for conversations of several turns.
    pub fn with_ids(mut self, prefix: &str) -> Answer {
        for (at, call) in self.calls.iter_mut().enumerate() {
            call.id = format!("{prefix}_{}", at + 1);
        }
        self
    }

    /// As a stream: one piece for each event.
    pub fn events(&self, protocol: Protocol) -> Vec<Bytes> {
        match protocol {
            Protocol::ChatCompletions => self.chat_chunks(),
            Protocol::Messages => self.message_events(),
        }
    }

    /// As one document.
    pub fn document(&self, protocol: Protocol) -> Value {
        match protocol {
            Protocol::ChatCompletions => self.completion(),
            Protocol::Messages => self.message(),
        }
    }

    fn completion(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text});
        if !self.calls.is_empty() {
            let call = |it: &FakeCall| {
                let function = json!({"name": it.tool, "arguments": it.arguments});
                json!({"id": it.id, "type": "function", "function": function})
            };
            message["tool_calls"] = self.calls.iter().map(call).collect();
        }
        json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason()}],
            "usage": self.chat_usage(),
        })
    }

    /// Fragments of parallel calls come in turns, each with the index of its call.
    fn chat_chunks(&self) -> Vec<Bytes> {
        let chunk = |delta: Value, reason: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
            json!({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
                "model": self.model, "choices": [choice], "usage": null,
            })
        };
        let mut chunks = vec![chunk(json!({"role": "assistant", "content": ""}), None)];
        for piece in fragments(&self.text, self.fragment) {
            chunks.push(chunk(json!({"content": piece}), None));
        }
        for (index, call) in self.calls.iter().enumerate() {
            let function = json!({"name": call.tool, "arguments": ""});
            let head =
                json!({"index": index, "id": call.id, "type": "function", "function": function});
            chunks.push(chunk(json!({"tool_calls": [head]}), None));
        }
        let mut pieces: Vec<_> = self
            .calls
            .iter()
            .map(|it| fragments(&it.arguments, self.fragment).into_iter())
            .collect();
        loop {
            let round: Vec<(usize, String)> = pieces
                .iter_mut()
                .enumerate()
                .filter_map(|(index, it)| Some((index, it.next()?)))
                .collect();
            if round.is_empty() {
                break;
            }
            for (index, piece) in round {
                let fragment = json!({"index": index, "function": {"arguments": piece}});
                chunks.push(chunk(json!({"tool_calls": [fragment]}), None));
            }
        }
        chunks.push(chunk(json!({}), Some(self.finish_reason())));
        chunks.push(json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
            "model": self.model, "choices": [], "usage": self.chat_usage(),
        }));
        let data = chunks.iter().map(|it| Bytes::from(format!("data: {it}\n\n")));
        data.chain([Bytes::from_static(b"data: [DONE]\n\n")]).collect()
    }

    fn finish_reason(&self) -> &'static str {
        if self.calls.is_empty() { "stop" } else { "tool_calls" }
    }

    fn chat_usage(&self) -> Value {
        json!({
            "prompt_tokens": self.input_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.input_tokens + self.output_tokens,
        })
    }

    fn message(&self) -> Value {
        let text = (!self.text.is_empty()).then(|| json!({"type": "text", "text": self.text}));
        let calls = self.calls.iter().map(|it| {
            // What is no JSON cannot be written into a document.
            let input: Value = serde_json::from_str(&it.arguments).unwrap_or_default();
            json!({"type": "tool_use", "id": it.id, "name": it.tool, "input": input})
        });
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
            "content": text.into_iter().chain(calls).collect::<Vec<_>>(),
            "stop_reason": self.stop_reason(), "stop_sequence": null,
            "usage": {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens},
        })
    }

    fn message_events(&self) -> Vec<Bytes> {
        let head = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": self.input_tokens, "output_tokens": 1},
        });
        let mut events =
            vec![json!({"type": "message_start", "message": head}), json!({"type": "ping"})];
        let mut index = 0;
        let mut block = |start: Value, deltas: Vec<Value>| {
            events.push(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            );
            for delta in deltas {
                events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            events.push(json!({"type": "content_block_stop", "index": index}));
            index += 1;
        };
        if !self.text.is_empty() {
            let delta = |text| json!({"type": "text_delta", "text": text});
            let deltas = fragments(&self.text, self.fragment).into_iter().map(delta).collect();
            block(json!({"type": "text", "text": ""}), deltas);
        }
        for call in &self.calls {
            let delta = |piece| json!({"type": "input_json_delta", "partial_json": piece});
            let deltas = fragments(&call.arguments, self.fragment).into_iter().map(delta).collect();
            block(
                json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": {}}),
                deltas,
            );
        }
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null},
            "usage": {"output_tokens": self.output_tokens},
        }));
        events.push(json!({"type": "message_stop"}));
        let kind = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
        events
            .iter()
            .map(|it| Bytes::from(format!("event: {}\ndata: {it}\n\n", kind(it))))
            .collect()
    }

    fn stop_reason(&self) -> &'static str {
        if self.calls.is_empty() { "end_turn" } else { "tool_use" }
    }
}

fn fragments(text: &str, letters: usize) -> Vec<String> {
    let text: Vec<char> = text.chars().collect();
    text.chunks(letters.max(1)).map(|it| it.iter().collect()).collect()
}
