//! Mail: sent by agents that work elsewhere and by people for the board, and looked at.

mod outside;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use chancery_api::mail::{CanMail, Mail, MailRejection, NewMail, RejectionStory};
use chancery_api::{Page, Problems};
use chancery_domain::id::{AgentId, ContractId, MailId, UserId};
use chancery_domain::mail::{self, Attachment, BOARD, Draft, NOT_THE_SENDERS, Priority};
use chancery_runtime::clock;
use chancery_runtime::mailroom::Posted;
use chancery_store::mail::{Behalf, MailRow, Whose};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::{Caller, Writer};
use crate::error::{ApiError, Result};
use crate::extract::{Body, Params, asked, asked_id, bad_request, check_asked, check_depth};
use crate::router::App;
use crate::{paging, view, why};
use outside::{SEND, check_may_call};

/// Sends a mail as whoever calls. A rejection is recorded, and says its step.
#[utoipa::path(post, path = "/api/mail", request_body = NewMail,
    responses((status = 201, body = Mail), Problems))]
pub async fn send(
    State(app): State<App>,
    caller: Caller,
    Body(body): Body<NewMail>,
) -> Result<(StatusCode, Json<Mail>)> {
    let writer = caller.writes()?;
    let mail = post(&app, &caller, writer, draft(body)?, None, &[SEND]).await?;
    Ok((StatusCode::CREATED, Json(view::mail::mail(mail))))
}

/// Sends in the caller's name, under a contract where it says so. An agent needs what a call of
/// one of the tools would need that do the same.
pub async fn post(
    app: &App,
    caller: &Caller,
    writer: Writer,
    draft: Draft,
    under: Option<ContractId>,
    tools: &[&str],
) -> Result<MailRow> {
    let behalf =
        Behalf { user: writer.user, project: None, delegated: None, run: None, contract: under };
    let outgoing = app.mailroom.from_outside(draft, &writer.name, caller.actor(), behalf);
    let authority = app.authority.get();
    if outgoing.from != BOARD {
        check_may_call(app, &authority, &outgoing, tools).await?;
    }
    match app.mailroom.send(authority.org(), outgoing).await? {
        Posted::Delivered(mail) => Ok(*mail),
        Posted::Rejected(rejection) => Err(ApiError::Rejected(rejection)),
    }
}

pub fn priority(given: Option<&str>) -> Result<Priority> {
    match given {
        None => Ok(Priority::default()),
        Some(word) => Priority::parse(word).ok_or_else(|| {
            bad_request("`priority` is `low`, `medium`, `high` or `critical`".to_owned())
        }),
    }
}

fn draft(body: NewMail) -> Result<Draft> {
    let mut fields = body.fields;
    fields.retain(|name, value| !NOT_THE_SENDERS.contains(&&**name) && !value.is_null());
    for (name, value) in &fields {
        check_depth(name, value)?;
    }
    let attachments = body.attachments.unwrap_or_default().into_iter();
    Ok(Draft {
        to: body.to,
        kind: body.kind,
        subject: body.subject,
        body: body.body,
        priority: priority(body.priority.as_deref())?,
        attachments: attachments
            .map(|it| Attachment { path: it.path, description: it.description })
            .collect(),
        reply_to: body.reply_to.map(MailId),
        contract_ref: body.contract_ref.map(ContractId),
        fields,
    })
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BoxParams {
    /// Only what its recipient has not read.
    unread: Option<bool>,
    /// At most 200; 50 unless said.
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    #[param(max_length = 32, pattern = "^(MAIL-[0-9a-z-]+)?$")]
    cursor: Option<String>,
}

/// What was written to an agent, or to the board: what is critical first, then the oldest first.
#[utoipa::path(get, path = "/api/agents/{id}/inbox", params(("id" = String, Path), BoxParams),
    responses((status = 200, body = Page<Mail>), Problems))]
pub async fn inbox(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<BoxParams>,
) -> Result<Json<Page<Mail>>> {
    list(&app, &caller, id, Whose::Inbox, params).await
}

/// What an agent, or the board, has written: the newest first.
#[utoipa::path(get, path = "/api/agents/{id}/sent", params(("id" = String, Path), BoxParams),
    responses((status = 200, body = Page<Mail>), Problems))]
pub async fn sent(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(params): Params<BoxParams>,
) -> Result<Json<Page<Mail>>> {
    list(&app, &caller, id, Whose::Sent, params).await
}

async fn list(
    app: &App,
    caller: &Caller,
    id: String,
    whose: fn(String) -> Whose,
    params: BoxParams,
) -> Result<Json<Page<Mail>>> {
    let user = caller.reads_mail_of(&id)?;
    let known = id == BOARD || app.authority.get().org().agent(&AgentId(id.clone())).is_some();
    if !known {
        return Err(ApiError::NotFound { what: "agent", id: id.chars().take(64).collect() });
    }
    let after = asked_id("cursor", "MAIL-", params.cursor)?.map(MailId);
    let (limit, unread) = (paging::limit(params.limit), params.unread.unwrap_or(false));
    let found =
        app.store.mails(&whose(id), user.as_ref(), unread, after.as_ref(), limit + 1).await?;
    Ok(paging::page(found, limit, |it| it.id.to_string(), view::mail::mail))
}

/// One mail. Its recipient's looking at it marks it read.
#[utoipa::path(get, path = "/api/mail/{id}", params(("id" = String, Path)),
    responses((status = 200, body = Mail), Problems))]
pub async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Mail>> {
    let mail = visible(&app, &caller, &id).await?;
    if caller.is_recipient(&mail.to) && mail.read_at.is_none() {
        app.store.mark_read(&mail.id, clock::now()).await?;
    }
    Ok(Json(view::mail::mail(visible(&app, &caller, &id).await?)))
}

/// A mail that the caller may see. What is between others is not there.
pub async fn visible(app: &App, caller: &Caller, id: &str) -> Result<MailRow> {
    let missing = || ApiError::NotFound { what: "mail", id: id.chars().take(64).collect() };
    let mail = app.store.mail(&MailId::from(id)).await?.ok_or_else(missing)?;
    if caller.is_party(&mail.from, &mail.to, &mail.user) { Ok(mail) } else { Err(missing()) }
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RejectionParams {
    /// Of one sender.
    #[param(max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    agent: Option<String>,
    #[param(format = Int64, maximum = 4294967295u32)]
    limit: Option<u32>,
    #[param(pattern = "^[0-9]{0,18}$")]
    cursor: Option<String>,
}

impl RejectionParams {
    pub fn of(agent: Option<String>) -> RejectionParams {
        RejectionParams { agent, ..RejectionParams::default() }
    }
}

/// What was not delivered, the newest first. An agent sees its own.
#[utoipa::path(get, path = "/api/mail/rejections", params(RejectionParams),
    responses((status = 200, body = Page<MailRejection>), Problems))]
pub async fn rejections(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<RejectionParams>,
) -> Result<Json<Page<MailRejection>>> {
    let (from, user) = caller.sees_dealings_of(asked("agent", params.agent)?)?;
    let before = params.cursor.filter(|it| !it.is_empty()).map(|it| it.parse::<i64>());
    let before = before.transpose().map_err(|it| bad_request(format!("`cursor`: {it}")))?;
    let limit = paging::limit(params.limit);
    let found =
        app.store.mail_rejections(from.as_deref(), user.as_ref(), before, limit + 1).await?;
    // Where it is explained is for those who may read that.
    let explained = caller.audited(None).is_ok();
    let shown = |it| {
        let shown = view::mail::rejection(it);
        MailRejection { audit_id: shown.audit_id.filter(|_| explained), ..shown }
    };
    Ok(paging::page(found, limit, |it| it.id.to_string(), shown))
}

/// One of them: every step, what the rules in force say of the same mail, and what would let it
/// through. For people.
#[utoipa::path(get, path = "/api/mail/rejections/{id}", params(("id" = String, Path)),
    responses((status = 200, body = RejectionStory), Problems))]
pub async fn rejection(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<RejectionStory>> {
    let missing = || ApiError::NotFound { what: "rejection", id: id.chars().take(64).collect() };
    let user = caller.audited(None)?;
    let parsed: i64 = id.parse().map_err(|_| missing())?;
    let row = app.store.mail_rejection(parsed).await?.ok_or_else(missing)?;
    // What concerns somebody else is not there.
    if user.is_some_and(|it| it != row.user) {
        return Err(missing());
    }
    let why = why::of_rejection(&app, &caller, &row).await?;
    Ok(Json(RejectionStory {
        rejection: view::mail::rejection(row),
        layers: view::looked(why.layers),
        now: why.now.map(view::audit::now),
        ways: view::ways(why.ways),
    }))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CheckParams {
    #[param(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    from: String,
    #[param(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    to: String,
    #[serde(rename = "type")]
    #[param(min_length = 1, max_length = 256, pattern = r"^[^\x00-\x1f\x7f-\x9f]+$")]
    kind: String,
    /// The contract that it would be about.
    #[param(max_length = 32, pattern = "^(CTR-[0-9a-z-]+)?$")]
    contract: Option<String>,
}

/// Whether a mail would be delivered, as things are now. Nothing is sent or recorded.
#[utoipa::path(get, path = "/api/mail/check", params(CheckParams),
    responses((status = 200, body = CanMail), Problems))]
pub async fn check(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<CheckParams>,
) -> Result<Json<CanMail>> {
    for (name, given) in [("from", &params.from), ("to", &params.to), ("type", &params.kind)] {
        check_asked(name, given)?;
    }
    let writer = caller.asks_about_mail_of(&params.from)?;
    let authority = app.authority.get();
    let org = authority.org();
    let contract_ref = asked_id("contract", "CTR-", params.contract)?.map(ContractId);
    let draft = Draft { contract_ref, ..Draft::bare(&params.to, &params.kind) };
    let needs_contract = mail::needs(org, &params.from, &draft).contracts;
    let behalf = Behalf {
        user: UserId::from(&*writer.user.0),
        project: None,
        delegated: None,
        run: None,
        contract: None,
    };
    let outgoing = app.mailroom.from_outside(draft, &params.from, caller.actor(), behalf);
    let rejection = app.store.try_mail(org, outgoing).await?;
    Ok(Json(CanMail {
        allowed: rejection.is_none(),
        step: rejection.as_ref().map(|it| it.step.as_str().to_owned()),
        reason: rejection.as_ref().map(|it| it.reason.clone()),
        needs_contract,
        contacts: mail::contacts(org, &params.from),
    }))
}
