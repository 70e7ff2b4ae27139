//! What a server says that it can do, made fit for us. Trusts none of it: every name, text and
//! number has a bound, and hints that would loosen something are not read.

use std::collections::BTreeSet;

use chancery_domain::policy::Risk;
use chancery_domain::text::{is_hidden, visible_line};
use rmcp::model::{PaginatedRequestParams, Tool};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::{Effect, ToolSpec};
use super::endpoint::{ConnectError, Link};

#[derive(Debug)]
pub(super) struct Offered {
    /// The tool's name at the server.
    pub far_name: String,
    pub spec: ToolSpec,
    /// What the server says of it; shown, never believed.
    pub annotations: Value,
}

/// More tools than a model could choose among; beyond it, a server is broken or hostile.
const TOOLS_MAX: usize = 512;
/// A server that still has a next page after so many is in a loop.
const PAGES_MAX: usize = 64;
/// What models accept as the name of a function.
pub(super) const NAME_MAX: usize = 64;
const DESCRIPTION_MAX: usize = 4096;
/// A schema goes into every request to the model.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// How many warnings one server can cause.
const WARNINGS_MAX: usize = 50;

/// The tools that are usable, and a sentence about each that is not.
pub(super) async fn list(
    link: &Link,
    prefix: &str,
) -> Result<(Vec<Offered>, Vec<String>), ConnectError> {
    let mut list = List::default();
    let mut cursor = None;
    let mut seen = BTreeSet::new();
    for page in 1.. {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let result = link
            .peer()
            .list_tools(Some(params))
            .await
            .map_err(|it| ConnectError::List(clean(&it.to_string(), 500)))?;
        for tool in result.tools {
            if list.offered.len() == TOOLS_MAX {
                list.warn(format!("only the first {TOOLS_MAX} tools are taken"));
                return Ok((list.offered, list.warnings));
            }
            list.add(&tool, prefix);
        }
        match result.next_cursor {
            None => break,
            Some(next) if page < PAGES_MAX && seen.insert(next.clone()) => cursor = Some(next),
            Some(_) => {
                let taken = list.offered.len();
                list.warn(format!("its list of tools does not end; {taken} are taken"));
                break;
            }
        }
    }
    Ok((list.offered, list.warnings))
}

#[derive(Default)]
struct List {
    offered: Vec<Offered>,
    names: BTreeSet<String>,
    warnings: Vec<String>,
}

impl List {
    fn add(&mut self, tool: &Tool, prefix: &str) {
        match offer(tool, prefix) {
            Ok(it) if self.names.insert(it.spec.name.clone()) => self.offered.push(it),
            Ok(it) => self.warn(format!("two tools are named `{}`", it.spec.name)),
            Err(why) => self.warn(why),
        }
    }

    fn warn(&mut self, why: String) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(why);
        }
    }
}

pub(super) fn offer(tool: &Tool, prefix: &str) -> Result<Offered, String> {
    let name = name(prefix, &tool.name);
    let mut parameters = Value::Object((*tool.input_schema).clone());
    let size = parameters.to_string().len() + tool.name.len();
    if size > SCHEMA_BYTES_MAX {
        return Err(format!(
            "the name and schema of tool `{name}` have {size} bytes, more than {SCHEMA_BYTES_MAX}"
        ));
    }
    clean_schema(&mut parameters).map_err(|unseen| {
        format!(
            "the schema of tool `{name}` names `{}`, which has characters that cannot be seen",
            visible_line(&unseen)
        )
    })?;
    let described = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    Ok(Offered {
        far_name: tool.name.clone().into_owned(),
        annotations: serde_json::to_value(&tool.annotations).unwrap_or_default(),
        spec: ToolSpec {
            name,
            description: clean(described, DESCRIPTION_MAX),
            parameters,
            // Nobody has classified it: a server's word about its own harmlessness is not taken.
            risk: Risk::High,
            capabilities: Vec::new(),
            effect: Effect::Outside,
            // `idempotentHint` and `readOnlyHint` are the server's word about itself. Running a
            // call again, or beside others, is a matter for the operator's file.
            idempotent: false,
            supports_parallel: false,
        },
    })
}

/// A function name for a tool: its own where it is one, otherwise a likeness of it with a digest,
/// so that two tools whose names look alike do not become one.
fn name(prefix: &str, given: &str) -> String {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    let room = NAME_MAX.saturating_sub(prefix.len());
    if !given.is_empty() && given.len() <= room && given.chars().all(fits) {
        return format!("{prefix}{given}");
    }
    let digest = Sha256::digest(given.as_bytes());
    let mark: String = digest.iter().take(4).map(|it| format!("{it:02x}")).collect();
    let likeness: String = given
        .chars()
        .take(room.saturating_sub(mark.len() + 1))
        .map(|it| if fits(it) { it } else { '_' })
        .collect();
    format!("{prefix}{likeness}_{mark}")
}

/// What a call is held to, or names something else in the schema: to change it would change what
/// it means. A value may have to hold what cannot be seen.
const HELD_TO: [&str; 12] = [
    "enum",
    "const",
    "default",
    "examples",
    "pattern",
    "format",
    "type",
    "required",
    "dependentRequired",
    "$ref",
    "$id",
    "$anchor",
];
/// What has a schema for each of its names.
const TABLES: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// A schema that says nothing unseen. A name that holds such characters cannot be mended, for the
/// server knows the argument by it: it is answered, and the tool is left out.
fn clean_schema(schema: &mut Value) -> Result<(), String> {
    match schema {
        Value::String(text) => *text = clean(text, SCHEMA_BYTES_MAX),
        Value::Array(items) => items.iter_mut().try_for_each(clean_schema)?,
        Value::Object(table) => {
            for (key, value) in table {
                check_seen(key)?;
                match value {
                    _ if HELD_TO.contains(&&**key) => {}
                    Value::Object(named) if TABLES.contains(&&**key) => {
                        for (name, schema) in named {
                            check_seen(name)?;
                            clean_schema(schema)?;
                        }
                    }
                    value => clean_schema(value)?,
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

fn check_seen(name: &str) -> Result<(), String> {
    if name.chars().any(is_hidden) { Err(name.to_owned()) } else { Ok(()) }
}

/// A text without what a person would not see.
pub(super) fn clean(text: &str, max: usize) -> String {
    let mut kept = text.chars().filter(|it| !is_hidden(*it));
    let mut cleaned: String = kept.by_ref().take(max).collect();
    if kept.next().is_some() {
        cleaned.push('…');
    }
    cleaned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_function_names_and_stay_apart() {
        let given = [
            "read_file",
            "read.file",
            "read file",
            "read/file",
            "",
            "\u{202e}elif",
            "a".repeat(300).leak(),
            "b".repeat(58).leak(),
        ];
        let names: BTreeSet<_> = given.iter().map(|it| name("mcp__files__", it)).collect();
        assert_eq!(names.len(), given.len());
        assert!(names.contains("mcp__files__read_file"));
        for name in names {
            assert!(name.len() <= NAME_MAX, "{name}");
            assert!(
                name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-'),
                "{name}"
            );
        }
    }

    #[test]
    fn texts_hold_nothing_unseen_and_have_an_end() {
        assert_eq!(clean("a\u{1b}[31mb\0c\nd\u{202e}e\u{e0041}f", 100), "a[31mbc\ndef");
        assert_eq!(clean("a\u{fe0f}b\u{e0100}c\u{2800}d\u{34f}e", 100), "abcde");
        assert_eq!(clean(&"x".repeat(20), 10), format!("{}…", "x".repeat(10)));
    }

    fn offered(schema: Value) -> Result<Value, String> {
        let tool: Tool = serde_json::from_value(serde_json::json!({
            "name": "pay", "description": "Pays", "inputSchema": schema,
        }))
        .unwrap();
        offer(&tool, "mcp__far__").map(|it| it.spec.parameters)
    }

    #[test]
    fn what_a_schema_says_holds_nothing_unseen_and_what_it_demands_stays() {
        let schema = |hidden: &str| {
            serde_json::json!({
                "type": "object",
                "title": format!("Pay{hidden}ment"),
                "properties": {
                    "description": {"type": "string", "description": format!("Why{hidden}")},
                    "how": {
                        "enum": ["a\u{fe0f}"], "default": "a\u{fe0f}",
                        "examples": [{"description": "a\u{200b}"}],
                    },
                    "whom": {
                        "pattern": "^[^\u{200b}]*$",
                        "anyOf": [{"type": "string", "description": format!("A {hidden}name")}],
                    },
                },
            })
        };
        let said = offered(schema("\u{e0041}\u{200b}\u{fe0f}\u{1b}")).unwrap();
        assert_eq!(said, schema(""));
    }

    #[test]
    fn a_tool_whose_arguments_have_names_that_cannot_be_seen_is_left_out() {
        let nested = serde_json::json!({"type": "object", "properties": {
            "to": {"type": "object", "properties": {"na\u{200b}me": {"type": "string"}}},
        }});
        let why = offered(nested).unwrap_err();
        assert_eq!(
            why,
            "the schema of tool `mcp__far__pay` names `na\\u{200b}me`, which has characters that \
             cannot be seen"
        );
    }
}
