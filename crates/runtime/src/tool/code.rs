//! `read_code`: the files that a role may read, and what there is of them. It writes nothing.

use chancery_domain::event::CallResult;
use chancery_domain::policy::{Access, Risk};
use serde_json::{Value, json};

use super::desk::{Answer, Desk, Work};
use super::files::{FILE_BYTES_MAX, FileError};
use super::spec::{object, spec};
use super::{ToolSpec, Touched};

pub(super) const WORK: Work = Work { spec: read_spec, touches, carry_out: read };

const LISTED_MAX: usize = 2000;

fn read_spec() -> ToolSpec {
    let properties = json!({
        "path": {"type": "string", "minLength": 1,
                 "description": "A file, or a folder to list; absent: the folders that you may read"},
    });
    let description = "Reads a file of code, or lists what is in a folder, as far as you may read \
                       it: the workspaces of those who work for you, say.";
    let mut spec = spec("read_code", Risk::Low, description, object(properties, &[]));
    spec.supports_parallel = true;
    spec
}

fn touches(given: &Value, _: super::Caller<'_>) -> Vec<Touched> {
    let path = given["path"].as_str().map(|it| Touched::Path(Access::Read, it.to_owned()));
    path.into_iter().collect()
}

fn read(given: &Value, desk: &Desk) -> Answer {
    let Some(path) = given["path"].as_str() else {
        return Ok(CallResult::ok(json!({ "folders": open(desk) }).to_string()));
    };
    match desk.reach.read(path, FILE_BYTES_MAX) {
        Ok(text) => Ok(CallResult::ok(text)),
        Err(FileError::Directory(_)) => {
            let listed = desk.reach.list(path)?;
            let total = listed.len();
            let shown = listed.into_iter().take(LISTED_MAX);
            let names: Vec<String> =
                shown.map(|it| if it.folder { format!("{}/", it.name) } else { it.name }).collect();
            Ok(CallResult::ok(json!({"path": path, "total": total, "entries": names}).to_string()))
        }
        Err(error) => Err(error.into()),
    }
}

/// What the caller's scope opens, with what contracts stand for.
fn open(desk: &Desk) -> Vec<String> {
    let scope = desk.reach.role().and_then(|it| it.file_scope.as_ref());
    match scope {
        None => vec![".".to_owned()],
        Some(scope) => {
            let entries = scope.read.iter().flat_map(|it| desk.context.warrant.fill(&it.value));
            entries.map(|it| it.into_owned()).collect()
        }
    }
}
