//! What an agent reads of its memory.

use chancery_domain::event::CallResult;
use chancery_store::memory::{Found, Written};
use jiff::tz::TimeZone;
use serde_json::{Value, json};

pub(super) fn written(written: Written) -> CallResult {
    let said = match written {
        Written::New { id, near: None } => json!({"id": id, "status": "remembered"}),
        Written::New { id, near: Some(near) } => {
            json!({"id": id, "status": "remembered", "similar_to": near})
        }
        Written::Known(id) => json!({"id": id, "status": "known"}),
    };
    CallResult::ok(said.to_string())
}

pub(super) fn found(found: &[Found]) -> CallResult {
    let results: Vec<Value> = found.iter().map(one).collect();
    CallResult::ok(json!({"results": results}).to_string())
}

fn one(it: &Found) -> Value {
    let memory = &it.memory;
    json!({
        "id": memory.id,
        "tier": it.tier,
        "tier_name": it.tier_name,
        "type": memory.partition.kind.as_str(),
        "content": memory.content,
        "metadata": memory.metadata,
        "date": memory.at.to_zoned(TimeZone::UTC).date().to_string(),
        "score": (it.score * 1000.0).round() / 1000.0,
        "why": it.why(),
    })
}
