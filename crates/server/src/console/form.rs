//! Forms: only our own pages send them. Where a visit is needed, they also carry what only its
//! pages know.

use std::time::Duration;

use axum::Form;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::cookie;
use super::visitor::Visitor;
use crate::error::{ApiError, Result};
use crate::extract::bad_request;
use crate::router::App;

/// A form that takes longer is not being sent, it is being held.
const BODY: Duration = Duration::from_secs(60);

/// A form that somebody who is signed in has sent from a page of their visit.
#[derive(Debug)]
pub struct Signed<T> {
    pub visitor: Visitor,
    pub form: T,
}

#[derive(Debug, Deserialize)]
struct Mark {
    #[serde(default)]
    csrf: String,
}

impl<T: DeserializeOwned> FromRequest<App> for Signed<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Signed<T>> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, app).await?;
        let whole = Request::from_parts(parts.clone(), body);
        let bytes = tokio::time::timeout(BODY, Bytes::from_request(whole, app)).await;
        let bytes =
            bytes.map_err(|_| ApiError::Slow)?.map_err(|it| match it.status().as_u16() {
                413 => ApiError::TooLarge(app.body_bytes),
                _ => bad_request("the form broke off".to_owned()),
            })?;
        let again = || Request::from_parts(parts.clone(), Body::from(bytes.clone()));
        let unread = |it: axum::extract::rejection::FormRejection| {
            bad_request(format!("the form is not what is expected: {}", it.body_text()))
        };
        let Form(mark) = Form::<Mark>::from_request(again(), app).await.map_err(unread)?;
        if !cookie::is_same(&mark.csrf, &visitor.csrf) {
            return Err(foreign());
        }
        let Form(form) = Form::<T>::from_request(again(), app).await.map_err(unread)?;
        Ok(Signed { visitor, form })
    }
}

/// Refuses what another site's page had a browser send.
pub async fn own_origin(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads || is_own(request.headers()) {
        next.run(request).await
    } else {
        foreign().into_response()
    }
}

fn is_own(headers: &HeaderMap) -> bool {
    let said = |name: &str| headers.get(name).map(|it| it.to_str().unwrap_or("?"));
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    match (said("sec-fetch-site"), said("origin")) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => origin.split_once("://").map(|it| it.1) == host,
        // No browser: it has no cookies but those that it was given.
        (None, None) => true,
    }
}

fn foreign() -> ApiError {
    ApiError::Forbidden("this form was not sent from a page of your visit: load it again".into())
}

/// A path of ours to go back to: never another site's.
pub fn own_path(given: &str) -> &str {
    let ours = given.starts_with('/')
        && !given.starts_with("//")
        && given.chars().all(|it| it.is_ascii_graphic() && it != '\\');
    if ours { given } else { "/" }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn only_our_own_pages_send_forms() {
        let is_own = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            is_own(&pairs.collect())
        };
        let host = ("host", "127.0.0.1:7717");
        assert!(is_own(&[host]));
        assert!(is_own(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(is_own(&[host, ("origin", "http://127.0.0.1:7717")]));
        assert!(!is_own(&[host, ("origin", "http://127.0.0.1:7718")]));
        assert!(!is_own(&[host, ("origin", "null")]));
        assert!(!is_own(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(!is_own(&[host, ("sec-fetch-site", "same-site")]));
        let mixed = [host, ("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:7717")];
        assert!(!is_own(&mixed));
    }

    #[test]
    fn nobody_is_sent_to_another_site() {
        for (given, path) in [
            ("/inbox?show=done", "/inbox?show=done"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nset-cookie: x", "/"),
        ] {
            assert_eq!(own_path(given), path);
        }
    }
}
