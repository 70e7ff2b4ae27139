//! OpenAI's wire, as far as we speak it: what its clients send and what they read. Clients send
//! far more than is read here; what is not named is none of ours to refuse.

use serde::{Deserialize, Serialize};
use serde_json::Value;

mod response;

pub use response::*;

/// An error in the form that OpenAI's clients turn into exceptions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    pub error: ErrorDetail,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorDetail {
    pub message: String,
    #[serde(rename = "type")]
    pub kind: String,
    /// Which field of the request it is about.
    pub param: Option<String>,
    pub code: Option<String>,
}

/// `GET /v1/models`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelList {
    pub object: String,
    pub data: Vec<Model>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// `pa/<user>`, `agent/<id>` or `group/<id>`
    pub id: String,
    pub object: String,
    pub created: i64,
    pub owned_by: String,
}

/// `POST /v1/chat/completions`
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ChatRequest {
    pub model: String,
    pub messages: Vec<ChatMessage>,
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    pub metadata: Option<Metadata>,
    pub n: Option<u64>,
    /// Whether one of the tools that come with it must be called.
    pub tool_choice: Option<Value>,
    /// What `tool_choice` was called before.
    pub function_call: Option<Value>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StreamOptions {
    pub include_usage: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Metadata {
    pub thread_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ChatMessage {
    pub role: String,
    pub content: Option<Content>,
}

/// What a message says: text, or parts of which some are text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Part {
    #[serde(rename = "type")]
    pub kind: String,
    pub text: Option<String>,
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChatCompletion {
    pub id: String,
    pub object: &'static str,
    pub created: i64,
    pub model: String,
    pub choices: Vec<Choice>,
    pub usage: ChatUsage,
    pub chancery: Extension,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    pub index: u32,
    pub message: Said,
    pub logprobs: Option<Value>,
    pub finish_reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Said {
    pub role: &'static str,
    pub content: String,
    pub refusal: Option<String>,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChatChunk {
    pub id: String,
    pub object: &'static str,
    pub created: i64,
    pub model: String,
    pub choices: Vec<ChunkChoice>,
    /// Where it was asked for: on a chunk of its own, the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ChatUsage>,
    /// On the chunk that ends the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chancery: Option<Extension>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChunkChoice {
    pub index: u32,
    pub delta: Delta,
    pub logprobs: Option<Value>,
    pub finish_reason: Option<&'static str>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChatUsage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
}

/// What an answer says beyond OpenAI's own fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Extension {
    /// Absent: the answer belongs to no run.
    pub run_id: Option<String>,
    /// A run's status, or `waiting_approval`.
    pub status: String,
    /// While it waits for approval: the message whose calls are asked about; of several, the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
}

/// A question that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The permission request's.
    pub id: String,
    pub run_id: String,
    pub batch_id: String,
    pub agent: String,
    pub tool: String,
    pub arguments: Value,
    pub arguments_sha256: String,
    pub risk: Option<String>,
    pub ruling: String,
    /// Whether it can be decided through this door; if not, behind the link alone.
    pub decidable_here: bool,
    pub url: String,
}
