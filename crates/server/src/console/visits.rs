//! Visits, to be looked at and ended: one's own, and everybody's for operators.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::id::UserId;
use chancery_runtime::clock;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::cookie;
use super::form::Signed;
use super::settings::tokens::{Confirmed, sure};
use super::visitor::{COOKIE, Visitor};
use crate::error::{ApiError, Result};
use crate::router::App;

/// More than a person looks through.
const SHOWN_MAX: u32 = 200;

/// A visit on the page. Its id is the digest of its secret, which opens nothing.
#[derive(Debug)]
pub struct Seen {
    pub id: String,
    pub name: String,
    pub began_at: Timestamp,
    pub ends_at: Timestamp,
    /// Whether it is the one that looks.
    pub this: bool,
}

pub async fn list(app: &App, visitor: &Visitor) -> Result<Vec<Seen>> {
    let found = app.store.visits(whose(visitor), clock::now(), SHOWN_MAX).await?;
    let seen = found.into_iter().map(|it| Seen {
        id: it.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        this: it.digest == visitor.digest,
        name: it.name,
        began_at: it.began_at,
        ends_at: it.ends_at,
    });
    Ok(seen.collect())
}

/// Whose visits somebody sees and ends; `None`: everybody's.
pub fn whose(visitor: &Visitor) -> Option<&str> {
    (!visitor.caller.is_operator()).then(|| visitor.name())
}

#[derive(Debug, Deserialize)]
pub struct Nothing {}

/// Ends a visit. The one that asks is asked itself first.
pub async fn end(
    State(app): State<App>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Signed { visitor, form }: Signed<Confirmed>,
) -> Result<Response> {
    let missing = || ApiError::NotFound { what: "visit", id: id.chars().take(64).collect() };
    let digest = digest(&id).ok_or_else(missing)?;
    let own = digest == visitor.digest;
    if own && !form.is_sure() {
        let w = visitor.words();
        let action = format!("/settings/visits/{id}/end");
        return sure(&visitor, action, vec![w.sure_signs_out.to_owned()], w.visit_end);
    }
    let entry = entry(&visitor, json!({ "visit": id }));
    if !app.store.end_visit_of(whose(&visitor), digest, clock::now(), entry).await? {
        return Err(missing());
    }
    if own {
        let mut response = Redirect::to("/signin").into_response();
        cookie::clear(&app, &headers, &mut response, COOKIE)?;
        return Ok(response);
    }
    Ok(Redirect::to("/settings#visits").into_response())
}

/// Ends every other visit of whoever asks.
pub async fn end_others(
    State(app): State<App>,
    Signed { visitor, .. }: Signed<Nothing>,
) -> Result<Response> {
    let entry = entry(&visitor, json!({ "visit": "others" }));
    app.store.end_visits(visitor.name(), visitor.digest, clock::now(), entry).await?;
    Ok(Redirect::to("/settings#visits").into_response())
}

fn entry(visitor: &Visitor, detail: serde_json::Value) -> Entry {
    let user = Some(UserId::from(visitor.name()));
    Entry {
        user,
        detail,
        ..Entry::new(clock::new_audit_id(), kind::SIGN_OUT, visitor.caller.actor())
    }
}

fn digest(id: &str) -> Option<[u8; 32]> {
    let bytes = id.as_bytes().chunks_exact(2).map(|pair| {
        let text = std::str::from_utf8(pair).ok().filter(|it| !it.starts_with('+'))?;
        u8::from_str_radix(text, 16).ok()
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.filter(|_| id.len() == 64)?.try_into().ok()
}
