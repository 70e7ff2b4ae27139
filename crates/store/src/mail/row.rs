//! Mails and rejections as they are kept, and how they are looked at.

use chancery_domain::audit::kind;
use chancery_domain::id::{AuditId, ContractId, MailId, ProjectId, RunId, UserId};
use chancery_domain::mail::{Attachment, BOARD, Priority};
use chancery_domain::policy::Bounds;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::log::timestamp;
use crate::projection::storable;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

#[derive(Debug, Clone, PartialEq)]
pub struct MailRow {
    pub id: MailId,
    pub from: String,
    pub to: String,
    pub kind: String,
    pub subject: String,
    pub body: String,
    pub priority: Priority,
    pub attachments: Vec<Attachment>,
    pub fields: Map<String, Value>,
    pub reply_to: Option<MailId>,
    pub thread: MailId,
    pub contract_ref: Option<ContractId>,
    pub status: String,
    pub created_at: Timestamp,
    pub delivered_at: Timestamp,
    pub read_at: Option<Timestamp>,
    pub user: UserId,
    pub project: Option<ProjectId>,
    pub delegated: Option<Bounds>,
    /// The run that sent it, and the one that answers it.
    pub run: Option<RunId>,
    pub handed_to: Option<RunId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RejectionRow {
    pub id: i64,
    pub from: String,
    pub to: String,
    pub kind: String,
    pub step: String,
    pub reason: String,
    pub attempted_at: Timestamp,
    pub run: Option<RunId>,
    pub user: UserId,
    /// The audit's entry of it, where it has one.
    pub audit: Option<AuditId>,
}

/// Which mails are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    Inbox(String),
    Sent(String),
}

pub(super) const COLUMNS: &str = "id, from_agent, to_agent, mail_type, subject, body, priority, \
     attachments, fields, reply_to, thread, contract_ref, status, created_at, delivered_at, \
     read_at, user_id, project_id, delegated, run_id, handed_to";

/// With the entry that was written in the same transaction: of the same sender, for the same
/// person and run, at the same microsecond.
fn rejections() -> String {
    format!(
        "SELECT id, from_agent, to_agent, mail_type, step, reason, attempted_at, run_id, user_id, (
           SELECT a.id FROM audit a WHERE a.at = r.attempted_at AND a.kind = '{}'
             AND COALESCE(a.agent, '{BOARD}') = r.from_agent AND a.user_id = r.user_id
             AND (a.run_id = r.run_id OR (a.run_id IS NULL AND r.run_id IS NULL))
           ORDER BY a.seq LIMIT 1
         ) FROM mail_rejections r WHERE 1 = 1",
        kind::MAIL_REJECTED
    )
}

impl Store {
    pub async fn mail(&self, id: &MailId) -> Result<Option<MailRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM mails WHERE id = $1");
        let params = vec![Param::Text(storable(id.as_str()))];
        Ok(self.query(sql, params, mail).await?.into_iter().next())
    }

    /// An inbox has what is critical first, and then the oldest first; what was sent, the newest
    /// first. From after a mail on.
    pub async fn mails(
        &self,
        whose: &Whose,
        user: Option<&UserId>,
        unread: bool,
        after: Option<&MailId>,
        limit: u32,
    ) -> Result<Vec<MailRow>, StoreError> {
        let (column, agent, order, beyond) = match whose {
            Whose::Inbox(agent) => (
                "to_agent",
                agent,
                "urgency, created_at, id",
                "(urgency, created_at, id) > (SELECT urgency, created_at, id FROM mails WHERE id =",
            ),
            Whose::Sent(agent) => (
                "from_agent",
                agent,
                "created_at DESC, id DESC",
                "(created_at, id) < (SELECT created_at, id FROM mails WHERE id =",
            ),
        };
        let mut params = vec![Param::Text(storable(agent))];
        let mut sql = format!("SELECT {COLUMNS} FROM mails WHERE {column} = $1");
        if let Some(user) = user {
            params.push(Param::Text(storable(user.as_str())));
            sql.push_str(&format!(" AND user_id = ${}", params.len()));
        }
        if unread {
            sql.push_str(" AND read_at IS NULL");
        }
        if let Some(after) = after {
            params.push(Param::Text(storable(after.as_str())));
            sql.push_str(&format!(" AND {beyond} ${})", params.len()));
        }
        params.push(Param::Int(i64::from(limit)));
        sql.push_str(&format!(" ORDER BY {order} LIMIT ${}", params.len()));
        self.query(sql, params, mail).await
    }

    /// All that was written about a contract, the oldest first.
    pub async fn mails_about(
        &self,
        contract: &ContractId,
        limit: u32,
    ) -> Result<Vec<MailRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM mails WHERE contract_ref = $1 ORDER BY created_at, id LIMIT $2"
        );
        let params = vec![Param::Text(storable(contract.as_str())), Param::Int(i64::from(limit))];
        self.query(sql, params, mail).await
    }

    /// The approvals of one deployment to one environment that an agent was sent since a time,
    /// the newest first.
    pub async fn deployment_approvals(
        &self,
        agent: &str,
        environment: &str,
        deployment: &str,
        since: Timestamp,
    ) -> Result<Vec<MailRow>, StoreError> {
        // More than anybody gives in the time that one holds.
        let sql = format!(
            "SELECT {COLUMNS} FROM mails WHERE to_agent = $1 AND mail_type = 'deployment_approval' \
             AND created_at >= $2 ORDER BY created_at DESC, id DESC LIMIT 1000"
        );
        let params = vec![Param::Text(storable(agent)), Param::Int(since.as_microsecond())];
        let names = |it: &MailRow| {
            it.fields.get("environment").is_some_and(|it| it == environment)
                && it.fields.get("deployment").is_some_and(|it| it == deployment)
        };
        Ok(self.query(sql, params, mail).await?.into_iter().filter(names).collect())
    }

    /// Its recipient has seen it. The first time counts.
    pub async fn mark_read(&self, id: &MailId, at: Timestamp) -> Result<(), StoreError> {
        self.execute(
            "UPDATE mails SET status = 'read', read_at = $1 WHERE id = $2 AND read_at IS NULL",
            vec![Param::Int(at.as_microsecond()), Param::Text(storable(id.as_str()))],
        )
        .await?;
        Ok(())
    }

    pub async fn mail_rejection(&self, id: i64) -> Result<Option<RejectionRow>, StoreError> {
        let sql = format!("{} AND r.id = $1", rejections());
        Ok(self.query(sql, vec![Param::Int(id)], rejection).await?.into_iter().next())
    }

    /// The newest first; of one sender, of one user, or of all.
    pub async fn mail_rejections(
        &self,
        from: Option<&str>,
        user: Option<&UserId>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<RejectionRow>, StoreError> {
        let mut sql = rejections();
        let mut params = Vec::new();
        let filters = [
            ("r.from_agent = ", from.map(|it| Param::Text(storable(it)))),
            ("r.user_id = ", user.map(|it| Param::Text(storable(it.as_str())))),
            ("r.id < ", before.map(Param::Int)),
        ];
        for (filter, param) in filters {
            if let Some(param) = param {
                params.push(param);
                sql.push_str(&format!(" AND {filter}${}", params.len()));
            }
        }
        params.push(Param::Int(i64::from(limit)));
        sql.push_str(&format!(" ORDER BY r.id DESC LIMIT ${}", params.len()));
        self.query(sql, params, rejection).await
    }
}

pub(super) fn mail(row: &dyn Columns) -> Result<MailRow, StoreError> {
    let priority = row.text(6)?;
    Ok(MailRow {
        id: MailId(row.text(0)?),
        from: row.text(1)?,
        to: row.text(2)?,
        kind: row.text(3)?,
        subject: row.text(4)?,
        body: row.text(5)?,
        priority: Priority::parse(&priority)
            .ok_or_else(|| StoreError::Unreadable(format!("a priority: {priority}")))?,
        attachments: json(&row.text(7)?)?,
        fields: json(&row.text(8)?)?,
        reply_to: row.opt_text(9)?.map(MailId),
        thread: MailId(row.text(10)?),
        contract_ref: row.opt_text(11)?.map(ContractId),
        status: row.text(12)?,
        created_at: timestamp(row.int(13)?)?,
        delivered_at: timestamp(row.int(14)?)?,
        read_at: row.opt_int(15)?.map(timestamp).transpose()?,
        user: UserId(row.text(16)?),
        project: row.opt_text(17)?.map(ProjectId),
        delegated: row.opt_text(18)?.as_deref().map(json).transpose()?,
        run: row.opt_uuid(19)?.map(RunId),
        handed_to: row.opt_uuid(20)?.map(RunId),
    })
}

fn rejection(row: &dyn Columns) -> Result<RejectionRow, StoreError> {
    Ok(RejectionRow {
        id: row.int(0)?,
        from: row.text(1)?,
        to: row.text(2)?,
        kind: row.text(3)?,
        step: row.text(4)?,
        reason: row.text(5)?,
        attempted_at: timestamp(row.int(6)?)?,
        run: row.opt_uuid(7)?.map(RunId),
        user: UserId(row.text(8)?),
        audit: row.opt_uuid(9)?.map(AuditId),
    })
}

pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|it| StoreError::Unreadable(format!("a mail: {it}")))
}

pub(super) fn text<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|it| StoreError::Failed(it.to_string()))
}
