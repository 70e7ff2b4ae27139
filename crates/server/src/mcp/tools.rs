//! The tools that an agent outside is shown: what the authority offers its role, and nothing of
//! its own judgment.

use std::sync::Arc;

use chancery_runtime::context::offers;
use chancery_runtime::model::ToolOffer;
use chancery_runtime::tool::ToolSpec;
use rmcp::model::{JsonObject, ListToolsResult, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::call;
use crate::access::Outsider;
use crate::config::OnAsk;
use crate::error::Result;
use crate::router::App;

/// Reads what became of a call. Listed where calls are answered as pending, for those who cannot
/// give a call a key or read a resource.
pub(super) const RESULT: &str = "chancery_result";

pub(super) fn list(app: &App, outsider: &Outsider) -> Result<ListToolsResult> {
    let authority = app.authority.get();
    let created = call::created(app, outsider, None)?;
    let offered = offers(&authority, &created, &outsider.agent);
    let mut tools: Vec<Tool> =
        offered.iter().filter_map(|it| Some(tool(it, authority.tools().spec(&it.name)?))).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    if app.mcp.on_ask == OnAsk::Pending && authority.tools().spec(RESULT).is_none() {
        tools.push(result_tool());
    }
    Ok(ListToolsResult::with_all_items(tools))
}

/// What a tool does to the world is not known well enough for hints: those are left out, and what
/// the protocol assumes then is the worse. What the operator says of it is in `_meta`.
fn tool(offer: &ToolOffer, spec: &ToolSpec) -> Tool {
    let mut meta = JsonObject::new();
    meta.insert("chancery/risk".to_owned(), json!(spec.risk.as_str()));
    meta.insert("chancery/capabilities".to_owned(), json!(spec.capabilities));
    Tool::new(offer.name.clone(), offer.description.clone(), schema(&offer.parameters))
        .with_meta(MetaObject(meta))
}

/// Clients hold to the letter of the protocol that a schema of arguments is one of an object.
fn schema(parameters: &Value) -> Arc<JsonObject> {
    let mut schema = parameters.as_object().cloned().unwrap_or_default();
    schema.insert("type".to_owned(), json!("object"));
    Arc::new(schema)
}

fn result_tool() -> Tool {
    let schema = schema(&json!({
        "properties": {"run_id": {"type": "string", "description": "the id that a pending call was answered with: run_…"}},
        "required": ["run_id"],
        "additionalProperties": false,
    }));
    let reads = ToolAnnotations::new().read_only(true).destructive(false);
    let description = "Reads what became of a call that was pending. Runs nothing, asks nobody and decides nothing.";
    Tool::new(RESULT, description, schema)
        .with_annotations(reads.idempotent(true).open_world(false))
}
