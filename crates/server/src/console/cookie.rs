//! Cookies that hold a secret. Where people come over TLS they are bound to this very host, so
//! that no neighbour under the same domain can put one of its own in their place.

use axum::http::HeaderMap;
use axum::response::Response;
use jiff::SignedDuration;
use subtle::ConstantTimeEq as _;

use super::look;
use super::page::{is_https, set_cookie};
use crate::error::Result;
use crate::router::App;
use crate::tokens;

/// For how long, and whether it comes along when another site's link leads here.
#[derive(Debug, Clone, Copy)]
pub enum Kept {
    Here(SignedDuration),
    /// Also with who comes back from the issuer.
    Away(SignedDuration),
}

pub fn get<'a>(app: &App, headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let found = look::cookie(headers, &named(app, name));
    found.filter(|it| !it.is_empty() && it.len() <= tokens::SECRET_MAX)
}

pub fn set(
    app: &App,
    headers: &HeaderMap,
    response: &mut Response,
    name: &str,
    value: &str,
    kept: Kept,
) -> Result<()> {
    let (lasts, site) = match kept {
        Kept::Here(lasts) => (lasts, "Strict"),
        Kept::Away(lasts) => (lasts, "Lax"),
    };
    let secure = if app.is_tls() || is_https(headers) { "; Secure" } else { "" };
    let (name, seconds) = (named(app, name), lasts.as_secs());
    let text =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={site}{secure}");
    set_cookie(response, &text)
}

pub fn clear(app: &App, headers: &HeaderMap, response: &mut Response, name: &str) -> Result<()> {
    set(app, headers, response, name, "", Kept::Here(SignedDuration::ZERO))
}

fn named(app: &App, name: &str) -> String {
    if app.is_tls() { format!("__Host-{name}") } else { name.to_owned() }
}

/// Whether two secrets are the same, told in the same time either way.
pub fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
