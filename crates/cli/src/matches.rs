//! What a remembered answer would have matched, as a terminal shows it. Decides nothing.

use std::io::IsTerminal as _;

use chancery_api::permission::Matches;
use chancery_runtime::clock;

use crate::Global;
use crate::elapsed::span;
use crate::output::{self, one_line, short};

const ARGUMENTS: usize = 60;

/// The sentence that somebody reads before they answer.
pub fn told(found: &Matches) -> String {
    let cut = match found.cut_off {
        true => format!("; only the newest {} about this tool were looked at", found.looked_at),
        false => String::new(),
    };
    if found.asked == 0 {
        return format!("would have matched nothing else that was asked in 30 days{cut}");
    }
    format!(
        "would have matched {} asked in 30 days: {} approved ({} by you), {} denied ({} by you){cut}",
        found.asked, found.granted, found.granted_by_you, found.denied, found.denied_by_you,
    )
}

/// Said to a person who looks on, before they are heard. A program asks for it with `--preview`.
pub fn say(name: &str, found: &Matches) {
    output::note(format_args!("{name} {}", told(found)));
}

pub fn is_watched(global: &Global) -> bool {
    !global.json && std::io::stderr().is_terminal()
}

/// The questions themselves.
pub fn list(found: &Matches) -> anyhow::Result<()> {
    if found.questions.is_empty() {
        return Ok(());
    }
    let now = clock::now();
    let rows = found.questions.iter().map(|it| {
        let arguments = short(&one_line(&it.arguments.to_string()), ARGUMENTS);
        let by = it.decided_by.as_deref().map(|by| format!(" by {}", one_line(by)));
        let state = format!("{}{}", it.status, by.unwrap_or_default());
        let asked = format!("{} ago", span(it.created_at, now));
        vec![it.id.clone(), one_line(&it.agent), arguments, state, asked]
    });
    output::table_of_ids(&["REQUEST", "AGENT", "ARGUMENTS", "STATUS", "ASKED"], rows.collect(), 0)
}
