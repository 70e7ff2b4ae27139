//! `wait_for_signal`: the run rests until someone sends a signal that names its key.
//!
//! Its effect is in the log alone. It never waits itself: it says that the run is to.

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::CallResult;
use chancery_domain::id::WaitKey;
use chancery_domain::policy::Risk;
use serde_json::{Value, json};

use super::duration::Span;
use super::spec::{object, spec};
use super::{CallContext, Done, Effect, Tool, ToolSpec};

/// The longest key, in characters; a key is a name and not a document.
const KEY_MAX: usize = 256;

#[derive(Debug)]
pub struct WaitForSignal {
    spec: ToolSpec,
}

impl WaitForSignal {
    pub const NAME: &str = "wait_for_signal";

    pub fn spec() -> ToolSpec {
        let description = "Waits until a signal with this correlation key arrives, and gives back \
                          what the signal carries. Without a timeout it waits as long as it takes.";
        let properties = json!({
            "correlation_key": {
                "type": "string",
                "minLength": 1,
                "maxLength": KEY_MAX,
                "description": "What the signal must name",
            },
            "timeout": {
                "type": ["number", "string"],
                "description": "Seconds, or `30s`, `5m`, `2h`, `3d`",
            },
        });
        let parameters = object(properties, &["correlation_key"]);
        ToolSpec { effect: Effect::Log, ..spec(Self::NAME, Risk::Low, description, parameters) }
    }

    pub fn new(spec: ToolSpec) -> WaitForSignal {
        WaitForSignal { spec }
    }
}

#[async_trait]
impl Tool for WaitForSignal {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, _: &CallContext) -> Done {
        wait(&permit.call().arguments)
            .unwrap_or_else(|why| Done::Result(CallResult::error("INVALID_ARGUMENTS", why)))
    }
}

fn wait(arguments: &Value) -> Result<Done, String> {
    let key = arguments["correlation_key"].as_str().unwrap_or_default();
    if key.is_empty() || key.chars().count() > KEY_MAX {
        return Err(format!("`correlation_key` has 1 to {KEY_MAX} characters"));
    }
    // A run that waited for a key of the system's could be ended by, or stand in the way of, a
    // decision about something else.
    if WaitKey::from(key).is_reserved() {
        return Err("keys that begin like this one belong to the system".to_owned());
    }
    let timeout = match arguments.get("timeout") {
        None | Some(Value::Null) => None,
        Some(given) => Some(Span::try_from(given.clone()).map_err(|it| it.to_string())?.0),
    };
    Ok(Done::Wait { key: WaitKey::from(key), timeout })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_wait_has_a_key_and_perhaps_a_timeout() {
        let key = || WaitKey::from("build-7");
        assert_eq!(
            wait(&json!({"correlation_key": "build-7"})),
            Ok(Done::Wait { key: key(), timeout: None })
        );
        assert_eq!(
            wait(&json!({"correlation_key": "build-7", "timeout": "5m"})),
            Ok(Done::Wait { key: key(), timeout: Some(Duration::from_secs(300)) })
        );
    }

    #[test]
    fn keys_of_permission_requests_are_not_waited_for() {
        for arguments in [
            json!({"correlation_key": "cap-approval-run_1:msg_1:call_1"}),
            json!({"correlation_key": ""}),
            json!({"correlation_key": "k".repeat(257)}),
            json!({"correlation_key": "k", "timeout": "soon"}),
            json!({}),
        ] {
            assert!(wait(&arguments).is_err(), "{arguments}");
        }
    }
}
