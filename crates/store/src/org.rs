//! The versions of the organisation. A version is never changed: what was in force stays to be
//! read.

use std::collections::BTreeMap;

use chancery_domain::audit::Entry;
use chancery_domain::event::Actor;
use jiff::Timestamp;

use crate::log::timestamp;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

/// Where a version came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrgSource {
    /// There were no files.
    BuiltIn,
    /// A server's directory.
    Files,
    /// Somebody sent it.
    Api,
}

/// A version without its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrgVersion {
    pub number: u64,
    /// Of its files: the same organisation has the same.
    pub digest: String,
    pub at: Timestamp,
    pub by: Actor,
    pub source: OrgSource,
}

/// A version that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrgVersion {
    pub digest: String,
    pub at: Timestamp,
    pub by: Actor,
    pub source: OrgSource,
    /// By name; what is absent is built in.
    pub files: BTreeMap<String, String>,
    /// The version that it was made from, which it must follow. `None`: it is whole in itself, and
    /// follows whatever is the newest.
    pub made_from: Option<u64>,
}

impl OrgSource {
    pub fn as_str(self) -> &'static str {
        match self {
            OrgSource::BuiltIn => "built-in",
            OrgSource::Files => "files",
            OrgSource::Api => "api",
        }
    }

    fn parse(text: &str) -> Result<OrgSource, StoreError> {
        [OrgSource::BuiltIn, OrgSource::Files, OrgSource::Api]
            .into_iter()
            .find(|it| it.as_str() == text)
            .ok_or_else(|| StoreError::Unreadable(format!("an organisation from `{text}`")))
    }
}

/// Whoever comes second looks again; nobody comes second this often.
const TRIES: usize = 100;

impl Store {
    /// Keeps a version, with the next number, and in the audit that it came to be: `entry` of
    /// its number. The same organisation as the newest one is that one, and no new version.
    /// Answers `None` where the one that it was made from is no longer the newest.
    pub async fn add_org_version(
        &self,
        new: &NewOrgVersion,
        entry: impl Fn(u64) -> Entry,
    ) -> Result<Option<OrgVersion>, StoreError> {
        let unreadable = |it: serde_json::Error| StoreError::Unreadable(it.to_string());
        let by = serde_json::to_string(&new.by).map_err(unreadable)?;
        let files = serde_json::to_string(&new.files).map_err(unreadable)?;
        for _ in 0..TRIES {
            let newest = self.newest_org_version().await?;
            if let Some(newest) = newest.as_ref().filter(|it| it.digest == new.digest) {
                return Ok(Some(newest.clone()));
            }
            let newest = newest.map_or(0, |it| it.number);
            if new.made_from.is_some_and(|it| it != newest) {
                return Ok(None);
            }
            let number = newest + 1;
            let added = self
                .execute_audited(
                    "INSERT INTO org_versions (number, digest, made_at, made_by, source, files)
                     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
                    vec![
                        Param::Int(i64::try_from(number).unwrap_or(i64::MAX)),
                        Param::Text(new.digest.clone()),
                        Param::Int(new.at.as_microsecond()),
                        Param::Text(by.clone()),
                        Param::Text(new.source.as_str().to_owned()),
                        Param::Text(files.clone()),
                    ],
                    vec![entry(number)],
                    new.at,
                )
                .await?;
            if added == 1 {
                let NewOrgVersion { digest, at, by, source, .. } = new.clone();
                return Ok(Some(OrgVersion { number, digest, at, by, source }));
            }
        }
        Err(StoreError::Unreadable("the organisation changes faster than it is kept".to_owned()))
    }

    pub async fn newest_org_version(&self) -> Result<Option<OrgVersion>, StoreError> {
        let found = self
            .query(
                "SELECT number, digest, made_at, made_by, source FROM org_versions
                 ORDER BY number DESC LIMIT 1",
                vec![],
                version,
            )
            .await?;
        Ok(found.into_iter().next())
    }

    /// The newest that was not sent by anybody, but found by a server at its start.
    pub async fn newest_org_version_found(&self) -> Result<Option<OrgVersion>, StoreError> {
        let found = self
            .query(
                "SELECT number, digest, made_at, made_by, source FROM org_versions
                 WHERE source <> $1 ORDER BY number DESC LIMIT 1",
                vec![Param::Text(OrgSource::Api.as_str().to_owned())],
                version,
            )
            .await?;
        Ok(found.into_iter().next())
    }

    /// One version with its files, by name.
    pub async fn org_version(
        &self,
        number: u64,
    ) -> Result<Option<(OrgVersion, BTreeMap<String, String>)>, StoreError> {
        let Ok(number) = i64::try_from(number) else { return Ok(None) };
        let found = self
            .query(
                "SELECT number, digest, made_at, made_by, source, files FROM org_versions
                 WHERE number = $1",
                vec![Param::Int(number)],
                |row| Ok((version(row)?, read(&row.text(5)?)?)),
            )
            .await?;
        Ok(found.into_iter().next())
    }

    /// The newest first, from before a number on.
    pub async fn org_versions(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<OrgVersion>, StoreError> {
        let before = before.and_then(|it| i64::try_from(it).ok()).unwrap_or(i64::MAX);
        self.query(
            "SELECT number, digest, made_at, made_by, source FROM org_versions
             WHERE number < $1 ORDER BY number DESC LIMIT $2",
            vec![Param::Int(before), Param::Int(i64::try_from(limit).unwrap_or(i64::MAX))],
            version,
        )
        .await
    }
}

fn version(row: &dyn Columns) -> Result<OrgVersion, StoreError> {
    Ok(OrgVersion {
        number: u64::try_from(row.int(0)?).unwrap_or_default(),
        digest: row.text(1)?,
        at: timestamp(row.int(2)?)?,
        by: read(&row.text(3)?)?,
        source: OrgSource::parse(&row.text(4)?)?,
    })
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|it| StoreError::Unreadable(it.to_string()))
}
