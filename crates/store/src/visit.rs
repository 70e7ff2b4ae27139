//! Visits: people who are signed in to the console, and the links that let somebody in once. Only
//! digests of the secrets are kept.

use chancery_domain::audit::Entry;
use chancery_domain::id::TokenId;
use jiff::Timestamp;

use crate::sql::Param;
use crate::token::{Token, token};
use crate::{Store, StoreError};

impl Store {
    /// Begins a visit that stands on a token; the audit keeps that it began.
    pub async fn begin_visit(
        &self,
        digest: [u8; 32],
        token: TokenId,
        at: Timestamp,
        until: Timestamp,
        entry: Entry,
    ) -> Result<(), StoreError> {
        // Those that are over are of no use to anyone.
        let now = Param::Int(at.as_microsecond());
        self.execute("DELETE FROM visits WHERE ends_at <= $1", vec![now.clone()]).await?;
        self.execute_audited(
            "INSERT INTO visits (secret_sha256, token_id, began_at, ends_at)
             VALUES ($1, $2, $3, $4)",
            vec![
                Param::Bytes(digest.to_vec()),
                Param::Uuid(token.0),
                now,
                Param::Int(until.as_microsecond()),
            ],
            vec![entry],
            at,
        )
        .await?;
        Ok(())
    }

    /// The token that a visit stands on, unless either is over.
    pub async fn visit(
        &self,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Token>, StoreError> {
        let found = self
            .query(
                "SELECT t.id, t.kind, t.name, t.operator, t.approve, t.created_at, t.revoked_at
                 FROM visits v JOIN tokens t ON t.id = v.token_id
                 WHERE v.secret_sha256 = $1 AND v.ends_at > $2 AND t.revoked_at IS NULL",
                vec![Param::Bytes(digest.to_vec()), Param::Int(now.as_microsecond())],
                token,
            )
            .await?;
        Ok(found.into_iter().next())
    }

    pub async fn end_visit(&self, digest: [u8; 32]) -> Result<(), StoreError> {
        let sql = "DELETE FROM visits WHERE secret_sha256 = $1";
        self.execute(sql, vec![Param::Bytes(digest.to_vec())]).await?;
        Ok(())
    }

    /// Whether anyone is signed in.
    pub async fn has_visits(&self, now: Timestamp) -> Result<bool, StoreError> {
        let found = self
            .query(
                "SELECT 1 FROM visits v JOIN tokens t ON t.id = v.token_id
                 WHERE v.ends_at > $1 AND t.revoked_at IS NULL LIMIT 1",
                vec![Param::Int(now.as_microsecond())],
                |_| Ok(()),
            )
            .await?;
        Ok(!found.is_empty())
    }

    /// Keeps a link that lets somebody in once, until then.
    pub async fn invite(
        &self,
        digest: [u8; 32],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let past = vec![Param::Int(now.as_microsecond())];
        self.execute("DELETE FROM invitations WHERE ends_at <= $1", past).await?;
        self.execute(
            "INSERT INTO invitations (secret_sha256, ends_at) VALUES ($1, $2)",
            vec![Param::Bytes(digest.to_vec()), Param::Int(until.as_microsecond())],
        )
        .await?;
        Ok(())
    }

    /// Whether a link would still let somebody in.
    pub async fn is_invited(&self, digest: [u8; 32], now: Timestamp) -> Result<bool, StoreError> {
        let found = self
            .query(
                "SELECT 1 FROM invitations WHERE secret_sha256 = $1 AND ends_at > $2",
                vec![Param::Bytes(digest.to_vec()), Param::Int(now.as_microsecond())],
                |_| Ok(()),
            )
            .await?;
        Ok(!found.is_empty())
    }

    /// Takes a link: whoever is answered `true` is let in, and nobody after them.
    pub async fn take_invitation(
        &self,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let taken = self
            .execute(
                "DELETE FROM invitations WHERE secret_sha256 = $1 AND ends_at > $2",
                vec![Param::Bytes(digest.to_vec()), Param::Int(now.as_microsecond())],
            )
            .await?;
        Ok(taken == 1)
    }
}
