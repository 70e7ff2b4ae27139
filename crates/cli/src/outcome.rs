//! How a command went, as an exit code; errors go to standard error, data to standard output.

use std::io::Write as _;

use chancery_api::client::ClientError;
use serde_json::json;

use crate::output::visible;

/// Documented: scripts depend on the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done = 0,
    Failed = 1,
    Usage = 2,
    NotAllowed = 4,
    RunFailed = 5,
    Conflict = 7,
    Waits = 8,
    Interrupted = 130,
}

pub const HELP: &str = "Exit codes: 0 done, 1 failed, 2 usage, 4 not signed in or not allowed, \
5 the run ended without success, 7 conflict, 8 the run waits for someone, \
130 interrupted";

/// Something on the command line that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misused(pub String);

/// Says what went wrong in one line, and which exit code that is.
pub fn of_error(error: &anyhow::Error, as_json: bool) -> Outcome {
    let problem = match error.downcast_ref::<ClientError>() {
        Some(ClientError::Problem(problem)) => Some(problem),
        _ => None,
    };
    if is_closed_pipe(error) {
        // Whoever read us has read enough.
        return Outcome::Done;
    }
    let misused = error.downcast_ref::<Misused>().is_some();
    let code = problem.map_or(if misused { "usage" } else { "failed" }, |it| &it.code);
    let message = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    let line = if as_json {
        let said = json!({ "code": code, "message": message, "next": null, "decision_id": null });
        json!({ "error": said }).to_string()
    } else {
        format!("error: {}", visible(&message).replace(['\n', '\t'], " "))
    };
    // Nobody may be there to read it; the exit code says it too.
    let _ = writeln!(std::io::stderr(), "{line}");
    if misused {
        return Outcome::Usage;
    }
    match problem.map(|it| it.status) {
        Some(401 | 403) => Outcome::NotAllowed,
        Some(409) => Outcome::Conflict,
        _ => Outcome::Failed,
    }
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
