//! Tokens on the wire.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `POST /api/tokens`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// `human`, `service` or `agent`
    #[schema(pattern = "^(human|service|agent)$")]
    pub kind: String,
    /// The user, the service's name, or the agent.
    #[schema(min_length = 1, max_length = 256)]
    pub name: String,
    /// May act for any user.
    #[serde(default)]
    pub operator: bool,
    /// May answer permission requests; for services.
    #[serde(default)]
    pub approve: bool,
}

/// Shown once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    pub token: String,
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    pub id: String,
    pub kind: String,
    pub name: String,
    pub operator: bool,
    pub approve: bool,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    pub revoked_at: Option<Timestamp>,
}
