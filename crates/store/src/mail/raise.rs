//! Problems that were handed up: which of them wait for an answer, and until when.

use std::sync::Arc;

use chancery_domain::id::{ContractId, MailId};
use chancery_domain::org::Org;
use chancery_domain::raise::{Next, UNANSWERED_MAX, matter, unanswered};
use jiff::{SignedDuration, Timestamp};

use super::{MailRow, Outgoing, alert};
use crate::log::timestamp;
use crate::memory::session::{Session, Wall};
use crate::memory::within;
use crate::outbox::Subscription;
use crate::projection::storable;
use crate::sql::{Columns, Param};
use crate::{Database, Store, StoreError};

/// One escalation, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raise {
    pub mail: MailId,
    pub from: String,
    pub to: String,
    pub matter: String,
    pub count: u32,
    pub due_at: Timestamp,
}

/// Whether a problem can be handed up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raised {
    Fresh,
    /// One about the same matter waits for its answer until then.
    Waits(Timestamp),
}

const COLUMNS: &str = "mail_id, from_agent, to_agent, matter, count, due_at";

impl Store {
    /// Whether the same problem waits for an answer already.
    pub async fn raised(&self, mail: &Outgoing) -> Result<Raised, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM raises WHERE from_agent = $1 AND matter = $2 AND state = 'open'
             ORDER BY due_at DESC LIMIT 1"
        );
        let params =
            vec![Param::Text(storable(&mail.from)), Param::Text(storable(&matter(&mail.draft)))];
        let open = self.query(sql, params, raise).await?.into_iter().next();
        Ok(open.map_or(Raised::Fresh, |it| Raised::Waits(it.due_at)))
    }

    /// Looks at what was due an answer by now, and tells whoever is to be told. Answers what was
    /// unanswered, with what followed.
    pub async fn settle_raises(
        &self,
        org: &Arc<Org>,
        now: Timestamp,
        wait: SignedDuration,
        limit: u32,
    ) -> Result<Vec<(Raise, Next)>, StoreError> {
        let subscriptions = self.subscribers_of("escalation.board");
        let org = org.clone();
        within!(write, self, Wall::system(), session =>
            settle(session, &org, now, wait, limit, &subscriptions))
    }

    /// How many wait for an answer.
    pub async fn raises_open(&self) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM raises WHERE state = 'open'";
        let found = self.query(sql, vec![], |row| row.int(0)).await?;
        Ok(found.first().copied().unwrap_or_default() as u64)
    }
}

/// Notes a problem that was handed up with a mail. One that is sent while another about the same
/// matter waits for its answer waits with it, and is no further attempt.
pub(super) async fn open(session: &impl Session, mail: &Outgoing) -> Result<(), StoreError> {
    let matter = matter(&mail.draft);
    let sql = format!(
        "SELECT {COLUMNS}, state FROM raises
         WHERE from_agent = $1 AND to_agent = $2 AND matter = $3
           AND state IN ('open', 'unanswered') ORDER BY count DESC, due_at DESC LIMIT 1"
    );
    let params = vec![
        Param::Text(storable(&mail.from)),
        Param::Text(storable(&mail.draft.to)),
        Param::Text(storable(&matter)),
    ];
    let decode = |row: &dyn Columns| Ok((raise(row)?, row.text(6)? == "open"));
    let before = session.rows(&sql, params, decode).await?.into_iter().next();
    let due_at = mail.at.checked_add(mail.answer_within).unwrap_or(Timestamp::MAX);
    let (count, due_at) = match before {
        Some((before, true)) if before.due_at > mail.at => (before.count, before.due_at),
        Some((before, _)) => (before.count + 1, due_at),
        None => (1, due_at),
    };
    let (mail, from, to) = (mail.id.clone(), mail.from.clone(), mail.draft.to.clone());
    insert(session, &Raise { mail, from, to, matter, count, due_at }).await
}

async fn insert(session: &impl Session, raise: &Raise) -> Result<(), StoreError> {
    session
        .execute(
            "INSERT INTO raises (mail_id, from_agent, to_agent, matter, count, state, due_at)
             VALUES ($1, $2, $3, $4, $5, 'open', $6)",
            vec![
                Param::Text(raise.mail.0.clone()),
                Param::Text(storable(&raise.from)),
                Param::Text(storable(&raise.to)),
                Param::Text(storable(&raise.matter)),
                Param::Int(i64::from(raise.count)),
                Param::Int(raise.due_at.as_microsecond()),
            ],
        )
        .await?;
    Ok(())
}

/// A mail down the line answers what came up it: within its thread, or, where it is no reply,
/// whatever waits.
pub(super) async fn answered_by(session: &impl Session, mail: &MailRow) -> Result<(), StoreError> {
    let thread = mail.reply_to.as_ref().map_or("", |_| mail.thread.as_str());
    session
        .execute(
            "UPDATE raises SET state = 'answered'
             WHERE from_agent = $1 AND to_agent = $2 AND state IN ('open', 'unanswered')
               AND ($3 = '' OR mail_id IN (SELECT id FROM mails WHERE thread = $3))",
            vec![
                Param::Text(mail.to.clone()),
                Param::Text(mail.from.clone()),
                Param::Text(thread.to_owned()),
            ],
        )
        .await?;
    Ok(())
}

async fn settle(
    session: &impl Session,
    org: &Org,
    now: Timestamp,
    wait: SignedDuration,
    limit: u32,
    subscribers: &[String],
) -> Result<Vec<(Raise, Next)>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM raises WHERE state = 'open' AND due_at <= $1
         ORDER BY due_at LIMIT $2"
    );
    let params = vec![Param::Int(now.as_microsecond()), Param::Int(i64::from(limit))];
    let mut settled = Vec::new();
    for raise in session.rows(&sql, params, raise).await? {
        // With those that waited with it: they are one problem, of which one thing follows.
        let ended = session
            .execute(
                "UPDATE raises SET state = 'unanswered'
                 WHERE from_agent = $1 AND to_agent = $2 AND matter = $3 AND count = $4
                   AND due_at <= $5 AND state = 'open'",
                vec![
                    Param::Text(raise.from.clone()),
                    Param::Text(raise.to.clone()),
                    Param::Text(raise.matter.clone()),
                    Param::Int(i64::from(raise.count)),
                    Param::Int(now.as_microsecond()),
                ],
            )
            .await?;
        if ended == 0 {
            continue;
        }
        let next = unanswered(org, &raise.to, raise.count);
        match &next {
            Next::Again => {}
            Next::Head(head) => {
                let told = alert::is_silent(session, &raise, head, now).await?;
                // Whoever is told has as long again, and only once: what follows is the board.
                let due_at = now.checked_add(wait).unwrap_or(Timestamp::MAX);
                let again = Raise {
                    mail: told,
                    from: raise.to.clone(),
                    to: head.clone(),
                    matter: raise.matter.clone(),
                    count: UNANSWERED_MAX,
                    due_at,
                };
                insert(session, &again).await?;
            }
            Next::Board => {
                let told = alert::is_silent(session, &raise, chancery_domain::mail::BOARD, now);
                let told = told.await?;
                notify(session, &raise, &told, now, subscribers).await?;
            }
        }
        settled.push((raise, next));
    }
    Ok(settled)
}

/// The same through the channels that lead out of here.
async fn notify(
    session: &impl Session,
    raise: &Raise,
    told: &MailId,
    now: Timestamp,
    subscribers: &[String],
) -> Result<(), StoreError> {
    let body = serde_json::json!({
        "mail_id": told,
        "from_agent": raise.from,
        "to_agent": raise.to,
        "unanswered": raise.mail,
        "matter": raise.matter,
    });
    for subscriber in subscribers {
        session
            .execute(
                "INSERT INTO outbox (subscriber, run_id, seq, topic, at, body)
                 VALUES ($1, $2, 0, 'escalation.board', $3, $4)",
                vec![
                    Param::Text(subscriber.clone()),
                    Param::Uuid(uuid::Uuid::nil()),
                    Param::Int(now.as_microsecond()),
                    Param::Text(body.to_string()),
                ],
            )
            .await?;
    }
    Ok(())
}

impl Store {
    fn subscribers_of(&self, topic: &str) -> Vec<String> {
        let all =
            self.inner.subscriptions.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let wants = |it: &&Subscription| it.topics.iter().any(|it| it == topic);
        all.iter().filter(wants).map(|it| it.subscriber.clone()).collect()
    }
}

fn raise(row: &dyn Columns) -> Result<Raise, StoreError> {
    Ok(Raise {
        mail: MailId(row.text(0)?),
        from: row.text(1)?,
        to: row.text(2)?,
        matter: row.text(3)?,
        count: row.int(4)? as u32,
        due_at: timestamp(row.int(5)?)?,
    })
}

/// Of a problem that is about a contract.
pub(super) fn contract_of(raise: &Raise) -> Option<ContractId> {
    raise.matter.starts_with("CTR-").then(|| ContractId(raise.matter.clone()))
}
