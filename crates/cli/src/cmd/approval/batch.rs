//! The batch that a run waits with: every call of it, also those that need no answer.

use chancery_api::client::{Client, ClientError};
use chancery_api::permission::Permission;
use chancery_domain::event::{Answer, BatchProposed, Event};
use chancery_domain::policy::Ruling;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::card;
use super::find::of_run;
use crate::output::one_line;
use crate::terminal::Terminal;

#[derive(Debug, Serialize)]
pub struct Batch {
    pub run_id: String,
    pub message_id: String,
    pub calls: Vec<BatchCall>,
}

#[derive(Debug, Serialize)]
pub struct BatchCall {
    pub tool_call_id: String,
    pub tool: String,
    pub arguments: Value,
    pub ruling: String,
    /// `allowed`, `denied by policy`, `granted by rule …`, or the request's status
    pub state: String,
    pub permission: Option<Permission>,
}

impl Batch {
    pub fn open(&self) -> impl Iterator<Item = &Permission> {
        let permissions = self.calls.iter().filter_map(|it| it.permission.as_ref());
        permissions.filter(|it| it.status == "pending")
    }
}

/// The last batch that a run proposed, by the run's whole id. Where the run's log is not the
/// caller's to read, what was asked of it is all there is.
pub async fn of(client: &Client, run: &str) -> anyhow::Result<Option<Batch>> {
    let permissions = of_run(client, run, None).await?;
    let proposed = match proposed(client, run).await {
        Ok(mut proposed) => proposed.pop(),
        Err(ClientError::Problem(problem)) if problem.status == 404 => None,
        Err(error) => return Err(error.into()),
    };
    Ok(match proposed {
        Some(proposed) => Some(together(run, proposed, permissions)),
        None => alone(run, permissions),
    })
}

/// Every batch that a run has proposed, in their order. What a newer server wrote is passed over.
pub async fn proposed(client: &Client, run: &str) -> Result<Vec<BatchProposed>, ClientError> {
    let (mut proposed, mut after) = (Vec::new(), 0);
    loop {
        let page = client.events(run, after).await?;
        for event in page.items {
            after = event.seq;
            if event.kind == "batch.proposed"
                && let Ok(Event::BatchProposed(it)) =
                    Event::decode(&event.kind, &event.data.to_string())
            {
                proposed.push(it);
            }
        }
        if page.next_cursor.is_none() {
            return Ok(proposed);
        }
    }
}

fn together(run: &str, proposed: BatchProposed, permissions: Vec<Permission>) -> Batch {
    let message_id = proposed.message.to_string();
    let calls = proposed.calls.into_iter().map(|it| {
        // The last one counts: a call may be asked about again.
        let asked = |of: &&Permission| {
            of.message_id == message_id && of.tool_call_id == it.call.id.as_str()
        };
        let permission = permissions.iter().rev().find(asked).cloned();
        let state = match (&permission, it.ruling, &it.answer) {
            (Some(permission), ..) => permission.status.clone(),
            (None, _, Some(Answer::Rule(rule))) => format!("granted by rule {rule}"),
            (None, Ruling::Deny, _) => "denied by policy".to_owned(),
            (None, ..) => "allowed".to_owned(),
        };
        BatchCall {
            tool_call_id: it.call.id.0.clone(),
            tool: it.call.tool.clone(),
            arguments: it.call.arguments.clone(),
            ruling: it.ruling.as_str().to_owned(),
            state,
            permission,
        }
    });
    Batch { run_id: run.to_owned(), calls: calls.collect(), message_id }
}

fn alone(run: &str, permissions: Vec<Permission>) -> Option<Batch> {
    let message_id = permissions.last()?.message_id.clone();
    let calls = permissions.into_iter().filter(|it| it.message_id == message_id);
    let calls = calls.map(|it| BatchCall {
        tool_call_id: it.tool_call_id.clone(),
        tool: it.tool.clone(),
        arguments: it.arguments.clone(),
        ruling: it.ruling.clone(),
        state: it.status.clone(),
        permission: Some(it),
    });
    Some(Batch { run_id: run.to_owned(), calls: calls.collect(), message_id })
}

pub fn text(batch: &Batch, now: Timestamp, terminal: Terminal) -> String {
    let (open, all) = (batch.open().count(), batch.calls.len());
    let mut text = format!("Batch of {}   {all} calls, {open} open\n", batch.run_id);
    if open > 0 {
        text.push_str(&format!("{}\n", until_decided(all)));
    }
    for (call, number) in batch.calls.iter().zip(1..) {
        let permission = call.permission.as_ref();
        let risk = permission.map(|it| terminal.risk(it.risk.as_deref())).unwrap_or_default();
        let state = if call.state == "pending" { "open" } else { &call.state };
        let tool = terminal.bold(&one_line(&call.tool));
        let id = permission.map(|it| &*it.id).unwrap_or_default();
        let head = format!("\n{number:>3}  {state} {risk}  {tool}  {id}");
        text.push_str(&format!("{}\n", head.trim_end()));
        match permission {
            Some(permission) => text.push_str(&card::body(permission, now, terminal, 5)),
            None => {
                let mut fields = crate::fields::Fields::new(terminal, 5);
                fields.arguments(&call.arguments);
                text.push_str(&fields.into_text());
            }
        }
    }
    text
}

pub fn until_decided(calls: usize) -> String {
    match calls {
        1 => "It does not run until it is decided.".to_owned(),
        many => format!("Nothing of it runs until all {many} calls are decided."),
    }
}
