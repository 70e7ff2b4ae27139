//! A call that an agent outside asks for: it stands where a model's answer would, and meets the
//! same gate. What it comes to is what the run comes to.

use chancery_domain::event::{BatchProposed, Call, Completed, Usage};

use super::gatehouse;
use crate::journal::{Journal, JournalError};
use crate::model::RawCall;
use crate::{Parts, clock};

/// In the place of the name of a model: none was asked.
const NO_MODEL: &str = "outside";

/// Proposes the call, or ends the run with its result.
pub(super) async fn relay(
    parts: &Parts,
    journal: &mut Journal<'_>,
    call: &Call,
) -> Result<(), JournalError> {
    let (message, model, usage) = (clock::new_message_id(), NO_MODEL.to_owned(), Usage::default());
    if let Some(result) = journal.context().result_of(&call.id) {
        let output = result.text.clone();
        return journal.record(Completed { message, output, model, usage });
    }
    let authority = parts.authority.get();
    let gatehouse = gatehouse(parts, &authority, journal).await?;
    let raw = RawCall {
        id: call.id.to_string(),
        tool: call.tool.clone(),
        arguments: call.arguments.to_string(),
    };
    let calls = gatehouse.rule_on(message, vec![raw]).await?;
    journal.record(BatchProposed { message, text: String::new(), calls, model, usage })
}
