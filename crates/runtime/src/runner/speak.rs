//! Words: whose turn it is to speak, and what the model says then.

use std::pin::pin;
use std::time::Duration;

use chancery_domain::event::{
    BatchProposed, Completed, Event, Failed, TurnBegan, TurnEnded, Usage,
};
use chancery_domain::room::Next;
use metrics::counter;

use super::{Reins, gatehouse, halted};
use crate::gate::{self, Gatehouse};
use crate::journal::{Journal, JournalError};
use crate::model::{self, Request};
use crate::{Parts, clock, context, prompt};

/// How long it may go untold that a run has started: a quick answer shares its commit.
const START_UNTOLD: Duration = Duration::from_millis(20);

/// Gives the floor to whoever is next, in a group; an agent alone always has it.
pub(super) async fn take_turn(
    parts: &Parts,
    journal: &mut Journal<'_>,
    reins: &Reins,
) -> Result<(), JournalError> {
    let Some(room) = journal.context().created().room.clone() else {
        return generate(parts, journal, reins, Answer::Completes).await;
    };
    match journal.history()?.floor().next(&room) {
        Next::Turn { member, round } => journal.record(TurnBegan { member, round }),
        Next::Speak { last: true } => generate(parts, journal, reins, Answer::Completes).await,
        Next::Speak { last: false } => generate(parts, journal, reins, Answer::EndsTurn).await,
        Next::Close(output) => journal.record(completed(output, String::new(), Usage::default())),
    }
}

/// What words without calls are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Completes,
    EndsTurn,
}

impl Answer {
    fn event(self, text: String, model: String, usage: Usage) -> Event {
        match self {
            Answer::Completes => completed(text, model, usage).into(),
            Answer::EndsTurn => {
                TurnEnded { message: clock::new_message_id(), text, model, usage }.into()
            }
        }
    }
}

fn completed(output: String, model: String, usage: Usage) -> Completed {
    Completed { message: clock::new_message_id(), output, model, usage }
}

/// Asks the model for words or calls. Every result is durable before.
async fn generate(
    parts: &Parts,
    journal: &mut Journal<'_>,
    reins: &Reins,
    answer: Answer,
) -> Result<(), JournalError> {
    journal.commit_words().await?;
    let created = journal.context().created().clone();
    let authority = parts.authority.get();
    let speaker = journal.speaker()?;
    let Some(role) = authority.org().active_role_of(&speaker.agent) else {
        if created.room.is_some() {
            // The others go on without it.
            let said = match answer {
                Answer::Completes => journal.context().last_said().to_owned(),
                Answer::EndsTurn => String::new(),
            };
            return journal.record(answer.event(said, String::new(), Usage::default()));
        }
        let error = format!("agent `{}` is not at work any more", speaker.agent);
        return journal.record(Failed { error });
    };
    let offers = context::offers(&authority, &created, &speaker.agent);
    let run = journal.history()?.id();
    // It has heard that nothing is left, and asked for more all the same.
    let (limits, heard) = (&authority.org().policy.limits, journal.context().spent_before());
    let over = |store| async move { gate::on_budget(&store, limits, run, heard).await };
    if let Some(over) = journal.held(over).await?.first() {
        let error = format!("{} (layer `{}`, rule `{}`)", over.detail, over.layer, over.rule);
        return journal.record(Failed { error });
    }
    let (agent, system) =
        (&speaker.agent, &*prompt::system(&authority, journal.context(), role, &speaker));
    let request = |messages| Request { run: Some(run), agent, system, messages, tools: &offers };
    let model = parts.models.for_tier(&role.model_tier);
    let reply = if journal.is_starting()? {
        let messages = journal.context().messages().to_vec();
        let mut asked = pin!(model.generate(request(&messages)));
        let at_once = tokio::select! {
            biased;
            () = reins.halt.cancelled() => return halted(journal).await,
            reply = &mut asked => Some(reply),
            () = tokio::time::sleep(START_UNTOLD) => None,
        };
        match at_once {
            Some(reply) => reply,
            None => {
                journal.commit().await?;
                // Somebody spoke meanwhile, and the model has not heard it: it is asked anew.
                if journal.context().messages().len() != messages.len() {
                    return Ok(());
                }
                tokio::select! {
                    biased;
                    () = reins.halt.cancelled() => return halted(journal).await,
                    reply = asked => reply,
                }
            }
        }
    } else {
        tokio::select! {
            biased;
            () = reins.halt.cancelled() => return halted(journal).await,
            reply = model.generate(request(journal.context().messages())) => reply,
        }
    };
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            counter!("chancery_llm_errors_total").increment(1);
            return journal.record(Failed { error: error.to_string() });
        }
    };
    let usage = reply.usage;
    model::count(usage);
    if reply.calls.is_empty() {
        return journal.record(answer.event(reply.text, reply.model, usage));
    }
    let message = clock::new_message_id();
    let spent = journal.context().spent().with(usage);
    let gatehouse = Gatehouse { spent, ..gatehouse(parts, &authority, journal).await? };
    let calls = gatehouse.rule_on(message, reply.calls).await?;
    let (text, model) = (reply.text, reply.model);
    journal.record(BatchProposed { message, text, calls, model, usage })
}
