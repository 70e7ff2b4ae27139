//! Signing in with an issuer's word: there and back again, once, in the browser that went.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::Actor;
use chancery_domain::id::UserId;
use chancery_runtime::clock;
use chancery_runtime::issuer::{Claims, Handshake, Issuer, IssuerError};
use chancery_store::token::{Token, TokenKind};
use chancery_store::vouched::Vouched;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;

use super::cookie::{self, Kept};
use super::door::begin;
use super::form::own_path;
use super::look::Look;
use super::page::{Frame, again, draw_as};
use super::vouched::{Person, Unfit, person};
use crate::config::{OidcConfig, Standing};
use crate::error::{ApiError, Result};
use crate::router::App;
use crate::tokens;
use crate::turnstile::Stranger;

pub const COOKIE: &str = "chancery_departure";
/// Long enough to look for a second factor.
const AWAY: SignedDuration = SignedDuration::from_mins(10);
/// Issuers' codes and states are far shorter.
const PARAMETER_MAX: usize = 4096;

/// The issuer that vouches for people, and who of them is let in.
#[derive(Debug)]
pub struct Oidc {
    pub issuer: Issuer,
    pub config: OidcConfig,
}

/// Why somebody is not let in, in one sentence, with what is known of them.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    why: String,
    subject: Option<String>,
    name: Option<String>,
}

#[derive(Template)]
#[template(path = "refused.html")]
struct RefusedPage {
    frame: Frame,
    why: String,
    id: String,
}

#[derive(Debug, Deserialize)]
pub struct Next {
    #[serde(default)]
    next: String,
}

/// Sends somebody to the issuer.
pub async fn depart(
    State(app): State<App>,
    _: Stranger,
    look: Look,
    headers: HeaderMap,
    Query(Next { next }): Query<Next>,
) -> Result<Response> {
    let oidc = configured(&app)?;
    let (secret, now) = (clock::new_secret(), clock::now());
    let url = match oidc.issuer.send(&Handshake::of(&secret), now).await {
        Ok(url) => url,
        Err(error) => return refuse(&app, look, error.into()).await,
    };
    app.store.depart(tokens::digest(&secret), own_path(&next), now, now + AWAY).await?;
    let mut response = Redirect::to(&url).into_response();
    cookie::set(&app, &headers, &mut response, COOKIE, &secret, Kept::Away(AWAY))?;
    Ok(response)
}

#[derive(Debug, Default, Deserialize)]
pub struct Back {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
    iss: Option<String>,
    error: Option<String>,
}

/// Takes back who was sent.
pub async fn come_back(
    State(app): State<App>,
    _: Stranger,
    look: Look,
    headers: HeaderMap,
    back: std::result::Result<Query<Back>, axum::extract::rejection::QueryRejection>,
) -> Result<Response> {
    let oidc = configured(&app)?;
    // What says a thing twice says nothing.
    let Query(back) = back.unwrap_or_default();
    let (token, next) = match received(&app, &oidc, &headers, &back).await? {
        Ok(received) => received,
        Err(refused) => return refuse(&app, look, refused).await,
    };
    // The issuer's page has led here, so the browser keeps our cookie back until it asks anew.
    let mut response = again(look, &next)?;
    let lasts = SignedDuration::try_from(oidc.config.visit.0).unwrap_or(AWAY);
    begin(&app, &headers, &mut response, &token, "oidc", lasts).await?;
    cookie::clear(&app, &headers, &mut response, COOKIE)?;
    Ok(response)
}

async fn received(
    app: &App,
    oidc: &Oidc,
    headers: &HeaderMap,
    back: &Back,
) -> Result<std::result::Result<(Token, String), Refused>> {
    let refused = |why: &str| Ok(Err(Refused::because(StatusCode::FORBIDDEN, why.to_owned())));
    let now = clock::now();
    let Some(secret) = cookie::get(app, headers, COOKIE) else {
        return refused("this browser was not sent to the identity provider: begin again");
    };
    let handshake = Handshake::of(secret);
    // Before it is used up: a link of somebody else's must not spoil what is under way.
    if !cookie::is_same(&back.state, handshake.state()) {
        return refused("this answer belongs to another browser: begin again");
    }
    let Some(next) = app.store.come_back(tokens::digest(secret), now).await? else {
        return refused("this answer was used before, or came too late: begin again");
    };
    let vouched = claims(oidc, &handshake, back, now).await;
    let claims = match vouched {
        Ok(claims) => claims,
        Err(error) => return Ok(Err(error.into())),
    };
    let of = |why: String| Refused {
        subject: Some(claims.subject().to_owned()),
        ..Refused::because(StatusCode::FORBIDDEN, why)
    };
    let known = app.store.vouched(oidc.issuer.name(), claims.subject()).await?;
    let person = match person(&oidc.config, &claims) {
        Ok(person) => person,
        Err(unfit) => {
            if unfit == Unfit::NotLetIn {
                show_out(app, known.as_ref()).await?;
            }
            let name = known.map(|it| it.name);
            return Ok(Err(Refused { name, ..of(unfit.to_string()) }));
        }
    };
    let known = match known {
        Some(known) => known,
        None => match introduce(app, oidc, &claims, &person, now).await? {
            Ok(known) => known,
            Err(why) => return Ok(Err(Refused { name: Some(person.name), ..of(why) })),
        },
    };
    let token = standing(app, oidc, &claims, &known, person.standing).await?;
    Ok(Ok((token, own_path(&next).to_owned())))
}

/// What the issuer says of whoever came back.
async fn claims(
    oidc: &Oidc,
    handshake: &Handshake,
    back: &Back,
    now: Timestamp,
) -> std::result::Result<Claims, IssuerError> {
    oidc.issuer.check_sender(back.iss.as_deref(), now).await?;
    if let Some(error) = &back.error {
        let plain = (1..=64).contains(&error.len())
            && error.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
        let word = if plain { error } else { "it did not say why" };
        return Err(IssuerError::Refused(word.to_owned()));
    }
    if back.code.is_empty() || back.code.len() > PARAMETER_MAX {
        return Err(IssuerError::Untrue("there is no code in its answer".to_owned()));
    }
    oidc.issuer.redeem(&back.code, handshake, now).await
}

/// Gives a name to somebody who was never vouched for before, unless it is somebody else's.
async fn introduce(
    app: &App,
    oidc: &Oidc,
    claims: &Claims,
    person: &Person,
    now: Timestamp,
) -> Result<std::result::Result<Vouched, String>> {
    let (issuer, subject, name) = (oidc.issuer.name(), claims.subject(), &*person.name);
    let named = app.authority.get().org().users.contains_key(&UserId::from(name));
    let is_here = named || app.store.is_person(name).await?;
    if is_here && !oidc.config.link {
        let why = format!("there is a `{name}` here whom the identity provider does not speak for");
        return Ok(Err(why));
    }
    if !is_here && !oidc.config.create {
        return Ok(Err(format!("nobody has let `{name}` in")));
    }
    // Another server may have given them one at the same instant: then they have that.
    app.store.vouch(issuer, subject, name, now).await?;
    let known = app.store.vouched(issuer, subject).await?;
    Ok(known.ok_or_else(|| {
        format!("`{name}` is somebody else, for whom the identity provider has spoken before")
    }))
}

/// The token that the visits of somebody stand on. When what they may has changed, the one before
/// is taken back, and with it the visits that stood on it.
async fn standing(
    app: &App,
    oidc: &Oidc,
    claims: &Claims,
    known: &Vouched,
    standing: Standing,
) -> Result<Token> {
    let (operator, approve) = (standing == Standing::Operator, standing >= Standing::Approver);
    let before = match known.token {
        Some(id) => app.store.token(id).await?.filter(|it| it.revoked_at.is_none()),
        None => None,
    };
    if let Some(token) = &before
        && (token.operator, token.approve) == (operator, approve)
    {
        return Ok(token.clone());
    }
    let (kind, system) = (TokenKind::Human, Actor::System);
    // Nobody ever sees its secret: it is for visits alone.
    let (_, id) = tokens::make(&app.store, kind, &known.name, operator, approve, system).await?;
    let made = app.store.token(id).await?;
    let made = made.ok_or_else(|| ApiError::Internal("a token was not kept".to_owned()))?;
    let (issuer, subject) = (oidc.issuer.name(), claims.subject());
    if !app.store.stand_on(issuer, subject, known.token, id).await? {
        tokens::revoke(&app.store, &made, Actor::System).await?;
        let detail = "you signed in twice at the same instant: sign in again".to_owned();
        return Err(ApiError::Conflict { code: "signed_in_twice", detail });
    }
    if let Some(before) = before {
        tokens::revoke(&app.store, &before, Actor::System).await?;
    }
    Ok(made)
}

/// Ends the visits of somebody who is no longer let in.
async fn show_out(app: &App, known: Option<&Vouched>) -> Result<()> {
    if let Some(id) = known.and_then(|it| it.token)
        && let Some(token) = app.store.token(id).await?
    {
        tokens::revoke(&app.store, &token, Actor::System).await?;
    }
    Ok(())
}

/// A page with one sentence, and the id of what the audit says about it.
async fn refuse(app: &App, look: Look, refused: Refused) -> Result<Response> {
    let Refused { status, why, subject, name } = refused;
    let id = clock::new_audit_id();
    let entry = Entry {
        user: name.map(UserId),
        detail: json!({ "by": "oidc", "why": why, "subject": subject }),
        ..Entry::new(id, kind::SIGN_IN_REFUSED, Actor::System)
    };
    app.store.audit(vec![entry], clock::now()).await?;
    let frame = Frame::outside(look, look.words().sign_in_failed);
    draw_as(status, &RefusedPage { frame, why, id: id.to_string() })
}

fn configured(app: &App) -> Result<Arc<Oidc>> {
    app.oidc.clone().ok_or(ApiError::NoRoute)
}

impl Refused {
    fn because(status: StatusCode, why: String) -> Refused {
        Refused { status, why, subject: None, name: None }
    }
}

impl From<IssuerError> for Refused {
    fn from(error: IssuerError) -> Refused {
        let status = match error {
            IssuerError::Unusable(_) => StatusCode::BAD_GATEWAY,
            IssuerError::Refused(_) | IssuerError::Untrue(_) => StatusCode::FORBIDDEN,
        };
        Refused::because(status, error.to_string())
    }
}
