//! The door: a link that lets somebody in once, a token that is shown, and the way out.

use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::Actor;
use chancery_domain::id::UserId;
use chancery_runtime::clock;
use chancery_store::token::{Token, TokenKind};
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::json;

use super::form::{Signed, own_path};
use super::look::Look;
use super::page::{Frame, draw, draw_as, is_https, set_cookie};
use super::visitor::{COOKIE, secret};
use crate::error::{ApiError, Result};
use crate::extract::check_name;
use crate::router::App;
use crate::tokens;

/// A working week: after it, a token is shown again.
const VISIT: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Template)]
#[template(path = "setup.html")]
struct SetupPage {
    frame: Frame,
    key: String,
    name: String,
    valid: bool,
    /// What is wrong with what was filled in.
    wrong: String,
}

#[derive(Debug, Deserialize)]
pub struct Key {
    #[serde(default)]
    key: String,
}

/// Looking at the link uses it up no more than a mail program's preview does.
pub async fn setup(
    State(app): State<App>,
    look: Look,
    Query(Key { key }): Query<Key>,
) -> Result<Response> {
    let valid = key.len() <= tokens::SECRET_MAX
        && app.store.is_invited(tokens::digest(&key), clock::now()).await?;
    let status = if valid { StatusCode::OK } else { StatusCode::GONE };
    let frame = Frame::outside(look, look.words().setup_title);
    let name = "operator".to_owned();
    draw_as(status, &SetupPage { frame, key, name, valid, wrong: String::new() })
}

#[derive(Debug, Deserialize)]
pub struct Entering {
    key: String,
    name: String,
}

/// Lets the first person in, as an operator. The token that the visit stands on has a secret that
/// nobody knows; to take it back ends the visit.
pub async fn enter(
    State(app): State<App>,
    look: Look,
    headers: HeaderMap,
    Form(Entering { key, name }): Form<Entering>,
) -> Result<Response> {
    let (w, digest) = (look.words(), tokens::digest(&key));
    if let Err(wrong) = check_name("name", name.trim()) {
        let frame = Frame::outside(look, w.setup_title);
        let page = SetupPage { frame, key, name, valid: true, wrong: wrong.to_string() };
        return draw_as(StatusCode::BAD_REQUEST, &page);
    }
    if key.len() > tokens::SECRET_MAX || !app.store.take_invitation(digest, clock::now()).await? {
        let frame = Frame::outside(look, w.setup_title);
        let page =
            SetupPage { frame, key: String::new(), name, valid: false, wrong: String::new() };
        return draw_as(StatusCode::GONE, &page);
    }
    let (human, system) = (TokenKind::Human, Actor::System);
    let (made, _) = tokens::make(&app.store, human, name.trim(), true, true, system).await?;
    let token = app.store.token_by_digest(tokens::digest(&made)).await?;
    let token = token.ok_or_else(|| ApiError::Internal("a token was not kept".to_owned()))?;
    begin(&app, &headers, &token, "link", "/").await
}

#[derive(Template)]
#[template(path = "signin.html")]
struct SignInPage {
    frame: Frame,
    next: String,
    refused: bool,
}

#[derive(Debug, Deserialize)]
pub struct Next {
    #[serde(default)]
    next: String,
}

pub async fn sign_in(look: Look, Query(Next { next }): Query<Next>) -> Result<Response> {
    let frame = Frame::outside(look, look.words().sign_in);
    draw(&SignInPage { frame, next: own_path(&next).to_owned(), refused: false })
}

#[derive(Debug, Deserialize)]
pub struct Shown {
    token: String,
    #[serde(default)]
    next: String,
}

/// Lets in whoever shows a person's token.
pub async fn admit(
    State(app): State<App>,
    look: Look,
    headers: HeaderMap,
    Form(Shown { token, next }): Form<Shown>,
) -> Result<Response> {
    let shown = token.trim();
    let known = match shown.len() {
        1..=tokens::SECRET_MAX => app.store.token_by_digest(tokens::digest(shown)).await?,
        _ => None,
    };
    match known.filter(|it| it.kind == TokenKind::Human) {
        Some(token) => begin(&app, &headers, &token, "token", own_path(&next)).await,
        None => {
            let frame = Frame::outside(look, look.words().sign_in);
            let page = SignInPage { frame, next: own_path(&next).to_owned(), refused: true };
            draw_as(StatusCode::UNAUTHORIZED, &page)
        }
    }
}

async fn begin(
    app: &App,
    headers: &HeaderMap,
    token: &Token,
    by: &str,
    next: &str,
) -> Result<Response> {
    let (secret, now) = (clock::new_secret(), clock::now());
    let person = UserId(token.name.clone());
    let entry = Entry {
        user: Some(person.clone()),
        reference: Some(token.id.to_string()),
        detail: json!({ "by": by }),
        ..Entry::new(clock::new_audit_id(), kind::SIGN_IN, Actor::User(person))
    };
    app.store.begin_visit(tokens::digest(&secret), token.id, now, now + VISIT, entry).await?;
    let mut response = Redirect::to(next).into_response();
    let seconds = VISIT.as_secs();
    let secure = if is_https(headers) { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    set_cookie(&mut response, &cookie)?;
    Ok(response)
}

#[derive(Debug, Deserialize)]
pub struct Nothing {}

pub async fn sign_out(
    State(app): State<App>,
    headers: HeaderMap,
    _: Signed<Nothing>,
) -> Result<Response> {
    if let Some(secret) = secret(&headers) {
        app.store.end_visit(tokens::digest(secret)).await?;
    }
    let mut response = Redirect::to("/signin").into_response();
    set_cookie(&mut response, &format!("{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"))?;
    Ok(response)
}
