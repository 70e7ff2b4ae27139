//! One call of one tool of a server, and its result in our words. Sends a call at most once.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::{Call, CallResult, RequestKind};
use chancery_domain::text::visible_line;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
    RequestMetaObject,
};
use rmcp::service::ServiceError;
use serde_json::{Value, json};

use super::super::{CallContext, Description, Done, Tool, ToolSpec};
use super::Server;
use super::catalog::clean;

#[derive(Debug)]
pub(super) struct McpTool {
    pub server: Arc<Server>,
    /// The tool's name at the server.
    pub far_name: String,
    pub spec: ToolSpec,
    pub annotations: Value,
}

/// Where a server finds the key by which it can tell a call that it has seen before.
const IDEMPOTENCY_KEY: &str = "chancery/idempotency_key";

/// More than a model reads with profit.
pub(super) const RESULT_BYTES_MAX: usize = 256 * 1024;

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn definition(&self) -> Value {
        json!({
            "server": self.server.name(),
            "reached": self.server.definition(),
            "tool": self.far_name,
            "annotations": self.annotations,
        })
    }

    async fn describe(&self, _: &Call) -> Description {
        let payload = json!({
            "server": self.server.name(),
            "server_tool": visible_line(&self.far_name),
            "annotations": self.annotations,
        });
        let payload = payload.as_object().cloned().unwrap_or_default();
        Description { kind: RequestKind::All, payload, signature: None }
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let arguments = match &permit.call().arguments {
            Value::Object(arguments) => arguments.clone(),
            _ => JsonObject::new(),
        };
        let mut params =
            CallToolRequestParams::new(self.far_name.clone()).with_arguments(arguments);
        let mut meta = JsonObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), json!(context.idempotency_key));
        params.meta = Some(RequestMetaObject::from(meta));
        Done::Result(self.send(params, context).await)
    }
}

impl McpTool {
    async fn send(&self, params: CallToolRequestParams, context: &CallContext) -> CallResult {
        let server = self.server.name();
        let link = tokio::select! {
            () = context.cancelled.cancelled() => {
                return CallResult::error("CANCELLED", "cancelled before the call was made");
            }
            link = self.server.link() => link,
        };
        let link = match link {
            Ok(link) => link,
            // The reason is the operator's to see: addresses and error outputs may hold secrets.
            Err(error) => {
                tracing::warn!(server, %error, "MCP server `{server}` is away: {error}");
                return unreachable(server);
            }
        };
        // From here on the call may have reached the server. Dropping the future tells the server
        // that the call is cancelled.
        let answer = tokio::select! {
            answer = link.peer().call_tool_once(params) => answer,
            () = tokio::time::sleep(self.server.timeout) => {
                Err(ServiceError::Timeout { timeout: self.server.timeout })
            }
            () = context.cancelled.cancelled() => {
                return CallResult::error(
                    "CANCELLED",
                    "cancelled while the call was made; whether it was carried out is not known",
                );
            }
        };
        if link.can_go_stale() && !matches!(answer, Ok(_) | Err(ServiceError::McpError(_))) {
            self.server.forget(&link).await;
        }
        match answer {
            Ok(response) => response_to(response),
            Err(error) => failure(server, &error),
        }
    }
}

fn failure(server: &str, error: &ServiceError) -> CallResult {
    let why = match error {
        ServiceError::McpError(error) => {
            let text = format!("error {}: {}", error.code.0, clean(&error.message, 4096));
            return CallResult::error("TOOL_ERROR", text);
        }
        error if never_sent(error) => return unreachable(server),
        ServiceError::Timeout { timeout } => format!("it did not answer within {timeout:?}"),
        ServiceError::UnexpectedResponse => "its answer is not one to a call".to_owned(),
        _ => "the connection broke".to_owned(),
    };
    tracing::warn!(server, %error, "MCP server `{server}` did not answer a call: {why}");
    CallResult::error(
        "OUTCOME_UNKNOWN",
        format!("MCP server `{server}`: {why}; whether the call was carried out is not known"),
    )
}

fn unreachable(server: &str) -> CallResult {
    CallResult::error(
        "UNREACHABLE",
        format!("the call was not made: MCP server `{server}` cannot be reached"),
    )
}

/// Whether not even a connection was made.
fn never_sent(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return false };
    let mut source: Option<&(dyn Error + 'static)> = Some(error.error.as_ref());
    while let Some(inner) = source {
        if inner.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect) {
            return true;
        }
        source = inner.source();
    }
    false
}

fn response_to(response: CallToolResponse) -> CallResult {
    match response {
        CallToolResponse::Complete(result) => result_of(&result),
        CallToolResponse::InputRequired(_) => CallResult::error(
            "INPUT_REQUIRED",
            "the server asks for more before it does the call, and nobody answers it",
        ),
        _ => CallResult::error(
            "OUTCOME_UNKNOWN",
            "the server goes on with the call as a task, which is not followed",
        ),
    }
}

pub(super) fn result_of(result: &CallToolResult) -> CallResult {
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    if let Some(structured) = &result.structured_content
        && !result.content.iter().any(|it| matches!(it, ContentBlock::Text(_)))
    {
        parts.push(structured.to_string());
    }
    let text = bounded(parts.join("\n"));
    if result.is_error == Some(true) {
        CallResult::error("TOOL_ERROR", text)
    } else {
        CallResult::ok(text)
    }
}

/// Text as it is; everything else as JSON, with a word in the place of encoded bytes.
fn part(block: &ContentBlock) -> String {
    if let ContentBlock::Text(text) = block {
        return text.text.clone();
    }
    let Ok(mut value) = serde_json::to_value(block) else {
        return "[content of a kind that is not known]".to_owned();
    };
    for at in ["/data", "/resource/blob"] {
        if let Some(data) = value.pointer_mut(at) {
            let size = data.as_str().map_or(0, str::len);
            *data = json!(format!("[{size} characters of base64, not shown]"));
        }
    }
    value.to_string()
}

fn bounded(mut text: String) -> String {
    let total = text.len();
    if total > RESULT_BYTES_MAX {
        let end = (0..=RESULT_BYTES_MAX).rev().find(|it| text.is_char_boundary(*it));
        text.truncate(end.unwrap_or_default());
        text.push_str(&format!("\n[cut: the first {} of {total} bytes are shown]", text.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: Value, expected: CallResult) {
        let result: CallToolResult = serde_json::from_value(result).unwrap();
        assert_eq!(result_of(&result), expected);
    }

    #[test]
    fn results_are_put_in_our_words() {
        let text = |it: &str| json!({"type": "text", "text": it});
        check(json!({"content": [text("a"), text("b")]}), CallResult::ok("a\nb"));
        check(
            json!({"content": [text("no")], "isError": true}),
            CallResult::error("TOOL_ERROR", "no"),
        );
        check(json!({"content": [], "structuredContent": {"n": 1}}), CallResult::ok(r#"{"n":1}"#));
        check(
            json!({"content": [text("one")], "structuredContent": {"n": 1}}),
            CallResult::ok("one"),
        );
        let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
        let result = serde_json::from_value(json!({"content": [image]})).unwrap();
        let told: Value = serde_json::from_str(&result_of(&result).text).unwrap();
        let data = "[4 characters of base64, not shown]";
        assert_eq!(told, json!({"type": "image", "data": data, "mimeType": "image/png"}));
    }

    #[test]
    fn a_huge_result_is_cut_between_characters() {
        let cut = bounded("é".repeat(RESULT_BYTES_MAX));
        assert!(cut.len() < RESULT_BYTES_MAX + 100);
        assert!(cut.ends_with("[cut: the first 262144 of 524288 bytes are shown]"), "{cut}");
    }
}
