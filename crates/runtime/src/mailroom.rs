//! The mailroom: sends what agents and people write, hands what waits to runs that answer it, and
//! looks after what nobody answers.
//!
//! Mail hands on work, not authority: a run that answers a mail acts under its own agent's role,
//! for the person behind the mail, within what that person delegated to the run that wrote it.

#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod letters;

use std::sync::Arc;
use std::time::Duration;

use chancery_domain::audit::{Entry, kind};
use chancery_domain::contract::State;
use chancery_domain::event::{Actor, Created};
use chancery_domain::history::History;
use chancery_domain::id::{AgentId, AuditId};
use chancery_domain::mail::{BOARD, CONTRACT, Draft, Rejection};
use chancery_domain::org::Org;
use chancery_store::log::{CreateOutcome, IdempotencyKey};
use chancery_store::mail::{Behalf, Handed, MailRow, Outgoing, Rates, Sent, WantedStep};
use chancery_store::{Store, StoreError};
use jiff::SignedDuration;
use metrics::counter;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::authority::InForce;
use crate::clock;
use crate::tool::CallContext;

/// The tool that an agent takes a contract up with.
const TAKES_UP: &str = "read_contract";
const LOOK: Duration = Duration::from_millis(250);
const AGENTS_MAX: u32 = 64;
const RAISES_MAX: u32 = 64;
/// A run that another server was to make is made here after this.
const HOLD: SignedDuration = SignedDuration::from_secs(30);

/// On which terms mail is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Whether mail makes runs.
    pub drives_work: bool,
    /// How many runs mail may make for one agent in a minute.
    pub runs_a_minute: u32,
    /// How long an escalation waits for its answer.
    pub unanswered_after: Duration,
}

impl Default for Terms {
    fn default() -> Terms {
        let unanswered_after = Duration::from_secs(4 * 3600);
        Terms { drives_work: true, runs_a_minute: 20, unanswered_after }
    }
}

/// Where mail is sent. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Mailroom {
    store: Store,
    terms: Terms,
}

/// What became of a mail.
#[derive(Debug, Clone)]
pub enum Posted {
    Delivered(Box<MailRow>),
    Rejected(Rejection),
}

impl Mailroom {
    pub fn new(store: Store, terms: Terms) -> Mailroom {
        Mailroom { store, terms }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A mail of a run: from whoever speaks in it, whatever the arguments say.
    pub async fn post(&self, draft: Draft, context: &CallContext) -> Result<Posted, StoreError> {
        let outgoing = self.outgoing(draft, context);
        self.send(&context.org, outgoing).await
    }

    pub fn outgoing(&self, draft: Draft, context: &CallContext) -> Outgoing {
        let created = &context.created;
        let behalf = Behalf {
            user: created.user.clone(),
            project: created.project.clone(),
            delegated: created.delegated.clone(),
            run: Some(context.run),
            contract: created.contract.clone().or_else(|| context.warrant.only().cloned()),
        };
        let from = context.speaker.agent.as_str();
        let by = Actor::Agent(context.speaker.agent.clone());
        let mut outgoing = self.from_outside(draft, from, by, behalf);
        // Whoever reads the run's log finds the entry of a rejection by the call.
        outgoing.entry.id = AuditId::of_call(context.run, &context.idempotency_key);
        outgoing.key = Some(context.idempotency_key.clone());
        outgoing
    }

    /// A mail that no run sends: of the board, or of an agent that works elsewhere.
    pub fn from_outside(&self, draft: Draft, from: &str, by: Actor, behalf: Behalf) -> Outgoing {
        let at = clock::now();
        let about = draft.contract_ref.as_ref().map(|it| it.0.chars().take(64).collect::<String>());
        let entry = Entry {
            user: Some(behalf.user.clone()),
            agent: (from != BOARD).then(|| AgentId::from(from)),
            run: behalf.run,
            detail: serde_json::json!({
                "to": draft.to.chars().take(256).collect::<String>(),
                "type": draft.kind.chars().take(64).collect::<String>(),
                "contract_ref": about,
            }),
            ..Entry::new(clock::new_audit_id(), kind::MAIL_REJECTED, by)
        };
        let answer_within =
            SignedDuration::try_from(self.terms.unanswered_after).unwrap_or(SignedDuration::MAX);
        Outgoing {
            id: clock::new_mail_id(at),
            contract: clock::new_contract_id(at),
            from: from.to_owned(),
            draft,
            at,
            behalf,
            key: None,
            answer_within,
            entry,
        }
    }

    /// Routes a mail and delivers it, or keeps its rejection.
    pub async fn send(&self, org: &Arc<Org>, outgoing: Outgoing) -> Result<Posted, StoreError> {
        let kind = outgoing.draft.kind.clone();
        let known = org.mail.contains_key(&kind);
        let sent = self.store.send_mail(org, outgoing).await?;
        let (result, posted) = match sent {
            Sent::Delivered(mail) => ("delivered", Posted::Delivered(mail)),
            Sent::Rejected(rejection) => ("rejected", Posted::Rejected(rejection)),
        };
        let kind = if known { kind } else { "unknown".to_owned() };
        counter!("chancery_mail_total", "type" => kind, "result" => result).increment(1);
        Ok(posted)
    }
}

/// Works until it is stopped.
pub async fn attend(mailroom: Mailroom, authority: InForce, stop: CancellationToken) {
    loop {
        let looked = look(&mailroom, &authority).await;
        if let Err(error) = looked {
            tracing::debug!(%error, "No mail this time: {error}");
        }
        if stop.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_none() {
            return;
        }
    }
}

/// Looks once at all that waits. Answers how many runs were made.
pub async fn look(mailroom: &Mailroom, authority: &InForce) -> Result<usize, StoreError> {
    let authority = authority.get();
    let org = authority.org();
    if mailroom.store.raises_open().await? > 0 {
        settle(mailroom, org, clock::now()).await?;
    }
    if !mailroom.terms.drives_work {
        return Ok(0);
    }
    let mut made = 0;
    let now = clock::now();
    let before = now.checked_sub(HOLD).unwrap_or(now);
    for handed in mailroom.store.unmade_mail_runs(before, AGENTS_MAX).await? {
        made += usize::from(make_run(mailroom, org, handed).await?);
    }
    let rates = Rates { a_minute: mailroom.terms.runs_a_minute };
    for agent in mailroom.store.agents_with_mail(AGENTS_MAX).await? {
        // Who is gone answers nothing; whoever comes in their place will find it.
        if org.active_role_of(&agent).is_none() {
            continue;
        }
        let run = clock::new_run_id();
        if let Some(handed) = mailroom.store.hand_mail(&agent, run, rates, now).await? {
            made += usize::from(make_run(mailroom, org, handed).await?);
        }
    }
    Ok(made)
}

/// Looks after what nobody answered.
pub async fn settle(
    mailroom: &Mailroom,
    org: &Arc<Org>,
    now: jiff::Timestamp,
) -> Result<usize, StoreError> {
    let wait =
        SignedDuration::try_from(mailroom.terms.unanswered_after).unwrap_or(SignedDuration::MAX);
    let settled = mailroom.store.settle_raises(org, now, wait, RAISES_MAX).await?;
    for (raise, next) in &settled {
        tracing::info!(mail.id = %raise.mail, ?next, "{} did not answer {}", raise.to, raise.from);
    }
    Ok(settled.len())
}

/// Makes the run that was chosen for these mails, unless it is there.
async fn make_run(mailroom: &Mailroom, org: &Arc<Org>, handed: Handed) -> Result<bool, StoreError> {
    let store = &mailroom.store;
    let run = handed.run;
    take_up(mailroom, org, &handed).await?;
    let Some(created) = created(org, &handed) else {
        store.mail_run_made(run).await?;
        return Ok(false);
    };
    let mut history = History::create(run, created);
    let Some(change) = history.change() else { return Ok(false) };
    let key = IdempotencyKey {
        caller: "mailroom".to_owned(),
        key: run.to_string(),
        request_sha256: Sha256::digest(run.to_string().as_bytes()).into(),
    };
    let now = clock::now();
    let made = store.create(&change, Some(key), now).await? == CreateOutcome::Created;
    store.mail_run_made(run).await?;
    for id in handed.ids() {
        store.mark_read(id, now).await?;
    }
    Ok(made)
}

/// Who has no tool to take a contract up with takes it up with the run that is made for it.
async fn take_up(mailroom: &Mailroom, org: &Arc<Org>, handed: &Handed) -> Result<(), StoreError> {
    let role = org.active_role_of(&handed.agent);
    let binds = role.is_none_or(|it| it.binds(TAKES_UP));
    let given = handed.mails.iter().filter(|it| it.kind == CONTRACT && !binds);
    for id in given.filter_map(|it| it.contract_ref.as_ref()) {
        for to in [State::Accepted, State::InProgress] {
            let by = Actor::Agent(handed.agent.clone());
            let entry = Entry {
                agent: Some(handed.agent.clone()),
                run: Some(handed.run),
                reference: Some(id.to_string()),
                detail: serde_json::json!({"to": to}),
                ..Entry::new(clock::new_audit_id(), kind::CONTRACT_CHANGED, by.clone())
            };
            let (id, at) = (id.clone(), clock::now());
            let step = WantedStep { id, to, by, operator: false, note: None, at };
            // One that has been cancelled since is not taken up, and the run will read so.
            mailroom.store.step_contract(org, step, entry).await?;
        }
    }
    Ok(())
}

fn created(org: &Org, handed: &Handed) -> Option<Created> {
    let first = handed.mails.first()?;
    let role = org.active_role_of(&handed.agent)?;
    let contract = handed.mails.iter().find(|it| it.kind == CONTRACT);
    let contract = contract.or_else(|| handed.mails.iter().find(|it| it.contract_ref.is_some()));
    let words = handed.mails.iter().filter(|it| it.from == BOARD);
    Some(Created {
        org: "default".to_owned(),
        agent: handed.agent.clone(),
        role: role.id.clone(),
        user: first.user.clone(),
        project: first.project.clone(),
        group: None,
        session_key: None,
        parent: None,
        ancestors: Vec::new(),
        room: None,
        persons_words: words.map(|it| format!("{}\n{}", it.subject, it.body)).collect(),
        delegated: first.delegated.clone(),
        input: letters::read_out(&handed.mails),
        by: Actor::System,
        org_version: org.version,
        contract: contract.and_then(|it| it.contract_ref.clone()),
        mails: handed.ids().cloned().collect(),
        call: None,
        forked: None,
    })
}
