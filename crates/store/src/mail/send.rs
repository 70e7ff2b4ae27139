//! Sending: what the rules have to know is read, the rules are asked, and the mail or its
//! rejection is written, all in one transaction.

use std::sync::Arc;

use chancery_domain::audit::Entry;
use chancery_domain::contract::{State, Terms};
use chancery_domain::id::AgentId;
use chancery_domain::mail::{self, BOARD, CONTRACT, Known, Rejection, SYSTEM};
use chancery_domain::org::Org;
use chancery_domain::policy::{Reason, Ruling};
use chancery_domain::raise::ESCALATION;

use super::contract::{self, active_of, warrant_of};
use super::row::{self, COLUMNS, MailRow, text};
use super::{Outgoing, Sent};
use super::{alert, raise};
use crate::audit::drafts;
use crate::memory::session::{Session, Wall};
use crate::memory::within;
use crate::projection::storable;
use crate::sql::{Columns, Param};
use crate::{Database, Store, StoreError};

impl Store {
    /// Routes a mail and delivers it, or keeps its rejection.
    pub async fn send_mail(&self, org: &Arc<Org>, mail: Outgoing) -> Result<Sent, StoreError> {
        #[cfg(feature = "faults")]
        self.point().await?;
        let org = org.clone();
        let sent: Result<_, StoreError> = within!(write, self, Wall::system(), session =>
            send(session, &org, &mail));
        #[cfg(feature = "faults")]
        self.point().await?;
        sent
    }

    /// Whether a mail would be delivered, as things are now. Nothing is written.
    pub async fn try_mail(
        &self,
        org: &Arc<Org>,
        mail: Outgoing,
    ) -> Result<Option<Rejection>, StoreError> {
        let org = org.clone();
        within!(read, self, Wall::system(), session => attempt(session, &org, &mail))
    }
}

async fn attempt(
    session: &impl Session,
    org: &Org,
    mail: &Outgoing,
) -> Result<Option<Rejection>, StoreError> {
    let known = find_out(session, org, mail).await?;
    Ok(mail::route(org, &mail.from, &mail.draft, &known).err())
}

async fn send(session: &impl Session, org: &Org, mail: &Outgoing) -> Result<Sent, StoreError> {
    if let Some(before) = sent_before(session, mail).await? {
        return Ok(before);
    }
    let known = find_out(session, org, mail).await?;
    if let Err(rejection) = mail::route(org, &mail.from, &mail.draft, &known) {
        reject(session, org, mail, &rejection).await?;
        session.audit(&drafts(vec![refused(mail, &rejection)], mail.at)?).await?;
        return Ok(Sent::Rejected(rejection));
    }
    let row = deliver(session, mail).await?;
    if mail.draft.kind == CONTRACT {
        // Routing has read them before, and found them to be terms.
        let terms = Terms::of(org, &mail.draft).map_err(StoreError::Failed)?;
        contract::open(session, mail, &row, &terms).await?;
    }
    if mail.draft.hands_in().is_some() {
        contract::hand_in(session, org, mail).await?;
    }
    if mail.draft.kind == ESCALATION {
        raise::open(session, mail).await?;
    }
    raise::answered_by(session, &row).await?;
    Ok(Sent::Delivered(Box::new(row)))
}

/// What the audit says of a rejection: which step it failed at, and why.
fn refused(mail: &Outgoing, rejection: &Rejection) -> Entry {
    let reason = Reason {
        layer: "mail".to_owned(),
        rule: rejection.step.as_str().to_owned(),
        outcome: Ruling::Deny,
        detail: rejection.reason.clone(),
    };
    Entry { ruling: Some(Ruling::Deny), reasons: vec![reason], ..mail.entry.clone() }
}

/// What the same call has come to before.
async fn sent_before(session: &impl Session, mail: &Outgoing) -> Result<Option<Sent>, StoreError> {
    let Some(key) = &mail.key else { return Ok(None) };
    let sql = format!("SELECT {COLUMNS} FROM mails WHERE call_key = $1");
    let params = vec![Param::Text(storable(key))];
    let found = session.rows(&sql, params.clone(), row::mail).await?;
    if let Some(row) = found.into_iter().next() {
        return Ok(Some(Sent::Delivered(Box::new(row))));
    }
    let sql = "SELECT step, reason FROM mail_rejections WHERE call_key = $1";
    let decode = |row: &dyn Columns| Ok((row.text(0)?, row.text(1)?));
    let found = session.rows(sql, params, decode).await?.into_iter().next();
    Ok(found.and_then(|(step, reason)| {
        let step = mail::Step::ALL.into_iter().find(|it| it.as_str() == step)?;
        let contacts = Vec::new();
        Some(Sent::Rejected(Rejection { step, reason, contacts, deactivated: false }))
    }))
}

/// What the rules have to know.
async fn find_out(session: &impl Session, org: &Org, mail: &Outgoing) -> Result<Known, StoreError> {
    let (from, draft) = (&*mail.from, &mail.draft);
    let needs = mail::needs(org, from, draft);
    let mut known = Known::default();
    if needs.contracts {
        for name in [from, &*draft.to] {
            known.contracts.extend(active_of(session, name).await?);
        }
    }
    if needs.warrant {
        let agent = AgentId::from(from);
        known.warrant = warrant_of(session, &agent, mail.behalf.contract.as_ref()).await?;
    }
    if let Some(id) = &draft.reply_to {
        let sql = "SELECT from_agent, to_agent FROM mails WHERE id = $1";
        known.lost_reply = !is_party(session, sql, id.as_str(), from).await?;
    }
    if let Some(id) = &draft.contract_ref {
        let sql = "SELECT from_agent, to_agent FROM contracts WHERE id = $1";
        known.lost_contract = !is_party_or_judge(session, org, sql, id.as_str(), from).await?;
    }
    Ok(known)
}

async fn parties(
    session: &impl Session,
    sql: &str,
    id: &str,
) -> Result<Option<(String, String)>, StoreError> {
    let decode = |row: &dyn Columns| Ok((row.text(0)?, row.text(1)?));
    let found = session.rows(sql, vec![Param::Text(storable(id))], decode).await?;
    Ok(found.into_iter().next())
}

async fn is_party(
    session: &impl Session,
    sql: &str,
    id: &str,
    who: &str,
) -> Result<bool, StoreError> {
    let found = parties(session, sql, id).await?;
    Ok(found.is_some_and(|(from, to)| from == who || to == who))
}

/// The parties to a contract refer to it, whoever judges the work that it is about, and the board.
async fn is_party_or_judge(
    session: &impl Session,
    org: &Org,
    sql: &str,
    id: &str,
    who: &str,
) -> Result<bool, StoreError> {
    let Some((from, to)) = parties(session, sql, id).await? else { return Ok(false) };
    let agent = AgentId::from(who);
    let judges = chancery_domain::contract::may_judge(org, &agent, &AgentId(from.clone()));
    let beside = org
        .role_of(&agent)
        .is_some_and(|role| chancery_domain::contract::reports_to(org, role, &from));
    Ok(from == who || to == who || judges || beside || [BOARD, SYSTEM].contains(&who))
}

/// Writes a mail into its recipient's inbox.
pub(super) async fn deliver(
    session: &impl Session,
    mail: &Outgoing,
) -> Result<MailRow, StoreError> {
    let draft = &mail.draft;
    let thread = match &draft.reply_to {
        None => mail.id.clone(),
        Some(before) => {
            let sql = "SELECT thread FROM mails WHERE id = $1";
            let params = vec![Param::Text(storable(before.as_str()))];
            let found = session.rows(sql, params, |row| row.text(0)).await?;
            found.into_iter().next().map_or_else(|| mail.id.clone(), |it| it.as_str().into())
        }
    };
    let contract = if draft.kind == CONTRACT {
        Some(mail.contract.clone())
    } else {
        draft.contract_ref.clone()
    };
    let row = MailRow {
        id: mail.id.clone(),
        from: storable(&mail.from),
        to: storable(&draft.to),
        kind: draft.kind.clone(),
        subject: storable(&draft.subject),
        body: storable(&draft.body),
        priority: draft.priority,
        attachments: draft.attachments.clone(),
        fields: draft.fields.clone(),
        reply_to: draft.reply_to.clone(),
        thread,
        contract_ref: contract,
        status: "delivered".to_owned(),
        created_at: mail.at,
        delivered_at: mail.at,
        read_at: None,
        user: mail.behalf.user.clone(),
        project: mail.behalf.project.clone(),
        delegated: mail.behalf.delegated.clone(),
        run: mail.behalf.run,
        handed_to: None,
    };
    insert(session, &row, mail.key.as_deref(), None).await?;
    Ok(row)
}

pub(super) async fn insert(
    session: &impl Session,
    row: &MailRow,
    key: Option<&str>,
    about: Option<&str>,
) -> Result<(), StoreError> {
    let optional = |text: Option<&str>| text.map_or(Param::Null, |it| Param::Text(storable(it)));
    // What is critical comes first, and all else by its age alone.
    let urgency = i64::from(row.priority != mail::Priority::Critical);
    session
        .execute(
            "INSERT INTO mails (id, from_agent, to_agent, mail_type, subject, body, priority,
               urgency, attachments, fields, reply_to, thread, contract_ref, status, created_at,
               delivered_at, user_id, project_id, delegated, run_id, call_key, about)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
               $18, $19, $20, $21, $22)",
            vec![
                Param::Text(row.id.0.clone()),
                Param::Text(row.from.clone()),
                Param::Text(row.to.clone()),
                Param::Text(row.kind.clone()),
                Param::Text(row.subject.clone()),
                Param::Text(row.body.clone()),
                Param::Text(row.priority.as_str().to_owned()),
                Param::Int(urgency),
                Param::Text(text(&row.attachments)?),
                Param::Text(text(&row.fields)?),
                optional(row.reply_to.as_ref().map(|it| it.as_str())),
                Param::Text(row.thread.0.clone()),
                optional(row.contract_ref.as_ref().map(|it| it.as_str())),
                Param::Text(row.status.clone()),
                Param::Int(row.created_at.as_microsecond()),
                Param::Int(row.delivered_at.as_microsecond()),
                Param::Text(storable(row.user.as_str())),
                optional(row.project.as_ref().map(|it| it.as_str())),
                row.delegated.as_ref().map(text).transpose()?.map_or(Param::Null, Param::Text),
                row.run.map_or(Param::Null, |it| Param::Uuid(it.0)),
                optional(key),
                optional(about),
            ],
        )
        .await?;
    Ok(())
}

async fn reject(
    session: &impl Session,
    org: &Org,
    mail: &Outgoing,
    rejection: &Rejection,
) -> Result<(), StoreError> {
    let cut = |text: &str, most: usize| storable(&text.chars().take(most).collect::<String>());
    session
        .execute(
            "INSERT INTO mail_rejections
               (from_agent, to_agent, mail_type, step, reason, attempted_at, run_id, user_id, call_key)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            vec![
                Param::Text(storable(&mail.from)),
                Param::Text(cut(&mail.draft.to, 256)),
                Param::Text(cut(&mail.draft.kind, 64)),
                Param::Text(rejection.step.as_str().to_owned()),
                Param::Text(cut(&rejection.reason, 2000)),
                Param::Int(mail.at.as_microsecond()),
                mail.behalf.run.map_or(Param::Null, |it| Param::Uuid(it.0)),
                Param::Text(storable(mail.behalf.user.as_str())),
                mail.key.as_deref().map_or(Param::Null, |it| Param::Text(storable(it))),
            ],
        )
        .await?;
    if rejection.deactivated {
        alert::recipient_is_gone(session, org, mail).await?;
    }
    alert::look_for_probing(session, org, mail).await
}

/// The first state of a contract.
pub(super) const OPENED: State = State::Pending;
