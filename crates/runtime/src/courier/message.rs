//! What a subscriber is told, in the form that its channel reads.

use chancery_domain::command;
use chancery_domain::event::{Event, Request};
use chancery_domain::text::visible;
use chancery_store::outbox::Notice;
use chancery_store::read::RunRow;
use chancery_store::{Store, StoreError};
use serde_json::{Value, json};

use super::{Subscribers, TRIAL};

/// How a channel wants to be spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Our own: JSON for programs.
    #[default]
    Generic,
    /// An incoming webhook of Slack.
    Slack,
    /// A custom bot of Feishu (Lark).
    Feishu,
}

/// A question, as far as the server itself vouches for it.
struct Question {
    id: String,
    tool: String,
    risk: &'static str,
    kind: &'static str,
    expires_at: Option<jiff::Timestamp>,
    link: String,
}

pub(super) async fn about(
    store: &Store,
    all: &Subscribers,
    format: Format,
    notice: &Notice,
) -> Result<String, StoreError> {
    if let Some(said) = &notice.body {
        let line = of_no_run(all, notice, said);
        return Ok(match format {
            Format::Generic => without_run(all, notice, said),
            Format::Slack => json!({"text": line}),
            Format::Feishu => json!({"msg_type": "text", "content": {"text": line}}),
        }
        .to_string());
    }
    let run = store.run(notice.run).await?;
    let questions = match &*notice.topic {
        "permission.requested" => questions(store, all, notice).await?,
        _ => Vec::new(),
    };
    let body = match format {
        Format::Generic => generic(notice, run.as_ref(), &questions),
        Format::Slack => json!({"text": sentence(all, notice, run.as_ref(), &questions)}),
        Format::Feishu => json!({
            "msg_type": "text",
            "content": {"text": sentence(all, notice, run.as_ref(), &questions)},
        }),
    };
    Ok(body.to_string())
}

/// What is about no run, for programs.
fn without_run(all: &Subscribers, notice: &Notice, said: &Value) -> Value {
    let url = page(all, notice);
    let mut body = json!({"type": notice.topic, "at": notice.at.to_string(), "url": url});
    if let (Some(body), Some(said)) = (body.as_object_mut(), said.as_object()) {
        body.extend(said.clone());
    }
    body
}

/// The same for people: nobody in the organisation answers, or somebody tries the channel.
fn of_no_run(all: &Subscribers, notice: &Notice, said: &Value) -> String {
    let name = |field: &str| visible(said[field].as_str().unwrap_or_default());
    let link = page(all, notice);
    if notice.topic == TRIAL {
        let by = name("by");
        return format!("This is a test: {by} wants to know whether you are told. {link}");
    }
    let (from, to) = (name("from_agent"), name("to_agent"));
    format!("{to} has not answered what {from} raised: the board is asked. {link}")
}

/// Where to look.
fn page(all: &Subscribers, notice: &Notice) -> String {
    let page = if notice.topic == TRIAL { "settings" } else { "mail" };
    format!("{}/{page}", all.public_url.trim_end_matches('/'))
}

/// What a person is told by mail.
pub(super) struct Letter {
    pub subject: String,
    pub text: String,
}

pub(super) async fn letter(
    store: &Store,
    all: &Subscribers,
    notice: &Notice,
) -> Result<Letter, StoreError> {
    let subject = |rest: &str| format!("[Chancery] {rest}");
    if let Some(said) = &notice.body {
        let about = if notice.topic == TRIAL { "a test" } else { "the board is asked" };
        return Ok(Letter { subject: subject(about), text: of_no_run(all, notice, said) });
    }
    let run = store.run(notice.run).await?;
    let questions = match &*notice.topic {
        "permission.requested" => questions(store, all, notice).await?,
        _ => Vec::new(),
    };
    let about = match questions.len() {
        0 => notice.topic.clone(),
        1 => "a call waits for your word".to_owned(),
        many => format!("{many} calls wait for your word"),
    };
    let text = sentence(all, notice, run.as_ref(), &questions);
    Ok(Letter { subject: subject(&about), text })
}

async fn questions(
    store: &Store,
    all: &Subscribers,
    notice: &Notice,
) -> Result<Vec<Question>, StoreError> {
    let events = store.events(notice.run, notice.seq.saturating_sub(1), 1).await?;
    let Some(recorded) = events.first() else { return Ok(Vec::new()) };
    let tool = |call: &str| match &recorded.event {
        Event::BatchProposed(it) => {
            let named = it.calls.iter().find(|it| it.call.id.as_str() == call);
            named.map(|it| it.call.tool.clone()).unwrap_or_default()
        }
        Event::PermissionRequested(it) => it.tool.clone(),
        _ => String::new(),
    };
    let question = |(call, request): (&chancery_domain::id::CallId, &Request)| Question {
        id: request.id.to_string(),
        tool: tool(call.as_str()),
        risk: request.risk.map_or("unknown", |it| it.as_str()),
        kind: request.kind.as_str(),
        expires_at: request.expires_at,
        link: format!("{}/inbox/{}", all.public_url.trim_end_matches('/'), request.id),
    };
    Ok(command::requests(&recorded.event).into_iter().map(question).collect())
}

fn generic(notice: &Notice, run: Option<&RunRow>, questions: &[Question]) -> Value {
    let mut body = json!({
        "type": notice.topic,
        "run_id": notice.run.to_string(),
        "seq": notice.seq,
        "at": notice.at.to_string(),
        "agent": run.map(|it| it.agent.as_str()),
        "user": run.map(|it| it.user.as_str()),
    });
    if !questions.is_empty() {
        let permission = |it: &Question| {
            json!({
                "id": it.id,
                "tool": it.tool,
                "risk": it.risk,
                "kind": it.kind,
                "expires_at": it.expires_at,
                "url": it.link,
            })
        };
        body["permissions"] = questions.iter().map(permission).collect();
    }
    body
}

/// One line a question, for people. Names are made visible, and nothing in them is markup.
fn sentence(
    all: &Subscribers,
    notice: &Notice,
    run: Option<&RunRow>,
    questions: &[Question],
) -> String {
    let agent = run.map_or("an agent", |it| it.agent.as_str());
    let user = run.map_or("somebody", |it| it.user.as_str());
    let plain = |text: &str| {
        let text: String = visible(text).chars().filter(|it| !"<>&*_~`|\n".contains(*it)).collect();
        text.chars().take(80).collect::<String>()
    };
    let (agent, user) = (plain(agent), plain(user));
    if questions.is_empty() {
        let link = format!("{}/runs/{}", all.public_url.trim_end_matches('/'), notice.run);
        return format!("{}: {agent} for {user}\n{link}", notice.topic);
    }
    let line = |it: &Question| {
        let until = it.expires_at.map(|at| format!(", until {at:.0}")).unwrap_or_default();
        let risk = it.risk.to_uppercase();
        format!("[{risk}] {agent} asks for {} for {user}{until}\n{}", plain(&it.tool), it.link)
    };
    questions.iter().map(line).collect::<Vec<_>>().join("\n")
}
