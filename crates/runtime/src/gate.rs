//! Rules on a whole batch before any of it runs. What the model wrote becomes calls here, and
//! every call gets its ruling here; nothing reaches a tool around it.

use std::collections::HashSet;
use std::sync::Arc;

use chancery_domain::batch::Refusal;
use chancery_domain::event::{Call, CallResult, Proposal};
use chancery_domain::id::CallId;
use chancery_domain::org::Role;
use chancery_domain::policy::{self, Bounds, Fitness, Reason};
use serde_json::Value;

use crate::model::RawCall;
use crate::tool::Tools;

/// A model that asks for more calls at once is not planning, it is looping.
const CALLS_MAX: usize = 128;
/// An id is copied into keys, headers and the log.
const CALL_ID_MAX: usize = 128;

/// The log cannot be read back where its JSON is nested deeper than 128, and the arguments stand
/// a few levels deep in it.
const DEPTH_MAX: usize = 100;

/// Turns the calls that a model wrote into proposals with their rulings.
pub fn rule_on(
    raw: Vec<RawCall>,
    tools: &Tools,
    role: &Role,
    delegated: Option<&Bounds>,
) -> Vec<Proposal> {
    let mut ids = HashSet::new();
    let many = raw.len() > CALLS_MAX;
    raw.into_iter()
        .take(CALLS_MAX)
        .enumerate()
        .map(|(place, raw)| {
            let id = fresh_id(&raw.id, place, &mut ids);
            let (arguments, unreadable) = arguments(&raw.arguments);
            let call = Call { id, tool: raw.tool, arguments };
            let fitness = match unreadable {
                Some(how) => Fitness::BadArguments(how),
                None if many => {
                    Fitness::BadArguments(format!("more than {CALLS_MAX} calls in one message"))
                }
                None => tools.fitness(&call),
            };
            let (ruling, reasons) = policy::rule(role, delegated, &call.tool, &fitness);
            Proposal { call: Arc::new(call), ruling, reasons }
        })
        .collect()
}

/// What the model reads about a call that may not run.
pub fn refusal_result(tool: &str, refusal: &Refusal) -> CallResult {
    match refusal {
        Refusal::Policy(reasons) => policy_result(tool, reasons),
        Refusal::Person => CallResult::error("DENIED", "User denied the request."),
        Refusal::Unknown => CallResult::error(
            "OUTCOME_UNKNOWN",
            format!(
                "`{tool}` had started when the server stopped; whether it took effect is unknown"
            ),
        ),
    }
}

fn policy_result(tool: &str, reasons: &[Reason]) -> CallResult {
    let Some(first) = reasons.first() else {
        return CallResult::error("PERMISSION_DENIED", format!("`{tool}` is denied"));
    };
    let code = match &*first.rule {
        "UNKNOWN_TOOL" | "INVALID_ARGUMENTS" => &*first.rule,
        _ => "PERMISSION_DENIED",
    };
    let text = format!("{code}: {} (layer `{}`, rule `{}`)", first.detail, first.layer, first.rule);
    CallResult::error(code, text)
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
    use chancery_domain::event::{BatchProposed, Event, Usage};
    use chancery_domain::id::MessageId;
    use chancery_domain::policy::Ruling;

    fn raw(id: &str, arguments: &str) -> RawCall {
        RawCall { id: id.into(), tool: "nothing".into(), arguments: arguments.into() }
    }

    #[test]
    fn call_ids_are_made_unique_and_usable() {
        let given = ["a", "a", "", "a_1", "with space", "a"];
        let raws = given.iter().map(|id| raw(id, "{}")).collect();
        let proposals = rule_on(raws, &Tools::default(), &Role::unlimited("worker"), None);
        let ids: Vec<_> = proposals.iter().map(|it| it.call.id.as_str()).collect();
        assert_eq!(ids, ["a", "a_1", "call_2", "a_1_3", "call_4", "a_5"]);
    }

    #[test]
    fn arguments_that_are_not_an_object_are_denied_and_kept_for_the_record() {
        for (text, said) in [("{\"a\":", "they are not JSON"), ("[1]", "they are not an object")] {
            let proposals =
                rule_on(vec![raw("a", text)], &Tools::default(), &Role::unlimited("worker"), None);
            assert_eq!(proposals[0].ruling, Ruling::Deny);
            assert_eq!(proposals[0].reasons[0].rule, "INVALID_ARGUMENTS");
            assert!(proposals[0].reasons[0].detail.contains(said), "{proposals:?}");
        }
    }

    #[test]
    fn whatever_a_model_writes_the_log_can_be_read_back() {
        for depth in [1, 99, 100, 101, 120, 124, 127, 128, 5000] {
            let text = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            let calls =
                rule_on(vec![raw("a", &text)], &Tools::default(), &Role::unlimited("worker"), None);
            let (message, model) = (MessageId(uuid::Uuid::nil()), "m".to_owned());
            let (text, usage) = (String::new(), Usage::default());
            let event = Event::from(BatchProposed { message, text, calls, model, usage });
            let body = event.encode().unwrap();
            assert_eq!(Event::decode(event.kind(), &body).unwrap(), event, "{depth} levels");
        }
    }
}
