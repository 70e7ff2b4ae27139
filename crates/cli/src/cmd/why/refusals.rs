//! What was refused in a run: by policy, by a person, by time.

use std::collections::HashMap;

use chancery_api::client::{Client, ClientError};
use chancery_api::permission::{Reason, Way};
use chancery_api::run::Event;
use chancery_domain::id::{AuditId, RunId};
use serde::Serialize;
use serde_json::Value;

use crate::Global;
use crate::layers;
use crate::outcome::Outcome;
use crate::output::{self, one_line};
use crate::terminal::Terminal;

#[derive(Debug, PartialEq, Serialize)]
struct Refused {
    /// The ruling's id in the audit.
    decision_id: Option<String>,
    at: String,
    tool_call_id: String,
    tool: String,
    /// What the agent was told.
    code: String,
    text: String,
    reasons: Vec<Reason>,
    /// Who decided it and why, where somebody did.
    decided_by: Option<String>,
    comment: Option<String>,
}

pub async fn print(
    global: &Global,
    client: &Client,
    run: &str,
    terminal: Terminal,
) -> anyhow::Result<Outcome> {
    let run = client.run(run).await?;
    let (mut events, mut after) = (Vec::new(), 0);
    loop {
        let page = client.events(&run.id, after).await?;
        after = page.items.last().map_or(after, |it| it.seq);
        events.extend(page.items);
        if page.next_cursor.is_none() {
            break;
        }
    }
    let refused = run.id.parse().map(|id| refused(id, &events)).unwrap_or_default();
    if global.json {
        output::json(&serde_json::json!({ "run_id": run.id, "refusals": refused }))?;
        return Ok(Outcome::Done);
    }
    if refused.is_empty() {
        output::line(format_args!("Nothing was refused in {}.", run.id))?;
    }
    for it in &refused {
        let ways = ways(client, it).await?;
        output::raw(text(it, &run.agent, &ways, terminal).as_bytes())?;
    }
    Ok(Outcome::Done)
}

/// What would let through what policy has denied, as the audit's entry of it says.
async fn ways(client: &Client, refused: &Refused) -> anyhow::Result<Vec<Way>> {
    let by_policy = refused.decided_by.is_none() && refused.state() == "DENIED";
    let Some(id) = refused.decision_id.as_deref().filter(|_| by_policy) else {
        return Ok(Vec::new());
    };
    match client.audit_entry(id).await {
        Ok(entry) => Ok(entry.ways),
        // The run may be looked at by those who do not read the audit.
        Err(ClientError::Problem(problem)) if matches!(problem.status, 403 | 404) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

impl Refused {
    fn state(&self) -> &'static str {
        match &*self.code {
            "EXPIRED" => "EXPIRED",
            "ABORTED" => "ABORTED",
            _ => "DENIED",
        }
    }
}

fn text(refused: &Refused, agent: &str, ways: &[Way], terminal: Terminal) -> String {
    let state = refused.state();
    let (tool, agent) = (one_line(&refused.tool), one_line(agent));
    let id = refused.decision_id.as_deref().unwrap_or_default();
    let head = format!("{}  {tool}  {agent}  {}  {id}", terminal.bold(state), refused.at);
    let mut text = format!("{head}\n{}\n", one_line(&refused.text));
    if let Some(by) = &refused.decided_by {
        let comment = refused.comment.as_deref().unwrap_or("no reason given");
        text.push_str(&format!("By {}: “{}”\n", one_line(by), one_line(comment)));
    }
    text.push_str(&layers::table(&refused.reasons, terminal));
    text.push_str(&layers::ways(ways, None));
    text.push('\n');
    text
}

/// A call that was proposed, and what was ruled on it.
#[derive(Debug, Clone, Default)]
struct Call {
    tool: String,
    reasons: Vec<Reason>,
    ruling: String,
}

/// Folds a log into its refusals. What is not known in it is passed over.
fn refused(run: RunId, events: &[Event]) -> Vec<Refused> {
    let mut calls: HashMap<String, Call> = HashMap::new();
    let mut decided: HashMap<String, (Option<String>, Option<String>)> = HashMap::new();
    let mut refused = Vec::new();
    for event in events {
        let data = &event.data;
        match &*event.kind {
            "batch.proposed" => {
                let proposals = data["calls"].as_array().into_iter().flatten();
                for (place, proposal) in (0..).zip(proposals) {
                    let tool = word(&proposal["call"]["tool"]);
                    let reasons = reasons(&proposal["reasons"]);
                    let ruling = AuditId::of_event(run, event.seq, place).to_string();
                    let call = Call { tool, reasons, ruling };
                    calls.insert(word(&proposal["call"]["id"]), call);
                }
            }
            "permission.requested" => {
                if let Some(call) = calls.get_mut(&word(&data["call"])) {
                    call.reasons = reasons(&data["reasons"]);
                    call.ruling = AuditId::of_event(run, event.seq, 0).to_string();
                }
            }
            "permission.updated" => {
                let by = data["by"]["id"].as_str().unwrap_or("nobody, in time").to_owned();
                let comment = data["comment"].as_str().map(str::to_owned);
                decided.insert(word(&data["call"]), (Some(by), comment));
            }
            "tool.refused" => {
                let id = word(&data["call"]);
                let Call { tool, reasons, ruling } = calls.get(&id).cloned().unwrap_or_default();
                let (decided_by, comment) = decided.get(&id).cloned().unwrap_or_default();
                refused.push(Refused {
                    decision_id: Some(ruling).filter(|it| !it.is_empty()),
                    at: event.at.to_string(),
                    tool,
                    code: word(&data["result"]["code"]),
                    text: word(&data["result"]["text"]),
                    reasons,
                    decided_by,
                    comment,
                    tool_call_id: id,
                });
            }
            _ => {}
        }
    }
    refused
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn reasons(value: &Value) -> Vec<Reason> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}
