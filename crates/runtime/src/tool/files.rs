//! `read_file` and `write_file`: text files beneath the workspace.
//!
//! Every path is resolved by the kernel from a handle on the workspace's directory, so nothing
//! here compares strings to find out where a path leads. Never opens anything outside it, never
//! follows a special file, never reads or writes what [`protected`] names.

mod diff;
mod protected;
mod reach;
mod workspace;

use std::sync::Arc;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::{Call, CallResult, RequestKind};
use chancery_domain::policy::{Access, Risk};
use chancery_domain::text::visible_line;
use serde_json::{Map, Value, json};

use super::spec::{object, spec};
use super::{CallContext, Caller, Description, Done, Tool, ToolSpec, Touched};

pub(super) use protected::is_protected;
pub(crate) use protected::protected;
pub use reach::{Listed, Reach};
pub use workspace::{FileError, Workspace};

/// What a model can take in at once, and more than any source file of sense has.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug)]
pub struct ReadFile {
    spec: ToolSpec,
    workspace: Arc<Workspace>,
}

#[derive(Debug)]
pub struct WriteFile {
    spec: ToolSpec,
    workspace: Arc<Workspace>,
}

impl ReadFile {
    pub const NAME: &str = "read_file";

    pub fn spec() -> ToolSpec {
        let description =
            &format!("Reads a UTF-8 text file of the workspace, at most {FILE_BYTES_MAX} bytes.");
        let properties = json!({
            "path": {"type": "string", "description": "Relative to the workspace"},
        });
        let parameters = object(properties, &["path"]);
        ToolSpec {
            capabilities: vec!["read_files".to_owned()],
            supports_parallel: true,
            ..spec(Self::NAME, Risk::Low, description, parameters)
        }
    }

    pub fn new(spec: ToolSpec, workspace: Arc<Workspace>) -> ReadFile {
        ReadFile { spec, workspace }
    }
}

impl WriteFile {
    pub const NAME: &str = "write_file";

    pub fn spec() -> ToolSpec {
        let description = &format!(
            "Writes a whole UTF-8 text file of the workspace, at most {FILE_BYTES_MAX} bytes. \
                 Makes the directories that are missing, and replaces a file that is there."
        );
        let properties = json!({
            "path": {"type": "string", "description": "Relative to the workspace"},
            "content": {"type": "string"},
        });
        let parameters = object(properties, &["path", "content"]);
        // The same content twice is the same file.
        ToolSpec {
            capabilities: vec!["write_files".to_owned()],
            ..spec(Self::NAME, Risk::Medium, description, parameters)
        }
    }

    pub fn new(spec: ToolSpec, workspace: Arc<Workspace>) -> WriteFile {
        WriteFile { spec, workspace }
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let path = text(&permit.call().arguments, "path");
        let reach = Reach::of(&self.workspace, context);
        blocking(move || reach.read(&path, FILE_BYTES_MAX)).await
    }

    fn touches(&self, call: &Call, _: Caller<'_>) -> Vec<Touched> {
        vec![Touched::Path(Access::Read, text(&call.arguments, "path"))]
    }

    async fn describe(&self, call: &Call) -> Description {
        let payload = paths(&call.arguments);
        Description { kind: RequestKind::Read, payload, signature: None }
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let path = text(&permit.call().arguments, "path");
        let content = text(&permit.call().arguments, "content");
        let reach = Reach::of(&self.workspace, context);
        blocking(move || {
            reach.write(&path, &content, FILE_BYTES_MAX)?;
            Ok(format!("wrote {} bytes to `{path}`", content.len()))
        })
        .await
    }

    fn touches(&self, call: &Call, _: Caller<'_>) -> Vec<Touched> {
        vec![Touched::Path(Access::Write, text(&call.arguments, "path"))]
    }

    async fn describe(&self, call: &Call) -> Description {
        let path = text(&call.arguments, "path");
        let content = text(&call.arguments, "content");
        let workspace = self.workspace.clone();
        let diff = move || diff::against_disk(&workspace, &path, &content);
        let mut payload = paths(&call.arguments);
        if let Ok(diff) = tokio::task::spawn_blocking(diff).await {
            payload.extend(diff);
        }
        Description { kind: RequestKind::Write, payload, signature: None }
    }
}

fn paths(arguments: &Value) -> Map<String, Value> {
    let paths = json!([visible_line(&text(arguments, "path"))]);
    Map::from_iter([("paths".to_owned(), paths)])
}

// The schema has made sure that it is there; were it not, an empty path is refused below.
pub(super) fn text(arguments: &Value, name: &str) -> String {
    arguments[name].as_str().unwrap_or_default().to_owned()
}

pub(super) async fn blocking(
    work: impl FnOnce() -> Result<String, FileError> + Send + 'static,
) -> Done {
    Done::Result(match tokio::task::spawn_blocking(work).await {
        Ok(Ok(text)) => CallResult::ok(text),
        Ok(Err(error)) => CallResult::error(error.code(), error.to_string()),
        Err(_) => CallResult::error("OUTCOME_UNKNOWN", "the work on the file was cut off"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{call, code};
    use super::*;

    #[tokio::test]
    async fn what_is_written_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Arc::new(Workspace::open(dir.path()).unwrap());
        let write = WriteFile::new(WriteFile::spec(), workspace.clone());
        let read = ReadFile::new(ReadFile::spec(), workspace);

        let wrote = call(&write, json!({"path": "a/b/c.txt", "content": "grüße"})).await;
        assert_eq!(wrote, CallResult::ok("wrote 7 bytes to `a/b/c.txt`"));
        assert_eq!(call(&read, json!({"path": "a/b/c.txt"})).await, CallResult::ok("grüße"));
        assert_eq!(code(&call(&read, json!({"path": "a/b/d.txt"})).await), "NOT_FOUND");
        assert_eq!(code(&call(&read, json!({"path": "../etc/passwd"})).await), "OUTSIDE_WORKSPACE");
    }
}
