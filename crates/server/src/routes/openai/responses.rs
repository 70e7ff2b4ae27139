//! `POST /v1/responses`: the same talk with typed questions. An answer's id names its run, so
//! that the next request can go on with the thread, here or on another server.

mod events;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response as Answer};
use chancery_api::openai::{
    Content, Input, InputDetails, InputItem, OutputDetails, OutputItem, OutputPart, Response,
    ResponseError, ResponseRequest, ResponseUsage,
};
use chancery_domain::event::Usage;
use chancery_domain::id::{PermissionId, RunId, SessionKey};
use chancery_runtime::clock;
use chancery_store::permission::PermissionRow;
use serde_json::{Value, json};

use super::follow::End;
use super::models::Addressee;
use super::telling::{self, Told};
use super::thread::{self, Thread};
use super::turn::{self, Spoken, Turn};
use super::{chat, models, text};
use crate::access::Caller;
use crate::commands::{self, Decided};
use crate::error::{ApiError, Result};
use crate::extract::bad_request;
use crate::pause::Pause;
use crate::router::App;

use events::Events;

use crate::extract::Body;

pub async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<ResponseRequest>,
) -> Result<Answer> {
    let to = models::addressee(&app, &caller, &body.model)?;
    chat::check_choice(body.tool_choice.as_ref())?;
    let previous = body.previous_response_id.as_deref();
    let thread = thread_of(&app, &caller, &headers, &to, &body).await?;
    let said = Said::of(&body.input)?;
    let mut decided = Vec::new();
    for (id, approve, reason) in said.approvals {
        decided.push(commands::decide(&app, &caller, id, approve, reason).await?);
    }
    let turn = match said.text {
        Some(text) => {
            let spoken = Spoken { to: &to, thread: Some(&thread), text: &text, heard: "" };
            turn::take(&app, &caller, &headers, spoken).await?.after(texts(&decided))
        }
        None => turn::go_on(&app, &caller, decided).await?,
    };
    let heading = Heading::of(&app, &turn, &body.model, previous);
    if body.stream == Some(true) {
        return Ok(telling::streamed(turn, Events::new(heading)));
    }
    let told = telling::whole(turn).await?;
    Ok(Json(heading.answer(told)).into_response())
}

fn texts(decided: &[Decided]) -> Option<String> {
    let texts: Vec<String> = decided.iter().map(|it| it.done.text()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The thread that is named, that of the answer before, or a new one.
async fn thread_of(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    to: &Addressee,
    body: &ResponseRequest,
) -> Result<Thread> {
    let meant = |key: SessionKey| Thread { key, is_meant: true };
    if let Some(id) = &body.previous_response_id {
        let missing = || ApiError::NotFound { what: "response", id: id.chars().take(64).collect() };
        let run = run_of(id).ok_or_else(missing)?;
        let row = caller.run(app, &run.to_string()).await.map_err(|_| missing())?;
        let same = row.user == to.user
            && match &to.run.group {
                Some(group) => row.group.as_ref().is_some_and(|it| it.as_str() == group),
                None => row.agent == to.agent,
            };
        if !same {
            return Err(bad_request("`previous_response_id` is another model's answer".to_owned()));
        }
        return row.session_key.map(meant).ok_or_else(missing);
    }
    match thread::named(headers, body.metadata.as_ref())? {
        Some(thread) => Ok(thread),
        None => Ok(meant(SessionKey(format!("responses-{}", clock::new_message_id().0.simple())))),
    }
}

/// The run that an answer's id names.
fn run_of(response: &str) -> Option<RunId> {
    let run = response.strip_prefix("resp_")?.get(..32)?;
    format!("{}{run}", RunId::PREFIX).parse().ok()
}

/// What a request says: answers to questions, and words.
struct Said {
    approvals: Vec<(PermissionId, bool, Option<String>)>,
    text: Option<String>,
}

impl Said {
    fn of(input: &Input) -> Result<Said> {
        let items = match input {
            Input::Text(text) => {
                return Ok(Said { approvals: Vec::new(), text: Some(text.clone()) });
            }
            Input::Items(items) => items,
        };
        let kind = |it: &InputItem| it.kind.clone().unwrap_or_else(|| "message".to_owned());
        let approvals = items.iter().filter(|it| kind(it) == "mcp_approval_response");
        let approvals = approvals.map(approval).collect::<Result<Vec<_>>>()?;
        let is_users = |it: &InputItem| it.role.as_deref() == Some("user") && kind(it) == "message";
        // What the person said before it was answered is a client's memory, not news.
        let latest = items.iter().rev().take_while(|it| it.role.as_deref() != Some("assistant"));
        let latest = latest.filter(|it| is_users(it)).map(|it| it.content.as_ref()).next();
        let text = latest.map(|it: Option<&Content>| text::words(it)).transpose()?;
        if text.is_none() && approvals.is_empty() {
            let detail = "`input` has neither a message of the role `user` nor an answer to a \
                          question";
            return Err(bad_request(detail.to_owned()));
        }
        Ok(Said { approvals, text })
    }
}

fn approval(item: &InputItem) -> Result<(PermissionId, bool, Option<String>)> {
    let (Some(id), Some(approve)) = (&item.approval_request_id, item.approve) else {
        let detail = "`mcp_approval_response` has `approval_request_id` and `approve`";
        return Err(bad_request(detail.to_owned()));
    };
    let missing = |_| ApiError::NotFound { what: "permission", id: id.chars().take(64).collect() };
    let reason = item.reason.clone().filter(|it| !it.trim().is_empty());
    Ok((id.parse().map_err(missing)?, approve, reason))
}

/// What every answer says of itself.
#[derive(Clone)]
pub struct Heading {
    app: App,
    pub message: String,
    run: Option<String>,
    bare: Response,
}

impl Heading {
    fn of(app: &App, turn: &Turn, model: &str, previous: Option<&str>) -> Heading {
        let unique = clock::new_message_id().0.simple().to_string();
        let run = turn.run.map(|it| it.0.simple().to_string());
        let id = format!("resp_{}{}", run.as_deref().unwrap_or(&unique), &unique[20..]);
        let run = turn.run.map(|it| it.to_string());
        let bare = Response {
            id,
            object: "response",
            created_at: clock::now().as_second(),
            status: "in_progress",
            error: None,
            incomplete_details: None,
            instructions: None,
            metadata: json!({}),
            model: model.to_owned(),
            output: Vec::new(),
            parallel_tool_calls: true,
            previous_response_id: previous.map(str::to_owned),
            temperature: None,
            tool_choice: "auto",
            tools: Vec::new(),
            top_p: None,
            usage: None,
            chancery: Default::default(),
        };
        Heading { app: app.clone(), message: format!("msg_{unique}"), run, bare }
    }

    pub fn bare(&self) -> Box<Response> {
        Box::new(self.bare.clone())
    }

    pub fn answer(&self, Told { text, end, usage }: Told) -> Response {
        let error = telling::no_answer(self.run.as_deref(), &end)
            .map(|it| ResponseError { code: "server_error", message: it.to_string() });
        let mut output = Vec::new();
        if !text.is_empty() {
            output.push(self.said(text, "completed"));
        }
        if let End::Waiting(pause) = &end {
            output.extend(questions(pause));
        }
        Response {
            status: if error.is_some() { "failed" } else { "completed" },
            error,
            output,
            usage: Some(used(usage)),
            chancery: telling::extension(&self.app, self.run.clone(), &end),
            ..self.bare.clone()
        }
    }

    pub fn said(&self, text: String, status: &'static str) -> OutputItem {
        let content = match status {
            "completed" => vec![part(text)],
            _ => Vec::new(),
        };
        OutputItem::Message { id: self.message.clone(), role: "assistant", status, content }
    }
}

pub fn part(text: String) -> OutputPart {
    OutputPart::OutputText { text, annotations: Vec::new() }
}

pub fn questions(pause: &Pause) -> impl Iterator<Item = OutputItem> {
    pause.open().map(|row| OutputItem::McpApprovalRequest {
        id: row.id.to_string(),
        name: row.call.tool.clone(),
        arguments: row.call.arguments.to_string(),
        server_label: server(row).unwrap_or("chancery").to_owned(),
    })
}

fn server(row: &PermissionRow) -> Option<&str> {
    row.request.payload.get("server").and_then(Value::as_str)
}

fn used(it: Usage) -> ResponseUsage {
    ResponseUsage {
        input_tokens: it.input_tokens,
        input_tokens_details: InputDetails { cached_tokens: 0 },
        output_tokens: it.output_tokens,
        output_tokens_details: OutputDetails { reasoning_tokens: 0 },
        total_tokens: it.input_tokens.saturating_add(it.output_tokens),
    }
}
