//! Mail and contracts: every box that the visitor may read, what was rejected, and what was handed
//! down with what came of it.

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::mail::{
    Contract, ContractStory, Mail, MailRejection, NewMail, RejectionStory, Transition,
};
use chancery_domain::contract::{self, steps};
use chancery_domain::mail::BOARD;
use serde::Deserialize;
use serde_json::Map;

use super::form::Signed;
use super::html::ticked;
use super::page::{Frame, Room, draw, segment};
use super::ruling::sentence;
use super::visitor::Visitor;
use super::why::{Line, Now, Through, lines, through};
use crate::error::Result;
use crate::extract::{Body, Params};
use crate::router::App;
use crate::routes::{contracts, mail};

#[derive(Template)]
#[template(path = "mail.html")]
struct MailPage {
    frame: Frame,
    boxes: Vec<String>,
    chosen: String,
    tabs: [Tab; 4],
    /// What was received, or what was sent.
    list: Vec<Mail>,
    rejections: Vec<MailRejection>,
    contracts: Vec<Contract>,
    kinds: Vec<String>,
    to: Vec<String>,
    shows: String,
}

#[derive(Debug)]
struct Tab {
    key: &'static str,
    name: &'static str,
    count: usize,
}

#[derive(Debug, Deserialize)]
pub struct Which {
    #[serde(default, rename = "box")]
    chosen: String,
    #[serde(default)]
    show: String,
}

pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(which): Query<Which>,
) -> Result<Response> {
    let w = visitor.words();
    let authority = app.authority.get();
    let org = authority.org();
    let mut boxes = vec![BOARD.to_owned()];
    boxes.extend(org.agents().map(|(id, _)| id.to_string()));
    let chosen = boxes.iter().find(|it| **it == which.chosen).cloned();
    let chosen = chosen.unwrap_or_else(|| BOARD.to_owned());
    let caller = || visitor.caller.clone();
    let at = || Path(chosen.clone());
    let no = || Params(mail::BoxParams::default());
    let Json(inbox) = mail::inbox(State(app.clone()), caller(), at(), no()).await?;
    let Json(sent) = mail::sent(State(app.clone()), caller(), at(), no()).await?;
    // The board is told of everybody's.
    let of = Some(chosen.clone()).filter(|it| it != BOARD);
    let none = Params(mail::RejectionParams::of(of));
    let Json(rejections) = mail::rejections(State(app.clone()), caller(), none).await?;
    let none = Params(contracts::ListParams::default());
    let Json(listed) = contracts::list(State(app.clone()), caller(), none).await?;
    let shows = match &*which.show {
        it @ ("sent" | "rejections" | "contracts" | "write") => it,
        _ => "inbox",
    };
    let tab = |key, name, count| Tab { key, name, count };
    draw(&MailPage {
        tabs: [
            tab("inbox", w.received, inbox.items.len()),
            tab("sent", w.sent, sent.items.len()),
            tab("rejections", w.rejected, rejections.items.len()),
            tab("contracts", w.contracts, listed.items.len()),
        ],
        list: if shows == "sent" { sent.items } else { inbox.items },
        frame: Frame::of(&visitor, Room::Mail, w.mail).watching("mail"),
        kinds: org.mail.keys().cloned().collect(),
        to: chancery_domain::mail::contacts(org, BOARD),
        shows: shows.to_owned(),
        rejections: rejections.items,
        contracts: listed.items,
        boxes,
        chosen,
    })
}

/// They are listed beside the mail.
pub async fn all_contracts() -> Redirect {
    Redirect::to("/mail?show=contracts")
}

#[derive(Template)]
#[template(path = "letter.html")]
struct LetterPage {
    frame: Frame,
    mail: Mail,
    fields: String,
}

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let Json(found) = mail::show(State(app), visitor.caller.clone(), Path(id)).await?;
    let frame = Frame::of(&visitor, Room::Mail, visitor.words().mail).watching(&*found.id);
    let fields = match found.fields.is_empty() {
        true => String::new(),
        false => serde_json::to_string_pretty(&found.fields).unwrap_or_default(),
    };
    draw(&LetterPage { frame, fields, mail: found })
}

#[derive(Template)]
#[template(path = "rejection.html")]
struct RejectionPage {
    frame: Frame,
    story: RejectionStory,
    lead: String,
    /// Every step as it was then.
    lines: Vec<Line>,
    /// Its row always names the step.
    unnamed: bool,
    now: Option<Now>,
    through: Vec<Through>,
}

/// Why one was rejected, and what would let it through: for those that the audit does not have.
pub async fn rejection(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let w = visitor.words();
    let Json(story) = mail::rejection(State(app), visitor.caller.clone(), Path(id)).await?;
    draw(&RejectionPage {
        frame: Frame::of(&visitor, Room::Mail, w.rejection),
        lead: ticked(&sentence(&story.rejection.reason, w)),
        lines: lines(&story.layers, w),
        unnamed: false,
        now: story.now.as_ref().map(|it| Now::of(it, Some("deny"), w)),
        through: through(&story.ways, w, visitor.caller.is_operator()),
        story,
    })
}

/// A mail of the board's.
#[derive(Debug, Deserialize)]
pub struct Letter {
    to: String,
    kind: String,
    subject: String,
    body: String,
}

pub async fn send(
    State(app): State<App>,
    Signed { visitor, form }: Signed<Letter>,
) -> Result<Response> {
    let new = NewMail {
        to: form.to,
        kind: form.kind,
        subject: form.subject,
        body: form.body,
        priority: None,
        attachments: None,
        reply_to: None,
        contract_ref: None,
        fields: Map::new(),
    };
    let (_, Json(sent)) = mail::send(State(app), visitor.caller, Body(new)).await?;
    Ok(Redirect::to(&format!("/mail/{}", segment(&sent.id))).into_response())
}

#[derive(Template)]
#[template(path = "contract.html")]
struct ContractPage {
    frame: Frame,
    story: ContractStory,
    /// The states in their usual order, and whether each was come to.
    states: Vec<(&'static str, bool, bool)>,
    terms: Vec<(&'static str, String)>,
    /// What it can become.
    steps: Vec<String>,
}

pub async fn show_contract(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response> {
    let w = visitor.words();
    let Json(story) = contracts::show(State(app), visitor.caller.clone(), Path(id)).await?;
    let state = &*story.contract.state;
    let reached = |name: &str| name == "pending" || story.history.iter().any(|it| it.to == name);
    let mut states: Vec<(&'static str, bool, bool)> =
        ["pending", "accepted", "in_progress", "review", "passed"]
            .into_iter()
            .map(|it| (it, reached(it), it == state))
            .collect();
    let aside = ["failed", "escalated", "cancelled"].into_iter().filter(|it| reached(it));
    states.extend(aside.map(|it| (it, true, it == state)));
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) => {
            let items = items.iter().map(|it| it.as_str().map_or(it.to_string(), str::to_owned));
            items.collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    };
    let it = &story.contract;
    let terms = vec![
        (w.deliverables, text(&it.deliverables)),
        (w.acceptance, text(&it.acceptance_criteria)),
        (w.workspace_scope, text(&it.workspace_scope)),
        (w.branch, it.assigned_branch.clone().unwrap_or_default()),
        (w.deadline, it.deadline.clone().unwrap_or_default()),
    ];
    let terms = terms.into_iter().filter(|it| !it.1.is_empty()).collect();
    let steps =
        contract::State::parse(state).map(|it| steps(it, story.contract.failures)).into_iter();
    let steps = steps.flatten().map(|it| it.to_string()).collect();
    let frame = Frame::of(&visitor, Room::Mail, w.contract).watching(&*story.contract.id);
    draw(&ContractPage { frame, states, terms, steps, story })
}

#[derive(Debug, Deserialize)]
pub struct Step {
    to: String,
    #[serde(default)]
    note: String,
}

/// Who may make which step is the contract's to say.
pub async fn transition(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Step>,
) -> Result<Response> {
    let note = Some(form.note.trim().to_owned()).filter(|it| !it.is_empty());
    let body = Body(Transition { to: form.to, note });
    let Json(it) = contracts::transition(State(app), visitor.caller, Path(id), body).await?;
    Ok(Redirect::to(&format!("/contracts/{}", segment(&it.id))).into_response())
}
