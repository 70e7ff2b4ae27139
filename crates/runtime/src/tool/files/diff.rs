//! What a write would change, as a person is to see it.

use chancery_domain::text::{visible, visible_line};
use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::{FILE_BYTES_MAX, Workspace};

/// More than a person reads before deciding. What is cut off is said.
const DIFF_BYTES_MAX: usize = 64 * 1024;
/// Finding the shortest difference may take long; a longer one is good enough then.
const DIFF_TIME_MAX: std::time::Duration = std::time::Duration::from_millis(500);

/// Against what is on disk now: `diff`, and how large each side is. Blocking.
pub(super) fn against_disk(workspace: &Workspace, path: &str, content: &str) -> Map<String, Value> {
    let before = workspace.read(path, FILE_BYTES_MAX);
    let (old, state) = match &before {
        Ok(old) => (old.as_str(), "changed"),
        Err(super::FileError::Missing(_)) => ("", "new"),
        // What is there cannot be shown, and may not be writable either.
        Err(_) => ("", "unreadable"),
    };
    let diff = TextDiff::configure().timeout(DIFF_TIME_MAX).diff_lines(old, content);
    // A name of several lines could pass for lines of the difference.
    let name = visible_line(path);
    let mut shown =
        visible(&diff.unified_diff().context_radius(3).header(&name, &name).to_string());
    let cut = shown.len() > DIFF_BYTES_MAX;
    if cut {
        let end = (0..=DIFF_BYTES_MAX).rev().find(|it| shown.is_char_boundary(*it)).unwrap_or(0);
        shown.truncate(end);
    }
    let fields = json!({
        "diff": shown,
        "diff_cut_off": cut,
        "file": state,
        "bytes_before": old.len(),
        "bytes_after": content.len(),
    });
    fields.as_object().cloned().unwrap_or_default()
}
