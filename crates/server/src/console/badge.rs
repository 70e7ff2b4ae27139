//! How many questions wait: for tabs that nobody looks at, which hold no stream.

use axum::Json;
use serde::Serialize;

use super::visitor::Visitor;
use crate::error::Result;

#[derive(Debug, Serialize)]
pub struct Badge {
    waiting: u64,
}

pub async fn show(visitor: Visitor) -> Result<Json<Badge>> {
    Ok(Json(Badge { waiting: visitor.waiting }))
}
