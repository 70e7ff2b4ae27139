//! What an agent outside may read beside its tools: its inbox, its contracts, and what became of
//! its calls. The same that its token shows it over HTTP, and reading changes nothing.

use axum::Json;
use axum::extract::{Path, State};
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResponse, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};
use serde::Serialize;

use super::{answer, call, follow};
use crate::access::Outsider;
use crate::error::{ApiError, Result};
use crate::extract::Params;
use crate::router::App;
use crate::routes::{contracts, mail};

const INBOX: &str = "chancery://inbox";
const CONTRACTS: &str = "chancery://contracts/";
const CALLS: &str = "chancery://calls/";
const JSON: &str = "application/json";

pub(super) async fn list(app: &App, outsider: &Outsider) -> Result<ListResourcesResult> {
    let described = "What was written to you: what is critical first, then the oldest first.";
    let inbox = Resource::new(INBOX, "inbox").with_description(described).with_mime_type(JSON);
    let Json(held) = contracts::list(
        State(app.clone()),
        outsider.caller.clone(),
        Params(contracts::ListParams::default()),
    )
    .await?;
    let contract = |it: chancery_api::mail::Contract| {
        Resource::new(format!("{CONTRACTS}{}", it.id), it.title).with_mime_type(JSON)
    };
    let resources = [inbox].into_iter().chain(held.items.into_iter().map(contract));
    Ok(ListResourcesResult::with_all_items(resources.collect()))
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = |uri: &str, name: &str, described: &str| {
        ResourceTemplate::new(uri, name).with_description(described).with_mime_type(JSON)
    };
    ListResourceTemplatesResult::with_all_items(vec![
        template(
            "chancery://contracts/{id}",
            "contract",
            "A contract that you gave or hold, with its steps and what was written about it.",
        ),
        template("chancery://calls/{run_id}", "call", "What became of a call that was pending."),
    ])
}

pub(super) async fn read(
    app: &App,
    outsider: &Outsider,
    uri: String,
) -> Result<ReadResourceResponse> {
    let (state, caller) = (State(app.clone()), outsider.caller.clone());
    let text = if uri == INBOX {
        let params = Params(mail::BoxParams::default());
        let Json(page) =
            mail::inbox(state, caller, Path(outsider.agent.to_string()), params).await?;
        text(&page)?
    } else if let Some(id) = uri.strip_prefix(CONTRACTS) {
        let Json(story) = contracts::show(state, caller, Path(id.to_owned())).await?;
        text(&story)?
    } else if let Some(id) = uri.strip_prefix(CALLS) {
        let run = call::known(app, outsider, id).await?;
        let (tool, standing) = follow::look(app, run).await?;
        let mut answer = answer::of(&app.mcp, run, &tool, &standing);
        // That is the protocol's, and this is a document.
        answer.result_type = None;
        text(&answer)?
    } else {
        let id = uri.chars().take(64).collect();
        return Err(ApiError::NotFound { what: "resource", id });
    };
    let contents = ResourceContents::text(text, uri).with_mime_type(JSON);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

fn text(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|it| ApiError::Internal(it.to_string()))
}
