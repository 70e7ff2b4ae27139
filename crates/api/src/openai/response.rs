//! `POST /v1/responses`: the request, the answer, and the events of an answer that is streamed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Content, ErrorDetail, Extension, Metadata};

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ResponseRequest {
    pub model: String,
    pub input: Input,
    pub stream: Option<bool>,
    /// The same thread goes on.
    pub previous_response_id: Option<String>,
    pub metadata: Option<Metadata>,
    pub tool_choice: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Input {
    Text(String),
    Items(Vec<InputItem>),
}

/// A message, or the answer to a question. Other items are a client's memory of what was said.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct InputItem {
    /// Absent: a message.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub role: Option<String>,
    pub content: Option<Content>,
    pub approval_request_id: Option<String>,
    pub approve: Option<bool>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    pub id: String,
    pub object: &'static str,
    pub created_at: i64,
    /// `in_progress`, `completed` or `failed`
    pub status: &'static str,
    pub error: Option<ResponseError>,
    pub incomplete_details: Option<Value>,
    pub instructions: Option<String>,
    pub metadata: Value,
    pub model: String,
    pub output: Vec<OutputItem>,
    pub parallel_tool_calls: bool,
    pub previous_response_id: Option<String>,
    pub temperature: Option<f64>,
    pub tool_choice: &'static str,
    pub tools: Vec<Value>,
    pub top_p: Option<f64>,
    pub usage: Option<ResponseUsage>,
    pub chancery: Extension,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResponseError {
    pub code: &'static str,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ResponseUsage {
    pub input_tokens: u64,
    pub input_tokens_details: InputDetails,
    pub output_tokens: u64,
    pub output_tokens_details: OutputDetails,
    pub total_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct InputDetails {
    pub cached_tokens: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OutputDetails {
    pub reasoning_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputItem {
    Message {
        id: String,
        role: &'static str,
        status: &'static str,
        content: Vec<OutputPart>,
    },
    /// A question that is open; `mcp_approval_response` answers it.
    McpApprovalRequest {
        /// The permission request's.
        id: String,
        name: String,
        /// The text of a JSON object.
        arguments: String,
        server_label: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OutputPart {
    OutputText { text: String, annotations: Vec<Value> },
}

/// An event of a streamed answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResponseEvent {
    pub sequence_number: u64,
    #[serde(flatten)]
    pub kind: ResponseEventKind,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum ResponseEventKind {
    #[serde(rename = "response.created")]
    Created { response: Box<Response> },
    #[serde(rename = "response.in_progress")]
    InProgress { response: Box<Response> },
    #[serde(rename = "response.output_item.added")]
    ItemAdded { output_index: usize, item: OutputItem },
    #[serde(rename = "response.content_part.added")]
    PartAdded { item_id: String, output_index: usize, content_index: usize, part: OutputPart },
    #[serde(rename = "response.output_text.delta")]
    TextDelta {
        item_id: String,
        output_index: usize,
        content_index: usize,
        delta: String,
        logprobs: Vec<Value>,
    },
    #[serde(rename = "response.output_text.done")]
    TextDone {
        item_id: String,
        output_index: usize,
        content_index: usize,
        text: String,
        logprobs: Vec<Value>,
    },
    #[serde(rename = "response.content_part.done")]
    PartDone { item_id: String, output_index: usize, content_index: usize, part: OutputPart },
    #[serde(rename = "response.output_item.done")]
    ItemDone { output_index: usize, item: OutputItem },
    #[serde(rename = "response.completed")]
    Completed { response: Box<Response> },
    #[serde(rename = "response.failed")]
    Failed { response: Box<Response> },
    #[serde(rename = "error")]
    Error { code: Option<String>, message: String, param: Option<String> },
}

impl ResponseEventKind {
    /// The name that the event has on the stream, too.
    pub fn name(&self) -> &'static str {
        match self {
            ResponseEventKind::Created { .. } => "response.created",
            ResponseEventKind::InProgress { .. } => "response.in_progress",
            ResponseEventKind::ItemAdded { .. } => "response.output_item.added",
            ResponseEventKind::PartAdded { .. } => "response.content_part.added",
            ResponseEventKind::TextDelta { .. } => "response.output_text.delta",
            ResponseEventKind::TextDone { .. } => "response.output_text.done",
            ResponseEventKind::PartDone { .. } => "response.content_part.done",
            ResponseEventKind::ItemDone { .. } => "response.output_item.done",
            ResponseEventKind::Completed { .. } => "response.completed",
            ResponseEventKind::Failed { .. } => "response.failed",
            ResponseEventKind::Error { .. } => "error",
        }
    }

    pub fn error(it: ErrorDetail) -> ResponseEventKind {
        ResponseEventKind::Error { code: it.code, message: it.message, param: it.param }
    }
}
