//! What chat programs ask of a model behind a person's back: a title, tags, what to ask next. The
//! model answers it, without tools; an agent's run for it would be a ghost.

use chancery_api::openai::ChatMessage;
use chancery_domain::event::Usage;
use chancery_runtime::model::{self, Message, Request};
use metrics::counter;

use super::models::Addressee;
use super::text::words_at_least;
use crate::error::{ApiError, Result};
use crate::router::App;

/// How such requests begin: Open WebUI's, its earlier ones, LibreChat's.
const TASKS: &[&str] = &[
    "### Task:",
    "Create a concise, 3-5 word",
    "Provide a concise, 5-word-or-less title",
    "Detect user language and write in the same language an extremely concise title",
];

/// Whether a request is such a task: its instructions, or all that is said, begin as one.
pub fn is_task(messages: &[ChatMessage]) -> bool {
    let begins = |it: &&ChatMessage| {
        let text = words_at_least(it.content.as_ref());
        TASKS.iter().any(|task| text.trim_start().starts_with(task))
    };
    let instructs = |it: &&ChatMessage| matches!(&*it.role, "system" | "developer");
    let latest = messages.iter().rev().find(|it| it.role == "user");
    messages.iter().filter(instructs).any(|it| begins(&it)) || latest.as_ref().is_some_and(begins)
}

/// The model's own answer.
pub async fn answer(
    app: &App,
    to: &Addressee,
    messages: &[ChatMessage],
) -> Result<(String, Usage)> {
    let authority = app.authority.get();
    let role = authority.org().active_role_of(&to.agent);
    let role = role.ok_or_else(|| ApiError::NoModel(to.model.clone()))?;
    let mut system = Vec::new();
    let mut said = Vec::new();
    for it in messages {
        let text = words_at_least(it.content.as_ref());
        match &*it.role {
            _ if text.is_empty() => {}
            "system" | "developer" => system.push(text),
            "assistant" => said.push(Message::Assistant { text, calls: Vec::new() }),
            _ => said.push(Message::User { text }),
        }
    }
    let mut system = system.join("\n\n");
    if said.is_empty() {
        said.push(Message::User { text: std::mem::take(&mut system) });
    }
    let request =
        Request { run: None, agent: &to.agent, system: &system, messages: &said, tools: &[] };
    let reply = app.models.for_tier(&role.model_tier).generate(request).await.map_err(|it| {
        counter!("chancery_llm_errors_total").increment(1);
        ApiError::NoAnswer { code: "model_failed", detail: it.to_string() }
    })?;
    let usage = reply.usage;
    model::count(usage);
    Ok((reply.text, usage))
}

#[cfg(test)]
mod tests {
    use chancery_api::openai::Content;

    use super::*;

    #[test]
    fn a_task_is_known_by_how_it_begins_and_by_nothing_else() {
        let message = |role: &str, text: &str| ChatMessage {
            role: role.to_owned(),
            content: Some(Content::Text(text.to_owned())),
        };
        let task = "### Task:\nGenerate a title";
        assert!(is_task(&[message("user", task)]));
        assert!(is_task(&[message("system", task), message("user", "hello")]));
        assert!(!is_task(&[
            message("user", task),
            message("assistant", "A"),
            message("user", "hi")
        ]));
        assert!(!is_task(&[message("user", "my ### Task: is this")]));
        assert!(!is_task(&[message("assistant", task), message("user", "hi")]));
    }
}
