//! Contracts as they are kept: a mail's second half, with the steps that were made.

use std::sync::Arc;

use chancery_domain::audit::{Entry, kind};
use chancery_domain::contract::{Contract, Refusal, State, Step, Terms, Warrant};
use chancery_domain::event::Actor;
use chancery_domain::id::{AgentId, ContractId, MailId, UserId};
use chancery_domain::org::Org;
use jiff::Timestamp;

use super::row::{json, text};
use super::{MailRow, Outgoing, send};
use crate::audit::{Draft as AuditDraft, drafts};
use crate::log::timestamp;
use crate::memory::session::{Session, Wall};
use crate::memory::within;
use crate::projection::storable;
use crate::rule::actor;
use crate::sql::{Columns, Param};
use crate::{Database, Store, StoreError};

#[derive(Debug, Clone, PartialEq)]
pub struct ContractRow {
    pub contract: Contract,
    pub mail: MailId,
    pub terms: Terms,
    /// The contract under which it was issued.
    pub parent: Option<ContractId>,
    pub user: UserId,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContractFilter {
    /// Whoever gave it or has it.
    pub party: Option<String>,
    pub user: Option<UserId>,
    pub state: Option<State>,
    pub parent: Option<ContractId>,
    /// In the order of the list, the newest first: only what comes after this one.
    pub before: Option<ContractId>,
}

/// A step that somebody wants to make.
#[derive(Debug, Clone)]
pub struct WantedStep {
    pub id: ContractId,
    pub to: State,
    pub by: Actor,
    /// Whether a person among them stands for the board.
    pub operator: bool,
    pub note: Option<String>,
    pub at: Timestamp,
}

/// What a step came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Stepped {
    Made(Box<ContractRow>),
    /// It was so already.
    Already(Box<ContractRow>),
    Refused(Refusal),
    Absent,
}

pub(super) const COLUMNS: &str = "id, from_agent, to_agent, state, failures, cross_department, mail_id, terms, \
     parent, user_id, created_at, updated_at";

impl Store {
    pub async fn contract(&self, id: &ContractId) -> Result<Option<ContractRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM contracts WHERE id = $1");
        let params = vec![Param::Text(storable(id.as_str()))];
        Ok(self.query(sql, params, contract).await?.into_iter().next())
    }

    pub async fn contracts(
        &self,
        filter: &ContractFilter,
        limit: u32,
    ) -> Result<Vec<ContractRow>, StoreError> {
        let mut sql = format!("SELECT {COLUMNS} FROM contracts WHERE 1 = 1");
        let mut params = Vec::new();
        let mut add = |condition: &str, value: String| {
            params.push(Param::Text(storable(&value)));
            sql.push_str(&condition.replace('?', &format!("${}", params.len())));
        };
        if let Some(party) = &filter.party {
            add(" AND (from_agent = ? OR to_agent = ?)", party.clone());
        }
        if let Some(user) = &filter.user {
            add(" AND user_id = ?", user.0.clone());
        }
        if let Some(state) = filter.state {
            add(" AND state = ?", state.as_str().to_owned());
        }
        if let Some(parent) = &filter.parent {
            add(" AND parent = ?", parent.0.clone());
        }
        if let Some(before) = &filter.before {
            // An id begins with the time that it was made at.
            add(" AND id < ?", before.0.clone());
        }
        params.push(Param::Int(i64::from(limit)));
        sql.push_str(&format!(" ORDER BY id DESC LIMIT ${}", params.len()));
        self.query(sql, params, contract).await
    }

    /// The steps that were made, the first first.
    pub async fn contract_steps(&self, id: &ContractId) -> Result<Vec<Step>, StoreError> {
        self.query(
            "SELECT from_state, to_state, made_by, note, at FROM contract_steps
             WHERE contract_id = $1 ORDER BY place",
            vec![Param::Text(storable(id.as_str()))],
            step,
        )
        .await
    }

    /// What the contracts of an agent let it reach: of one of them, where it works under that.
    pub async fn warrant(
        &self,
        agent: &AgentId,
        under: Option<&ContractId>,
    ) -> Result<Warrant, StoreError> {
        let (agent, under) = (agent.clone(), under.cloned());
        within!(read, self, Wall::system(), session =>
            warrant_of(session, &agent, under.as_ref()))
    }

    /// Makes a step, if the rules have it. `entry` is what the audit says of it.
    pub async fn step_contract(
        &self,
        org: &Arc<Org>,
        wanted: WantedStep,
        entry: Entry,
    ) -> Result<Stepped, StoreError> {
        #[cfg(feature = "faults")]
        self.point().await?;
        let entries = drafts(vec![entry], wanted.at)?;
        let org = org.clone();
        within!(write, self, Wall::system(), session =>
            make_step(session, &org, &wanted, &entries))
    }
}

/// A report that says so hands in the work of the contract that its sender holds. One that is not
/// under way is left as it is: the report is delivered all the same.
pub(super) async fn hand_in(
    session: &impl Session,
    org: &Org,
    mail: &Outgoing,
) -> Result<(), StoreError> {
    let Some(id) = mail.draft.hands_in() else { return Ok(()) };
    let by = Actor::Agent(AgentId::from(&*mail.from));
    let entry = Entry {
        kind: kind::CONTRACT_CHANGED.into(),
        agent: Some(AgentId::from(&*mail.from)),
        reference: Some(id.to_string()),
        detail: serde_json::json!({"to": State::Review}),
        ..mail.entry.clone()
    };
    let wanted = WantedStep {
        id: id.clone(),
        to: State::Review,
        by,
        operator: false,
        note: None,
        at: mail.at,
    };
    make_step(session, org, &wanted, &drafts(vec![entry], mail.at)?).await?;
    Ok(())
}

async fn make_step(
    session: &impl Session,
    org: &Org,
    wanted: &WantedStep,
    entries: &[AuditDraft],
) -> Result<Stepped, StoreError> {
    loop {
        let sql = format!("SELECT {COLUMNS} FROM contracts WHERE id = $1");
        let params = vec![Param::Text(storable(wanted.id.as_str()))];
        let found = session.rows(&sql, params, contract).await?.into_iter().next();
        let Some(mut row) = found else { return Ok(Stepped::Absent) };
        let before = row.contract.clone();
        let standing = before.standing(org, &wanted.by, wanted.operator, &row.user);
        if before.state == wanted.to && !standing.is_empty() {
            return Ok(Stepped::Already(Box::new(row)));
        }
        let passed = match row.contract.step(wanted.to, &standing) {
            Ok(passed) => passed,
            Err(refusal) => return Ok(Stepped::Refused(refusal)),
        };
        let moved = session
            .execute(
                "UPDATE contracts SET state = $1, failures = $2, updated_at = $3
                 WHERE id = $4 AND state = $5 AND failures = $6",
                vec![
                    Param::Text(row.contract.state.as_str().to_owned()),
                    Param::Int(i64::from(row.contract.failures)),
                    Param::Int(wanted.at.as_microsecond()),
                    Param::Text(storable(wanted.id.as_str())),
                    Param::Text(before.state.as_str().to_owned()),
                    Param::Int(i64::from(before.failures)),
                ],
            )
            .await?;
        if moved == 0 {
            // Somebody else was faster: the rules are asked again.
            continue;
        }
        row.updated_at = wanted.at;
        let mut from = before.state;
        for (place, to) in passed.into_iter().enumerate() {
            // What follows by itself is the system's doing.
            let by = if place == 0 { wanted.by.clone() } else { Actor::System };
            let note = wanted.note.clone().filter(|_| place == 0);
            let step = Step { from, to, by, note, at: wanted.at };
            keep_step(session, &wanted.id, &step).await?;
            from = to;
        }
        if from == State::Escalated {
            super::alert::contract_has_failed(session, org, &row, wanted.at).await?;
        }
        session.audit(entries).await?;
        return Ok(Stepped::Made(Box::new(row)));
    }
}

async fn keep_step(session: &impl Session, id: &ContractId, step: &Step) -> Result<(), StoreError> {
    session
        .execute(
            "INSERT INTO contract_steps (contract_id, place, from_state, to_state, made_by, note, at)
             SELECT CAST($1 AS TEXT), count(*) + 1, CAST($2 AS TEXT), CAST($3 AS TEXT),
               CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS BIGINT)
             FROM contract_steps WHERE contract_id = $1",
            vec![
                Param::Text(storable(id.as_str())),
                Param::Text(step.from.as_str().to_owned()),
                Param::Text(step.to.as_str().to_owned()),
                Param::Text(text(&step.by)?),
                step.note.as_deref().map_or(Param::Null, |it| Param::Text(storable(it))),
                Param::Int(step.at.as_microsecond()),
            ],
        )
        .await?;
    Ok(())
}

/// A mail of type `contract` becomes one.
pub(super) async fn open(
    session: &impl Session,
    mail: &Outgoing,
    row: &MailRow,
    terms: &Terms,
) -> Result<(), StoreError> {
    let parent = mail.behalf.contract.as_ref();
    let at = Param::Int(mail.at.as_microsecond());
    session
        .execute(
            "INSERT INTO contracts (id, mail_id, from_agent, to_agent, terms, cross_department,
               state, failures, parent, user_id, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            vec![
                Param::Text(mail.contract.0.clone()),
                Param::Text(row.id.0.clone()),
                Param::Text(row.from.clone()),
                Param::Text(row.to.clone()),
                Param::Text(storable(&text(terms)?)),
                Param::Int(i64::from(terms.cross_department)),
                Param::Text(send::OPENED.as_str().to_owned()),
                Param::Int(0),
                parent.map_or(Param::Null, |it| Param::Text(storable(it.as_str()))),
                Param::Text(storable(row.user.as_str())),
                at.clone(),
                at,
            ],
        )
        .await?;
    Ok(())
}

/// The active contracts that an agent holds.
pub(super) async fn active_of(
    session: &impl Session,
    agent: &str,
) -> Result<Vec<Contract>, StoreError> {
    let rows = active_rows(session, agent).await?;
    Ok(rows.into_iter().map(|it| it.contract).collect())
}

async fn active_rows(session: &impl Session, agent: &str) -> Result<Vec<ContractRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM contracts WHERE to_agent = $1
           AND state IN ('accepted', 'in_progress') ORDER BY id"
    );
    session.rows(&sql, vec![Param::Text(storable(agent))], contract).await
}

pub(super) async fn warrant_of(
    session: &impl Session,
    agent: &AgentId,
    under: Option<&ContractId>,
) -> Result<Warrant, StoreError> {
    let mut warrant = Warrant::default();
    for row in active_rows(session, agent.as_str()).await? {
        let id = &row.contract.id;
        // A contract that somebody else was given opens nothing here, whatever the run was made for.
        if under.is_some_and(|it| it != id) {
            continue;
        }
        warrant.contracts.push(id.clone());
        warrant.scopes.extend(row.terms.scopes());
        warrant.branches.extend(row.terms.assigned_branch);
    }
    Ok(warrant)
}

pub(super) fn contract(row: &dyn Columns) -> Result<ContractRow, StoreError> {
    Ok(ContractRow {
        contract: Contract {
            id: ContractId(row.text(0)?),
            from: AgentId(row.text(1)?),
            to: AgentId(row.text(2)?),
            state: state(&row.text(3)?)?,
            failures: row.int(4)? as u32,
            cross_department: row.int(5)? != 0,
        },
        mail: MailId(row.text(6)?),
        terms: json(&row.text(7)?)?,
        parent: row.opt_text(8)?.map(ContractId),
        user: UserId(row.text(9)?),
        created_at: timestamp(row.int(10)?)?,
        updated_at: timestamp(row.int(11)?)?,
    })
}

fn step(row: &dyn Columns) -> Result<Step, StoreError> {
    Ok(Step {
        from: state(&row.text(0)?)?,
        to: state(&row.text(1)?)?,
        by: actor(&row.text(2)?)?,
        note: row.opt_text(3)?,
        at: timestamp(row.int(4)?)?,
    })
}

fn state(text: &str) -> Result<State, StoreError> {
    State::parse(text).ok_or_else(|| StoreError::Unreadable(format!("a contract's state: {text}")))
}
