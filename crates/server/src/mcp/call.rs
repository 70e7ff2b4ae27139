//! `tools/call`: makes a run whose one call is this one, or finds the run that was made for it
//! before, and follows it. What may run, and runs it, is not decided here.

use std::sync::Arc;

use chancery_domain::event::{Actor, Call, Created};
use chancery_domain::history::History;
use chancery_domain::id::{CallId, RunId};
use chancery_domain::text::visible_line;
use chancery_runtime::clock;
use chancery_runtime::digest::sha256;
use chancery_store::log::{CreateOutcome, IdempotencyKey};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ClientCapabilities, ProtocolVersion};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::follow::{self, Followed};
use super::{answer, tools};
use crate::access::Outsider;
use crate::error::{ApiError, Result};
use crate::extract::{bad_request, check_depth, check_name};
use crate::router::App;
use crate::routes::runs::ORG;

/// The key by which a call is known again; what we give to MCP servers ourselves.
const KEY: &str = "chancery/idempotency_key";
/// What a person reads of a call in a list of runs.
const INPUT_MAX: usize = 300;

pub(super) async fn call(
    app: &App,
    outsider: &Outsider,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse> {
    let ours = app.authority.get().tools().spec(tools::RESULT).is_none();
    if params.name == tools::RESULT && ours {
        return read_result(app, outsider, params.arguments.as_ref()).await;
    }
    let key = key(outsider, &params, context.meta.0.0.get(KEY))?;
    // A call that goes on after a hint names its run.
    let (run, hinted) = match &params.request_state {
        Some(state) => (known(app, outsider, state).await?, true),
        None => (begin(app, outsider, &params, key).await?, false),
    };
    let hint = !hinted && shows_pages(context);
    let followed = Followed { run, tool: &params.name, hint };
    follow::follow(app, outsider, &followed, context).await
}

/// What became of a call, and nothing else: for those who cannot read a resource.
async fn read_result(
    app: &App,
    outsider: &Outsider,
    arguments: Option<&serde_json::Map<String, Value>>,
) -> Result<CallToolResponse> {
    let given = arguments.and_then(|it| it.get("run_id")).and_then(Value::as_str);
    let given =
        given.ok_or_else(|| bad_request("`run_id` is the id of a call: run_…".to_owned()))?;
    let run = known(app, outsider, given).await?;
    let (tool, standing) = follow::look(app, run).await?;
    Ok(answer::of(&app.mcp, run, &tool, &standing).into())
}

/// A run that was made for a call of this agent. What is another's is not there.
pub(super) async fn known(app: &App, outsider: &Outsider, given: &str) -> Result<RunId> {
    let missing = || ApiError::NotFound { what: "call", id: given.chars().take(64).collect() };
    let id: RunId = given.parse().map_err(|_| missing())?;
    let row = app.store.run(id).await?.ok_or_else(missing)?;
    let theirs = row.user == outsider.user() && row.agent == outsider.agent;
    if theirs && row.parent.is_none() { Ok(id) } else { Err(missing()) }
}

/// Makes the run of a call, once for a key.
async fn begin(
    app: &App,
    outsider: &Outsider,
    params: &CallToolRequestParams,
    key: Option<IdempotencyKey>,
) -> Result<RunId> {
    let tool = params.name.to_string();
    check_name("name", &tool)?;
    let arguments = Value::Object(params.arguments.clone().unwrap_or_default());
    check_depth("arguments", &arguments)?;
    let call = Call { id: CallId::from("call"), tool, arguments };
    let id = clock::new_run_id();
    let mut history = History::create(id, created(app, outsider, Some(call))?);
    let change = history.change().ok_or_else(|| ApiError::Internal("no event".to_owned()))?;
    match app.store.create(&change, key, clock::now()).await? {
        CreateOutcome::Created => Ok(id),
        CreateOutcome::Existed(before) => Ok(before),
        CreateOutcome::KeyReused => {
            Err(bad_request(format!("this `{KEY}` was used for another call")))
        }
    }
}

fn key(
    outsider: &Outsider,
    params: &CallToolRequestParams,
    given: Option<&Value>,
) -> Result<Option<IdempotencyKey>> {
    let Some(given) = given else { return Ok(None) };
    let fits = |it: &&str| (1..=255).contains(&it.len()) && it.chars().all(|it| !it.is_control());
    let key = given.as_str().filter(fits);
    let key = key.ok_or_else(|| bad_request(format!("`{KEY}` is a text of 1 to 255 bytes")))?;
    let call = sha256(&json!([params.name, params.arguments.clone().unwrap_or_default()]));
    Ok(Some(IdempotencyKey {
        caller: format!("mcp:{}", outsider.agent),
        key: key.to_owned(),
        request_sha256: Sha256::digest(call.as_bytes()).into(),
    }))
}

/// What a run of this agent's is made with. Without a person behind it, and with no word of one.
pub(super) fn created(app: &App, outsider: &Outsider, call: Option<Call>) -> Result<Created> {
    let authority = app.authority.get();
    let role = authority.org().active_role_of(&outsider.agent).ok_or_else(|| {
        ApiError::Forbidden(format!("there is no agent `{}` any more", outsider.agent))
    })?;
    let input = call.as_ref().map(|it| format!("{} {}", it.tool, it.arguments));
    let input = visible_line(&input.unwrap_or_default()).chars().take(INPUT_MAX).collect();
    Ok(Created {
        org: ORG.to_owned(),
        agent: outsider.agent.clone(),
        role: role.id.clone(),
        user: outsider.user(),
        project: None,
        group: None,
        session_key: None,
        parent: None,
        ancestors: Vec::new(),
        room: None,
        persons_words: Vec::new(),
        delegated: None,
        input,
        by: Actor::Agent(outsider.agent.clone()),
        org_version: authority.org().version,
        contract: None,
        mails: Vec::new(),
        call: call.map(Arc::new),
        forked: None,
    })
}

/// Whether a client says that it can show a person a page, in a version that has a way to ask.
fn shows_pages(context: &RequestContext<RoleServer>) -> bool {
    let recent = |it: ProtocolVersion| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str();
    let shows = |it: ClientCapabilities| it.elicitation.is_some_and(|it| it.url.is_some());
    context.protocol_version().is_some_and(recent)
        && context.client_capabilities().is_some_and(shows)
}
