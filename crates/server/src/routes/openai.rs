//! The door for clients that speak as OpenAI's do: every agent that a person may address is a
//! model, and a run that waits for somebody says so in words.
//!
//! These routes are not in our OpenAPI document: their shape is OpenAI's to describe, and half
//! of what its clients send is read by nobody here. `docs/openai.md` says what differs.

mod chat;
mod follow;
mod models;
mod plain;
mod responses;
mod telling;
mod text;
mod thread;
mod turn;

use axum::Router;
use axum::http::header::{self, HeaderValue};
use axum::response::Response;
use axum::routing::{get, post};
use chancery_api::Problem;
use chancery_api::openai::{ErrorBody, ErrorDetail};

use crate::router::App;

pub fn router() -> Router<App> {
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::show))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/responses", post(responses::create))
}

/// An error in the form that OpenAI's clients turn into exceptions; anything else as it is.
pub fn as_openai(mut response: Response) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Problem>() else { return response };
    let body = serde_json::to_vec(&ErrorBody { error: detail(problem) }).unwrap_or_default();
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, body.into())
}

fn detail(problem: Problem) -> ErrorDetail {
    let kind = match problem.status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        409 => "conflict_error",
        400..500 => "invalid_request_error",
        _ => "server_error",
    };
    let (code, param) = match &*problem.code {
        "unauthenticated" => ("invalid_api_key", None),
        "model_not_found" => ("model_not_found", Some("model")),
        "unsupported_choice" => ("unsupported_parameter", Some("tool_choice")),
        "unsupported_n" => ("unsupported_parameter", Some("n")),
        code => (code, None),
    };
    ErrorDetail {
        message: problem.detail,
        kind: kind.to_owned(),
        param: param.map(str::to_owned),
        code: Some(code.to_owned()),
    }
}
