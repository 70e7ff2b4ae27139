//! Permission requests as people see them: rows that the runs' logs have made.

use chancery_domain::batch::{Pattern, Question};
use chancery_domain::event::{Actor, Call, Request, RuleScope};
use chancery_domain::id::{AgentId, MessageId, PermissionId, RunId, UserId};
use chancery_domain::policy::{Reason, Ruling};
use jiff::Timestamp;
use serde_json::Value;

use crate::log::timestamp;
use crate::projection::{AskedBody, storable};
use crate::rule::actor;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRow {
    pub id: PermissionId,
    pub run: RunId,
    pub user: UserId,
    pub agent: AgentId,
    pub role: String,
    pub group: Option<String>,
    pub message: MessageId,
    /// As it was asked for.
    pub call: Call,
    /// What the model said as it asked.
    pub words: String,
    pub ruling: Ruling,
    pub reasons: Vec<Reason>,
    pub request: Request,
    /// `pending`, `granted`, `denied`, `expired` or `cancelled`
    pub status: String,
    pub expires_at: Option<Timestamp>,
    pub escalated_at: Option<Timestamp>,
    pub decided_at: Option<Timestamp>,
    pub decided_by: Option<Actor>,
    pub comment: Option<String>,
    /// What was granted instead of what was asked for.
    pub decided_arguments: Option<Value>,
}

/// Which requests to list. What is `None` is not asked about.
#[derive(Debug, Clone, Default)]
pub struct PermissionFilter {
    pub status: Option<String>,
    pub run: Option<RunId>,
    pub user: Option<UserId>,
    /// Only requests after this one: they are listed oldest first.
    pub after: Option<PermissionId>,
    pub newest_first: bool,
    pub tool: Option<String>,
    /// Only what was asked since then.
    pub since: Option<Timestamp>,
}

/// What waits for an answer, in short: another mark, and something has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pending {
    pub count: u64,
    pub newest: Option<PermissionId>,
}

impl PermissionRow {
    /// As a remembered answer looks at it.
    pub fn question(&self) -> Question<'_> {
        Question {
            user: &self.user,
            agent: &self.agent,
            run: self.run,
            tool: &self.call.tool,
            signature: self.request.signature.as_deref(),
        }
    }

    /// What an answer to it would be remembered for, unless it is asked each time.
    pub fn pattern(&self, scope: RuleScope) -> Option<Pattern> {
        let Question { user, agent, run, tool, signature } = self.question();
        Some(Pattern {
            scope,
            user: user.clone(),
            agent: agent.clone(),
            run,
            tool: tool.to_owned(),
            signature: signature?.to_owned(),
        })
    }
}

/// How often the same was asked before, and what was answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    pub asked: u64,
    pub granted: u64,
    pub denied: u64,
    pub expired: u64,
}

const COLUMNS: &str = "id, run_id, user_id, agent_id, status, ruling, expires_at, escalated_at, \
                       decided_at, decided_by, comment, decided_arguments, body";

impl Store {
    pub async fn permission(&self, id: PermissionId) -> Result<Option<PermissionRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM permissions WHERE id = $1");
        Ok(self.query(sql, vec![Param::Uuid(id.0)], permission).await?.into_iter().next())
    }

    pub async fn permissions(
        &self,
        filter: &PermissionFilter,
        limit: u32,
    ) -> Result<Vec<PermissionRow>, StoreError> {
        let mut sql = format!("SELECT {COLUMNS} FROM permissions WHERE 1 = 1");
        let mut params = Vec::new();
        let mut and = |condition: &str, param: Param| {
            params.push(param);
            sql.push_str(&format!(" AND {condition} ${}", params.len()));
        };
        if let Some(status) = &filter.status {
            and("status =", Param::Text(storable(status)));
        }
        if let Some(run) = filter.run {
            and("run_id =", Param::Uuid(run.0));
        }
        if let Some(user) = &filter.user {
            and("user_id =", Param::Text(storable(user.as_str())));
        }
        if let Some(after) = filter.after {
            and("id >", Param::Uuid(after.0));
        }
        if let Some(tool) = &filter.tool {
            and("tool =", Param::Text(storable(tool)));
        }
        if let Some(since) = filter.since {
            and("asked_at >=", Param::Int(since.as_microsecond()));
        }
        params.push(Param::Int(i64::from(limit)));
        let order = if filter.newest_first { " DESC" } else { "" };
        sql.push_str(&format!(" ORDER BY id{order} LIMIT ${}", params.len()));
        self.query(sql, params, permission).await
    }

    /// What waits for an answer: of one user, or of all.
    pub async fn pending(&self, user: Option<&UserId>) -> Result<Pending, StoreError> {
        let mut of = "status = 'pending'".to_owned();
        let mut params = Vec::new();
        if let Some(user) = user {
            params.push(Param::Text(storable(user.as_str())));
            of.push_str(" AND user_id = $1");
        }
        let sql = format!(
            "SELECT (SELECT count(*) FROM permissions WHERE {of}),
               (SELECT id FROM permissions WHERE {of} ORDER BY id DESC LIMIT 1)"
        );
        let found = self
            .query(sql, params, |row| {
                let newest = row.opt_uuid(1)?.map(PermissionId);
                Ok(Pending { count: row.int(0)? as u64, newest })
            })
            .await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// How often an agent asked for a tool since then.
    pub async fn asked_before(
        &self,
        agent: &AgentId,
        tool: &str,
        since: Timestamp,
    ) -> Result<Before, StoreError> {
        let counted = self
            .query(
                "SELECT status, count(*) FROM permissions
                 WHERE agent_id = $1 AND tool = $2 AND asked_at >= $3 GROUP BY status",
                vec![
                    Param::Text(storable(agent.as_str())),
                    Param::Text(storable(tool)),
                    Param::Int(since.as_microsecond()),
                ],
                |row| Ok((row.text(0)?, row.int(1)? as u64)),
            )
            .await?;
        let mut before = Before::default();
        for (status, count) in counted {
            before.asked += count;
            match &*status {
                "granted" => before.granted = count,
                "denied" => before.denied = count,
                "expired" => before.expired = count,
                _ => {}
            }
        }
        Ok(before)
    }
}

fn permission(row: &dyn Columns) -> Result<PermissionRow, StoreError> {
    let unreadable = |it: serde_json::Error| StoreError::Unreadable(format!("a permission: {it}"));
    let body: AskedBody = serde_json::from_str(&row.text(12)?).map_err(unreadable)?;
    let ruling = Value::String(row.text(5)?);
    let arguments = row.opt_text(11)?;
    Ok(PermissionRow {
        id: PermissionId(row.uuid(0)?),
        run: RunId(row.uuid(1)?),
        user: UserId(row.text(2)?),
        agent: AgentId(row.text(3)?),
        role: body.role,
        group: body.group,
        message: body.message,
        call: body.call,
        words: body.words,
        ruling: serde_json::from_value(ruling).map_err(unreadable)?,
        reasons: body.reasons,
        request: body.request,
        status: row.text(4)?,
        expires_at: row.opt_int(6)?.map(timestamp).transpose()?,
        escalated_at: row.opt_int(7)?.map(timestamp).transpose()?,
        decided_at: row.opt_int(8)?.map(timestamp).transpose()?,
        decided_by: row.opt_text(9)?.as_deref().map(actor).transpose()?,
        comment: row.opt_text(10)?,
        decided_arguments: arguments
            .map(|it| serde_json::from_str(&it))
            .transpose()
            .map_err(unreadable)?,
    })
}
