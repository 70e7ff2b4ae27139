//! Anthropic's Messages API. Bends a conversation into the shape that it demands (turns that
//! alternate, results in one message, no empty words) without changing what was said.

mod answer;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

use self::answer::Answer;
use super::exchange::{Exchange, SetupError, key_header};
use super::{Message, Model, ModelError, Patience, Reply, Request, Secret, ToolOffer, result_text};

pub const BASE_URL: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";
/// The API wants a limit; this one is within what every current model can say.
pub const MAX_OUTPUT_TOKENS: u32 = 8192;

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What we call it.
    pub name: String,
    /// Up to `/v1/messages`; [`BASE_URL`] unless there is a gateway in between.
    pub base_url: String,
    /// What the far side calls it.
    pub model: String,
    /// `None`: a gateway in between adds it.
    pub api_key: Option<Secret>,
    pub patience: Patience,
    /// `None`: [`MAX_OUTPUT_TOKENS`].
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f64>,
}

#[derive(Debug)]
pub struct Anthropic {
    config: Config,
    exchange: Exchange,
}

impl Anthropic {
    pub fn new(config: Config) -> Result<Anthropic, SetupError> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if let Some(key) = &config.api_key {
            headers.insert("x-api-key", key_header(&config.name, key.reveal())?);
        }
        let base = config.base_url.trim_end_matches('/');
        let url = format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base));
        let key = config.api_key.clone();
        let exchange = Exchange::new(&config.name, &url, headers, key, config.patience)?;
        Ok(Anthropic { config, exchange })
    }
}

#[async_trait]
impl Model for Anthropic {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        let body = body(&self.config, &request);
        let reading = || Answer::new(&self.config.model, request.messages);
        self.exchange.ask(Some(&request), &body, reading).await
    }
}

fn body(config: &Config, request: &Request<'_>) -> Value {
    let mut body = json!({
        "model": config.model,
        "max_tokens": config.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS),
        "messages": turns(request.messages),
        "stream": true,
        "metadata": {"user_id": request.agent},
    });
    if !request.system.is_empty() {
        body["system"] = json!(request.system);
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().copied().map(tool).collect();
    }
    if let Some(temperature) = config.temperature {
        body["temperature"] = json!(temperature);
    }
    body
}

/// What is written where nothing was said: empty text is refused.
const SILENCE: &str = "(nothing)";

/// The user has the first turn, and neither side two in a row: neighbours are merged, and so
/// all results of a batch come in one message, as the API demands.
fn turns(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    if !matches!(messages.first(), Some(Message::User { .. })) {
        turns.push(("user", vec![text_block(SILENCE)]));
    }
    for message in messages {
        let (role, blocks) = turn(message);
        match turns.last_mut() {
            Some((last, merged)) if *last == role => merged.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, blocks)| json!({"role": role, "content": blocks})).collect()
}

fn turn(message: &Message) -> (&'static str, Vec<Value>) {
    match message {
        Message::User { text } if text.trim().is_empty() => ("user", vec![text_block(SILENCE)]),
        Message::User { text } => ("user", vec![text_block(text)]),
        Message::Assistant { text, calls } => {
            let words = (!text.trim().is_empty()).then(|| text_block(text));
            let calls = calls.iter().map(|call| {
                // Only an object is taken; a model that wrote something else shall see it.
                let input = match &call.arguments {
                    Value::Object(_) => call.arguments.clone(),
                    other => json!({"arguments": other}),
                };
                json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": input})
            });
            ("assistant", words.into_iter().chain(calls).collect())
        }
        Message::Tool { call, result } => {
            let text = Some(result_text(result)).filter(|it| !it.is_empty());
            let block = json!({
                "type": "tool_result",
                "tool_use_id": call,
                "content": text.unwrap_or_else(|| SILENCE.to_owned()),
                "is_error": result.is_error,
            });
            ("user", vec![block])
        }
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool(tool: &ToolOffer) -> Value {
    json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters})
}

/// An answer of which nothing has come yet.
#[cfg(feature = "fuzz")]
pub(super) fn reading(model: &str) -> impl super::exchange::Reading<Whole = Reply> {
    Answer::new(model, &[])
}
