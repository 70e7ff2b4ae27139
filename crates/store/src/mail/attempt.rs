//! What was tried: every mail that somebody wanted to send, delivered or not, and the contracts
//! that were active as it was.

use chancery_domain::contract::{Contract, State};
use chancery_domain::id::{RunId, UserId};
use chancery_domain::mail::SYSTEM;
use jiff::Timestamp;

use super::contract::{self, COLUMNS};
use crate::log::timestamp;
use crate::projection::storable;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

/// A mail that somebody wanted to send, as far as the rules over who writes what to whom look at
/// it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub from: String,
    pub to: String,
    pub kind: String,
    pub at: Timestamp,
    pub run: Option<RunId>,
    /// The step that rejected it; `None`: it was delivered.
    pub rejected: Option<String>,
}

/// How many were delivered, and how many were not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    pub delivered: u64,
    pub rejected: u64,
}

impl Store {
    /// Of everyone but the system since a time, the newest first.
    pub async fn mail_attempts(
        &self,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<Attempt>, StoreError> {
        let params = || vec![Param::Int(since.as_microsecond()), Param::Int(i64::from(limit))];
        let sql = format!(
            "SELECT from_agent, to_agent, mail_type, created_at, run_id, CAST(NULL AS TEXT)
             FROM mails WHERE created_at >= $1 AND from_agent <> '{SYSTEM}'
             ORDER BY created_at DESC, id DESC LIMIT $2"
        );
        let mut found = self.query(sql, params(), attempt).await?;
        let sql = "SELECT from_agent, to_agent, mail_type, attempted_at, run_id, step
             FROM mail_rejections WHERE attempted_at >= $1
             ORDER BY attempted_at DESC, id DESC LIMIT $2";
        found.extend(self.query(sql, params(), attempt).await?);
        found.sort_by_key(|it| std::cmp::Reverse(it.at));
        found.truncate(limit as usize);
        Ok(found)
    }

    /// Between two since a time; of one user, or of all.
    pub async fn mail_counts(
        &self,
        from: &str,
        to: &str,
        user: Option<&UserId>,
        since: Timestamp,
    ) -> Result<Attempts, StoreError> {
        let count = async |table: &str, at: &str| -> Result<u64, StoreError> {
            let mut sql = format!(
                "SELECT count(*) FROM {table} WHERE from_agent = $1 AND to_agent = $2 AND {at} >= $3"
            );
            let mut params = vec![
                Param::Text(storable(from)),
                Param::Text(storable(to)),
                Param::Int(since.as_microsecond()),
            ];
            if let Some(user) = user {
                sql.push_str(" AND user_id = $4");
                params.push(Param::Text(storable(user.as_str())));
            }
            let found = self.query(sql, params, |row| row.int(0)).await?;
            Ok(found.into_iter().next().unwrap_or(0).unsigned_abs())
        };
        Ok(Attempts {
            delivered: count("mails", "created_at").await?,
            rejected: count("mail_rejections", "attempted_at").await?,
        })
    }

    /// The contracts that an agent held and that were active at a time.
    pub async fn contracts_active_at(
        &self,
        agent: &str,
        at: Timestamp,
    ) -> Result<Vec<Contract>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM contracts WHERE to_agent = $1 AND (
               SELECT to_state FROM contract_steps
               WHERE contract_id = contracts.id AND at <= $2 ORDER BY place DESC LIMIT 1
             ) IN ('accepted', 'in_progress') ORDER BY id"
        );
        let params = vec![Param::Text(storable(agent)), Param::Int(at.as_microsecond())];
        let rows = self.query(sql, params, contract::contract).await?;
        // As it was then, whatever has become of it.
        let then = |it: contract::ContractRow| Contract { state: State::InProgress, ..it.contract };
        Ok(rows.into_iter().map(then).collect())
    }
}

fn attempt(row: &dyn Columns) -> Result<Attempt, StoreError> {
    Ok(Attempt {
        from: row.text(0)?,
        to: row.text(1)?,
        kind: row.text(2)?,
        at: timestamp(row.int(3)?)?,
        run: row.opt_uuid(4)?.map(RunId),
        rejected: row.opt_text(5)?,
    })
}
