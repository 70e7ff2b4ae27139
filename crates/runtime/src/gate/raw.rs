//! What the model wrote, as calls: every id usable and unique, every argument readable or said
//! why not.

use std::collections::HashSet;

use chancery_domain::event::Call;
use chancery_domain::id::CallId;
use chancery_domain::policy::Fitness;
use serde_json::Value;

use crate::model::RawCall;

/// A model that asks for more calls at once is not planning, it is looping.
const CALLS_MAX: usize = 128;
/// An id is copied into keys, headers and the log.
const CALL_ID_MAX: usize = 128;

/// The log cannot be read back where its JSON is nested deeper than 128, and the arguments stand
/// a few levels deep in it.
const DEPTH_MAX: usize = 100;

#[derive(Debug)]
pub(super) struct Read {
    pub call: Call,
    /// Why it cannot be a call of any tool.
    pub unfit: Option<Fitness>,
}

pub(super) fn read(raw: Vec<RawCall>) -> impl Iterator<Item = Read> {
    let mut ids = HashSet::new();
    let many = raw.len() > CALLS_MAX;
    raw.into_iter().take(CALLS_MAX).enumerate().map(move |(place, raw)| {
        let id = fresh_id(&raw.id, place, &mut ids);
        let (arguments, unreadable) = arguments(&raw.arguments);
        let too_many = many.then(|| format!("more than {CALLS_MAX} calls in one message"));
        let unfit = unreadable.or(too_many).map(Fitness::BadArguments);
        Read { call: Call { id, tool: raw.tool, arguments }, unfit }
    })
}

/// The model's own id where it is usable, made unique within the batch.
fn fresh_id(given: &str, place: usize, taken: &mut HashSet<String>) -> CallId {
    let usable = !given.is_empty()
        && given.len() <= CALL_ID_MAX
        && given.chars().all(|it| it.is_ascii_graphic());
    let mut id = if usable { given.to_owned() } else { format!("call_{place}") };
    while !taken.insert(id.clone()) {
        id = format!("{id}_{place}");
    }
    CallId(id)
}

/// The arguments as JSON, or why they are none. No arguments are an empty object.
fn arguments(text: &str) -> (Value, Option<String>) {
    if text.trim().is_empty() {
        return (Value::Object(Default::default()), None);
    }
    match serde_json::from_str(text) {
        Ok(value) if depth(&value) > DEPTH_MAX => (
            Value::String(text.chars().take(2000).collect()),
            Some(format!("they are nested more than {DEPTH_MAX} levels deep")),
        ),
        Ok(value @ Value::Object(_)) => (value, None),
        Ok(other) => (other, Some("they are not an object".to_owned())),
        Err(error) => (
            Value::String(text.chars().take(2000).collect()),
            Some(format!("they are not JSON: {error}")),
        ),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chancery_domain::event::{BatchProposed, Event, Proposal, Usage};
    use chancery_domain::id::MessageId;
    use chancery_domain::policy::Ruling;

    fn raw(id: &str, arguments: &str) -> RawCall {
        RawCall { id: id.into(), tool: "nothing".into(), arguments: arguments.into() }
    }

    #[test]
    fn call_ids_are_made_unique_and_usable() {
        let given = ["a", "a", "", "a_1", "with space", "a"];
        let raws = given.iter().map(|id| raw(id, "{}")).collect();
        let ids: Vec<_> = read(raws).map(|it| it.call.id.0).collect();
        assert_eq!(ids, ["a", "a_1", "call_2", "a_1_3", "call_4", "a_5"]);
    }

    #[test]
    fn arguments_that_are_not_an_object_are_unfit_and_kept_for_the_record() {
        for (text, said) in [("{\"a\":", "they are not JSON"), ("[1]", "they are not an object")] {
            let unfit = read(vec![raw("a", text)]).next().unwrap().unfit;
            let Some(Fitness::BadArguments(how)) = unfit else { panic!("{unfit:?}") };
            assert!(how.contains(said), "{how}");
        }
    }

    #[test]
    fn whatever_a_model_writes_the_log_can_be_read_back() {
        for depth in [1, 99, 100, 101, 120, 124, 127, 128, 5000] {
            let text = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            let calls: Vec<_> = read(vec![raw("a", &text)])
                .map(|it| Proposal {
                    call: std::sync::Arc::new(it.call),
                    ruling: Ruling::Deny,
                    reasons: vec![],
                    answer: None,
                })
                .collect();
            let (message, model) = (MessageId(uuid::Uuid::nil()), "m".to_owned());
            let (text, usage) = (String::new(), Usage::default());
            let event = Event::from(BatchProposed { message, text, calls, model, usage });
            let body = event.encode().unwrap();
            assert_eq!(Event::decode(event.kind(), &body).unwrap(), event, "{depth} levels");
        }
    }
}
