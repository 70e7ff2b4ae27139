//! Forms: only our own pages send them. Where a visit is needed, they also carry what only its
//! pages know.

use std::sync::Arc;
use std::time::Duration;

use axum::Form;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::cookie;
use super::learned::Learned;
use super::lost;
use super::visitor::Visitor;
use crate::error::{ApiError, Result};
use crate::extract::bad_request;
use crate::router::App;
use crate::turnstile::Stranger;

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
        let visitor = match Visitor::from_request_parts(&mut parts, app).await {
            Err(ApiError::Unauthenticated) => return Err(keep(parts, body, app).await),
            other => other?,
        };
        let whole = Request::from_parts(parts.clone(), body);
        let bytes = tokio::time::timeout(BODY, Bytes::from_request(whole, app)).await;
        let bytes =
            bytes.map_err(|_| ApiError::Slow)?.map_err(|it| match it.status().as_u16() {
                413 => ApiError::TooLarge(app.body_bytes),
                _ => bad_request("the form broke off".to_owned()),
            })?;
        let bytes = Bytes::from(with_plain_lines(&bytes));
        let again = || Request::from_parts(parts.clone(), Body::from(bytes.clone()));
        let unread = |it: axum::extract::rejection::FormRejection| {
            bad_request(format!("the form is not what is expected: {}", it.body_text()))
        };
        if let Some(learned) = parts.extensions.get::<Learned>()
            && let Ok(Form(fields)) =
                Form::<Vec<(String, String)>>::from_request(again(), app).await
        {
            learned.typed(fields);
        }
        let Form(mark) = Form::<Mark>::from_request(again(), app).await.map_err(unread)?;
        if !cookie::is_same(&mark.csrf, &visitor.csrf) {
            return Err(foreign());
        }
        let Form(form) = Form::<T>::from_request(again(), app).await.map_err(unread)?;
        Ok(Signed { visitor, form })
    }
}

/// A visit has ended: what was typed is read, for the page that asks to sign in again.
async fn keep(mut parts: Parts, body: Body, app: &App) -> ApiError {
    let Some(learned) = parts.extensions.get::<Learned>().cloned() else {
        return ApiError::Unauthenticated;
    };
    if let Err(error) = Stranger::from_request_parts(&mut parts, app).await {
        return error;
    }
    learned.vouches(app.oidc.as_ref().map(|it| it.config.shown_as()));
    match tokio::time::timeout(BODY, lost::read(body)).await {
        Ok(Some(bytes)) => {
            let body = Body::from(with_plain_lines(&bytes));
            let form = Form::from_request(Request::from_parts(parts, body), app).await;
            if let Ok(Form(fields)) = form {
                learned.typed(fields);
            }
        }
        Ok(None) => learned.too_long(),
        Err(_) => return ApiError::Slow,
    }
    ApiError::Unauthenticated
}

/// Browsers end the lines of a form with two characters; what people write has one.
fn with_plain_lines(body: &[u8]) -> Vec<u8> {
    const ENDS: &[u8] = b"%0D%0A";
    let mut plain = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some((first, tail)) = rest.split_first() {
        if rest.len() >= ENDS.len() && rest[..ENDS.len()].eq_ignore_ascii_case(ENDS) {
            plain.extend_from_slice(b"%0A");
            rest = &rest[ENDS.len()..];
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    plain
}

/// Refuses what another site's page had a browser send. `here` is where people reach this server.
pub async fn own_origin(here: Arc<str>, request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads || is_own(request.headers(), &here) {
        next.run(request).await
    } else {
        foreign().into_response()
    }
}

fn is_own(headers: &HeaderMap, here: &str) -> bool {
    let said = |name: &str| headers.get(name).map(|it| it.to_str().unwrap_or("?"));
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    match (said("sec-fetch-site"), said("origin")) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        // A proxy may have put its own name for us in the place of the host.
        (None, Some(origin)) => {
            origin.split_once("://").map(|it| it.1) == host || is_of(here, origin)
        }
        // No browser: it has no cookies but those that it was given.
        (None, None) => true,
    }
}

/// Whether a page of this origin is beneath a URL.
fn is_of(url: &str, origin: &str) -> bool {
    let end = url
        .split_once("://")
        .map(|(scheme, rest)| scheme.len() + 3 + rest.find('/').unwrap_or(rest.len()));
    end.and_then(|it| url.get(..it)).is_some_and(|it| it.eq_ignore_ascii_case(origin))
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

/// Where a form leads when it is done: to the page that it was sent from, if it says so.
pub fn back_or<'a>(given: &'a str, otherwise: &'a str) -> &'a str {
    match own_path(given) {
        "/" => otherwise,
        path => path,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn lines_end_as_people_end_them() {
        for (sent, plain) in [
            ("text=a%0D%0Ab%0d%0a", "text=a%0Ab%0A"),
            ("text=a%0Ab%0D", "text=a%0Ab%0D"),
            ("%0D%0D%0A", "%0D%0A"),
            ("", ""),
        ] {
            assert_eq!(with_plain_lines(sent.as_bytes()), plain.as_bytes(), "{sent}");
        }
    }

    #[test]
    fn only_our_own_pages_send_forms() {
        let is_own = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            is_own(&pairs.collect(), "https://chancery.example/here")
        };
        let host = ("host", "127.0.0.1:7717");
        assert!(is_own(&[host]));
        assert!(is_own(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(is_own(&[host, ("origin", "http://127.0.0.1:7717")]));
        assert!(!is_own(&[host, ("origin", "http://127.0.0.1:7718")]));
        assert!(!is_own(&[host, ("origin", "null")]));
        assert!(!is_own(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(!is_own(&[host, ("sec-fetch-site", "same-site")]));
        // Behind a proxy that calls us by another name.
        let inside = ("host", "backend:7717");
        assert!(is_own(&[inside, ("origin", "https://chancery.example")]));
        for other in [
            "http://chancery.example",
            "https://chancery.example.evil.org",
            "https://chancery.example:8443",
            "https://chancery.exampl",
            "https://chancery.example/here",
            "",
            "://",
        ] {
            assert!(!is_own(&[inside, ("origin", other)]), "{other}");
        }
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
