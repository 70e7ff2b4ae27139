//! Tokens: who may speak for whom. Only a digest of the secret is kept.

use chancery_domain::audit::Entry;
use chancery_domain::id::TokenId;
use jiff::Timestamp;

use crate::log::timestamp;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A person.
    Human,
    /// A program; may hold the approver permission.
    Service,
    /// Acts as one agent.
    Agent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub id: TokenId,
    pub kind: TokenKind,
    /// The user, the service's name, or the agent.
    pub name: String,
    /// May act for any user of the organisation.
    pub operator: bool,
    /// May answer permission requests (services; people may by who they are).
    pub approve: bool,
    pub created_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

impl TokenKind {
    pub fn as_str(self) -> &'static str {
        match self {
            TokenKind::Human => "human",
            TokenKind::Service => "service",
            TokenKind::Agent => "agent",
        }
    }

    fn parse(text: &str) -> Result<TokenKind, StoreError> {
        [TokenKind::Human, TokenKind::Service, TokenKind::Agent]
            .into_iter()
            .find(|it| it.as_str() == text)
            .ok_or_else(|| StoreError::Unreadable(format!("a token of kind `{text}`")))
    }
}

impl Store {
    /// Keeps a token, and in the audit that it was made. One that is there already, by its
    /// secret, stays as it is.
    pub async fn add_token(
        &self,
        token: &Token,
        digest: [u8; 32],
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let added = self
            .execute_audited(
                "INSERT INTO tokens (id, secret_sha256, kind, name, operator, approve, created_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
                vec![
                    Param::Uuid(token.id.0),
                    Param::Bytes(digest.to_vec()),
                    Param::Text(token.kind.as_str().to_owned()),
                    Param::Text(token.name.clone()),
                    Param::Int(i64::from(token.operator)),
                    Param::Int(i64::from(token.approve)),
                    Param::Int(token.created_at.as_microsecond()),
                ],
                vec![entry],
                token.created_at,
            )
            .await?;
        Ok(added == 1)
    }

    /// The token with this secret, unless it was revoked.
    pub async fn token_by_digest(&self, digest: [u8; 32]) -> Result<Option<Token>, StoreError> {
        let found = self
            .query(
                "SELECT id, kind, name, operator, approve, created_at, revoked_at FROM tokens
                 WHERE secret_sha256 = $1 AND revoked_at IS NULL",
                vec![Param::Bytes(digest.to_vec())],
                token,
            )
            .await?;
        Ok(found.into_iter().next())
    }

    /// A token by its id, revoked or not.
    pub async fn token(&self, id: TokenId) -> Result<Option<Token>, StoreError> {
        let found = self
            .query(
                "SELECT id, kind, name, operator, approve, created_at, revoked_at FROM tokens
                 WHERE id = $1",
                vec![Param::Uuid(id.0)],
                token,
            )
            .await?;
        Ok(found.into_iter().next())
    }

    pub async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.query(
            "SELECT id, kind, name, operator, approve, created_at, revoked_at FROM tokens ORDER BY id",
            vec![],
            token,
        )
        .await
    }

    /// Answers whether there was such a token, still valid; the audit keeps that it no longer is.
    pub async fn revoke_token(
        &self,
        id: TokenId,
        at: Timestamp,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let revoked = self
            .execute_audited(
                "UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL",
                vec![Param::Int(at.as_microsecond()), Param::Uuid(id.0)],
                vec![entry],
                at,
            )
            .await?;
        Ok(revoked == 1)
    }
}

pub(crate) fn token(row: &dyn Columns) -> Result<Token, StoreError> {
    Ok(Token {
        id: TokenId(row.uuid(0)?),
        kind: TokenKind::parse(&row.text(1)?)?,
        name: row.text(2)?,
        operator: row.int(3)? != 0,
        approve: row.int(4)? != 0,
        created_at: timestamp(row.int(5)?)?,
        revoked_at: row.opt_int(6)?.map(timestamp).transpose()?,
    })
}
