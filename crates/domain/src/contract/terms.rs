//! What a contract says.

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::AgentId;
use crate::mail::{Draft, Priority};
use crate::org::{FileScope, Org};
use crate::policy::{is_branch_name, scope_components};

/// As it is kept and shown. A list that was given as one text stays one text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    pub title: String,
    pub body: String,
    pub priority: Priority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub deliverables: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub acceptance_criteria: Value,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub workspace_scope: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assigned_branch: Option<String>,
    #[serde(default)]
    pub cross_department: bool,
}

const ITEMS_MAX: usize = 50;

impl Terms {
    /// What a mail of type `contract` says, or what is wrong with it.
    pub fn of(org: &Org, draft: &Draft) -> Result<Terms, String> {
        let field = |name: &str| draft.fields.get(name).cloned().unwrap_or_default();
        let terms = Terms {
            title: draft.subject.clone(),
            body: draft.body.clone(),
            priority: draft.priority,
            deadline: text(&draft.fields, "deadline")?,
            deliverables: field("deliverables"),
            acceptance_criteria: field("acceptance_criteria"),
            workspace_scope: field("workspace_scope"),
            assigned_branch: text(&draft.fields, "assigned_branch")?,
            cross_department: flag(&draft.fields, "cross_department")?,
        };
        for (name, value) in [
            ("deliverables", &terms.deliverables),
            ("acceptance_criteria", &terms.acceptance_criteria),
            ("workspace_scope", &terms.workspace_scope),
        ] {
            texts(name, value)?;
        }
        if let Some(deadline) = &terms.deadline {
            let known = deadline.parse::<Timestamp>().is_ok() || deadline.parse::<Date>().is_ok();
            if !known {
                return Err("`deadline` is a time (RFC 3339) or a date".to_owned());
            }
        }
        if let Some(branch) = terms.assigned_branch.as_ref().filter(|it| !is_branch_name(it)) {
            return Err(format!("`{branch}` is not the name of a branch"));
        }
        for scope in terms.scopes() {
            check_scope(org, &AgentId::from(&*draft.to), &scope)?;
        }
        Ok(terms)
    }

    /// The paths that it opens.
    pub fn scopes(&self) -> Vec<String> {
        texts("workspace_scope", &self.workspace_scope).unwrap_or_default()
    }

    pub fn is_due_before(&self, now: Timestamp) -> bool {
        self.deadline
            .as_ref()
            .and_then(|it| it.parse::<Timestamp>().ok())
            .is_some_and(|it| it < now)
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.chars().any(char::is_control) => {
            Err(format!("`{name}` has control characters"))
        }
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` is a text")),
    }
}

fn flag(fields: &Map<String, Value>, name: &str) -> Result<bool, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(format!("`{name}` is true or false")),
    }
}

/// One text, or several.
fn texts(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("`{name}` is a text, or at most {ITEMS_MAX} of them");
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) if text.is_empty() => Ok(Vec::new()),
        Value::String(text) if text.contains('\0') => Err(wrong()),
        Value::String(text) => Ok(vec![text.clone()]),
        Value::Array(items) if items.len() <= ITEMS_MAX => items
            .iter()
            .map(|it| it.as_str().filter(|it| !it.contains('\0')).map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// A contract opens what belongs to nobody, and what its holder has anyway: neither all of the
/// workspace, nor what another role writes.
fn check_scope(org: &Org, to: &AgentId, scope: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("`workspace_scope`: `{scope}` {why}"));
    if scope.contains(['{', '}']) {
        return wrong("is not a path");
    }
    let Some(path) = scope_components(scope) else {
        return wrong("is not a path beneath the workspace");
    };
    if path.is_empty() {
        return wrong("is all of the workspace");
    }
    let holder = org.role_of(to);
    let entries = |scope: &FileScope| -> Vec<Vec<String>> {
        let plain = scope.write.iter().filter(|it| !it.value.contains(['{', '}']));
        let parts = plain.filter_map(|it| scope_components(&it.value));
        parts.map(|it| it.into_iter().map(str::to_owned).collect()).collect()
    };
    let within =
        |entry: &Vec<String>| path.len() >= entry.len() && path[..entry.len()] == entry[..];
    let own = holder.and_then(|it| it.file_scope.as_ref()).map(entries).unwrap_or_default();
    if own.iter().any(within) {
        return Ok(());
    }
    for role in org.roles().filter(|it| Some(&it.id) != holder.map(|it| &it.id)) {
        let theirs = role.file_scope.as_ref().map(entries).unwrap_or_default();
        let overlaps = theirs.iter().any(|entry| {
            let common = entry.len().min(path.len());
            path[..common] == entry[..common]
        });
        if overlaps {
            return wrong(&format!("is the place of role `{}`", role.id));
        }
    }
    Ok(())
}
