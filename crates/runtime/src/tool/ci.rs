//! `manage_ci_config`: the workflows beneath `.github/workflows/`. Only what is YAML is written.

use chancery_domain::event::CallResult;
use chancery_domain::policy::{Access, Risk};
use serde_json::{Value, json};

use super::desk::{Answer, Desk, TEXT_MAX, Work, wrong};
use super::spec::{object, spec};
use super::{ToolSpec, Touched};

pub(super) const WORK: Work = Work { spec: manage_spec, touches, carry_out: manage };

const WORKFLOWS: &str = ".github/workflows";

fn manage_spec() -> ToolSpec {
    let properties = json!({
        "action": {"enum": ["list", "read", "write"]},
        "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,80}\\.ya?ml$"},
        "content": {"type": "string", "maxLength": TEXT_MAX},
    });
    spec(
        "manage_ci_config",
        Risk::High,
        "Lists, reads or writes the CI workflows (`.github/workflows/`). What is written must be \
         a YAML mapping, and replaces the workflow of that name as a whole.",
        object(properties, &["action"]),
    )
}

fn path(given: &Value) -> String {
    format!("{WORKFLOWS}/{}", given["name"].as_str().unwrap_or_default())
}

fn touches(given: &Value, _: super::Caller<'_>) -> Vec<Touched> {
    match given["action"].as_str() {
        Some("write") => vec![Touched::Path(Access::Write, path(given))],
        Some("read") => vec![Touched::Path(Access::Read, path(given))],
        _ => vec![Touched::Path(Access::Read, WORKFLOWS.to_owned())],
    }
}

fn manage(given: &Value, desk: &Desk) -> Answer {
    let action = given["action"].as_str().unwrap_or_default();
    if action == "list" {
        let names: Vec<String> = desk
            .reach
            .list(WORKFLOWS)?
            .into_iter()
            .filter(|it| !it.folder)
            .map(|it| it.name)
            .collect();
        return Ok(CallResult::ok(json!({ "workflows": names }).to_string()));
    }
    if !given["name"].is_string() {
        return Err(wrong(format!("`{action}` needs a `name`")));
    }
    let path = path(given);
    if action == "read" {
        return Ok(CallResult::ok(desk.reach.read(&path, TEXT_MAX)?));
    }
    let Some(content) = given["content"].as_str() else {
        return Err(wrong("`write` needs a `content`"));
    };
    match serde_saphyr::from_str::<Value>(content) {
        Ok(Value::Object(_)) => {}
        Ok(_) => return Err(CallResult::error("INVALID_YAML", "a workflow is a mapping")),
        Err(error) => {
            let said = error.without_snippet().to_string();
            return Err(CallResult::error("INVALID_YAML", format!("this is not YAML: {said}")));
        }
    }
    desk.reach.write(&path, content, TEXT_MAX)?;
    Ok(CallResult::ok(format!("wrote {} bytes to `{path}`", content.len())))
}
