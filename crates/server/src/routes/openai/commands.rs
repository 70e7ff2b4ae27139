//! Commands in a chat: what a person types to decide or to ask, read before any model reads it.
//! Nothing but the exact form decides: words that sound like approval may be quoted, or planted.

use chancery_api::permission::Decide;
use chancery_domain::id::PermissionId;
use chancery_domain::text::visible_line;
use chancery_store::permission::PermissionRow;
use chancery_store::read::RunRow;

use super::pause::{link, not_here};
use crate::access::Caller;
use crate::error::Result;
use crate::router::App;
use crate::routes::permissions;

/// Nobody follows a chain further, and no run may have one.
const CHAIN_MAX: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    Approve(PermissionId),
    Deny(PermissionId, Option<String>),
    Why(PermissionId),
    Status,
}

/// What the first line of a message is. `None`: no command.
pub fn read(text: &str) -> Option<std::result::Result<Command, &'static str>> {
    let line = text.lines().next()?.trim_end();
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let one = |usage| rest.parse::<PermissionId>().map_err(|_| usage);
    Some(match verb {
        "/approve" => one("/approve perm_…").map(Command::Approve),
        "/why" => one("/why perm_…").map(Command::Why),
        "/deny" => {
            let (id, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let reason = Some(reason.trim().to_owned()).filter(|it| !it.is_empty());
            let id = id.parse().map_err(|_| "/deny perm_… <reason>");
            id.map(|id| Command::Deny(id, reason))
        }
        "/status" if rest.is_empty() => Ok(Command::Status),
        "/status" => Err("/status"),
        _ => return None,
    })
}

/// What came of an answer.
#[derive(Debug)]
pub struct Decided {
    pub is_done: bool,
    /// That it is decided, or why it is not and where it can be.
    pub text: String,
    /// The run that a person started, of which the question is part, as it was before.
    pub root: Option<RunRow>,
}

/// Answers a question, if this door may: a person's own word, on what was shown here whole.
pub async fn decide(
    app: &App,
    caller: &Caller,
    id: PermissionId,
    grants: bool,
    comment: Option<String>,
) -> Result<Decided> {
    if !caller.is_person() {
        let why = "Not decided: through this door only a person decides, and this token is a \
                   program's. `POST /api/permissions/{id}/decision` is for programs.";
        return Ok(Decided { is_done: false, text: why.to_owned(), root: None });
    }
    let row = permissions::visible(app, caller, &id.to_string()).await?;
    let root = root(app, &row).await?;
    if let Some(why) = not_here(&row) {
        let link = link(&app.public_url, &row);
        let text = format!("Not decided in this chat: {why}. Decide here: {link}");
        return Ok(Decided { is_done: false, text, root });
    }
    let tool = visible_line(&row.call.tool);
    let word = if grants { "grant" } else { "deny" };
    let body = Decide {
        decision: word.to_owned(),
        comment,
        arguments: None,
        remember: None,
        result: None,
    };
    permissions::answer(app, caller, row, body).await?;
    let done = if grants { "Approved" } else { "Denied" };
    Ok(Decided { is_done: true, text: format!("{done}: {tool} ({id})."), root })
}

/// Why a call is asked about: every layer's word.
pub async fn why(app: &App, caller: &Caller, id: PermissionId) -> Result<String> {
    let row = permissions::visible(app, caller, &id.to_string()).await?;
    let (tool, agent) = (visible_line(&row.call.tool), &row.agent);
    let mut text = format!(
        "{tool}, asked for by {agent} ({}) in {}: {}, {}.",
        visible_line(&row.role),
        row.run,
        row.ruling.as_str(),
        row.status,
    );
    for it in &row.reasons {
        let detail = visible_line(&it.detail);
        let (layer, rule, outcome) = (&it.layer, visible_line(&it.rule), it.outcome.as_str());
        text.push_str(&format!("\n- {layer}: {outcome}. {detail} (rule `{rule}`)"));
    }
    text.push_str(&format!("\n{}", link(&app.public_url, &row)));
    Ok(text)
}

/// The run that a person started, of which a question is part.
async fn root(app: &App, row: &PermissionRow) -> Result<Option<RunRow>> {
    let mut found = app.store.run(row.run).await?;
    for _ in 0..CHAIN_MAX {
        let Some(parent) = found.as_ref().and_then(|it| it.parent) else { break };
        found = app.store.run(parent).await?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "perm_0190a0b0c0d0700080000000000000aa";

    #[test]
    fn only_the_exact_form_is_a_command() {
        let id: PermissionId = ID.parse().unwrap();
        let is = |text: String| read(&text).and_then(std::result::Result::ok);
        assert_eq!(is(format!("/approve {ID}")), Some(Command::Approve(id)));
        assert_eq!(is(format!("/approve {ID}  \nand thanks")), Some(Command::Approve(id)));
        let reason = Some("not on a Friday".to_owned());
        assert_eq!(is(format!("/deny {ID} not on a Friday")), Some(Command::Deny(id, reason)));
        assert_eq!(is(format!("/deny {ID}")), Some(Command::Deny(id, None)));
        assert_eq!(is(format!("/why {ID}")), Some(Command::Why(id)));
        assert_eq!(is("/status".to_owned()), Some(Command::Status));
        for no_command in [
            String::new(),
            "I approve".to_owned(),
            format!(" /approve {ID}"),
            format!("> /approve {ID}"),
            format!("Please /approve {ID}"),
            format!("thanks\n/approve {ID}"),
            format!("/Approve {ID}"),
            format!("/approved {ID}"),
            format!("\u{feff}/approve {ID}"),
            format!("/approve\u{a0}{ID}"),
            format!("/approve\t{ID}"),
        ] {
            assert_eq!(read(&no_command), None, "{no_command:?}");
        }
        for malformed in [
            "/approve".to_owned(),
            "/approve all".to_owned(),
            format!("/approve  {ID}"),
            format!("/approve {ID} {ID}"),
            format!("/approve {}", ID.to_uppercase()),
            format!("/why {ID}?"),
            "/status now".to_owned(),
        ] {
            assert!(matches!(read(&malformed), Some(Err(_))), "{malformed:?}");
        }
    }
}
