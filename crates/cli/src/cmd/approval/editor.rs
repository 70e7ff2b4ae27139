//! Arguments in the person's own editor.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use super::prompt::Prompt;
use crate::outcome::{Outcome, Stopped};
use crate::output::{self, visible};

#[derive(Debug, PartialEq)]
pub enum Edited {
    To(Value),
    /// Left as they were, or left off.
    GivenUp,
}

/// Opens the editor until what is in the file is JSON, or the person has had enough.
pub async fn edited(arguments: &Value, prompt: &mut Prompt) -> anyhow::Result<Edited> {
    let dir = tempfile::tempdir().context("a directory for what is edited")?;
    let path = dir.path().join("arguments.json");
    let mut file = std::fs::File::create_new(&path)?;
    file.write_all(written(arguments).as_bytes())?;
    drop(file);
    loop {
        open(&path)?;
        let text = std::fs::read_to_string(&path).context("what was edited cannot be read")?;
        match serde_json::from_str::<Value>(&text) {
            Ok(new) if new == *arguments => return Ok(Edited::GivenUp),
            Ok(new) => return Ok(Edited::To(new)),
            Err(error) => {
                output::note(format_args!("That is not JSON: {error}"));
                if !prompt.confirm("Edit it again? (yes/no) ").await? {
                    return Ok(Edited::GivenUp);
                }
            }
        }
    }
}

/// As JSON on lines, with whatever is hidden escaped the way JSON reads it.
pub fn written(arguments: &Value) -> String {
    let pretty = serde_json::to_string_pretty(arguments).unwrap_or_default();
    let mut text = String::with_capacity(pretty.len() + 1);
    for letter in pretty.chars() {
        let alone = letter.to_string();
        if visible(&alone) == alone {
            text.push(letter);
        } else {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text.push('\n');
    text
}

/// `$VISUAL`, `$EDITOR` or `vi`, which may be a command with arguments.
fn open(path: &Path) -> anyhow::Result<()> {
    let set = |name| std::env::var_os(name).filter(|it| !it.is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| OsString::from("vi"));
    let mut script = editor.clone();
    // The shell splits what the person set; the file's name is an argument and no piece of it.
    script.push(" \"$@\"");
    let status = shell().arg("-c").arg(script).arg(&editor).arg(path).status();
    let name = editor.to_string_lossy();
    let status = status.with_context(|| format!("cannot start the editor `{name}`"))?;
    if status.success() {
        return Ok(());
    }
    let said = format!("the editor `{name}` ended badly ({status}): nothing was decided");
    Err(Stopped::new(Outcome::Failed, "editor", said).into())
}

#[expect(clippy::disallowed_methods, reason = "the person's own editor, at their own command")]
fn shell() -> std::process::Command {
    std::process::Command::new("sh")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_hidden_is_seen_in_the_editor_and_comes_back_the_same() {
        let arguments = json!({"a\u{202e}": "b\u{200b}\u{e0041}\u{9b}\n定价"});
        let text = written(&arguments);
        assert!(text.contains(r#""a\u202e": "b\u200b\udb40\udc41\u009b\n定价""#), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), arguments);
    }
}
