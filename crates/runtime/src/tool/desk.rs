//! Tools that work on files of the workspace and on nothing else. What each of them is, is in the
//! file of its noun; this is what they have in common.

use std::sync::Arc;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::{Call, CallResult};
use jiff::Timestamp;
use serde_json::Value;

use super::files::{FileError, Reach, Workspace};
use super::{
    CallContext, Caller, Done, Tool, ToolSpec, Touched, backlog, ci, code, document, equipment,
    logs, reports,
};
use crate::clock;

/// More than a document of sense has, and what a model can take in at once.
pub(super) const TEXT_MAX: usize = 256 * 1024;

/// One of them: what it is, what a call of it touches, and how it is carried out.
#[derive(Clone, Copy)]
pub(super) struct Work {
    pub spec: fn() -> ToolSpec,
    pub touches: fn(&Value, Caller<'_>) -> Vec<Touched>,
    pub carry_out: fn(&Value, &Desk) -> Answer,
}

pub(super) type Answer = Result<CallResult, CallResult>;

/// Where a call is carried out.
pub(super) struct Desk {
    pub reach: Reach,
    pub context: CallContext,
    pub now: Timestamp,
}

pub struct DeskTool {
    spec: ToolSpec,
    work: Work,
    workspace: Arc<Workspace>,
}

fn all() -> impl Iterator<Item = Work> {
    let shelves = document::WORKS.iter().chain(reports::WORKS).chain(backlog::WORKS);
    let others = [equipment::WORK, ci::WORK, logs::WORK, code::WORK];
    shelves.copied().chain(others)
}

/// What they are without a workspace.
pub fn specs() -> impl Iterator<Item = ToolSpec> {
    all().map(|it| (it.spec)())
}

pub fn tools(
    workspace: &Arc<Workspace>,
    changed: impl Fn(ToolSpec) -> ToolSpec,
) -> impl Iterator<Item = DeskTool> {
    all().map(move |work| DeskTool {
        spec: changed((work.spec)()),
        work,
        workspace: workspace.clone(),
    })
}

#[async_trait]
impl Tool for DeskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let given = permit.call().arguments.clone();
        let reach = Reach::of(&self.workspace, context);
        let desk = Desk { reach, context: context.clone(), now: clock::now() };
        let carry_out = self.work.carry_out;
        let done = tokio::task::spawn_blocking(move || carry_out(&given, &desk)).await;
        Done::Result(match done {
            Ok(answer) => answer.unwrap_or_else(|it| it),
            Err(_) => CallResult::error("OUTCOME_UNKNOWN", "the work on the files was cut off"),
        })
    }

    fn touches(&self, call: &Call, caller: Caller<'_>) -> Vec<Touched> {
        (self.work.touches)(&call.arguments, caller)
    }
}

impl std::fmt::Debug for DeskTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeskTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

impl From<FileError> for CallResult {
    fn from(error: FileError) -> CallResult {
        CallResult::error(error.code(), error.to_string())
    }
}

pub(super) fn wrong(detail: impl Into<String>) -> CallResult {
    CallResult::error("INVALID_ARGUMENTS", detail.into())
}
