//! How a turn reaches a client: whole, or piece by piece as server-sent events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderValue;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use chancery_api::openai::{ErrorDetail, Extension};
use chancery_domain::event::Usage;
use futures_util::stream::{self, Stream};

use super::follow::{End, Piece};
use super::turn::Turn;
use crate::error::{ApiError, Result};
use crate::router::App;

/// Below what proxies allow for silence.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A turn that is over.
#[derive(Debug)]
pub struct Told {
    pub text: String,
    pub end: End,
    pub usage: Usage,
}

pub async fn whole(mut turn: Turn) -> Result<Told> {
    let mut text = String::new();
    loop {
        match turn.next().await? {
            Piece::Words(words) => text.push_str(&words),
            Piece::End(end) => return Ok(Told { text, end, usage: turn.usage() }),
        }
    }
}

/// Puts a turn in the words of one protocol's stream.
pub trait Teller: Send + 'static {
    fn begin(&mut self) -> Vec<Frame>;
    fn words(&mut self, text: String) -> Vec<Frame>;
    fn end(&mut self, end: End, usage: Usage) -> Vec<Frame>;
    /// It broke off.
    fn error(&mut self, error: ErrorDetail) -> Vec<Frame>;
}

pub fn streamed(turn: Turn, mut teller: impl Teller) -> Response {
    let ready = teller.begin().into();
    let telling = Telling { turn, teller, ready, is_over: false };
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("here");
    let mut response = Sse::new(frames(telling)).keep_alive(keep_alive).into_response();
    // Proxies that buffer would hold the words back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Telling<T> {
    turn: Turn,
    teller: T,
    ready: VecDeque<Frame>,
    is_over: bool,
}

fn frames<T: Teller>(
    telling: Telling<T>,
) -> impl Stream<Item = std::result::Result<Frame, Infallible>> {
    stream::unfold(telling, |mut telling| async move {
        loop {
            if let Some(frame) = telling.ready.pop_front() {
                return Some((Ok(frame), telling));
            }
            if telling.is_over {
                return None;
            }
            let frames = match telling.turn.next().await {
                Ok(Piece::Words(text)) => telling.teller.words(text),
                Ok(Piece::End(end)) => {
                    telling.is_over = true;
                    telling.teller.end(end, telling.turn.usage())
                }
                Err(error) => {
                    telling.is_over = true;
                    telling.teller.error(super::detail(error.problem()))
                }
            };
            telling.ready = frames.into();
        }
    })
}

/// A frame of JSON.
pub fn json(body: &impl serde::Serialize) -> Frame {
    Frame::default().data(serde_json::to_string(body).unwrap_or_default())
}

/// What an answer says beyond OpenAI's own fields.
pub fn extension(app: &App, run: Option<String>, end: &End) -> Extension {
    let status = match end {
        End::Waiting(pause) => return pause.extension(&app.public_url),
        End::Completed => "completed",
        End::Failed(_) => "failed",
        End::Cancelled => "cancelled",
        End::Said => "said",
    };
    Extension { run_id: run, status: status.to_owned(), ..Extension::default() }
}

/// Why there is no answer, where a run ended without one.
pub fn no_answer(run: Option<&str>, end: &End) -> Option<ApiError> {
    let run = run.unwrap_or("the run");
    match end {
        End::Failed(error) => {
            let detail = format!("{run} failed: {error}");
            Some(ApiError::NoAnswer { code: "run_failed", detail })
        }
        End::Cancelled => {
            let detail = format!("{run} was cancelled");
            Some(ApiError::NoAnswer { code: "run_cancelled", detail })
        }
        End::Completed | End::Waiting(_) | End::Said => None,
    }
}
