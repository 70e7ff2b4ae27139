//! What every answer has, whatever it answers: a place in the counters, headers that keep it
//! from being kept or guessed at, and, where it is an error, the form of one.

use axum::extract::{MatchedPath, Request};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;
use metrics::counter;

use crate::console::Drawn;
use crate::{error, routes};

/// The page loads nothing but what is served with it.
const DOCS_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; \
     img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

pub async fn finish(request: Request, next: Next) -> Response {
    let method = method(request.method());
    let docs = request.uri().path().starts_with("/docs");
    let openai = request.uri().path().starts_with("/v1/");
    // What was matched, not what was asked: strangers do not name our counters.
    let matched = request.extensions().get::<MatchedPath>();
    let route = matched.map_or_else(|| "none".to_owned(), |it| it.as_str().to_owned());
    let answered = next.run(request).await;
    let drawn = answered.extensions().get::<Drawn>().is_some();
    let mut response = if drawn { answered } else { error::as_problem(answered).await };
    if openai {
        response = routes::openai::as_openai(response);
    }
    let status = response.status().as_str().to_owned();
    counter!("chancery_http_requests_total", "method" => method, "route" => route, "status" => status)
        .increment(1);
    let headers = response.headers_mut();
    set(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(headers, header::REFERRER_POLICY, "no-referrer");
    // A page of the console brings its own.
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        set(headers, header::CONTENT_SECURITY_POLICY, if docs { DOCS_POLICY } else { POLICY });
    }
    let kept = docs || drawn && headers.contains_key(header::CACHE_CONTROL);
    if !kept {
        set(headers, header::CACHE_CONTROL, "no-store");
    }
    response
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.insert(name, HeaderValue::from_static(value));
}

fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
