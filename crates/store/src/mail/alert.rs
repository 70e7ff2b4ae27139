//! What the system tells those above whoever does what they should not, or does not answer.

use chancery_domain::contract::superiors;
use chancery_domain::id::{ContractId, MailId, UserId};
use chancery_domain::mail::{BOARD, Priority, SUBJECT_MAX, SYSTEM};
use chancery_domain::org::Org;
use chancery_domain::policy::Bounds;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::raise::{Raise, contract_of};
use super::row::{self, COLUMNS};
use super::send::insert;
use super::{ContractRow, MailRow, Outgoing};
use crate::StoreError;
use crate::memory::session::Session;
use crate::projection::storable;
use crate::sql::Param;

/// So many rejections within this time are no slip.
const PROBES: i64 = 3;
const PROBING: SignedDuration = SignedDuration::from_mins(10);
const BODY_MAX: usize = 2000;

/// What is told, and on whose behalf.
struct Alert<'a> {
    what: &'a str,
    /// The mail that it is about, which its own id is made of.
    of: &'a MailId,
    about: &'a str,
    subject: String,
    body: String,
    contract: Option<ContractId>,
    user: UserId,
    delegated: Option<Bounds>,
    at: Timestamp,
}

/// The recipient is not at work: the sender's superior is to know.
pub(super) async fn recipient_is_gone(
    session: &impl Session,
    org: &Org,
    mail: &Outgoing,
) -> Result<(), StoreError> {
    let (from, to) = (&mail.from, &mail.draft.to);
    let subject = format!("{from} wrote to {to}, which is not active");
    let body = format!(
        "The mail was not delivered. Type `{}`, subject: {}",
        mail.draft.kind, mail.draft.subject
    );
    let alert = of_sender("gone", mail, subject, body);
    for superior in superiors(org, from) {
        tell(session, &superior, &alert).await?;
    }
    Ok(())
}

/// Three rejections within ten minutes: said once in that time.
pub(super) async fn look_for_probing(
    session: &impl Session,
    org: &Org,
    mail: &Outgoing,
) -> Result<(), StoreError> {
    if mail.from == BOARD {
        return Ok(());
    }
    let since = mail.at.checked_sub(PROBING).unwrap_or(mail.at).as_microsecond();
    let sql = "SELECT count(*) FROM mail_rejections WHERE from_agent = $1 AND attempted_at > $2";
    let params = vec![Param::Text(storable(&mail.from)), Param::Int(since)];
    if counted(session, sql, params).await? < PROBES {
        return Ok(());
    }
    let sql = "SELECT count(*) FROM mails WHERE about = $1 AND created_at > $2";
    let params = vec![Param::Text(about("probing", &mail.from)), Param::Int(since)];
    if counted(session, sql, params).await? > 0 {
        return Ok(());
    }
    let subject = format!("{} keeps writing where it may not", mail.from);
    let body = format!(
        "{PROBES} of its mails were rejected within {} minutes, the last one to `{}`. The \
         rejections are in the record.",
        PROBING.as_mins(),
        mail.draft.to
    );
    let alert = of_sender("probing", mail, subject, body);
    for superior in superiors(org, &mail.from) {
        tell(session, &superior, &alert).await?;
    }
    Ok(())
}

/// A contract has failed for the last time: whoever is above its issuer is to know.
pub(super) async fn contract_has_failed(
    session: &impl Session,
    org: &Org,
    row: &ContractRow,
    at: Timestamp,
) -> Result<(), StoreError> {
    let contract = &row.contract;
    // Delegation only shrinks: whoever is told has no more than the run that gave the contract.
    let delegated = mail_of(session, &row.mail).await?.and_then(|it| it.delegated);
    let alert = Alert {
        what: "failed",
        of: &row.mail,
        about: contract.id.as_str(),
        subject: format!("{} has failed for good: {}", contract.id, row.terms.title),
        body: format!(
            "It was given by `{}` to `{}` and has failed {} times.",
            contract.from, contract.to, contract.failures
        ),
        contract: Some(contract.id.clone()),
        user: row.user.clone(),
        delegated,
        at,
    };
    let mut told = superiors(org, contract.from.as_str());
    // The board is above itself: it is told once.
    if !told.iter().any(|it| it == contract.from.as_str()) {
        told.push(contract.from.to_string());
    }
    for name in told {
        tell(session, &name, &alert).await?;
    }
    Ok(())
}

/// Somebody has not answered. Answers which mail tells of it.
pub(super) async fn is_silent(
    session: &impl Session,
    raise: &Raise,
    told: &str,
    at: Timestamp,
) -> Result<MailId, StoreError> {
    let before = mail_of(session, &raise.mail).await?;
    let words = before.as_ref().map(|it| format!("\n\n{}\n{}", it.subject, it.body));
    let alert = Alert {
        what: "silent",
        of: &raise.mail,
        about: &raise.to,
        subject: format!("{} does not answer {}", raise.to, raise.from),
        body: format!(
            "`{}` has not answered what `{}` raised, {} times.{}",
            raise.to,
            raise.from,
            raise.count,
            words.unwrap_or_default()
        ),
        contract: contract_of(raise),
        user: before.as_ref().map_or_else(|| UserId::from(BOARD), |it| it.user.clone()),
        delegated: before.and_then(|it| it.delegated),
        at,
    };
    tell(session, told, &alert).await
}

async fn mail_of(session: &impl Session, id: &MailId) -> Result<Option<MailRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM mails WHERE id = $1");
    let found = session.rows(&sql, vec![Param::Text(id.0.clone())], row::mail).await?;
    Ok(found.into_iter().next())
}

fn of_sender<'a>(what: &'a str, mail: &'a Outgoing, subject: String, body: String) -> Alert<'a> {
    Alert {
        what,
        of: &mail.id,
        about: &mail.from,
        subject,
        body,
        contract: None,
        user: mail.behalf.user.clone(),
        delegated: mail.behalf.delegated.clone(),
        at: mail.at,
    }
}

fn about(what: &str, whom: &str) -> String {
    storable(&format!("{what}:{whom}"))
}

async fn tell(session: &impl Session, to: &str, alert: &Alert<'_>) -> Result<MailId, StoreError> {
    let cut = |text: &str, most: usize| storable(&text.chars().take(most).collect::<String>());
    let id = id(alert, to);
    let row = MailRow {
        id: id.clone(),
        from: SYSTEM.to_owned(),
        to: to.to_owned(),
        kind: "info".to_owned(),
        subject: cut(&alert.subject.replace(char::is_control, " "), SUBJECT_MAX),
        body: cut(&alert.body, BODY_MAX),
        priority: Priority::High,
        attachments: Vec::new(),
        fields: Default::default(),
        reply_to: None,
        thread: id.clone(),
        contract_ref: alert.contract.clone(),
        status: "delivered".to_owned(),
        created_at: alert.at,
        delivered_at: alert.at,
        read_at: None,
        user: alert.user.clone(),
        project: None,
        delegated: alert.delegated.clone(),
        run: None,
        handed_to: None,
    };
    insert(session, &row, None, Some(&about(alert.what, alert.about))).await?;
    Ok(id)
}

/// Of the mail that it is about: nobody who does not know that one can guess it.
fn id(alert: &Alert<'_>, to: &str) -> MailId {
    let digest = Sha256::digest(format!("{}:{}:{to}", alert.of, alert.what).as_bytes());
    let tail: String = digest.iter().take(6).map(|it| format!("{it:02x}")).collect();
    let head = alert.of.as_str().rsplit_once('-').map_or("MAIL", |(head, _)| head);
    MailId(format!("{head}-{tail}"))
}

async fn counted(session: &impl Session, sql: &str, params: Vec<Param>) -> Result<i64, StoreError> {
    let found = session.rows(sql, params, |row| row.int(0)).await?;
    Ok(found.first().copied().unwrap_or_default())
}
