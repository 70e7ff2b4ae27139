//! Contracts: issued, looked at with all that came of them, and moved on.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chancery_api::mail::{Contract, ContractStory, NewContract, Transition};
use chancery_api::{Page, Problems};
use chancery_domain::audit::{Entry, kind};
use chancery_domain::contract::{self, Refusal, Standing};
use chancery_domain::id::ContractId;
use chancery_domain::mail::{CONTRACT, Draft};
use chancery_runtime::clock;
use chancery_store::mail::{ContractFilter, ContractRow, Stepped, WantedStep};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::IntoParams;

use super::mail::{post, priority};
use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params, asked, asked_id, bad_request, check_depth, check_text};
use crate::router::App;
use crate::{paging, view};

/// What is shown of one contract at once.
const MAILS_MAX: u32 = 500;
const NOTE_MAX: usize = 4000;

/// The tools that an agent would issue one with.
const ISSUE: [&str; 2] = ["generate_contract", "create_contract"];

/// Issues a contract, by mail to a direct report.
#[utoipa::path(post, path = "/api/contracts", request_body = NewContract,
    responses((status = 201, body = Contract), Problems))]
pub async fn issue(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<NewContract>,
) -> Result<(StatusCode, Json<Contract>)> {
    let writer = caller.writes()?;
    let under = match &body.parent {
        None => None,
        Some(id) => Some(visible(&app, &caller, id).await?.contract.id),
    };
    let draft = Draft {
        subject: body.title.clone(),
        body: body.body.clone(),
        priority: priority(body.priority.as_deref())?,
        fields: fields(&body)?,
        ..Draft::bare(&body.to, CONTRACT)
    };
    let mail = post(&app, &caller, writer, draft, under, &ISSUE).await?;
    let lost = || ApiError::Internal("a contract without its row".to_owned());
    let id = mail.contract_ref.ok_or_else(lost)?;
    let row = app.store.contract(&id).await?.ok_or_else(lost)?;
    Ok((StatusCode::CREATED, Json(view::mail::contract(row))))
}

fn fields(body: &NewContract) -> Result<Map<String, Value>> {
    let fields = [
        ("deadline", json!(body.deadline)),
        ("deliverables", body.deliverables.clone()),
        ("acceptance_criteria", body.acceptance_criteria.clone()),
        ("workspace_scope", body.workspace_scope.clone()),
        ("assigned_branch", json!(body.assigned_branch)),
        ("cross_department", json!(body.cross_department)),
    ];
    for (name, value) in &fields {
        check_depth(name, value)?;
    }
    let said = fields.into_iter().filter(|(_, value)| !value.is_null());
    Ok(said.map(|(name, value)| (name.to_owned(), value)).collect())
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListParams {
    #[param(
        pattern = "^(pending|accepted|in_progress|review|passed|failed|escalated|cancelled)?$"
    )]
    state: Option<String>,
    /// Given by it or to it.
    #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    agent: Option<String>,
    #[param(max_length = 32, pattern = "^(CTR-[0-9a-z-]+)?$")]
    parent: Option<String>,
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    #[param(max_length = 32, pattern = "^(CTR-[0-9a-z-]+)?$")]
    cursor: Option<String>,
}

/// The newest first. An agent sees those that it gave or holds.
#[utoipa::path(get, path = "/api/contracts", params(ListParams),
    responses((status = 200, body = Page<Contract>), Problems))]
pub async fn list(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<ListParams>,
) -> Result<Json<Page<Contract>>> {
    let said = |given: Option<String>| given.filter(|it| !it.is_empty());
    let (party, user) = caller.sees_dealings_of(asked("agent", params.agent)?)?;
    let state = match said(params.state) {
        None => None,
        Some(word) => Some(known_state(&word)?),
    };
    let parent = asked_id("parent", "CTR-", params.parent)?.map(ContractId);
    let before = asked_id("cursor", "CTR-", params.cursor)?.map(ContractId);
    let filter = ContractFilter { party, user, state, parent, before };
    let limit = paging::limit(params.limit);
    let found = app.store.contracts(&filter, limit + 1).await?;
    Ok(paging::page(found, limit, |it| it.contract.id.to_string(), view::mail::contract))
}

/// A contract with its steps, what was written about it, and what was issued under it.
#[utoipa::path(get, path = "/api/contracts/{id}", params(("id" = String, Path)),
    responses((status = 200, body = ContractStory), Problems))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<ContractStory>> {
    let row = visible(&app, &caller, &id).await?;
    let id = row.contract.id.clone();
    let history = app.store.contract_steps(&id).await?;
    let mut mails = app.store.mails_about(&id, MAILS_MAX).await?;
    // Whoever may see a contract sees of its mail what they may see anyway.
    mails.retain(|it| caller.is_party(&it.from, &it.to, &it.user));
    let run_ids = mails.iter().filter_map(|it| it.handed_to).map(|it| it.to_string()).collect();
    let filter = ContractFilter { parent: Some(id), ..ContractFilter::default() };
    let mut children = app.store.contracts(&filter, MAILS_MAX).await?;
    children.retain(|it| concerns(&app, &caller, it));
    Ok(Json(ContractStory {
        contract: view::mail::contract(row),
        history: history.into_iter().map(view::mail::step).collect(),
        mails: mails.into_iter().map(view::mail::mail).collect(),
        children: children.into_iter().map(view::mail::contract).collect(),
        run_ids,
    }))
}

/// Moves a contract on. Who may make which step is the contract's to say.
#[utoipa::path(post, path = "/api/contracts/{id}/transition", params(("id" = String, Path)),
    request_body = Transition, responses((status = 200, body = Contract), Problems))]
pub async fn transition(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<Transition>,
) -> Result<Json<Contract>> {
    let row = visible(&app, &caller, &id).await?;
    let to = known_state(&body.to)?;
    if let Some(note) = &body.note {
        check_text("note", note)?;
        if note.chars().count() > NOTE_MAX {
            return Err(bad_request(format!("`note` has at most {NOTE_MAX} characters")));
        }
    }
    let (id, actor) = (row.contract.id, caller.actor());
    let entry = Entry {
        user: Some(row.user.clone()),
        agent: Some(row.contract.to.clone()),
        reference: Some(id.to_string()),
        detail: json!({"to": to}),
        ..Entry::new(clock::new_audit_id(), kind::CONTRACT_CHANGED, actor.clone())
    };
    let authority = app.authority.get();
    let wanted = WantedStep {
        id: id.clone(),
        to,
        by: actor,
        operator: caller.is_operator(),
        note: body.note,
        at: clock::now(),
    };
    let stepped = app.store.step_contract(authority.org(), wanted, entry).await?;
    match stepped {
        Stepped::Made(row) | Stepped::Already(row) => Ok(Json(view::mail::contract(*row))),
        Stepped::Refused(refusal @ Refusal::NotYours { .. }) => {
            Err(ApiError::Forbidden(refusal.to_string()))
        }
        Stepped::Refused(refusal) => {
            Err(ApiError::Conflict { code: "no_such_step", detail: refusal.to_string() })
        }
        Stepped::Absent => Err(missing(id.as_str())),
    }
}

fn known_state(word: &str) -> Result<contract::State> {
    contract::State::parse(word).ok_or_else(|| {
        let states = contract::State::ALL.map(contract::State::as_str).join(", ");
        bad_request(format!("a contract's state is one of {states}"))
    })
}

fn missing(id: &str) -> ApiError {
    ApiError::NotFound { what: "contract", id: id.chars().take(64).collect() }
}

/// A contract that the caller may see. What is between others is not there.
pub async fn visible(app: &App, caller: &Caller, id: &str) -> Result<ContractRow> {
    let row = app.store.contract(&ContractId::from(id)).await?.ok_or_else(|| missing(id))?;
    if concerns(app, caller, &row) { Ok(row) } else { Err(missing(id)) }
}

/// Whether a contract is the caller's to know of: as a party, as a judge of its work, as the
/// person behind it, or as an operator.
fn concerns(app: &App, caller: &Caller, row: &ContractRow) -> bool {
    let it = &row.contract;
    let (authority, operator) = (app.authority.get(), caller.is_operator());
    let standing = it.standing(authority.org(), &caller.actor(), operator, &row.user);
    standing.iter().any(|it| *it != Standing::Board || caller.is_operator())
        || caller.is_party(it.from.as_str(), it.to.as_str(), &row.user)
}
