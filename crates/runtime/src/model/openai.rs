//! Any endpoint that speaks chat completions: OpenAI's own, and the many that took over its
//! protocol with liberties of their own. Writes what all of them understand and reads what each
//! of them makes of it.

mod answer;

use async_trait::async_trait;
use chancery_domain::event::Call;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};

use self::answer::Answer;
use super::exchange::{Exchange, SetupError, key_header};
use super::{Message, Model, ModelError, Patience, Reply, Request, Secret, ToolOffer, result_text};

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What we call it.
    pub name: String,
    /// Up to `/chat/completions`, often with a `/v1` at its end.
    pub base_url: String,
    /// What the far side calls it.
    pub model: String,
    /// Servers of one's own often want none.
    pub api_key: Option<Secret>,
    pub patience: Patience,
    pub max_output_tokens: Option<u32>,
    pub temperature: Option<f64>,
}

#[derive(Debug)]
pub struct OpenAi {
    config: Config,
    exchange: Exchange,
}

impl OpenAi {
    pub fn new(config: Config) -> Result<OpenAi, SetupError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &config.api_key {
            let value = key_header(&config.name, &format!("Bearer {}", key.reveal()))?;
            headers.insert(AUTHORIZATION, value);
        }
        let url = format!("{}/chat/completions", config.base_url.trim_end_matches('/'));
        let key = config.api_key.clone();
        let exchange = Exchange::new(&config.name, &url, headers, key, config.patience)?;
        Ok(OpenAi { config, exchange })
    }
}

#[async_trait]
impl Model for OpenAi {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        let body = body(&self.config, &request);
        let reading = || Answer::new(&self.config.model, request.messages);
        self.exchange.ask(Some(&request), &body, reading).await
    }
}

fn body(config: &Config, request: &Request<'_>) -> Value {
    let system =
        (!request.system.is_empty()).then(|| json!({"role": "system", "content": request.system}));
    let messages: Vec<Value> =
        system.into_iter().chain(request.messages.iter().map(message)).collect();
    let mut body = json!({
        "model": config.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
        "user": request.agent,
    });
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().copied().map(tool).collect();
    }
    if let Some(temperature) = config.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(limit) = config.max_output_tokens {
        body[limit_name(&config.base_url)] = json!(limit);
    }
    body
}

/// OpenAI's newer models refuse the old name of this limit; many others know no newer one.
fn limit_name(base_url: &str) -> &'static str {
    let host = base_url.split('/').nth(2).unwrap_or_default();
    let is_openai = host.ends_with("openai.com") || host.ends_with("openai.azure.com");
    if is_openai { "max_completion_tokens" } else { "max_tokens" }
}

fn message(message: &Message) -> Value {
    match message {
        Message::User { text } => json!({"role": "user", "content": text}),
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        Message::Assistant { text, calls } => {
            let content = (!text.is_empty()).then_some(text);
            let calls: Vec<Value> = calls.iter().map(|it| call(it)).collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        Message::Tool { call, result } => {
            json!({"role": "tool", "tool_call_id": call, "content": result_text(result)})
        }
    }
}

fn call(call: &Call) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.tool, "arguments": call.arguments.to_string()},
    })
}

fn tool(tool: &ToolOffer) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    })
}

/// An answer of which nothing has come yet.
#[cfg(feature = "fuzz")]
pub(super) fn reading(model: &str) -> impl super::exchange::Reading<Whole = Reply> {
    Answer::new(model, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_has_the_name_that_the_endpoint_knows() {
        for (base_url, name) in [
            ("https://api.openai.com/v1", "max_completion_tokens"),
            ("https://x.openai.azure.com/openai/v1", "max_completion_tokens"),
            ("http://127.0.0.1:11434/v1", "max_tokens"),
            ("https://gateway.example/openai.com/v1", "max_tokens"),
        ] {
            assert_eq!(limit_name(base_url), name, "{base_url}");
        }
    }
}
