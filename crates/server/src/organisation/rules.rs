//! Rules over arguments: checked with the other files against the tools that these name, and
//! once more, when they are put in force, against those that there are.

use std::sync::Arc;

use chancery_runtime::rules::{self, Rules};
use chancery_runtime::tool::config::{ToolsConfig, schemas};

use super::Files;
use super::mistake::{Mistake, Mistakes, Severity};

/// What the tools of a server may look like is only known when it has come.
pub fn check(files: &Files, tools: &ToolsConfig, mistakes: &mut Mistakes) {
    let known = schemas(tools);
    let known = known.iter().map(|(name, schema)| (&**name, schema));
    let awaited: Vec<String> = tools.mcp.keys().map(|it| format!("mcp__{it}__")).collect();
    let awaited: Vec<&str> = awaited.iter().map(String::as_str).collect();
    if let Err(found) = Rules::load_awaiting(&texts(files), known, &awaited) {
        found.into_iter().for_each(|it| mistakes.take(mistake(it)));
    }
}

/// Each with its name and its text.
pub fn texts(files: &Files) -> Arc<[(String, String)]> {
    files.rules().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

pub fn mistake(it: rules::Mistake) -> Mistake {
    let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
    Mistake {
        file: it.file.into(),
        line: number(it.line),
        column: number(it.column),
        severity: Severity::Error,
        code: "E401",
        detail: it.detail,
        hint: it.hint,
    }
}
