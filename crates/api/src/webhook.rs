//! Webhooks on the wire: what became of each attempt to tell a subscriber something.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// What the subscriber saw as `X-Chancery-Delivery`; the same for every attempt.
    pub delivery: u64,
    pub subscriber: String,
    #[serde(rename = "type")]
    pub topic: String,
    pub run_id: String,
    pub seq: u64,
    /// 1 for the first.
    pub attempt: u32,
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// `null`: it was taken.
    #[schema(required = true)]
    pub error: Option<String>,
}

/// `GET /api/webhooks`: somebody who is told things.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Subscriber {
    pub name: String,
    /// `webhook`, `smtp` or `otlp`
    pub kind: String,
}

/// `POST /api/webhooks/{name}/test`: what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tried {
    pub subscriber: String,
    /// What the subscriber saw as `X-Chancery-Delivery`.
    pub delivery: u64,
    /// `null`: it was taken.
    #[schema(required = true)]
    pub error: Option<String>,
}
