//! Standing rules: decisions that were to be remembered. Made with the decision that they come
//! from, in its transaction; here they are looked up, listed and revoked.

use chancery_domain::audit::Entry;
use chancery_domain::batch::{Pattern, Question};
use chancery_domain::event::{Actor, RuleScope};
use chancery_domain::id::{AgentId, PermissionId, RuleId, RunId, UserId};
use jiff::Timestamp;

use crate::log::timestamp;
use crate::projection::storable;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

#[derive(Debug, Clone, PartialEq)]
pub struct StandingRule {
    pub id: RuleId,
    pub user: UserId,
    pub agent: AgentId,
    pub run: RunId,
    /// How much of the above a call must share.
    pub scope: RuleScope,
    pub tool: String,
    pub signature: String,
    pub permission: PermissionId,
    pub made_by: Actor,
    pub made_at: Timestamp,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub revoked_by: Option<Actor>,
}

/// The call that a rule is looked for.
#[derive(Debug)]
pub struct Wanted<'w> {
    pub user: &'w UserId,
    pub agent: &'w AgentId,
    pub run: RunId,
    pub tool: &'w str,
    pub signature: &'w str,
    pub now: Timestamp,
}

/// Of the rules about one call. Each was made by hand: were there more, the narrowest and oldest
/// would be left out, and somebody asked.
const ALIKE_MAX: i64 = 1000;

const COLUMNS: &str = "id, user_id, agent_id, run_id, scope, tool, signature, permission_id, \
                       made_by, made_at, expires_at, revoked_at, revoked_by";

impl Store {
    /// A rule that covers a call, if there is one. Those that hold are found here; which of them
    /// answers is said in one place.
    pub async fn rule_for(&self, wanted: &Wanted<'_>) -> Result<Option<RuleId>, StoreError> {
        #[cfg(feature = "faults")]
        self.point().await?;
        let (user, agent) = (storable(wanted.user.as_str()), storable(wanted.agent.as_str()));
        let (tool, signature) = (storable(wanted.tool), storable(wanted.signature));
        let sql = format!(
            "SELECT {COLUMNS} FROM standing_rules
             WHERE user_id = $1 AND tool = $2 AND signature = $3
               AND revoked_at IS NULL AND expires_at > $4
             ORDER BY CASE scope WHEN 'always' THEN 0 WHEN 'agent' THEN 1 ELSE 2 END, id DESC
             LIMIT $5"
        );
        let params = vec![
            Param::Text(user.clone()),
            Param::Text(tool.clone()),
            Param::Text(signature.clone()),
            Param::Int(wanted.now.as_microsecond()),
            Param::Int(ALIKE_MAX),
        ];
        let alike = self.query(sql, params, rule).await?;
        let question = Question {
            user: &UserId(user),
            agent: &AgentId(agent),
            run: wanted.run,
            tool: &tool,
            signature: Some(&signature),
        };
        let answers = alike.into_iter().filter(|it| it.pattern().answers(question));
        Ok(answers.map(|it| it.id).min())
    }

    /// Newest first; of one user, or of all.
    pub async fn rules(
        &self,
        user: Option<&UserId>,
        before: Option<RuleId>,
        limit: u32,
    ) -> Result<Vec<StandingRule>, StoreError> {
        let mut sql = format!("SELECT {COLUMNS} FROM standing_rules WHERE 1 = 1");
        let mut params = Vec::new();
        if let Some(user) = user {
            params.push(Param::Text(storable(user.as_str())));
            sql.push_str(&format!(" AND user_id = ${}", params.len()));
        }
        if let Some(before) = before {
            params.push(Param::Uuid(before.0));
            sql.push_str(&format!(" AND id < ${}", params.len()));
        }
        params.push(Param::Int(i64::from(limit)));
        sql.push_str(&format!(" ORDER BY id DESC LIMIT ${}", params.len()));
        self.query(sql, params, rule).await
    }

    /// Answers whether the rule held until now.
    pub async fn revoke_rule(
        &self,
        id: RuleId,
        by: &Actor,
        at: Timestamp,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let by = serde_json::to_string(by).map_err(|it| StoreError::Failed(it.to_string()))?;
        let revoked = self
            .execute_audited(
                "UPDATE standing_rules SET revoked_at = $1, revoked_by = $2
                 WHERE id = $3 AND revoked_at IS NULL",
                vec![Param::Int(at.as_microsecond()), Param::Text(by), Param::Uuid(id.0)],
                vec![entry],
                at,
            )
            .await?;
        Ok(revoked == 1)
    }

    /// Lets a rule cover less, or hold for less time. Answers whether it does: one that was taken
    /// back, or that would hold longer, is left as it is.
    pub async fn narrow_rule(
        &self,
        id: RuleId,
        scope: &str,
        expires_at: Timestamp,
        at: Timestamp,
        entry: Entry,
    ) -> Result<bool, StoreError> {
        let narrowed = self
            .execute_audited(
                "UPDATE standing_rules SET scope = $1, expires_at = $2
                 WHERE id = $3 AND revoked_at IS NULL AND expires_at >= $2
                   AND (scope = $1 OR scope = 'always' OR (scope = 'agent' AND $1 = 'run'))",
                vec![
                    Param::Text(scope.to_owned()),
                    Param::Int(expires_at.as_microsecond()),
                    Param::Uuid(id.0),
                ],
                vec![entry],
                at,
            )
            .await?;
        Ok(narrowed == 1)
    }

    pub async fn rule(&self, id: RuleId) -> Result<Option<StandingRule>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM standing_rules WHERE id = $1");
        Ok(self.query(sql, vec![Param::Uuid(id.0)], rule).await?.into_iter().next())
    }
}

impl StandingRule {
    pub fn pattern(&self) -> Pattern {
        Pattern {
            scope: self.scope,
            user: self.user.clone(),
            agent: self.agent.clone(),
            run: self.run,
            tool: self.tool.clone(),
            signature: self.signature.clone(),
        }
    }
}

fn rule(row: &dyn Columns) -> Result<StandingRule, StoreError> {
    let scope = row.text(4)?;
    let unread = |it| StoreError::Unreadable(format!("the scope of a rule: {it}: `{scope}`"));
    Ok(StandingRule {
        id: RuleId(row.uuid(0)?),
        user: UserId(row.text(1)?),
        agent: AgentId(row.text(2)?),
        run: RunId(row.uuid(3)?),
        scope: scope.parse().map_err(unread)?,
        tool: row.text(5)?,
        signature: row.text(6)?,
        permission: PermissionId(row.uuid(7)?),
        made_by: actor(&row.text(8)?)?,
        made_at: timestamp(row.int(9)?)?,
        expires_at: timestamp(row.int(10)?)?,
        revoked_at: row.opt_int(11)?.map(timestamp).transpose()?,
        revoked_by: row.opt_text(12)?.as_deref().map(actor).transpose()?,
    })
}

pub(crate) fn actor(text: &str) -> Result<Actor, StoreError> {
    serde_json::from_str(text).map_err(|it| StoreError::Unreadable(format!("an actor: {it}")))
}
