//! Tokens: for operators to make, list and revoke.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chancery_api::token::{MadeToken, NewToken, Token};
use chancery_api::{Page, Problems};
use chancery_domain::id::TokenId;

use crate::access::Operator;
use crate::error::{ApiError, Result};
use crate::extract::Body;
use crate::router::App;
use crate::{tokens, view};

/// Makes a token; its secret is shown this once.
#[utoipa::path(post, path = "/api/tokens", request_body = NewToken,
    responses((status = 201, body = MadeToken), Problems))]
pub async fn make(
    State(app): State<App>,
    Operator(caller): Operator,
    Body(body): Body<NewToken>,
) -> Result<(StatusCode, Json<MadeToken>)> {
    let authority = app.authority.get();
    let by = caller.actor();
    let made = tokens::make_as_asked(&app.store, authority.org(), &body, by).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

/// Every token, without its secret.
#[utoipa::path(get, path = "/api/tokens",
    responses((status = 200, body = Page<Token>), Problems))]
pub async fn list(State(app): State<App>, _: Operator) -> Result<Json<Page<Token>>> {
    let items = app.store.tokens().await?.into_iter().map(view::token).collect();
    Ok(Json(Page { items, next_cursor: None }))
}

/// Makes a token worthless.
#[utoipa::path(post, path = "/api/tokens/{id}/revoke", params(("id" = String, Path)),
    responses((status = 200, body = Token), Problems))]
pub async fn revoke(
    State(app): State<App>,
    Operator(caller): Operator,
    Path(id): Path<String>,
) -> Result<Json<Token>> {
    let missing = || ApiError::NotFound { what: "token", id: id.chars().take(64).collect() };
    let token: TokenId = id.parse().map_err(|_| missing())?;
    let find = async || {
        let all = app.store.tokens().await?;
        all.into_iter().find(|it| it.id == token).ok_or_else(missing)
    };
    tokens::revoke(&app.store, &find().await?, caller.actor()).await?;
    Ok(Json(view::token(find().await?)))
}
