//! What the audit has of a ruling, by its id there.

use chancery_api::audit::Entry;
use chancery_api::client::{Client, ClientError};
use serde_json::Value;

use crate::Global;
use crate::fields::Fields;
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
    let entry = match client.audit_entry(id).await {
        // An older server: it has the audit, but not this way in.
        Err(ClientError::Problem(problem)) if problem.detail == "there is nothing here" => {
            let said = "this server cannot be asked for one entry of its audit".to_owned();
            let stopped = Stopped::new(Outcome::Failed, "no_audit_entry", said);
            return Err(stopped.about(id).next("chancery audit ls".to_owned()).into());
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

fn text(entry: &Entry, terminal: Terminal) -> String {
    let state = match entry.ruling.as_deref() {
        Some("allow") => "ALLOWED",
        Some("require_approval" | "require_human") => "ASKED",
        Some("deny") => "DENIED",
        _ => "RECORDED",
    };
    let word = |it: &Option<String>| it.as_deref().map(one_line);
    let about = [word(&entry.tool), word(&entry.agent), Some(entry.at.to_string())];
    let about = about.into_iter().chain([word(&entry.run_id)]).flatten().collect::<Vec<_>>();
    let mut text = format!("{}  {}\n", terminal.bold(state), about.join("  "));
    let by = entry.actor.id.as_deref().unwrap_or(&entry.actor.kind);
    text.push_str(&format!("{} by {}", one_line(&entry.kind), one_line(by)));
    let whom = entry.user.as_deref().filter(|it| *it != by);
    text.push_str(&whom.map(|it| format!(" for {}", one_line(it))).unwrap_or_default());
    text.push('\n');
    if let Some(first) = entry.reasons.first() {
        text.push_str(&format!("{}\n", one_line(&layers::sentence(first))));
    }
    let mut fields = Fields::new(terminal, 2);
    if let Some(arguments) = entry.detail.get("arguments") {
        fields.arguments(arguments);
    }
    for (name, label) in [("decision", "decision"), ("comment", "because"), ("result", "told")] {
        if let Some(said) = entry.detail.get(name).and_then(Value::as_str) {
            fields.field(label, said);
        }
    }
    text.push_str(&fields.into_text());
    text.push_str(&match entry.layers.is_empty() {
        true => layers::table(&entry.reasons, terminal),
        false => layers::looked(&entry.layers, terminal),
    });
    text.push_str(&layers::now(entry.now.as_ref(), entry.ruling.as_deref(), terminal));
    let request = entry.reference.as_deref();
    text.push_str(&layers::ways(&entry.ways, request.filter(|it| it.starts_with("perm_"))));
    if let Some(reference) = request {
        text.push_str(&format!("About  {}\n", one_line(reference)));
    }
    text
}
