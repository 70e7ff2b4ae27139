//! Reading what a request says, with errors that a person can act on.

use std::time::Duration;

use axum::body::{Body as Bytestream, Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Query, Request, rejection::BytesRejection};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::IntoResponse as _;
use chancery_api::Object;
use chancery_domain::text::is_hidden;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ApiError, Result};
use crate::router::App;

/// A body that takes longer is not being sent, it is being held.
const BODY: Duration = Duration::from_secs(60);
/// Deeper values cannot be read back by readers that stop at 128 levels, as ours do: an event
/// and the page that it is on add a few of their own.
const DEPTH_MAX: usize = 64;

const NAME_MAX: usize = 256;

/// A JSON body.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Body<T>> {
        let limit = app.body_bytes;
        let bytes = tokio::time::timeout(BODY, Bytes::from_request(request, app)).await;
        let bytes = bytes.map_err(|_| ApiError::Slow)?.map_err(|it| unread(it, limit))?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let Object(value) = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let at = if path == "." { String::new() } else { format!(" at `{path}`") };
            bad_request(format!("the body is not what is expected{at}: {}", error.inner()))
        })?;
        reader.end().map_err(|it| bad_request(format!("the body is not one JSON value: {it}")))?;
        Ok(Body(value))
    }
}

/// The bytes of a body that another layer reads.
pub async fn whole(body: Bytestream, limit: usize) -> Result<Bytes> {
    let read = tokio::time::timeout(BODY, to_bytes(body, limit)).await;
    // What else than its length can be wrong is that the client has gone.
    read.map_err(|_| ApiError::Slow)?.map_err(|_| ApiError::TooLarge(limit))
}

/// A query string.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Params<T>> {
        Query::try_from_uri(&parts.uri).map(|Query(value)| Params(value)).map_err(|it| {
            let said = it.body_text();
            let said = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(&said);
            bad_request(format!("the query is not what is expected: {said}"))
        })
    }
}

pub fn bad_request(detail: String) -> ApiError {
    ApiError::BadRequest { code: "bad_request", detail }
}

/// Text that somebody wrote: there is some, and it is text.
pub fn check_text(name: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(bad_request(format!("`{name}` is empty")));
    }
    if text.contains('\0') {
        return Err(bad_request(format!("`{name}` has a NUL character")));
    }
    Ok(())
}

/// A name that somebody chose: one line, not too long, and the same when it is trimmed.
pub fn check_name(name: &str, given: &str) -> Result<()> {
    let long = given.is_empty() || given.chars().count() > NAME_MAX;
    if long || given.trim() != given || given.chars().any(char::is_control) {
        let detail = format!("`{name}` has 1 to {NAME_MAX} characters, and no blanks around them");
        return Err(bad_request(detail));
    }
    Ok(())
}

/// The name of a person, as the audit will say it: nobody else's, and all of it can be seen.
pub fn check_person(name: &str, given: &str) -> Result<()> {
    check_name(name, given)?;
    let no_person = matches!(given, "system" | "board")
        || given.starts_with("agent:")
        || given.starts_with("service:");
    if no_person || given.chars().any(is_hidden) {
        let detail = format!(
            "`{name}` is read as a person's: it is not `system` or `board`, does not begin with \
             `agent:` or `service:`, and has no characters that are not drawn"
        );
        return Err(bad_request(detail));
    }
    Ok(())
}

/// A name that a list is narrowed by. `?agent=` asks for no agent in particular.
pub fn asked(name: &str, given: Option<String>) -> Result<Option<String>> {
    let given = given.filter(|it| !it.is_empty());
    given.as_deref().map_or(Ok(()), |it| check_asked(name, it))?;
    Ok(given)
}

/// A name that is asked for need not be one that anybody could have.
pub fn check_asked(name: &str, given: &str) -> Result<()> {
    let long = given.is_empty() || given.chars().count() > NAME_MAX;
    if long || given.chars().any(char::is_control) {
        let detail = format!("`{name}` is one line of 1 to {NAME_MAX} characters");
        return Err(bad_request(detail));
    }
    Ok(())
}

/// An id that a list is narrowed by, or goes on after: `MAIL-…`, `CTR-…`.
pub fn asked_id(name: &str, prefix: &str, given: Option<String>) -> Result<Option<String>> {
    const MAX: usize = 32;
    let Some(given) = given.filter(|it| !it.is_empty()) else { return Ok(None) };
    let part = given.strip_prefix(prefix).filter(|_| given.len() <= MAX);
    let is_plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    match part {
        Some(part) if !part.is_empty() && part.bytes().all(is_plain) => Ok(Some(given)),
        _ => Err(bad_request(format!("`{name}` is not an id of the form `{prefix}…`"))),
    }
}

/// A value that can be read back wherever it is shown.
pub fn check_depth(name: &str, value: &Value) -> Result<()> {
    if is_deeper(value, DEPTH_MAX) {
        return Err(bad_request(format!("`{name}` is nested more than {DEPTH_MAX} levels deep")));
    }
    Ok(())
}

fn is_deeper(value: &Value, than: usize) -> bool {
    let Some(less) = than.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|it| is_deeper(it, less)),
        Value::Object(fields) => fields.values().any(|it| is_deeper(it, less)),
        _ => false,
    }
}

fn unread(rejection: BytesRejection, limit: usize) -> ApiError {
    match rejection.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge(limit),
        _ => bad_request("the body broke off".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_asked_for_has_the_form_of_its_kind() {
        let asked = |given: &str| asked_id("cursor", "MAIL-", Some(given.to_owned())).ok();
        assert_eq!(asked(""), Some(None));
        assert_eq!(asked("MAIL-2026-7"), Some(Some("MAIL-2026-7".to_owned())));
        let long = format!("MAIL-{}", "0".repeat(28));
        for wrong in ["MAIL-", "CTR-7", "7", "MAIL-7 ", "MAIL-A", "MAIL-\0", &long] {
            assert_eq!(asked(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_value_is_as_deep_as_its_deepest_part() {
        let nested = |depth: usize| {
            (1..depth).fold(Value::Null, |inner, _| Value::Array(vec![Value::Null, inner]))
        };
        assert!(!is_deeper(&nested(DEPTH_MAX), DEPTH_MAX));
        assert!(is_deeper(&nested(DEPTH_MAX + 1), DEPTH_MAX));
    }
}
