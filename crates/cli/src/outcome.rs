//! How a command went, as an exit code; errors go to standard error, data to standard output.

use chancery_api::client::ClientError;

/// Documented: scripts depend on the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done = 0,
    Failed = 1,
    NotAllowed = 4,
    RunFailed = 5,
    Conflict = 7,
    Waits = 8,
}

pub const HELP: &str = "Exit codes: 0 done, 1 failed, 2 usage, 4 not signed in or not allowed, \
5 the run ended without success, 7 conflict, 8 the run waits for someone";

/// Says what went wrong in one line, and which exit code that is.
pub fn of_error(error: &anyhow::Error, json: bool) -> Outcome {
    let problem = match error.downcast_ref::<ClientError>() {
        Some(ClientError::Problem(problem)) => Some(problem),
        _ => None,
    };
    let code = problem.map_or("failed", |it| &it.code);
    let message = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    if json {
        eprintln!("{}", serde_json::json!({ "error": { "code": code, "message": message } }));
    } else {
        eprintln!("error: {}", message.replace('\n', " "));
    }
    match problem.map(|it| it.status) {
        Some(401 | 403) => Outcome::NotAllowed,
        Some(409) => Outcome::Conflict,
        _ => Outcome::Failed,
    }
}

/// What a run's status means to a script.
pub fn of_status(status: &str) -> Outcome {
    match status {
        "failed" | "cancelled" => Outcome::RunFailed,
        "waiting" => Outcome::Waits,
        _ => Outcome::Done,
    }
}
