//! `POST /v1/chat/completions`

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::Event as Frame;
use axum::response::{IntoResponse as _, Response};
use chancery_api::openai::{
    ChatChunk, ChatCompletion, ChatMessage, ChatRequest, ChatUsage, Choice, ChunkChoice, Delta,
    ErrorBody, ErrorDetail, Said,
};
use chancery_domain::event::Usage;
use chancery_runtime::clock;
use serde_json::Value;

use super::follow::End;
use super::telling::{self, Teller, Told};
use super::text::{latest_of_user, words_at_least};
use super::turn::{self, Spoken, Turn};
use super::{models, plain, thread};
use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::Body;
use crate::router::App;

pub async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<ChatRequest>,
) -> Result<Response> {
    let to = models::addressee(&app, &caller, &body.model)?;
    check_supported(&body)?;
    let thread = thread::named(&headers, body.metadata.as_ref())?;
    let text = latest_of_user(&body.messages);
    let turn = if plain::is_task(&body.messages) && !thread.as_ref().is_some_and(|it| it.is_meant) {
        let (text, usage) = plain::answer(&app, &to, &body.messages).await?;
        Turn::of_words(None, text, End::Said, usage)
    } else {
        let (text, heard) = (&*text?, &*last_heard(&body.messages));
        let spoken = Spoken { to: &to, thread: thread.as_ref(), text, heard };
        turn::take(&app, &caller, &headers, spoken).await?
    };
    let run = turn.run.map(|it| it.to_string());
    let id = turn.run.map_or_else(|| clock::new_run_id().0, |it| it.0);
    let heading = Heading {
        app,
        id: format!("chatcmpl-{}", id.simple()),
        created: clock::now().as_second(),
        model: body.model,
        run,
    };
    if body.stream == Some(true) {
        let with_usage = body.stream_options.and_then(|it| it.include_usage) == Some(true);
        return Ok(telling::streamed(turn, Chunks { heading, with_usage }));
    }
    heading.completion(telling::whole(turn).await?).map(|it| Json(it).into_response())
}

/// What cannot be met is refused, not passed over.
fn check_supported(body: &ChatRequest) -> Result<()> {
    check_choice(body.tool_choice.as_ref().or(body.function_call.as_ref()))?;
    if body.n.is_some_and(|it| it != 1) {
        let detail = "`n` is 1: a run has one answer".to_owned();
        return Err(ApiError::BadRequest { code: "unsupported_n", detail });
    }
    Ok(())
}

/// The tools are the organisation's. A client's own may be offered, as chat programs do with every
/// message; a model need not call them, and an agent does not. Nobody can make it.
pub fn check_choice(choice: Option<&Value>) -> Result<()> {
    match choice.and_then(Value::as_str) {
        _ if choice.is_none_or(Value::is_null) => Ok(()),
        Some("auto" | "none") => Ok(()),
        _ => {
            let detail =
                "an agent has the tools that its organisation gives it, and calls no other";
            Err(ApiError::BadRequest { code: "unsupported_choice", detail: detail.to_owned() })
        }
    }
}

fn last_heard(messages: &[ChatMessage]) -> String {
    let last = messages.iter().rev().find(|it| it.role == "assistant");
    last.map(|it| words_at_least(it.content.as_ref())).unwrap_or_default()
}

/// What every piece of an answer says of itself.
struct Heading {
    app: App,
    id: String,
    created: i64,
    model: String,
    run: Option<String>,
}

impl Heading {
    fn completion(self, told: Told) -> Result<ChatCompletion> {
        if let Some(error) = telling::no_answer(self.run.as_deref(), &told.end) {
            return Err(error);
        }
        let message = Said { role: "assistant", content: told.text, refusal: None };
        let choice = Choice { index: 0, message, logprobs: None, finish_reason: "stop" };
        Ok(ChatCompletion {
            chancery: telling::extension(&self.app, self.run, &told.end),
            id: self.id,
            object: "chat.completion",
            created: self.created,
            model: self.model,
            choices: vec![choice],
            usage: usage(told.usage),
        })
    }

    fn chunk(&self, choices: Vec<ChunkChoice>) -> ChatChunk {
        ChatChunk {
            id: self.id.clone(),
            object: "chat.completion.chunk",
            created: self.created,
            model: self.model.clone(),
            choices,
            usage: None,
            chancery: None,
        }
    }
}

fn usage(it: Usage) -> ChatUsage {
    ChatUsage {
        prompt_tokens: it.input_tokens,
        completion_tokens: it.output_tokens,
        total_tokens: it.input_tokens.saturating_add(it.output_tokens),
    }
}

fn choice(delta: Delta, finish_reason: Option<&'static str>) -> Vec<ChunkChoice> {
    vec![ChunkChoice { index: 0, delta, logprobs: None, finish_reason }]
}

struct Chunks {
    heading: Heading,
    with_usage: bool,
}

impl Teller for Chunks {
    fn begin(&mut self) -> Vec<Frame> {
        let delta = Delta { role: Some("assistant"), content: Some(String::new()) };
        vec![telling::json(&self.heading.chunk(choice(delta, None)))]
    }

    fn words(&mut self, text: String) -> Vec<Frame> {
        let delta = Delta { role: None, content: Some(text) };
        vec![telling::json(&self.heading.chunk(choice(delta, None)))]
    }

    fn end(&mut self, end: End, used: Usage) -> Vec<Frame> {
        if let Some(error) = telling::no_answer(self.heading.run.as_deref(), &end) {
            return self.error(super::detail(error.problem()));
        }
        let mut last = self.heading.chunk(choice(Delta::default(), Some("stop")));
        last.chancery = Some(telling::extension(&self.heading.app, self.heading.run.clone(), &end));
        let mut frames = vec![telling::json(&last)];
        if self.with_usage {
            let mut counted = self.heading.chunk(Vec::new());
            counted.usage = Some(usage(used));
            frames.push(telling::json(&counted));
        }
        frames.push(Frame::default().data("[DONE]"));
        frames
    }

    fn error(&mut self, error: ErrorDetail) -> Vec<Frame> {
        vec![telling::json(&ErrorBody { error })]
    }
}
