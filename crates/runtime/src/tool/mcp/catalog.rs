//! What a server says that it can do, made fit for us. Trusts none of it: every name, text and
//! number has a bound, and hints that would loosen something are not read.

use std::collections::BTreeSet;

use chancery_domain::policy::Risk;
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
    let parameters = Value::Object((*tool.input_schema).clone());
    let size = parameters.to_string().len() + tool.name.len();
    if size > SCHEMA_BYTES_MAX {
        return Err(format!(
            "the name and schema of tool `{name}` have {size} bytes, more than {SCHEMA_BYTES_MAX}"
        ));
    }
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

/// A text without what a person would not see: control characters, and those that change the
/// direction of writing or have no shape.
pub(super) fn clean(text: &str, max: usize) -> String {
    let unseen = |it: char| {
        (it.is_control() && it != '\n' && it != '\t')
            || matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    let mut kept = text.chars().filter(|it| !unseen(*it));
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
        assert_eq!(clean(&"x".repeat(20), 10), format!("{}…", "x".repeat(10)));
    }
}
