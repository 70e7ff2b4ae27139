//! How a command went, as an exit code; errors go to standard error, data to standard output.

use std::io::Write as _;

use chancery_api::client::ClientError;
use chancery_api::problem::Problem;
use serde_json::json;

use crate::output::{one_line, visible};

/// Documented: scripts depend on the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done = 0,
    Failed = 1,
    Usage = 2,
    Cancelled = 3,
    NotAllowed = 4,
    RunFailed = 5,
    Denied = 6,
    Conflict = 7,
    Waits = 8,
    Interrupted = 130,
}

pub const HELP: &str = "Exit codes: 0 done, 1 failed, 2 usage, 3 cancelled by you, \
4 not signed in or not allowed, 5 the run ended without success, 6 policy says no, 7 conflict, \
8 waits for someone, 130 interrupted (`chancery help exit-codes`)";

/// What `chancery help exit-codes` says.
pub const CODES: &str = "\
Exit codes

    0  done; an empty list is done too
    1  failed
    2  the command line cannot be meant so
    3  cancelled by you
    4  not signed in, or not allowed
    5  the run that was waited for (`--wait`, `--follow`, `chat`) ended without success
    6  policy says no: `can-i`, or a call that is denied
    7  conflict: decided by someone else already, or not as it was any more
    8  the run that was waited for waits for someone, or a call would (`can-i`)
  130  interrupted by Ctrl-C

With `--json` an error is one line on standard error,
{\"error\": {\"code\", \"message\", \"next\", \"decision_id\"}}, and standard output stays empty.
`next` is a command that leads on, `decision_id` is for `chancery why`; either may be null.";

/// Something on the command line that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misused(pub String);

/// An end with an exit code of its own, and with what leads on.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Stopped {
    pub outcome: Outcome,
    /// A word that programs can match.
    pub code: String,
    pub message: String,
    pub next: Option<String>,
    /// What `chancery why` explains.
    pub decision_id: Option<String>,
}

impl Stopped {
    pub fn new(outcome: Outcome, code: &str, message: String) -> Stopped {
        Stopped { outcome, code: code.to_owned(), message, next: None, decision_id: None }
    }

    pub fn next(self, command: String) -> Stopped {
        Stopped { next: Some(command), ..self }
    }

    pub fn about(self, decision_id: &str) -> Stopped {
        Stopped { decision_id: Some(decision_id.to_owned()), ..self }
    }
}

/// Says what went wrong in one line, and which exit code that is.
pub fn of_error(error: &anyhow::Error, as_json: bool) -> Outcome {
    if is_closed_pipe(error) {
        // Whoever read us has read enough.
        return Outcome::Done;
    }
    let stopped = error.downcast_ref::<Stopped>();
    let problem = problem(error);
    let outcome = match (stopped, problem) {
        (Some(stopped), _) => stopped.outcome,
        (_, Some(problem)) => of_problem(problem),
        _ if error.is::<Misused>() => Outcome::Usage,
        _ => Outcome::Failed,
    };
    let code = match (stopped, problem) {
        (Some(stopped), _) => &stopped.code,
        (_, Some(problem)) => &problem.code,
        _ if outcome == Outcome::Usage => "usage",
        _ => "failed",
    };
    let message = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    let next = stopped.and_then(|it| it.next.as_deref());
    let decision_id = stopped.and_then(|it| it.decision_id.as_deref());
    if as_json {
        let said =
            json!({ "code": code, "message": message, "next": next, "decision_id": decision_id });
        say(&json!({ "error": said }).to_string());
        return outcome;
    }
    say(&format!("error: {}", visible(&message).replace(['\n', '\t'], " ")));
    for reason in problem.map_or(&[][..], |it| &it.reasons) {
        say(&format!("  {}", one_line(&crate::layers::sentence(reason))));
    }
    if let Some(next) = next {
        say(&format!("next: {}", one_line(next)));
    }
    outcome
}

/// A command line that was not understood; clap says how, or we do for programs.
pub fn of_usage(error: &clap::Error, as_json: bool) -> Outcome {
    let code = match error.exit_code() {
        0 => Outcome::Done,
        _ => Outcome::Usage,
    };
    if as_json && code == Outcome::Usage {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let said =
            json!({ "code": "usage", "message": message, "next": null, "decision_id": null });
        say(&json!({ "error": said }).to_string());
    } else {
        let _ = error.print();
    }
    code
}

fn problem(error: &anyhow::Error) -> Option<&Problem> {
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Problem(problem)) => Some(problem),
        _ => None,
    }
}

fn of_problem(problem: &Problem) -> Outcome {
    match problem.status {
        403 if problem.code == "PERMISSION_DENIED" => Outcome::Denied,
        401 | 403 => Outcome::NotAllowed,
        409 => Outcome::Conflict,
        _ => Outcome::Failed,
    }
}

fn say(line: &str) {
    // Nobody may be there to read it; the exit code says it too.
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|it| it.kind() == std::io::ErrorKind::BrokenPipe)
}

/// What a run's status means to a script.
pub fn of_status(status: &str) -> Outcome {
    match status {
        "failed" | "cancelled" => Outcome::RunFailed,
        "waiting" => Outcome::Waits,
        _ => Outcome::Done,
    }
}
