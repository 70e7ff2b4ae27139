//! What rules can speak of: a Cedar schema, made from the tools' names and JSON Schemas.
//!
//! Each tool is an action, its arguments the record `context.input`. What Cedar has no type for
//! is a `String` of canonical JSON under `<name>_json`.

use std::collections::BTreeMap;

use cedar_policy::{Schema, SchemaError};
use serde_json::{Map, Value, json};

use super::shape::{Fields, Scalar, Shape};

/// The tools that rules are checked against, by name.
pub(super) type Catalogue = BTreeMap<String, Fields>;

/// The kinds of literals, and how a rule sees each.
pub(super) const TEXTS: [&str; 6] = ["emails", "urls", "accounts", "quoted", "files", "dates"];

pub(super) fn schema(tools: &Catalogue) -> Result<Schema, Box<SchemaError>> {
    let groups = tools.keys().filter_map(|tool| group(tool)).filter(|it| !tools.contains_key(*it));
    let mut actions: Map<String, Value> =
        groups.map(|it| (it.to_owned(), json!({"appliesTo": null}))).collect();
    for (tool, fields) in tools {
        let member_of: Vec<Value> = group(tool)
            .filter(|it| !tools.contains_key(*it))
            .map(|it| json!({"id": it}))
            .into_iter()
            .collect();
        let action = json!({
            "memberOf": member_of,
            "appliesTo": {
                "principalTypes": ["Agent"],
                "resourceTypes": ["Tool"],
                "context": context(fields),
            },
        });
        actions.insert(tool.clone(), action);
    }
    let text = json!({"type": "String"});
    let agent = record([("role", text.clone()), ("user", text)]);
    let schema = json!({"": {
        "entityTypes": {
            "Role": {},
            "Tool": {},
            "Agent": {"memberOfTypes": ["Role"], "shape": agent},
        },
        "actions": actions,
    }});
    Schema::from_json_value(schema).map_err(Box::new)
}

/// The tools of one MCP server are a group of actions: `mcp__files__read` is in `mcp__files`.
pub(super) fn group(tool: &str) -> Option<&str> {
    let server = tool.strip_prefix("mcp__")?;
    let end = server.find("__").filter(|it| *it > 0)?;
    Some(&tool[.."mcp__".len() + end])
}

fn context(fields: &Fields) -> Value {
    let (text, long) = (json!({"type": "String"}), json!({"type": "Long"}));
    let mut literals: Vec<(&str, Value)> =
        TEXTS.into_iter().map(|it| (it, set(scalar(Scalar::Text)))).collect();
    literals.push(("amounts", set(scalar(Scalar::Decimal))));
    literals.push(("whole_amounts", set(scalar(Scalar::Long))));
    let found = record(literals.clone());
    literals.push(("words", text.clone()));
    record([
        ("input", cedar(fields)),
        ("extra", set(text.clone())),
        ("task", record(literals)),
        ("found", found),
        ("said", set(text.clone())),
        ("named", set(text.clone())),
        ("unnamed", set(text.clone())),
        ("capabilities", set(text.clone())),
        ("contacts", set(text.clone())),
        (
            "time",
            record([
                ("now", json!({"type": "Extension", "name": "datetime"})),
                ("date", text.clone()),
                ("hour", long.clone()),
                ("minute", long.clone()),
                ("weekday", long),
            ]),
        ),
        ("agent", text.clone()),
        ("role", text.clone()),
        ("user", text),
    ])
}

/// Whether a rule on the tool could find something at this place in the context.
pub(super) fn has(fields: &Fields, path: &[String]) -> bool {
    let mut at = &context(fields);
    for name in path {
        match &at["attributes"][name] {
            Value::Null => return false,
            inner => at = inner,
        }
    }
    true
}

fn cedar(fields: &Fields) -> Value {
    let attributes: Map<String, Value> = fields
        .0
        .iter()
        .map(|(name, field)| {
            let mut of = match &field.shape {
                Shape::One(it) => scalar(*it),
                Shape::Many(it) => set(scalar(*it)),
                Shape::Record(fields) => cedar(fields),
                Shape::Rows(columns) => rows(columns),
                Shape::Json => scalar(Scalar::Text),
            };
            of["required"] = json!(field.required);
            (name.clone(), of)
        })
        .collect();
    json!({"type": "Record", "attributes": attributes})
}

fn rows(columns: &Fields) -> Value {
    let columns = columns.0.iter().map(|(name, field)| {
        let of = match &field.shape {
            Shape::One(it) | Shape::Many(it) => *it,
            Shape::Record(_) | Shape::Rows(_) | Shape::Json => Scalar::Text,
        };
        (&**name, set(scalar(of)))
    });
    record(columns)
}

fn record<'a>(attributes: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let attributes: Map<_, _> =
        attributes.into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
    json!({"type": "Record", "attributes": attributes})
}

fn set(of: Value) -> Value {
    json!({"type": "Set", "element": of})
}

fn scalar(of: Scalar) -> Value {
    match of {
        Scalar::Text => json!({"type": "String"}),
        Scalar::Long => json!({"type": "Long"}),
        Scalar::Decimal => json!({"type": "Extension", "name": "decimal"}),
        Scalar::Bool => json!({"type": "Boolean"}),
    }
}
