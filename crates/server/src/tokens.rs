//! Tokens: made here, shown once, kept as a digest.

use std::collections::BTreeMap;

use chancery_api::token::{MadeToken, NewToken};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::event::Actor;
use chancery_domain::id::{AgentId, TokenId, UserId};
use chancery_domain::org::Org;
use chancery_runtime::clock;
use chancery_store::token::{Token, TokenKind};
use chancery_store::{Store, StoreError};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::config::ConfigError;
use crate::error::{ApiError, Result};
use crate::extract::{bad_request, check_name, check_person};

/// Longer ones are refused before they are hashed.
pub const SECRET_MAX: usize = 512;

/// Makes the token that was asked for, if there can be such a one.
pub async fn make_as_asked(
    store: &Store,
    org: &Org,
    asked: &NewToken,
    by: Actor,
) -> Result<MadeToken> {
    let made = make_once(store, org, asked, clock::new_token_id(), by).await?;
    made.ok_or_else(|| ApiError::Internal("a new id was there already".to_owned()))
}

/// Makes it under this id. `None`: there is one with that id, and it stays as it is.
pub async fn make_once(
    store: &Store,
    org: &Org,
    asked: &NewToken,
    id: TokenId,
    by: Actor,
) -> Result<Option<MadeToken>> {
    let NewToken { name, operator, approve, .. } = asked;
    let kind = match &*asked.kind {
        "human" => TokenKind::Human,
        "service" => TokenKind::Service,
        "agent" => TokenKind::Agent,
        other => return Err(bad_request(format!("there is no kind of token `{other}`"))),
    };
    match kind {
        TokenKind::Human => check_person("name", name)?,
        TokenKind::Service | TokenKind::Agent => check_name("name", name)?,
    }
    if kind == TokenKind::Agent && org.role_of(&AgentId::from(&**name)).is_none() {
        return Err(bad_request(format!("there is no agent `{name}`")));
    }
    if kind != TokenKind::Human && *operator || kind == TokenKind::Agent && *approve {
        return Err(bad_request(format!("a token of kind `{}` cannot hold that", asked.kind)));
    }
    let token = Token { id, ..describe(kind, name, *operator, *approve) };
    let secret = keep(store, &token, by).await?;
    Ok(secret.map(|token| MadeToken { token, id: id.to_string() }))
}

/// Makes a token and answers with its secret, which nothing can show again.
pub async fn make(
    store: &Store,
    of: TokenKind,
    name: &str,
    operator: bool,
    approve: bool,
    by: Actor,
) -> std::result::Result<(String, TokenId), StoreError> {
    let token = describe(of, name, operator, approve);
    let secret = keep(store, &token, by).await?;
    Ok((secret.unwrap_or_default(), token.id))
}

/// Keeps a token, and answers with its new secret. `None`: its id was there already.
async fn keep(
    store: &Store,
    token: &Token,
    by: Actor,
) -> std::result::Result<Option<String>, StoreError> {
    let secret = format!("chy_{}", clock::new_secret());
    let kept = store.add_token(token, digest(&secret), entry(kind::TOKEN_MADE, token, by)).await?;
    Ok(kept.then_some(secret))
}

/// Makes a token worthless.
pub async fn revoke(
    store: &Store,
    token: &Token,
    by: Actor,
) -> std::result::Result<bool, StoreError> {
    store.revoke_token(token.id, clock::now(), entry(kind::TOKEN_REVOKED, token, by)).await
}

/// What the audit says about a token: never its secret.
fn entry(kind: &'static str, token: &Token, by: Actor) -> Entry {
    let of = |kind| (token.kind == kind).then(|| token.name.clone());
    Entry {
        user: of(TokenKind::Human).map(UserId),
        agent: of(TokenKind::Agent).map(AgentId),
        reference: Some(token.id.to_string()),
        detail: json!({
            "kind": token.kind.as_str(),
            "name": token.name,
            "operator": token.operator,
            "approve": token.approve,
        }),
        ..Entry::new(clock::new_audit_id(), kind, by)
    }
}

/// The operator's token that was set from outside: `CHANCERY_BOOTSTRAP_TOKEN`, or the file that
/// `CHANCERY_BOOTSTRAP_TOKEN_FILE` names. One that could never be used is refused.
pub fn given(
    environment: &BTreeMap<String, String>,
) -> std::result::Result<Option<String>, ConfigError> {
    const NAME: &str = "CHANCERY_BOOTSTRAP_TOKEN";
    const FILE: &str = "CHANCERY_BOOTSTRAP_TOKEN_FILE";
    let set = |name: &str| environment.get(name).filter(|it| !it.is_empty());
    let secret = match (set(NAME), set(FILE)) {
        (Some(secret), _) => secret.clone(),
        (None, Some(file)) => std::fs::read_to_string(file).map_err(|it| {
            ConfigError::Meaning(format!("`{FILE}`: `{file}` cannot be read: {it}"))
        })?,
        (None, None) => return Ok(None),
    };
    let secret = secret.trim();
    let usable =
        (1..=SECRET_MAX).contains(&secret.len()) && secret.bytes().all(|it| it.is_ascii_graphic());
    if !usable {
        return Err(ConfigError::Meaning(format!(
            "`{NAME}` has 1 to {SECRET_MAX} visible ASCII characters, and no blanks"
        )));
    }
    Ok(Some(secret.to_owned()))
}

/// Makes a given string an operator's token, unless it is one already.
pub async fn bootstrap(store: &Store, secret: &str) -> std::result::Result<(), StoreError> {
    let token = describe(TokenKind::Human, "operator", true, true);
    let entry = entry(kind::TOKEN_MADE, &token, Actor::System);
    store.add_token(&token, digest(secret), entry).await?;
    Ok(())
}

pub fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

fn describe(kind: TokenKind, name: &str, operator: bool, approve: bool) -> Token {
    Token {
        id: clock::new_token_id(),
        kind,
        name: name.to_owned(),
        operator,
        approve,
        created_at: clock::now(),
        revoked_at: None,
    }
}
