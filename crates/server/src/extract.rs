//! Reading what a request says, with errors that a person can act on.

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request, rejection::BytesRejection};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::IntoResponse as _;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, Result};
use crate::router::App;

/// A JSON body.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Body<T>> {
        let limit = app.body_bytes;
        let bytes = Bytes::from_request(request, app).await.map_err(|it| unread(it, limit))?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let at = if path == "." { String::new() } else { format!(" at `{path}`") };
            bad_request(format!("the body is not what is expected{at}: {}", error.inner()))
        })?;
        reader.end().map_err(|it| bad_request(format!("the body is not one JSON value: {it}")))?;
        Ok(Body(value))
    }
}

/// A query string.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Params<T>> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(value)| Params(value))
            .map_err(|it| bad_request(it.body_text()))
    }
}

pub fn bad_request(detail: String) -> ApiError {
    ApiError::BadRequest { code: "bad_request", detail }
}

fn unread(rejection: BytesRejection, limit: usize) -> ApiError {
    match rejection.into_response().status() {
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::TooLarge(limit),
        _ => bad_request("the body broke off".to_owned()),
    }
}
