//! What an agent says when somebody who is to decide asks it about a call that waits. It is asked
//! with all that it has read and without a tool in its hand: it can explain, and do nothing.

use chancery_domain::event::{Member, Recorded, Usage};
use chancery_domain::history::{FoldError, History};
use chancery_domain::id::{MessageId, RunId};
use chancery_store::read::Exchange;
use metrics::counter;

use crate::authority::Authority;
use crate::context::Context;
use crate::model::{self, ModelError, Models, Reply, Request};
use crate::prompt;

/// In characters. Longer words are not read on a card; what is cut off says so.
const EXPLANATION_MAX: usize = 4_000;

const TOLD: &str = "\n\nCalls of yours wait for a person's decision, and somebody who looks at them \
                    asks you something. Answer in a few sentences, from what you know. You have no \
                    tools now, and what you say decides nothing.";

#[derive(Debug, thiserror::Error)]
pub enum ConsultError {
    #[error(transparent)]
    Fold(#[from] FoldError),
    #[error("agent `{0}` is not at work any more")]
    Gone(String),
    #[error("an agent outside asks for this call: no model of this server's is behind it")]
    Outside,
    #[error("the model had nothing to say")]
    Silent,
    #[error(transparent)]
    Model(#[from] ModelError),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub text: String,
    pub model: String,
    pub usage: Usage,
}

/// Who would answer: the agent that asks, if it can.
pub fn speaker(authority: &Authority, history: &History) -> Result<Member, ConsultError> {
    let created = history.created();
    if created.call.is_some() {
        return Err(ConsultError::Outside);
    }
    let alone = || Member { agent: created.agent.clone(), role: created.role.clone() };
    let speaker = history.floor().speaker().cloned().unwrap_or_else(alone);
    match authority.org().active_role_of(&speaker.agent) {
        Some(_) => Ok(speaker),
        None => Err(ConsultError::Gone(speaker.agent.to_string())),
    }
}

/// Asks the run's model. `before` is what was said earlier in the run's session.
pub async fn explain(
    authority: &Authority,
    models: &Models,
    (run, log): (RunId, &[Recorded]),
    before: Vec<Exchange>,
    inquiry: MessageId,
) -> Result<Explanation, ConsultError> {
    let history = History::fold(run, log)?;
    let speaker = speaker(authority, &history)?;
    let gone = || ConsultError::Gone(speaker.agent.to_string());
    let role = authority.org().active_role_of(&speaker.agent).ok_or_else(gone)?;
    let mut context = Context::new((**history.created()).clone(), before);
    log.iter().for_each(|it| context.follow(&it.event));
    let system = prompt::system(authority, &context, role, &speaker) + TOLD;
    let messages = context.in_words(inquiry);
    let (agent, system, tools) = (&speaker.agent, &*system, &[][..]);
    let request = Request { run: Some(run), agent, system, messages: &messages, tools };
    let reply = models.for_tier(&role.model_tier).generate(request).await.inspect_err(|_| {
        counter!("chancery_llm_errors_total").increment(1);
    })?;
    let usage = reply.usage;
    model::count(usage);
    // Calls that it asks for all the same are nobody's: they are not even looked at.
    let Reply { text, model, .. } = reply;
    match text.trim() {
        "" => Err(ConsultError::Silent),
        text => Ok(Explanation { text: shortened(text), model, usage }),
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(EXPLANATION_MAX) {
        Some((end, _)) => format!("{} … (cut off)", &text[..end]),
        None => text.to_owned(),
    }
}
