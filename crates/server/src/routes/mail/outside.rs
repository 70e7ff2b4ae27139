//! Mail of agents that work elsewhere: to send it is to do what a tool does, and whoever may not
//! call the tool may not do it here either.

use chancery_domain::event::Call;
use chancery_domain::id::{AgentId, CallId};
use chancery_domain::mail::Draft;
use chancery_domain::policy::Ruling;
use chancery_runtime::authority::{Authority, Case, Given, Judgment};
use chancery_runtime::clock;
use chancery_store::mail::Outgoing;
use serde_json::{Value, json};

use crate::error::{ApiError, Result};
use crate::router::App;
use crate::routes::authorize::limits;

/// The tool that an agent would send a mail with.
pub(super) const SEND: &str = "send_mail";

/// Whether the sender may call one of these tools. What waits for a person's word there has nobody
/// to wait here, and is refused.
pub(super) async fn check_may_call(
    app: &App,
    authority: &Authority,
    outgoing: &Outgoing,
    tools: &[&str],
) -> Result<()> {
    let agent = AgentId::from(&*outgoing.from);
    let mut ruled: Option<Judgment> = None;
    for tool in tools {
        let call = as_call(tool, &outgoing.draft);
        let limits = limits(app, authority, &agent, tool, None).await?;
        let warrant = app.store.warrant(&agent, outgoing.behalf.contract.as_ref()).await?;
        let judgment = authority.judge(Case {
            agent: agent.as_str(),
            user: outgoing.behalf.user.as_str(),
            delegated: None,
            call: &call,
            given: Given::Whole,
            task: None,
            now: clock::now(),
            warrant: &warrant,
            record: None,
            limits: &limits,
        });
        if ruled.as_ref().is_none_or(|it| judgment.ruling < it.ruling) {
            ruled = Some(judgment);
        }
    }
    let Some(Judgment { ruling, reasons }) = ruled else { return Ok(()) };
    // What the mailroom rejects it rejects itself, with its step, and keeps that it was tried.
    let rejected = || app.store.try_mail(authority.org(), outgoing.clone());
    if ruling == Ruling::Allow || rejected().await?.is_some() {
        return Ok(());
    }
    Err(ApiError::Denied(reasons))
}

/// A mail as the call of a tool that it would be.
fn as_call(tool: &str, draft: &Draft) -> Call {
    let subject = if tool == SEND { "subject" } else { "title" };
    let mut arguments = draft.fields.clone();
    arguments.extend([
        ("to".to_owned(), json!(draft.to)),
        (subject.to_owned(), json!(draft.subject)),
        ("body".to_owned(), json!(draft.body)),
        ("priority".to_owned(), json!(draft.priority)),
    ]);
    if tool == SEND {
        let attached = draft.attachments.iter();
        let attached = attached.map(|it| json!({"path": it.path, "description": it.description}));
        arguments.insert("type".to_owned(), json!(draft.kind));
        arguments.insert("attachments".to_owned(), attached.collect());
    }
    Call { id: CallId::from("call"), tool: tool.to_owned(), arguments: Value::Object(arguments) }
}
