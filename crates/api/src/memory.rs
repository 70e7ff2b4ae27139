//! What is remembered, on the wire.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Whom a memory belongs to. What is absent is nobody's, and not anybody's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryScope {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 256)]
    pub agent: Option<String>,
}

/// Something to remember.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMemory {
    #[schema(
        min_length = 1,
        max_length = 16000,
        pattern = r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$"
    )]
    pub content: String,
    /// `core`, `episodic` or `archival`
    #[serde(rename = "type")]
    #[schema(pattern = "^(core|episodic|archival)$")]
    pub kind: String,
    #[serde(
        default,
        deserialize_with = "crate::object::optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub scope: Option<MemoryScope>,
    /// With `pa_preference: true` it is what its user wants of their own agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// What it is about happened then; now, unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub at: Option<Timestamp>,
    /// An earlier memory of the same scope and type that this one corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^mem_[0-9a-f]{32}$")]
    pub supersedes: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Memory {
    pub id: String,
    pub content: String,
    /// `core`, `episodic` or `archival`
    #[serde(rename = "type")]
    pub kind: String,
    pub scope: MemoryScope,
    #[schema(value_type = Object)]
    pub metadata: Value,
    /// When that happened which it is about.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Who wrote it down.
    pub created_by: String,
    /// An earlier memory that says nearly the same.
    #[schema(required = true)]
    pub similar_to: Option<String>,
    /// What has taken its place.
    #[schema(required = true)]
    pub superseded_by: Option<String>,
    /// The runs that it came from.
    pub sources: Vec<MemorySource>,
}

/// Where a memory came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemorySource {
    pub run_id: String,
    /// `call`, `group_run` or `group_run_output`
    pub source: String,
    #[schema(required = true)]
    pub original_memory_id: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
}

/// One result of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundMemory {
    #[serde(flatten)]
    pub memory: Memory,
    /// 1 for the first.
    pub tier: u32,
    pub tier_name: String,
    pub score: f64,
    pub why: String,
}
