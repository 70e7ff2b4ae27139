//! Tokens on the page of settings. A form makes one token, however often it is sent; the secret
//! is on one page, once. What would sign somebody out, or leave no operator, is asked first.

use askama::Template;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::token::{NewToken, Token};
use chancery_domain::id::TokenId;
use jiff::SignedDuration;
use serde::Deserialize;

use super::{SettingsPage, page};
use crate::access::Operator;
use crate::console::audit::operator;
use crate::console::cookie::{self, Kept};
use crate::console::form::Signed;
use crate::console::page::{Frame, Room, draw};
use crate::console::visitor::Visitor;
use crate::console::words::{Words, fill};
use crate::error::Result;
use crate::extract::bad_request;
use crate::router::App;
use crate::routes::tokens;
use crate::tokens as secrets;

/// Carries a new secret to the page that shows it, and is gone then.
const MADE: &str = "chancery_made";
/// Long enough for a browser to follow, and no longer.
const MADE_LASTS: SignedDuration = SignedDuration::from_secs(60);

#[derive(Debug, Deserialize)]
pub struct Wanted {
    /// The id that the token will have: a form that is sent twice makes one.
    #[serde(default)]
    mark: String,
    kind: String,
    name: String,
    /// A box that is ticked says `yes`.
    #[serde(default)]
    operator: String,
    #[serde(default)]
    approve: String,
}

/// Makes a token, and leads to the page that shows its secret.
pub async fn make(
    State(app): State<App>,
    headers: HeaderMap,
    Signed { visitor, form }: Signed<Wanted>,
) -> Result<Response> {
    let Operator(caller) = operator(&visitor)?;
    let id: TokenId = form.mark.parse().map_err(|it| bad_request(format!("`mark`: {it}")))?;
    let new = NewToken {
        kind: form.kind,
        name: form.name.trim().to_owned(),
        operator: form.operator == "yes",
        approve: form.approve == "yes",
    };
    let (authority, by) = (app.authority.get(), caller.actor());
    let made = secrets::make_once(&app.store, authority.org(), &new, id, by).await?;
    let mut response = Redirect::to("/settings/tokens/made#made").into_response();
    if let Some(made) = made {
        let kept = Kept::Here(MADE_LASTS);
        cookie::set(&app, &headers, &mut response, MADE, &made.token, kept)?;
    }
    Ok(response)
}

/// Shows the secret that was made a moment ago. It is shown once: whoever loads the page again is
/// told so.
pub async fn made(
    State(app): State<App>,
    headers: HeaderMap,
    visitor: Visitor,
) -> Result<Response> {
    operator(&visitor)?;
    let secret = cookie::get(&app, &headers, MADE).map(str::to_owned);
    let page = page(&app, &visitor).await?;
    let mut response = draw(&SettingsPage { made: Some(secret.unwrap_or_default()), ..page })?;
    cookie::clear(&app, &headers, &mut response, MADE)?;
    Ok(response)
}

#[derive(Template)]
#[template(path = "sure.html")]
struct SurePage {
    frame: Frame,
    title: &'static str,
    warnings: Vec<String>,
    action: String,
    button: &'static str,
}

/// Asks once more. The second step is a form like the first.
pub fn sure(
    visitor: &Visitor,
    action: String,
    warnings: Vec<String>,
    button: &'static str,
) -> Result<Response> {
    let w = visitor.words();
    let frame = Frame::of(visitor, Room::Settings, w.sure_title);
    draw(&SurePage { frame, title: w.sure_title, warnings, action, button })
}

#[derive(Debug, Deserialize)]
pub struct Confirmed {
    #[serde(default)]
    confirmed: String,
}

impl Confirmed {
    pub fn is_sure(&self) -> bool {
        self.confirmed == "yes"
    }
}

pub async fn revoke(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Confirmed>,
) -> Result<Response> {
    let Operator(caller) = operator(&visitor)?;
    let (w, own) = (visitor.words(), visitor.caller.token().to_string());
    if !form.is_sure() {
        let all = tokens::list(State(app.clone()), Operator(caller.clone())).await?.0.items;
        let warnings = warnings(&all, &id, &own, w);
        if !warnings.is_empty() {
            let action = format!("/settings/tokens/{id}/revoke");
            return sure(&visitor, action, warnings, w.take_back);
        }
    }
    let Json(_) = tokens::revoke(State(app), Operator(caller), Path(id)).await?;
    Ok(Redirect::to("/settings#tokens").into_response())
}

/// What is to be said before a token is taken back.
fn warnings(all: &[Token], id: &str, own: &str, w: &'static Words) -> Vec<String> {
    let Some(token) = all.iter().find(|it| it.id == id && it.revoked_at.is_none()) else {
        return Vec::new();
    };
    let operates = |it: &&Token| it.operator && it.revoked_at.is_none() && it.id != id;
    let last = token.operator && all.iter().find(operates).is_none();
    let signs_out = (id == own).then(|| w.sure_signs_out.to_owned());
    let leaves_none = last.then(|| fill(w.sure_last_operator, &[("name", &token.name)]));
    signs_out.into_iter().chain(leaves_none).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::console::words::EN;

    fn token(id: &str, operator: bool, revoked: bool) -> Token {
        Token {
            id: id.to_owned(),
            kind: "human".to_owned(),
            name: "lin".to_owned(),
            operator,
            approve: false,
            created_at: Timestamp::UNIX_EPOCH,
            revoked_at: revoked.then_some(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn what_signs_out_or_leaves_no_operator_is_asked_first() {
        let all = [token("a", true, false), token("b", false, false), token("c", true, true)];
        let signs_out = EN.sure_signs_out.to_owned();
        let last = fill(EN.sure_last_operator, &[("name", "lin")]);
        assert_eq!(warnings(&all, "a", "a", &EN), [signs_out.clone(), last.clone()]);
        assert_eq!(warnings(&all, "a", "z", &EN), [last]);
        assert_eq!(warnings(&all, "b", "b", &EN), [signs_out]);
        assert_eq!(warnings(&all, "b", "a", &EN), [""; 0]);
        assert_eq!(warnings(&all, "c", "a", &EN), [""; 0], "it is of no use already");
        let two = [token("a", true, false), token("d", true, false)];
        assert_eq!(warnings(&two, "a", "d", &EN), [""; 0]);
    }
}
