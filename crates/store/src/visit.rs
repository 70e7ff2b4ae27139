//! Visits: people who are signed in to the console, and the links that let somebody in once. Only
//! digests of the secrets are kept.

use chancery_domain::audit::Entry;
use chancery_domain::id::TokenId;
use jiff::Timestamp;

use crate::log::timestamp;
use crate::projection::storable;
use crate::sql::Param;
use crate::token::{Token, token};
use crate::{Store, StoreError};

/// Who is visiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// What it stands on.
    pub token: Token,
    /// Whether an issuer vouches for them: then the token says all that they may.
    pub vouched: bool,
}

/// A visit, to be looked at and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitRow {
    pub digest: [u8; 32],
    pub name: String,
    pub began_at: Timestamp,
    pub ends_at: Timestamp,
}

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

    /// Who is visiting, unless the visit is over or its token is.
    pub async fn visit(
        &self,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Visit>, StoreError> {
        let found = self
            .query(
                "SELECT t.id, t.kind, t.name, t.operator, t.approve, t.created_at, t.revoked_at,
                   (SELECT p.subject FROM vouched p WHERE p.token_id = t.id LIMIT 1)
                 FROM visits v JOIN tokens t ON t.id = v.token_id
                 WHERE v.secret_sha256 = $1 AND v.ends_at > $2 AND t.revoked_at IS NULL",
                vec![Param::Bytes(digest.to_vec()), Param::Int(now.as_microsecond())],
                |row| Ok(Visit { token: token(row)?, vouched: row.opt_text(7)?.is_some() }),
            )
            .await?;
        Ok(found.into_iter().next())
    }

    pub async fn end_visit(&self, digest: [u8; 32]) -> Result<(), StoreError> {
        let sql = "DELETE FROM visits WHERE secret_sha256 = $1";
        self.execute(sql, vec![Param::Bytes(digest.to_vec())]).await?;
        Ok(())
    }

    /// The visits of a person, or of everyone, the newest first.
    pub async fn visits(
        &self,
        of: Option<&str>,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<VisitRow>, StoreError> {
        self.query(
            "SELECT v.secret_sha256, t.name, v.began_at, v.ends_at
             FROM visits v JOIN tokens t ON t.id = v.token_id
             WHERE v.ends_at > $1 AND t.revoked_at IS NULL AND ($2 = '' OR t.name = $2)
             ORDER BY v.began_at DESC, v.secret_sha256 LIMIT $3",
            vec![
                Param::Int(now.as_microsecond()),
                Param::Text(storable(of.unwrap_or_default())),
                Param::Int(limit.into()),
            ],
            |row| {
                Ok(VisitRow {
                    digest: row.hash(0)?,
                    name: row.text(1)?,
                    began_at: timestamp(row.int(2)?)?,
                    ends_at: timestamp(row.int(3)?)?,
                })
            },
        )
        .await
    }

    /// Ends all visits of a person but the one with this digest. Answers how many; the audit
    /// keeps it if there was one.
    pub async fn end_visits(
        &self,
        of: &str,
        but: [u8; 32],
        at: Timestamp,
        entry: Entry,
    ) -> Result<u64, StoreError> {
        self.execute_audited(
            "DELETE FROM visits WHERE secret_sha256 <> $1
             AND token_id IN (SELECT id FROM tokens WHERE name = $2 AND kind = 'human')",
            vec![Param::Bytes(but.to_vec()), Param::Text(storable(of))],
            vec![entry],
            at,
        )
        .await
    }

    /// Ends one visit of a person, or of whomever. `false`: there is none.
    pub async fn end_visit_of(
        &self,
        of: Option<&str>,
        digest: [u8; 32],
        at: Timestamp,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let ended = self
            .execute_audited(
                "DELETE FROM visits WHERE secret_sha256 = $1 AND ($2 = '' OR token_id IN
                   (SELECT id FROM tokens WHERE name = $2 AND kind = 'human'))",
                vec![Param::Bytes(digest.to_vec()), Param::Text(storable(of.unwrap_or_default()))],
                vec![entry],
                at,
            )
            .await?;
        Ok(ended == 1)
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
