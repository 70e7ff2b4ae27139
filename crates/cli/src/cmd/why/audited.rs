//! A ruling by its id in the audit.

use chancery_api::client::{Client, ClientError};
use chancery_api::permission::Reason;
use serde_json::Value;

use crate::Global;
use crate::layers;
use crate::outcome::{Outcome, Stopped};
use crate::output::{self, one_line};
use crate::terminal::Terminal;

pub async fn print(
    global: &Global,
    client: &Client,
    id: &str,
    terminal: Terminal,
) -> anyhow::Result<Outcome> {
    let entry = match client.audited(id).await {
        Err(ClientError::Problem(problem)) if problem.detail == "there is nothing here" => {
            let said = "this server cannot be asked about single entries of its audit".to_owned();
            return Err(Stopped::new(Outcome::Failed, "no_audit", said).about(id).into());
        }
        other => other?,
    };
    if global.json {
        output::json(&entry)?;
    } else {
        output::raw(text(&entry, terminal).as_bytes())?;
    }
    Ok(Outcome::Done)
}

fn text(entry: &Value, terminal: Terminal) -> String {
    let word = |name: &str| one_line(entry[name].as_str().unwrap_or_default());
    let state = match &*word("ruling") {
        "allow" => "ALLOWED",
        "require_approval" | "require_human" => "ASKED",
        "deny" => "DENIED",
        _ => "RECORDED",
    };
    let parts = [word("tool"), word("agent"), word("at"), word("run_id")];
    let parts = parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("  ");
    let mut text = format!("{}  {parts}\n", terminal.bold(state));
    let by = word("actor");
    if !by.is_empty() {
        text.push_str(&format!("{} by {by}\n", word("kind")));
    }
    let reasons = |name: &str| -> Vec<Reason> {
        serde_json::from_value(entry[name].clone()).unwrap_or_default()
    };
    let (reasons, layers) = (reasons("reasons"), reasons("layers"));
    if let Some(first) = reasons.first() {
        text.push_str(&format!("{}\n", one_line(&layers::sentence(first))));
    }
    let shown = if layers.is_empty() { &reasons } else { &layers };
    text.push_str(&layers::table(shown, terminal));
    let tool = word("tool");
    text.push_str(&layers::ways_text(&layers::ways(&tool, &reasons, None)));
    text
}
