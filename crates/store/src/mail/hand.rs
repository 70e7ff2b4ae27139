//! Mail drives work: what waits for an agent is handed to a run, once. Which run that will be is
//! written before the run is made, so that one that was not made is made by whoever comes next.

use chancery_domain::id::{AgentId, MailId, RunId};
use chancery_domain::mail::{CONTRACT, Waiting, handed_together};
use jiff::{SignedDuration, Timestamp};

use super::row::{self, COLUMNS, MailRow};
use crate::memory::session::{Session, Wall};
use crate::memory::within;
use crate::projection::storable;
use crate::sql::Param;
use crate::{Database, Store, StoreError};

/// Mails that one run is to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Handed {
    pub run: RunId,
    pub agent: AgentId,
    pub mails: Vec<MailRow>,
}

/// How many runs mail may make for one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    pub a_minute: u32,
}

/// How many mails are looked at for one run.
const LOOKED_AT: i64 = 100;

impl Store {
    /// The agents that have mail which nobody answers yet.
    pub async fn agents_with_mail(&self, limit: u32) -> Result<Vec<AgentId>, StoreError> {
        self.query(
            "SELECT DISTINCT to_agent FROM mails
             WHERE handed_to IS NULL AND to_agent <> 'board' LIMIT $1",
            vec![Param::Int(i64::from(limit))],
            |row| Ok(AgentId(row.text(0)?)),
        )
        .await
    }

    /// Hands an agent's mail to a run that is to be made, unless one of its runs is about to look
    /// at mail anyway, or it has had as many as it may.
    pub async fn hand_mail(
        &self,
        agent: &AgentId,
        run: RunId,
        rates: Rates,
        at: Timestamp,
    ) -> Result<Option<Handed>, StoreError> {
        #[cfg(feature = "faults")]
        self.point().await?;
        let agent = agent.clone();
        within!(write, self, Wall::system(), session => hand(session, &agent, run, rates, at))
    }

    /// What was handed to runs that were not made, by servers that are gone.
    pub async fn unmade_mail_runs(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<Handed>, StoreError> {
        within!(read, self, Wall::system(), session => unmade(session, before, limit))
    }

    pub async fn mail_run_made(&self, run: RunId) -> Result<(), StoreError> {
        let sql = "UPDATE mail_runs SET made = 1 WHERE run_id = $1";
        self.execute(sql, vec![Param::Uuid(run.0)]).await?;
        Ok(())
    }
}

async fn hand(
    session: &impl Session,
    agent: &AgentId,
    run: RunId,
    rates: Rates,
    at: Timestamp,
) -> Result<Option<Handed>, StoreError> {
    if is_busy(session, agent, rates, at).await? {
        return Ok(None);
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM mails WHERE to_agent = $1 AND handed_to IS NULL
         ORDER BY urgency, created_at, id LIMIT $2"
    );
    let params = vec![Param::Text(storable(agent.as_str())), Param::Int(LOOKED_AT)];
    let found = session.rows(&sql, params, row::mail).await?;
    let waiting: Vec<Waiting> = found.iter().map(waiting).collect::<Result<_, _>>()?;
    let mut mails = Vec::new();
    for id in handed_together(&waiting) {
        let taken = session
            .execute(
                "UPDATE mails SET handed_to = $1 WHERE id = $2 AND handed_to IS NULL",
                vec![Param::Uuid(run.0), Param::Text(id.0.clone())],
            )
            .await?;
        // Another server took it since it was looked at.
        if taken == 1
            && let Some(mail) = found.iter().find(|it| it.id == id)
        {
            mails.push(mail.clone());
        }
    }
    if mails.is_empty() {
        return Ok(None);
    }
    session
        .execute(
            "INSERT INTO mail_runs (run_id, agent_id, at) VALUES ($1, $2, $3)",
            vec![
                Param::Uuid(run.0),
                Param::Text(storable(agent.as_str())),
                Param::Int(at.as_microsecond()),
            ],
        )
        .await?;
    Ok(Some(Handed { run, agent: agent.clone(), mails }))
}

fn waiting(mail: &MailRow) -> Result<Waiting, StoreError> {
    let delegated = super::row::text(&mail.delegated)?;
    let project = mail.project.as_ref().map_or("", |it| it.as_str());
    Ok(Waiting {
        id: mail.id.clone(),
        is_contract: mail.kind == CONTRACT,
        behalf: format!("{}\u{1}{project}\u{1}{delegated}", mail.user),
    })
}

/// A run that waits for a person keeps nobody from the mail; one that is about to think may as
/// well be followed by the next.
async fn is_busy(
    session: &impl Session,
    agent: &AgentId,
    rates: Rates,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let since = at.checked_sub(SignedDuration::from_mins(1)).unwrap_or(at).as_microsecond();
    let name = Param::Text(storable(agent.as_str()));
    let sql = "SELECT count(*) FROM mail_runs WHERE agent_id = $1 AND at > $2";
    let params = vec![name.clone(), Param::Int(since)];
    let recent = session.rows(sql, params, |row| row.int(0)).await?;
    if recent.first().copied().unwrap_or_default() >= i64::from(rates.a_minute) {
        return Ok(true);
    }
    let sql = "SELECT count(*) FROM mail_runs m LEFT JOIN runs r ON r.id = m.run_id
        WHERE m.agent_id = $1 AND (m.made = 0 OR r.status IN ('pending', 'running'))";
    let busy = session.rows(sql, vec![name], |row| row.int(0)).await?;
    Ok(busy.first().copied().unwrap_or_default() > 0)
}

async fn unmade(
    session: &impl Session,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<Handed>, StoreError> {
    let runs = session
        .rows(
            "SELECT run_id, agent_id FROM mail_runs WHERE made = 0 AND at < $1 ORDER BY at LIMIT $2",
            vec![Param::Int(before.as_microsecond()), Param::Int(i64::from(limit))],
            |row| Ok((RunId(row.uuid(0)?), AgentId(row.text(1)?))),
        )
        .await?;
    let mut handed = Vec::new();
    for (run, agent) in runs {
        let sql = format!(
            "SELECT {COLUMNS} FROM mails WHERE handed_to = $1 ORDER BY urgency, created_at, id"
        );
        let mails = session.rows(&sql, vec![Param::Uuid(run.0)], row::mail).await?;
        handed.push(Handed { run, agent, mails });
    }
    Ok(handed)
}

impl Handed {
    pub fn ids(&self) -> impl Iterator<Item = &MailId> {
        self.mails.iter().map(|it| &it.id)
    }
}
