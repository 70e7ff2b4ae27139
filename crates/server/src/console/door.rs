//! The door: a link that lets somebody in once, a token that is shown, and the way out.

use askama::Template;
use axum::Form;
use axum::extract::{FromRequestParts as _, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::Actor;
use chancery_domain::id::UserId;
use chancery_runtime::clock;
use chancery_store::token::{Token, TokenKind};
use chancery_store::visit::Visit;
use jiff::SignedDuration;
use serde::Deserialize;
use serde_json::json;

use super::cookie::{self, Kept};
use super::form::{Signed, own_path};
use super::learned::Known;
use super::look::Look;
use super::lost::{self, Lost};
use super::page::{Frame, draw, draw_as};
use super::ruling::sentence;
use super::visitor::{COOKIE, Visitor};
use crate::error::{ApiError, Result};
use crate::extract::check_person;
use crate::router::App;
use crate::tokens;
use crate::turnstile::Stranger;

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
    _: Stranger,
    look: Look,
    Query(Key { key }): Query<Key>,
) -> Result<Response> {
    let valid = key.len() <= tokens::SECRET_MAX
        && app.store.is_invited(tokens::digest(&key), clock::now()).await?;
    let status = if valid { StatusCode::OK } else { StatusCode::GONE };
    let frame = Frame::outside(look, look.words().setup_title);
    // Whoever changes the language or the light comes back to the same link.
    let frame = if valid { Frame { path: format!("/setup?key={key}"), ..frame } } else { frame };
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
    _: Stranger,
    look: Look,
    headers: HeaderMap,
    Form(Entering { key, name }): Form<Entering>,
) -> Result<Response> {
    let (w, digest) = (look.words(), tokens::digest(&key));
    if let Err(wrong) = check_person("name", name.trim()) {
        let frame = Frame::outside(look, w.setup_title);
        let page =
            SetupPage { frame, key, name, valid: true, wrong: sentence(&wrong.to_string(), w) };
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
    let mut response = Redirect::to("/").into_response();
    begin(&app, &headers, &mut response, &token, "link", VISIT).await?;
    Ok(response)
}

#[derive(Template)]
#[template(path = "signin.html")]
pub struct SignInPage {
    frame: Frame,
    next: String,
    refused: bool,
    /// Who vouches for people, if somebody does.
    issuer: Option<String>,
    /// A visit has ended while somebody was at something.
    ended: bool,
    /// What they had sent.
    lost: Lost,
    too_long: bool,
}

impl SignInPage {
    fn of(app: &App, look: Look, next: &str, refused: bool) -> SignInPage {
        let frame = Frame::outside(look, look.words().sign_in);
        let issuer = app.oidc.as_ref().map(|it| it.config.shown_as());
        let next = own_path(next).to_owned();
        let (ended, lost, too_long) = (false, Lost::default(), false);
        SignInPage { frame, next, refused, issuer, ended, lost, too_long }
    }

    /// For who was signed in when they began to type.
    pub fn again(look: Look, known: &Known, next: &str, lost: Lost) -> SignInPage {
        let frame = Frame { path: next.to_owned(), ..Frame::outside(look, look.words().sign_in) };
        let (next, issuer) = (next.to_owned(), known.issuer.clone());
        let too_long = known.too_long;
        SignInPage { frame, next, refused: false, issuer, ended: true, lost, too_long }
    }
}

#[derive(Debug, Deserialize)]
pub struct Next {
    #[serde(default)]
    next: String,
}

pub async fn sign_in(
    State(app): State<App>,
    look: Look,
    Query(Next { next }): Query<Next>,
) -> Result<Response> {
    draw(&SignInPage::of(&app, look, &next, false))
}

#[derive(Debug, Deserialize)]
pub struct Shown {
    /// Empty: they have signed in elsewhere meanwhile.
    #[serde(default)]
    token: String,
    #[serde(default)]
    next: String,
    #[serde(flatten)]
    lost: Lost,
}

/// Lets in whoever shows a person's token, and gives back what they had typed when their last
/// visit ended.
pub async fn admit(
    State(app): State<App>,
    _: Stranger,
    look: Look,
    mut parts: Parts,
    Form(Shown { token, next, lost }): Form<Shown>,
) -> Result<Response> {
    let (shown, next) = (token.trim(), own_path(&next));
    let onward = |visitor: &Visitor| {
        let given = lost::given(visitor, &lost, next);
        given.unwrap_or_else(|| Ok(Redirect::to(next).into_response()))
    };
    if shown.is_empty()
        && let Ok(visitor) = Visitor::from_request_parts(&mut parts, &app).await
    {
        return onward(&visitor);
    }
    let known = match shown.len() {
        1..=tokens::SECRET_MAX => app.store.token_by_digest(tokens::digest(shown)).await?,
        _ => None,
    };
    match known.filter(|it| it.kind == TokenKind::Human) {
        Some(token) => {
            let secret = open(&app, &parts.headers, &token, "token", VISIT).await?;
            let visit = Visit { token, vouched: false };
            let mut response = onward(&Visitor::of(&app, look, visit, &secret, next).await?)?;
            cookie::set(&app, &parts.headers, &mut response, COOKIE, &secret, Kept::Here(VISIT))?;
            Ok(response)
        }
        None => {
            let ended = !lost.whose.is_empty();
            let page = SignInPage { ended, lost, ..SignInPage::of(&app, look, next, true) };
            draw_as(StatusCode::UNAUTHORIZED, &page)
        }
    }
}

/// Begins a visit, and puts its secret into the answer. One that the browser had before ends: who
/// sits there now is not who sat there then.
pub async fn begin(
    app: &App,
    headers: &HeaderMap,
    response: &mut Response,
    token: &Token,
    by: &str,
    lasts: SignedDuration,
) -> Result<()> {
    let secret = open(app, headers, token, by, lasts).await?;
    cookie::set(app, headers, response, COOKIE, &secret, Kept::Here(lasts))
}

/// The same, with its secret to whoever answers.
async fn open(
    app: &App,
    headers: &HeaderMap,
    token: &Token,
    by: &str,
    lasts: SignedDuration,
) -> Result<String> {
    let (secret, now) = (clock::new_secret(), clock::now());
    let person = UserId(token.name.clone());
    let entry = Entry {
        user: Some(person.clone()),
        reference: Some(token.id.to_string()),
        detail: json!({ "by": by }),
        ..Entry::new(clock::new_audit_id(), kind::SIGN_IN, Actor::User(person))
    };
    app.store.begin_visit(tokens::digest(&secret), token.id, now, now + lasts, entry).await?;
    if let Some(before) = cookie::get(app, headers, COOKIE) {
        app.store.end_visit(tokens::digest(before)).await?;
    }
    Ok(secret)
}

#[derive(Debug, Deserialize)]
pub struct Nothing {}

pub async fn sign_out(
    State(app): State<App>,
    headers: HeaderMap,
    Signed { visitor, .. }: Signed<Nothing>,
) -> Result<Response> {
    app.store.end_visit(visitor.digest).await?;
    let mut response = Redirect::to("/signin").into_response();
    cookie::clear(&app, &headers, &mut response, COOKIE)?;
    Ok(response)
}
