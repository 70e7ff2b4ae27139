//! `edit`: grants a call with other arguments. They are shown beside the old ones and ruled on
//! before anybody is asked whether they are meant.

use chancery_api::client::{Client, ClientError};
use chancery_api::permission::{Authorize, Authorized, Decide, Permission};
use serde_json::Value;
use similar::TextDiff;

use super::decide::{answer, check_high, said, send};
use super::editor::{self, Edited};
use super::find::meant;
use super::list::is_high;
use super::prompt::Prompt;
use crate::Global;
use crate::layers;
use crate::outcome::{Misused, Outcome, Stopped};
use crate::output::{self, visible};
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// A request, or a run that asks one thing
    id: String,
    /// The new arguments, whole, as JSON [default: opens $EDITOR]
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// Why; a HIGH one needs it
    #[arg(short, long, visible_short_alias = 'r', visible_alias = "reason", value_name = "TEXT")]
    comment: Option<String>,
}

pub async fn edit(global: &Global, client: &Client, args: Args) -> anyhow::Result<Outcome> {
    let mut meant = meant(client, std::slice::from_ref(&args.id)).await?;
    if meant.len() != 1 {
        let said = format!("{} asks {} things: name the one to edit", args.id, meant.len());
        return Err(Misused(said).into());
    }
    let before = meant.remove(0);
    let mut prompt = Prompt::new();
    let arguments = match &args.arguments {
        Some(given) => serde_json::from_str(given)
            .map_err(|it| Misused(format!("`--arguments` is not JSON: {it}")))?,
        None => match editor::edited(&before.arguments, &mut prompt).await? {
            Edited::To(arguments) => arguments,
            Edited::GivenUp => return cancelled(&before),
        },
    };
    if arguments == before.arguments {
        let said = "these are the arguments as they were".to_owned();
        let next = format!("chancery approval approve {}", before.id);
        return Err(Stopped::new(Outcome::Usage, "unchanged", said).next(next).into());
    }
    if !global.json {
        let shown = difference(&before.arguments, &arguments, Terminal::of_stdout());
        output::raw(shown.as_bytes())?;
    }
    let ruling = check(client, &before, &arguments).await?;
    let comment = args.comment.filter(|it| !it.trim().is_empty());
    let comment = match global.yes {
        true => comment,
        false => match confirmed(&mut prompt, &before, &ruling, comment).await? {
            Some(comment) => comment,
            None => return cancelled(&before),
        },
    };
    check_high(std::slice::from_ref(&before), comment.as_deref())?;
    let decide = Decide { arguments: Some(arguments), comment, ..answer("grant") };
    let after = send(client, &before, &decide).await?;
    if global.json {
        output::json(&after)?;
    } else {
        output::line(format_args!("{}", said(client, &before, &after).await?))?;
    }
    Ok(Outcome::Done)
}

/// Asks whether it is meant; the comment, or nothing where it is not.
pub async fn confirmed(
    prompt: &mut Prompt,
    before: &Permission,
    ruling: &str,
    comment: Option<String>,
) -> anyhow::Result<Option<Option<String>>> {
    prompt.say(&format!("{ruling}\n"));
    if !prompt.confirm("Approve the edited call? (yes/no) ").await? {
        return Ok(None);
    }
    if comment.is_some() || !is_high(before) {
        return Ok(Some(comment));
    }
    let reason = prompt.ask("reason: ").await?;
    Ok(reason.filter(|it| !it.is_empty()).map(Some))
}

fn cancelled(before: &Permission) -> anyhow::Result<Outcome> {
    let said = format!("nothing was decided: {} is as it was", before.id);
    Err(Stopped::new(Outcome::Cancelled, "cancelled", said).about(&before.id).into())
}

/// What the rules say of the edited call, in a sentence. What is denied ends here; the server
/// would say the same.
pub async fn check(
    client: &Client,
    before: &Permission,
    arguments: &Value,
) -> anyhow::Result<String> {
    let question = Authorize {
        agent: before.agent.clone(),
        tool: before.tool.clone(),
        arguments: Some(arguments.clone()),
        run: Some(before.run_id.clone()),
        user: Some(before.user.clone()),
    };
    let ruled = match client.authorize(&question).await {
        Ok(ruled) => ruled,
        // Who may answer may not be one who may ask; the server rules on it in any case.
        Err(ClientError::Problem(problem)) if matches!(problem.status, 403 | 404) => {
            return Ok("The server rules on the edited call when it is granted.".to_owned());
        }
        Err(error) => return Err(error.into()),
    };
    let Authorized { ruling, reasons, id, .. } = ruled;
    let why = reasons.first().map(|it| visible(&it.detail)).unwrap_or_default();
    if ruling == "deny" {
        let why = reasons.first().map(layers::sentence).unwrap_or_default();
        let said = format!("policy says no to the edited call: {why}");
        let stopped = Stopped::new(Outcome::Denied, "PERMISSION_DENIED", said).about(&id);
        return Err(stopped.next(format!("chancery why {id}")).into());
    }
    Ok(format!("Policy on the edited call: {} ({ruling}). {why}", layers::word(&ruling)))
}

/// Line by line, in the form in which they are edited.
pub fn difference(old: &Value, new: &Value, terminal: Terminal) -> String {
    let (old, new) = (editor::written(old), editor::written(new));
    let diff = TextDiff::from_lines(&old, &new);
    let mut text = String::new();
    for change in diff.iter_all_changes() {
        let sign = match change.tag() {
            similar::ChangeTag::Delete => '-',
            similar::ChangeTag::Insert => '+',
            similar::ChangeTag::Equal => ' ',
        };
        let line = visible(change.value().trim_end_matches('\n'));
        text.push_str(&format!("{}\n", terminal.of_diff(&format!("{sign} {line}"))));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_shows_what_goes_and_what_comes() {
        let (old, new) = (json!({"a": 1, "b": "x"}), json!({"a": 1, "b": "x\u{200b}"}));
        let said = difference(&old, &new, Terminal::PLAIN);
        let changed: Vec<&str> = said.lines().filter(|it| !it.starts_with(' ')).collect();
        assert_eq!(changed, [r#"-   "b": "x""#, r#"+   "b": "x\u200b""#]);
    }
}
