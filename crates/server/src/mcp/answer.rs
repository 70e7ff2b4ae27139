//! What a call came to, in the protocol's form: a result, a refusal with its rule, or that it is
//! not decided yet.

use std::collections::BTreeMap;

use chancery_domain::id::{PermissionId, RunId};
use rmcp::model::{
    CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, InputRequest,
    InputRequiredResult, JsonObject, MetaObject,
};
use serde_json::{Value, json};

use super::Terms;
use super::standing::{Ended, Standing};

/// The answer to a call that stands so.
pub(super) fn of(terms: &Terms, run: RunId, tool: &str, standing: &Standing) -> CallToolResult {
    match standing {
        Standing::Ended(ended) => result(run, ended),
        Standing::Asked(asked) => pending(terms, run, tool, asked, "waits for a person"),
        Standing::UnderWay(how) => pending(terms, run, tool, &[], how),
    }
}

fn result(run: RunId, Ended { result, decision }: &Ended) -> CallToolResult {
    let mut meta = meta(run);
    let text = match decision {
        Some(id) => format!("{} (decision {id})", result.text),
        None => result.text.clone(),
    };
    let mut answer = CallToolResult::success(vec![ContentBlock::text(text)]);
    if result.is_error {
        answer.is_error = Some(true);
        answer.structured_content = Some(json!({
            "code": result.code, "detail": result.text, "decision_id": decision.map(|it| it.to_string()),
            "run_id": run.to_string(),
        }));
    } else if let Ok(value @ Value::Object(_)) = serde_json::from_str(&result.text) {
        answer.structured_content = Some(value);
    }
    if let Some(id) = decision {
        meta.0.insert("chancery/decision_id".to_owned(), json!(id.to_string()));
    }
    answer.meta = Some(meta);
    answer
}

/// No error: the call stands, and may still come to its result.
fn pending(
    terms: &Terms,
    run: RunId,
    tool: &str,
    asked: &[PermissionId],
    how: &str,
) -> CallToolResult {
    let text = format!(
        "Pending: `{tool}` {how}, and has no result yet.{} Do not make the call anew: that would \
         be another call. Its result is at `chancery://calls/{run}`; the same call with the same \
         `chancery/idempotency_key` in `_meta` gives it too.",
        links(terms, asked)
    );
    let permission = |id: &PermissionId| json!({"id": id.to_string(), "url": terms.link(*id)});
    let mut answer = CallToolResult::success(vec![ContentBlock::text(text)]);
    answer.structured_content = Some(json!({
        "status": "pending", "run_id": run.to_string(), "why": how,
        "permissions": asked.iter().map(permission).collect::<Vec<_>>(),
        "result_at": format!("chancery://calls/{run}"),
    }));
    answer.meta = Some(meta(run));
    answer
}

/// What a client is told while a call is waited for.
pub(super) fn progress(terms: &Terms, tool: &str, standing: &Standing) -> String {
    match standing {
        Standing::Asked(asked) => {
            format!("`{tool}` waits for a person.{}", links(terms, asked))
        }
        Standing::UnderWay(how) => format!("`{tool}` {how}."),
        Standing::Ended(_) => format!("`{tool}` has ended."),
    }
}

/// Points a client that can show a page to where a person answers. What comes back says only
/// that it was shown: it decides nothing.
pub(super) fn hint(
    terms: &Terms,
    run: RunId,
    tool: &str,
    asked: &[PermissionId],
) -> InputRequiredResult {
    let request = |id: &PermissionId| {
        let params = ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: format!("`{tool}` waits for a person's answer."),
            url: terms.link(*id),
            elicitation_id: id.to_string(),
        };
        (id.to_string(), InputRequest::Elicitation(ElicitRequest::new(params)))
    };
    let requests: BTreeMap<String, InputRequest> = asked.iter().map(request).collect();
    InputRequiredResult::new(Some(requests), Some(run.to_string())).with_meta(meta(run))
}

fn links(terms: &Terms, asked: &[PermissionId]) -> String {
    asked.iter().map(|id| format!(" {id}: {}", terms.link(*id))).collect()
}

fn meta(run: RunId) -> MetaObject {
    let mut meta = JsonObject::new();
    meta.insert("chancery/run_id".to_owned(), json!(run.to_string()));
    MetaObject(meta)
}
