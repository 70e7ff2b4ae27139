//! People whom an issuer vouches for, and those who were sent to it and are to come back.

use chancery_domain::id::TokenId;
use jiff::Timestamp;

use crate::projection::storable;
use crate::sql::Param;
use crate::{Store, StoreError};

/// Somebody whom an issuer has vouched for before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vouched {
    /// What they are called here.
    pub name: String,
    /// What their visits stand on; absent before the first.
    pub token: Option<TokenId>,
}

impl Store {
    pub async fn vouched(
        &self,
        issuer: &str,
        subject: &str,
    ) -> Result<Option<Vouched>, StoreError> {
        let found = self
            .query(
                "SELECT name, token_id FROM vouched WHERE issuer = $1 AND subject = $2",
                vec![Param::Text(storable(issuer)), Param::Text(storable(subject))],
                |row| Ok(Vouched { name: row.text(0)?, token: row.opt_uuid(1)?.map(TokenId) }),
            )
            .await?;
        Ok(found.into_iter().next())
    }

    /// Gives a name to whom an issuer vouches for. `false`: it is somebody else's, or they have
    /// one already.
    pub async fn vouch(
        &self,
        issuer: &str,
        subject: &str,
        name: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let kept = self
            .execute(
                "INSERT INTO vouched (issuer, subject, name, since) VALUES ($1, $2, $3, $4)
                 ON CONFLICT DO NOTHING",
                vec![
                    Param::Text(storable(issuer)),
                    Param::Text(storable(subject)),
                    Param::Text(storable(name)),
                    Param::Int(at.as_microsecond()),
                ],
            )
            .await?;
        Ok(kept == 1)
    }

    /// Has their visits stand on this token from now on, if they stood on `before` until now.
    /// `false`: another server was first.
    pub async fn stand_on(
        &self,
        issuer: &str,
        subject: &str,
        before: Option<TokenId>,
        token: TokenId,
    ) -> Result<bool, StoreError> {
        let mut params = vec![
            Param::Uuid(token.0),
            Param::Text(storable(issuer)),
            Param::Text(storable(subject)),
        ];
        let moved = match before {
            Some(before) => {
                params.push(Param::Uuid(before.0));
                let sql = "UPDATE vouched SET token_id = $1
                     WHERE issuer = $2 AND subject = $3 AND token_id = $4";
                self.execute(sql, params).await?
            }
            None => {
                let sql = "UPDATE vouched SET token_id = $1
                     WHERE issuer = $2 AND subject = $3 AND token_id IS NULL";
                self.execute(sql, params).await?
            }
        };
        Ok(moved == 1)
    }

    /// Whether a person of this name was ever given a token.
    pub async fn is_person(&self, name: &str) -> Result<bool, StoreError> {
        let found = self
            .query(
                "SELECT 1 FROM tokens WHERE name = $1 AND kind = 'human' LIMIT 1",
                vec![Param::Text(storable(name))],
                |_| Ok(()),
            )
            .await?;
        Ok(!found.is_empty())
    }

    /// Keeps that somebody was sent to the issuer, and where they want to go afterwards.
    pub async fn depart(
        &self,
        digest: [u8; 32],
        next: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<(), StoreError> {
        let past = vec![Param::Int(now.as_microsecond())];
        self.execute("DELETE FROM departures WHERE ends_at <= $1", past).await?;
        self.execute(
            "INSERT INTO departures (secret_sha256, next, ends_at) VALUES ($1, $2, $3)",
            vec![
                Param::Bytes(digest.to_vec()),
                Param::Text(storable(next)),
                Param::Int(until.as_microsecond()),
            ],
        )
        .await?;
        Ok(())
    }

    /// Where whoever comes back wants to go. Whoever is answered something is the only one.
    pub async fn come_back(
        &self,
        digest: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<String>, StoreError> {
        let found = self
            .write_rows(
                "DELETE FROM departures WHERE secret_sha256 = $1 AND ends_at > $2 RETURNING next",
                vec![Param::Bytes(digest.to_vec()), Param::Int(now.as_microsecond())],
                |row| row.text(0),
            )
            .await?;
        Ok(found.into_iter().next())
    }
}
