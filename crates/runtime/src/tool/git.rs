//! `git_branch`, `git_commit` and `git_push`: an agent's own branch of the repository, and no
//! other. `review_pr` is in [`review`].
//!
//! Several agents share one folder of files, so nothing is ever checked out: a commit is made of
//! the files as they are, on top of the branch, and `HEAD`, index and files stay as they were.

mod commit;
mod repository;
mod review;

use std::sync::Arc;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::contract::Warrant;
use chancery_domain::event::{Call, CallResult};
use chancery_domain::org::Role;
use chancery_domain::policy::{Access, Risk, is_branch_name};
use serde_json::{Value, json};

use super::desk::wrong;
use super::files::{Reach, Workspace, text};
use super::spec::{object, spec};
use super::{CallContext, Caller, Done, Tool, ToolSpec, Touched};

pub use repository::{Git, GitError, Remote};

const PATHS_MAX: usize = 200;
const REVIEWS: &str = "reports/tech/reviews";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Branch,
    Commit,
    Push,
    Review,
}

const ALL: [What; 4] = [What::Branch, What::Commit, What::Push, What::Review];

#[derive(Debug)]
pub struct GitTool {
    spec: ToolSpec,
    what: What,
    git: Arc<Git>,
    workspace: Arc<Workspace>,
}

/// What they are without a repository.
pub fn specs() -> impl Iterator<Item = ToolSpec> {
    ALL.into_iter().map(spec_of)
}

pub fn tools(
    git: &Arc<Git>,
    workspace: &Arc<Workspace>,
    changed: impl Fn(ToolSpec) -> ToolSpec,
) -> impl Iterator<Item = GitTool> {
    ALL.into_iter().map(move |what| GitTool {
        spec: changed(spec_of(what)),
        what,
        git: git.clone(),
        workspace: workspace.clone(),
    })
}

fn spec_of(what: What) -> ToolSpec {
    let branch = json!({"type": "string", "minLength": 1, "maxLength": 200,
                        "description": "Absent: the one branch that you have"});
    let paths = |least: u32| {
        json!({"type": "array", "minItems": least, "maxItems": PATHS_MAX,
               "items": {"type": "string", "minLength": 1}})
    };
    match what {
        What::Branch => spec(
            "git_branch",
            Risk::Medium,
            "Makes your branch of the repository, from the main line or from another branch of \
             yours. The files stay as they are; `git_commit` puts them on the branch.",
            object(json!({"branch": branch, "from": {"type": "string", "minLength": 1}}), &[]),
        ),
        What::Commit => spec(
            "git_commit",
            Risk::Medium,
            "Puts files, or all the files of folders, as they are now, on top of your branch as \
             one commit in your name. Only paths that you may write.",
            object(
                json!({
                    "message": {"type": "string", "minLength": 1, "maxLength": 10_000},
                    "paths": paths(0),
                    "delete": paths(0),
                    "branch": branch,
                }),
                &["message"],
            ),
        ),
        What::Push => spec(
            "git_push",
            Risk::Medium,
            "Sends your branch to the configured remote. Never by force.",
            object(json!({ "branch": branch }), &[]),
        ),
        What::Review => spec(
            "review_pr",
            Risk::Low,
            "Shows what a branch changes against another. With `review`, keeps your review of it \
             with the commit that you saw.",
            object(
                json!({
                    "branch": {"type": "string", "minLength": 1},
                    "base": {"type": "string", "minLength": 1},
                    "commit": {"type": "string", "pattern": "^[0-9a-f]{7,64}$",
                               "description": "The commit that the review is of, as it was shown"},
                    "verdict": {"enum": ["approve", "request_changes", "comment"]},
                    "review": {"type": "string", "minLength": 1, "maxLength": 100_000},
                }),
                &["branch"],
            ),
        ),
    }
}

#[async_trait]
impl Tool for GitTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let given = &permit.call().arguments;
        let done = match self.what {
            What::Branch => self.make_branch(given, context).await,
            What::Commit => self.commit(given, context).await,
            What::Push => self.push(given, context).await,
            What::Review => {
                let reach = Reach::of(&self.workspace, context);
                review::review(&self.git, given, context, reach).await
            }
        };
        Done::Result(done.unwrap_or_else(|it| it))
    }

    fn definition(&self) -> Value {
        self.git.definition()
    }

    fn touches(&self, call: &Call, caller: Caller<'_>) -> Vec<Touched> {
        let given = &call.arguments;
        let writes = |path: &str| Touched::Path(Access::Write, path.to_owned());
        if self.what == What::Review {
            return given["review"].as_str().map(|_| writes(REVIEWS)).into_iter().collect();
        }
        let mut touched = Vec::new();
        if let Ok(branch) = branch(given, caller.role, caller.warrant) {
            touched.push(Touched::Branch(branch));
        }
        if self.what == What::Commit {
            touched.extend(listed(given, "paths").chain(listed(given, "delete")).map(writes));
        }
        touched
    }
}

fn listed<'g>(given: &'g Value, name: &str) -> impl Iterator<Item = &'g str> {
    given[name].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The branch that a call is about: the one that it names, or the only one that there is.
fn branch(given: &Value, role: &Role, warrant: &Warrant) -> Result<String, CallResult> {
    if let Some(branch) = given["branch"].as_str() {
        return Ok(branch.to_owned());
    }
    let mut open = role.branches(warrant);
    open.dedup();
    match &*open {
        [only] if is_branch_name(only) => Ok(only.clone()),
        [] => Err(CallResult::error(
            "NO_BRANCH",
            "no contract of yours gives you a branch: name one, or ask whoever gave you the work",
        )),
        _ => Err(wrong(format!("say which `branch`: {}", open.join(", ")))),
    }
}

type Answer = Result<CallResult, CallResult>;

impl GitTool {
    /// The branch, ruled on once more as the organisation is now.
    fn own_branch(&self, given: &Value, context: &CallContext) -> Result<String, CallResult> {
        let Some(caller) = context.caller() else {
            return Err(CallResult::error("PERMISSION_DENIED", "you are not at work"));
        };
        let branch = branch(given, caller.role, caller.warrant)?;
        match caller.role.rule_on_branch(&branch, caller.warrant) {
            None => Ok(branch),
            Some(reason) => Err(CallResult::error("PERMISSION_DENIED", reason.detail)),
        }
    }

    async fn make_branch(&self, given: &Value, context: &CallContext) -> Answer {
        let branch = self.own_branch(given, context)?;
        let bench = self.git.bench(context)?;
        if let Some(tip) = bench.tip(&branch).await? {
            return Ok(CallResult::ok(format!("branch `{branch}` is there, at {tip}")));
        }
        let from = given["from"].as_str();
        if let Some(from) = from {
            let own = context.caller().is_some_and(|it| {
                it.role.is_protected(from) || it.role.rule_on_branch(from, it.warrant).is_none()
            });
            if !is_branch_name(from) || !own {
                let detail = format!("`{from}` is neither the main line nor a branch of yours");
                return Err(CallResult::error("PERMISSION_DENIED", detail));
            }
        }
        let start = match from {
            Some(from) => bench.tip(from).await?,
            None => bench.head().await?,
        };
        let Some(start) = start else {
            let from = from.unwrap_or("HEAD");
            let detail = format!("`{from}` has no commit that a branch could begin at");
            return Err(CallResult::error("NOT_FOUND", detail));
        };
        if bench.move_branch(&branch, &start, None).await? {
            Ok(CallResult::ok(format!("branch `{branch}` begins at {start}")))
        } else {
            Err(CallResult::error("CONFLICT", format!("somebody made `{branch}` meanwhile")))
        }
    }

    async fn commit(&self, given: &Value, context: &CallContext) -> Answer {
        let branch = self.own_branch(given, context)?;
        let reach = Reach::of(&self.workspace, context);
        let paths: Vec<String> = listed(given, "paths").map(str::to_owned).collect();
        let delete: Vec<String> = listed(given, "delete").map(str::to_owned).collect();
        if paths.is_empty() && delete.is_empty() {
            return Err(wrong("name the `paths` to commit, or those to `delete`"));
        }
        let wanted = commit::Wanted { branch, paths, delete, message: text(given, "message") };
        commit::commit(&self.git, wanted, context, reach).await
    }

    async fn push(&self, given: &Value, context: &CallContext) -> Answer {
        let branch = self.own_branch(given, context)?;
        let bench = self.git.bench(context)?;
        let Some(tip) = bench.tip(&branch).await? else {
            let detail = format!("there is no branch `{branch}`: make it with `git_branch`");
            return Err(CallResult::error("NOT_FOUND", detail));
        };
        bench.push(&branch, &tip).await?;
        Ok(CallResult::ok(format!("pushed `{branch}` at {tip}")))
    }
}
