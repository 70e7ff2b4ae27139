//! Read models: what the API and the command line show of runs.

use chancery_domain::event::Usage;
use chancery_domain::id::{AgentId, GroupId, ProjectId, RoleId, RunId, SessionKey, UserId};
use chancery_domain::policy::Bounds;
use jiff::Timestamp;

use crate::log::timestamp;
use crate::sql::{Columns, Param};
use crate::{Store, StoreError};

/// A run as its row says.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    pub id: RunId,
    pub status: String,
    pub waiting_for: Option<String>,
    pub org: String,
    pub user: UserId,
    pub agent: AgentId,
    pub role: RoleId,
    pub group: Option<GroupId>,
    pub project: Option<ProjectId>,
    pub session_key: Option<SessionKey>,
    pub parent: Option<RunId>,
    pub delegated: Option<Bounds>,
    pub input: String,
    pub output: Option<String>,
    pub error: Option<String>,
    pub usage: Usage,
    pub attempt: u64,
    pub seq: u64,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

/// Which runs; every field that is set narrows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFilter {
    pub user: Option<UserId>,
    pub status: Option<String>,
    pub parent: Option<RunId>,
    pub agent: Option<AgentId>,
    pub group: Option<GroupId>,
    pub session_key: Option<SessionKey>,
    /// Only runs that no other run led to.
    pub roots: bool,
    /// Only runs older than this one.
    pub before: Option<RunId>,
}

/// What was said in one earlier run of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    pub input: String,
    pub output: String,
}

const COLUMNS: &str =
    "r.id, r.status, r.waiting_for, r.org_id, r.user_id, r.agent_id, r.role_id, r.group_id,
  r.project_id, r.session_key, r.parent_run_id, r.delegated_permissions, r.input, r.output, r.error,
  h.input_tokens, h.output_tokens, h.attempt, h.seq, r.created_at, r.started_at, r.ended_at,
  h.cost_micros";

impl Store {
    pub async fn run(&self, id: RunId) -> Result<Option<RunRow>, StoreError> {
        let sql =
            format!("SELECT {COLUMNS} FROM runs r JOIN heads h ON h.run_id = r.id WHERE r.id = $1");
        Ok(self.query(sql, vec![Param::Uuid(id.0)], run).await?.into_iter().next())
    }

    /// The newest first.
    pub async fn runs(&self, filter: &RunFilter, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        let mut sql =
            format!("SELECT {COLUMNS} FROM runs r JOIN heads h ON h.run_id = r.id WHERE 1 = 1");
        let mut params = Vec::new();
        let mut narrow = |clause: &str, param: Option<Param>| {
            if let Some(param) = param {
                params.push(param);
                sql.push_str(&format!(" AND {clause} ${}", params.len()));
            }
        };
        let text = |it: Option<&str>| it.map(|it| Param::Text(it.to_owned()));
        narrow("r.user_id =", text(filter.user.as_ref().map(UserId::as_str)));
        narrow("r.status =", text(filter.status.as_deref()));
        narrow("r.parent_run_id =", filter.parent.map(|it| Param::Uuid(it.0)));
        narrow("r.agent_id =", text(filter.agent.as_ref().map(AgentId::as_str)));
        narrow("r.group_id =", text(filter.group.as_ref().map(GroupId::as_str)));
        narrow("r.session_key =", text(filter.session_key.as_ref().map(SessionKey::as_str)));
        narrow("r.id <", filter.before.map(|it| Param::Uuid(it.0)));
        if filter.roots {
            sql.push_str(" AND r.parent_run_id IS NULL");
        }
        params.push(Param::Int(i64::from(limit)));
        sql.push_str(&format!(" ORDER BY r.id DESC LIMIT ${}", params.len()));
        self.query(sql, params, run).await
    }

    /// A run and all that it led to, parents before children.
    pub async fn tree(&self, root: RunId, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!(
            "WITH RECURSIVE tree(id) AS (
               SELECT id FROM runs WHERE id = $1
               UNION SELECT child.id FROM runs child JOIN tree ON child.parent_run_id = tree.id
             )
             SELECT {COLUMNS} FROM tree JOIN runs r ON r.id = tree.id JOIN heads h ON h.run_id = r.id
             ORDER BY r.id LIMIT $2"
        );
        self.query(sql, vec![Param::Uuid(root.0), Param::Int(i64::from(limit))], run).await
    }

    /// What the innermost runs wait for that these wait for, through those that wait for others
    /// themselves, at most `depth` deep: each with the run that it was asked of. `None`: one works.
    pub async fn waits_beneath(
        &self,
        runs: &[RunId],
        depth: u32,
    ) -> Result<Vec<(RunId, Option<String>)>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<String> = (1..=runs.len()).map(|n| format!("${n}")).collect();
        let sql = format!(
            "WITH RECURSIVE beneath(root, id, waits, depth) AS (
               SELECT id, id, waiting_for, CAST(0 AS BIGINT) FROM runs
               WHERE id IN ({}) AND waiting_for = 'child'
               UNION SELECT beneath.root, child.id, child.waiting_for, beneath.depth + 1
               FROM runs child JOIN beneath ON child.parent_run_id = beneath.id
               WHERE beneath.waits = 'child' AND child.ended_at IS NULL
                 AND beneath.depth < CAST(${} AS BIGINT)
             )
             SELECT root, waits FROM beneath
             WHERE depth > 0 AND (waits IS NULL OR waits <> 'child') ORDER BY root, id",
            places.join(", "),
            runs.len() + 1,
        );
        let mut params: Vec<Param> = runs.iter().map(|it| Param::Uuid(it.0)).collect();
        params.push(Param::Int(i64::from(depth)));
        self.query(sql, params, |row| Ok((RunId(row.uuid(0)?), row.opt_text(1)?))).await
    }

    /// The tokens that the other runs of a run's tree have used. What has ended beneath another
    /// run is charged to that one.
    pub async fn tokens_beside(&self, run: RunId) -> Result<u64, StoreError> {
        let sum = self
            .query(
                "WITH RECURSIVE up(id, parent) AS (
                   SELECT id, parent_run_id FROM runs WHERE id = $1
                   UNION SELECT r.id, r.parent_run_id FROM runs r JOIN up ON r.id = up.parent
                 ), tree(id) AS (
                   SELECT id FROM up WHERE parent IS NULL
                   UNION SELECT child.id FROM runs child JOIN tree ON child.parent_run_id = tree.id
                 )
                 SELECT CAST(COALESCE(SUM(h.input_tokens + h.output_tokens), 0) AS BIGINT)
                 FROM tree JOIN heads h ON h.run_id = tree.id JOIN runs r ON r.id = tree.id
                 WHERE tree.id <> $1 AND (r.ended_at IS NULL OR r.parent_run_id IS NULL)",
                vec![Param::Uuid(run.0)],
                |row| row.int(0),
            )
            .await?;
        Ok(sum.first().map_or(0, |it| u64::try_from(*it).unwrap_or(u64::MAX)))
    }

    /// The runs whose id lies between, of one user or of all, at most two: enough to tell one from
    /// several.
    pub async fn runs_between(
        &self,
        from: RunId,
        to: RunId,
        user: Option<&UserId>,
    ) -> Result<Vec<RunId>, StoreError> {
        let user = user.map_or("", UserId::as_str).to_owned();
        self.query(
            "SELECT id FROM runs WHERE id >= $1 AND id <= $2 AND ($3 = '' OR user_id = $3)
             ORDER BY id LIMIT 2",
            vec![Param::Uuid(from.0), Param::Uuid(to.0), Param::Text(user)],
            |row| Ok(RunId(row.uuid(0)?)),
        )
        .await
    }

    /// The completed runs of a session before this one, oldest first, at most `limit`.
    pub async fn session_before(
        &self,
        run: &RunRow,
        limit: u32,
    ) -> Result<Vec<Exchange>, StoreError> {
        let Some(session) = &run.session_key else {
            return Ok(Vec::new());
        };
        let mut found = self
            .query(
                "SELECT input, output FROM runs WHERE session_key = $1 AND id < $2 AND user_id = $3
                   AND agent_id = $4 AND status = 'completed' AND output IS NOT NULL
                 ORDER BY id DESC LIMIT $5",
                vec![
                    Param::Text(session.0.clone()),
                    Param::Uuid(run.id.0),
                    Param::Text(run.user.0.clone()),
                    Param::Text(run.agent.0.clone()),
                    Param::Int(i64::from(limit)),
                ],
                |row| Ok(Exchange { input: row.text(0)?, output: row.text(1)? }),
            )
            .await?;
        found.reverse();
        Ok(found)
    }

    /// How many runs of a tree there are, and how far they have come together: another answer,
    /// and something has happened in it.
    pub async fn progress_of_tree(
        &self,
        root: RunId,
        limit: u32,
    ) -> Result<(usize, u64), StoreError> {
        let sql = "WITH RECURSIVE tree(id) AS (
               SELECT id FROM runs WHERE id = $1
               UNION SELECT child.id FROM runs child JOIN tree ON child.parent_run_id = tree.id
             ), heads_of(seq) AS (
               SELECT h.seq FROM tree JOIN heads h ON h.run_id = tree.id ORDER BY tree.id LIMIT $2
             )
             SELECT count(*), CAST(COALESCE(SUM(seq), 0) AS BIGINT) FROM heads_of";
        self.progress(sql, vec![Param::Uuid(root.0), Param::Int(i64::from(limit))]).await
    }

    /// The same of the newest runs, of one user or of all.
    pub async fn progress_of_newest(
        &self,
        user: Option<&UserId>,
        limit: u32,
    ) -> Result<(usize, u64), StoreError> {
        let sql = "WITH heads_of(seq) AS (
               SELECT h.seq FROM runs r JOIN heads h ON h.run_id = r.id
               WHERE ($1 = '' OR r.user_id = $1) ORDER BY r.id DESC LIMIT $2
             )
             SELECT count(*), CAST(COALESCE(SUM(seq), 0) AS BIGINT) FROM heads_of";
        let user = user.map_or("", UserId::as_str).to_owned();
        self.progress(sql, vec![Param::Text(user), Param::Int(i64::from(limit))]).await
    }

    /// The same of the runs of a session, with all that they led to.
    pub async fn progress_of_session(
        &self,
        user: &UserId,
        session: &SessionKey,
        limit: u32,
    ) -> Result<(usize, u64), StoreError> {
        let sql = "WITH RECURSIVE tree(id) AS (
               SELECT id FROM runs WHERE session_key = $1 AND user_id = $2
               UNION SELECT child.id FROM runs child JOIN tree ON child.parent_run_id = tree.id
             ), heads_of(seq) AS (
               SELECT h.seq FROM tree JOIN heads h ON h.run_id = tree.id
               ORDER BY tree.id DESC LIMIT $3
             )
             SELECT count(*), CAST(COALESCE(SUM(seq), 0) AS BIGINT) FROM heads_of";
        let params = vec![
            Param::Text(session.0.clone()),
            Param::Text(user.0.clone()),
            Param::Int(i64::from(limit)),
        ];
        self.progress(sql, params).await
    }

    async fn progress(
        &self,
        sql: &'static str,
        params: Vec<Param>,
    ) -> Result<(usize, u64), StoreError> {
        let found =
            self.query(sql, params, |row| Ok((row.int(0)? as usize, row.int(1)? as u64))).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// The newest run of each session of a user, the newest first.
    pub async fn sessions(&self, user: &UserId, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM runs r JOIN heads h ON h.run_id = r.id
             WHERE r.user_id = $1 AND r.session_key IS NOT NULL AND r.parent_run_id IS NULL
               AND NOT EXISTS (SELECT 1 FROM runs later WHERE later.session_key = r.session_key
                 AND later.id > r.id AND later.user_id = r.user_id
                 AND later.parent_run_id IS NULL)
             ORDER BY r.id DESC LIMIT $2"
        );
        let params = vec![Param::Text(user.0.clone()), Param::Int(i64::from(limit))];
        self.query(sql, params, run).await
    }

    /// Those of the given runs that have ended.
    pub async fn ended_among(&self, runs: &[RunId]) -> Result<Vec<RunId>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let places: Vec<String> = (1..=runs.len()).map(|n| format!("${n}")).collect();
        let sql = format!(
            "SELECT id FROM runs WHERE ended_at IS NOT NULL AND id IN ({})",
            places.join(", ")
        );
        let params = runs.iter().map(|it| Param::Uuid(it.0)).collect();
        self.query(sql, params, |row| Ok(RunId(row.uuid(0)?))).await
    }

    /// How many runs there are of each status.
    pub async fn count_by_status(&self) -> Result<Vec<(String, u64)>, StoreError> {
        self.query(
            "SELECT status, count(*) FROM runs GROUP BY status ORDER BY status",
            vec![],
            |row| Ok((row.text(0)?, row.int(1)? as u64)),
        )
        .await
    }

    /// Questions that nobody has answered yet.
    pub async fn count_pending(&self) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM permissions WHERE status = 'pending'";
        let counted = self.query(sql, vec![], |row| Ok(row.int(0)? as u64)).await?;
        Ok(counted.first().copied().unwrap_or_default())
    }

    /// Whether the store answers at all.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.query("SELECT 1", vec![], |_| Ok(())).await.map(|_| ())
    }
}

fn run(row: &dyn Columns) -> Result<RunRow, StoreError> {
    let delegated = row
        .opt_text(11)?
        .map(|it| serde_json::from_str(&it))
        .transpose()
        .map_err(|it| StoreError::Unreadable(format!("a delegation: {it}")))?;
    Ok(RunRow {
        id: RunId(row.uuid(0)?),
        status: row.text(1)?,
        waiting_for: row.opt_text(2)?,
        org: row.text(3)?,
        user: UserId(row.text(4)?),
        agent: AgentId(row.text(5)?),
        role: RoleId(row.text(6)?),
        group: row.opt_text(7)?.map(GroupId),
        project: row.opt_text(8)?.map(ProjectId),
        session_key: row.opt_text(9)?.map(SessionKey),
        parent: row.opt_uuid(10)?.map(RunId),
        delegated,
        input: row.text(12)?,
        output: row.opt_text(13)?,
        error: row.opt_text(14)?,
        usage: Usage {
            input_tokens: row.int(15)? as u64,
            output_tokens: row.int(16)? as u64,
            cost_micros: row.int(22)? as u64,
        },
        attempt: row.int(17)? as u64,
        seq: row.int(18)? as u64,
        created_at: timestamp(row.int(19)?)?,
        started_at: row.opt_int(20)?.map(timestamp).transpose()?,
        ended_at: row.opt_int(21)?.map(timestamp).transpose()?,
    })
}
