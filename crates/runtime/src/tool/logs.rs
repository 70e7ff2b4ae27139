//! `read_logs`: the end of a file beneath `logs/`, and what in it says something.

use chancery_domain::event::CallResult;
use chancery_domain::policy::{Access, Risk};
use serde_json::{Value, json};

use super::desk::{Answer, Desk, Work, wrong};
use super::files::text;
use super::spec::{object, spec};
use super::{ToolSpec, Touched};

pub(super) const WORK: Work = Work { spec: read_spec, touches, carry_out: read };

const LOGS: &str = "logs";
/// How much of a file's end is looked through.
const TAIL_BYTES_MAX: usize = 4 * 1024 * 1024;
const SHOWN_BYTES_MAX: usize = 128 * 1024;
const LINES_DEFAULT: u64 = 200;
const LINES_MAX: u64 = 2000;
const FILES_MAX: usize = 1000;

fn read_spec() -> ToolSpec {
    let properties = json!({
        "file": {"type": "string", "minLength": 1, "description": "Beneath `logs/`; absent: they are listed"},
        "lines": {"type": "integer", "minimum": 1, "maximum": LINES_MAX},
        "contains": {"type": "string", "minLength": 1, "maxLength": 500,
                     "description": "Only lines with this in them, whatever the case"},
    });
    let description = "Reads the last lines of a log, or of those of its lines that contain a \
                       text. Without a file, lists the logs.";
    let mut spec = spec("read_logs", Risk::Low, description, object(properties, &[]));
    spec.supports_parallel = true;
    spec
}

fn path(file: &str) -> String {
    let inner = file.strip_prefix("logs/").unwrap_or(file);
    format!("{LOGS}/{inner}")
}

fn touches(given: &Value, _: super::Caller<'_>) -> Vec<Touched> {
    let path = given["file"].as_str().map_or_else(|| LOGS.to_owned(), path);
    vec![Touched::Path(Access::Read, path)]
}

fn read(given: &Value, desk: &Desk) -> Answer {
    let Some(file) = given["file"].as_str() else {
        let files = desk.reach.walk(LOGS, FILES_MAX)?;
        return Ok(CallResult::ok(json!({ "files": files }).to_string()));
    };
    if file.split('/').any(|it| it == "..") {
        return Err(wrong("`file` goes up"));
    }
    let (bytes, size) = desk.reach.tail(&path(file), TAIL_BYTES_MAX)?;
    let most = given["lines"].as_u64().unwrap_or(LINES_DEFAULT).min(LINES_MAX) as usize;
    let content = String::from_utf8_lossy(&bytes);
    Ok(CallResult::ok(last_lines(&content, &text(given, "contains"), most, size)))
}

/// The last of the lines that contain a text, as many as fit.
fn last_lines(content: &str, contains: &str, most: usize, size: u64) -> String {
    let wanted = contains.to_lowercase();
    let mut room = SHOWN_BYTES_MAX;
    let mut lines: Vec<&str> = content
        .lines()
        .rev()
        .filter(|it| wanted.is_empty() || it.to_lowercase().contains(&wanted))
        .take(most)
        .take_while(|it| {
            let fits = it.len() < room;
            room = room.saturating_sub(it.len() + 1);
            fits
        })
        .collect();
    lines.reverse();
    let seen = content.len() as u64;
    let note = if seen < size {
        format!("[the last {seen} of {size} bytes were looked through]\n")
    } else {
        String::new()
    };
    if lines.is_empty() {
        format!("{note}[no line]")
    } else {
        format!("{note}{}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown_as_far_as_there_is_room() {
        let log = "1 ok\n2 ERROR disk\n3 ok\n4 error net\n";
        let size = log.len() as u64;
        assert_eq!(last_lines(log, "", 2, size), "3 ok\n4 error net");
        assert_eq!(last_lines(log, "error", 10, size), "2 ERROR disk\n4 error net");
        assert_eq!(last_lines(log, "nothing", 10, size), "[no line]");
        let long = "x".repeat(SHOWN_BYTES_MAX + 1);
        assert_eq!(last_lines(&format!("{long}\nend"), "", 10, 0), "end");
        assert!(last_lines("a", "", 1, 100).starts_with("[the last 1 of 100 bytes"));
    }
}
