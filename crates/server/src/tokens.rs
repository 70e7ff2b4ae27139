//! Tokens: made here, shown once, kept as a digest.

use chancery_domain::id::TokenId;
use chancery_runtime::clock;
use chancery_store::token::{Token, TokenKind};
use chancery_store::{Store, StoreError};
use sha2::{Digest, Sha256};

/// Longer ones are refused before they are hashed.
pub const SECRET_MAX: usize = 512;

/// Makes a token and answers with its secret, which nothing can show again.
pub async fn make(
    store: &Store,
    kind: TokenKind,
    name: &str,
    operator: bool,
    approve: bool,
) -> Result<(String, TokenId), StoreError> {
    let secret = format!("chy_{}", clock::new_secret());
    let token = describe(kind, name, operator, approve);
    store.add_token(&token, digest(&secret)).await?;
    Ok((secret, token.id))
}

/// Makes a given string an operator's token, unless it is one already.
pub async fn bootstrap(store: &Store, secret: &str) -> Result<(), StoreError> {
    let token = describe(TokenKind::Human, "operator", true, true);
    store.add_token(&token, digest(secret)).await?;
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
