//! `why`: the full explanation of a ruling, by its id, by a request, or of a run's refusals.

mod audited;
mod refusals;
mod rejected;

use chancery_api::client::{Client, ClientError};
use chancery_api::permission::{Authorize, Authorized, Permission};
use chancery_runtime::clock;
use serde_json::json;

use crate::Global;
use crate::cmd::approval::{self, decided};
use crate::layers;
use crate::outcome::{Misused, Outcome};
use crate::output::{self, one_line};
use crate::server::client;
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A decision (`aud_…`), a request (`perm_…`), a run: what was refused in it; or the number of
    /// a rejected mail
    id: String,
}

pub async fn run(global: &Global, args: Args) -> anyhow::Result<Outcome> {
    let client = client(global)?;
    let terminal = Terminal::of_stdout();
    let id = &args.id;
    if id.starts_with("run_") {
        return refusals::print(global, &client, id, terminal).await;
    }
    if id.starts_with("aud_") {
        return audited::print(global, &client, id, terminal).await;
    }
    if !id.is_empty() && id.bytes().all(|it| it.is_ascii_digit()) {
        return rejected::print(global, &client, id, terminal).await;
    }
    if !id.starts_with("perm_") {
        let said = format!(
            "`{id}` is no decision (`aud_…`), no request (`perm_…`), no run and no rejected mail"
        );
        return Err(Misused(said).into());
    }
    let permission = approval::request(&client, id).await?;
    if global.json {
        let now = ruled_now(&client, &permission).await?;
        output::json(&json!({ "permission": permission, "now": now }))?;
    } else {
        let text = of_permission(&client, &permission, terminal).await?;
        output::raw(text.as_bytes())?;
    }
    Ok(Outcome::Done)
}

/// A request: what it was asked for, what the rules say of it now, what leads on.
pub async fn of_permission(
    client: &Client,
    permission: &Permission,
    terminal: Terminal,
) -> anyhow::Result<String> {
    let state = match &*permission.status {
        "pending" => "ASKED".to_owned(),
        _ => decided(permission, clock::now()),
    };
    let (tool, agent) = (one_line(&permission.tool), one_line(&permission.agent));
    let head = format!("{tool}  {agent}  {}  {}", permission.created_at, permission.run_id);
    let mut text = format!("{}  {head}\n", terminal.bold(&state));
    for reason in &permission.reasons {
        text.push_str(&format!("{}\n", one_line(&layers::sentence(reason))));
    }
    let now = ruled_now(client, permission).await?;
    if let Some(now) = &now {
        text.push_str(&format!("All layers, as the rules are now ({}):\n", now.ruling));
        text.push_str(&layers::table(&now.layers, terminal));
    }
    let open = (permission.status == "pending").then_some(&*permission.id);
    text.push_str(&now.map(|it| layers::ways(&it.ways, open)).unwrap_or_default());
    Ok(text)
}

/// What the rules say of the same call now; nothing, where one may not ask.
async fn ruled_now(client: &Client, of: &Permission) -> anyhow::Result<Option<Authorized>> {
    let question = Authorize {
        agent: of.agent.clone(),
        tool: of.tool.clone(),
        arguments: Some(of.arguments.clone()),
        run: Some(of.run_id.clone()),
        user: Some(of.user.clone()),
    };
    match client.authorize(&question).await {
        Ok(ruled) => Ok(Some(ruled)),
        Err(ClientError::Problem(problem)) if matches!(problem.status, 403 | 404) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
