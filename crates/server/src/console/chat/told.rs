//! What the system says in a talk, in answer to a command. It stands on the page alone: no agent
//! reads it, and no log has it.

use chancery_domain::id::PermissionId;
use chancery_domain::text::visible_line;
use chancery_runtime::clock;
use chancery_store::permission::PermissionRow;
use chancery_store::read::RunRow;
use jiff::Timestamp;

use crate::commands::{self, Command, Done, Line, USAGES};
use crate::console::card::whys;
use crate::console::html::{line, shown};
use crate::console::refusal;
use crate::console::visitor::Visitor;
use crate::console::waits::Waits;
use crate::console::words::{Words, fill};
use crate::error::{ApiError, Result};
use crate::pause::{self, NotHere, not_here};
use crate::router::App;
use crate::view;

/// A line of the system's.
#[derive(Debug)]
pub struct Told {
    pub id: String,
    /// What was typed, ready for a page.
    pub typed: String,
    /// Ready for a page.
    pub text: String,
    pub at: Timestamp,
}

/// What a message that is a command leads to.
#[derive(Debug)]
pub enum Reply {
    Told(Told),
    /// The talk itself shows it.
    Shown,
}

/// A command that can be picked where it is typed.
#[derive(Debug)]
pub struct Choice {
    /// The same for as long as it means the same.
    pub id: String,
    /// What stands in the field once it is picked.
    pub text: String,
    pub usage: String,
    pub words: String,
}

/// Does what a message asks for that is not for the agent. `last` is the talk's newest run.
pub async fn reply(
    app: &App,
    visitor: &Visitor,
    last: Option<&RunRow>,
    typed: &str,
    read: Line<'_>,
) -> Result<Reply> {
    let w = visitor.words();
    let text = match read {
        Line::Said(_) => return Ok(Reply::Shown),
        Line::Unknown => Ok(Some(format!("<p>{}</p>{}", w.command_unknown, listed(w)))),
        Line::Malformed(usage) => {
            Ok(Some(format!("{} <code>{}</code>", w.command_malformed, line(usage))))
        }
        Line::Command(command) => obey(app, visitor, last, &command).await,
    };
    let text = match text {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(Reply::Shown),
        Err(
            error @ (ApiError::NotFound { .. }
            | ApiError::Forbidden(_)
            | ApiError::Conflict { .. }
            | ApiError::BadRequest { .. }),
        ) => format!("{} {}", w.command_refused, refusal::said(&error.problem(), w)),
        Err(error) => return Err(error),
    };
    let first = typed.lines().next().unwrap_or_default();
    let id = format!("told-{}", &clock::new_secret()[..12]);
    Ok(Reply::Told(Told { id, typed: line(first), text, at: clock::now() }))
}

/// `None`: the talk shows what came of it.
async fn obey(
    app: &App,
    visitor: &Visitor,
    last: Option<&RunRow>,
    command: &Command,
) -> Result<Option<String>> {
    let (w, caller) = (visitor.words(), &visitor.caller);
    let decided = async |id: PermissionId, grants: bool, reason: Option<String>| {
        let decided = commands::decide(app, caller, id, grants, reason).await?;
        Ok(Some(said(&decided.done, w)))
    };
    match command {
        Command::Approve(id) => decided(*id, true, None).await,
        Command::Deny(id, reason) => decided(*id, false, reason.clone()).await,
        Command::Why(id) => {
            let row = commands::question(app, caller, *id, last).await?;
            Ok(Some(row.map_or_else(|| w.command_no_question.to_owned(), |it| why(&it, w))))
        }
        Command::Status => status(app, last, w).await.map(Some),
        Command::Help | Command::Lang(_) => Ok(Some(listed(w))),
        Command::Room(_) | Command::Pause | Command::Wrapup | Command::Forget(_) => {
            let done = commands::obey(app, caller, last, command).await?;
            Ok(done.filter(|it| !matches!(it, Done::Spoke { .. })).map(|it| said(&it, w)))
        }
    }
}

fn said(done: &Done, w: &'static Words) -> String {
    match done {
        Done::Answered { id, tool, grants } => {
            let words = if *grants { w.command_approved } else { w.command_denied };
            fill(words, &[("tool", &question(&line(tool), &id.to_string()))])
        }
        Done::NoPerson => w.command_no_person.to_owned(),
        Done::NotHere { why, id, .. } => {
            let link = format!("<a href=\"/inbox/{id}\">{}</a>", w.command_decide_there);
            format!("{} {link}", fill(w.command_not_here, &[("why", why_not(*why, w))]))
        }
        Done::Pauses { run, who } => fill(w.command_pauses, &[("who", &run_link(run, who))]),
        Done::WrapsUp { run, who } => fill(w.command_wraps_up, &[("who", &run_link(run, who))]),
        Done::Forgot { id } => fill(w.command_forgot, &[("id", &format!("<code>{id}</code>"))]),
        Done::Spoke { .. } | Done::Nobody => w.command_nobody.to_owned(),
    }
}

fn why_not(why: NotHere, w: &'static Words) -> &'static str {
    match why {
        NotHere::Human => w.not_here_human,
        NotHere::HighRisk => w.not_here_high,
        NotHere::UnknownRisk => w.not_here_unknown,
        NotHere::TooLong => w.not_here_long,
    }
}

fn question(tool: &str, id: &str) -> String {
    format!("<a class=\"tool\" href=\"/inbox/{id}\">{tool}</a>")
}

fn run_link(run: &chancery_domain::id::RunId, who: &str) -> String {
    format!("<a href=\"/runs/{run}\">{}</a>", line(who))
}

/// How the talk stands, and what it waits for.
async fn status(app: &App, last: Option<&RunRow>, w: &'static Words) -> Result<String> {
    let Some(run) = last else { return Ok(w.command_no_run.to_owned()) };
    let link = format!("<a href=\"/runs/{}\">{}</a>", run.id, w.run);
    let stands = Waits::of(app, [run]).await?.stands(run, w);
    let mut text = format!("<p>{link} · {}</p>", stands.word);
    let Some(pause) = pause::of(app, run).await? else { return Ok(text) };
    let rows: String = pause.open().map(|it| format!("<li>{}</li>", open(it, w))).collect();
    if !rows.is_empty() {
        text.push_str(&format!("<ul class=\"plainlist\">{rows}</ul>"));
    }
    Ok(text)
}

fn open(row: &PermissionRow, w: &'static Words) -> String {
    let risk = row.request.risk.map_or("none", |it| it.as_str());
    let tool = question(&line(&row.call.tool), &row.id.to_string());
    let word = format!("<span class=\"risk {risk}\">{}</span>", w.risk_word(risk));
    let how = match not_here(row) {
        Some(why) => fill(w.command_not_here, &[("why", why_not(why, w))]),
        None => format!("<code>/approve {0}</code> <code>/deny {0}</code>", row.id),
    };
    format!("{tool} {word} {how}")
}

fn why(row: &PermissionRow, w: &'static Words) -> String {
    let asks = format!("{} · {}", line(row.agent.as_str()), w.state_word(&row.status));
    let tool = question(&line(&visible_line(&row.call.tool)), &row.id.to_string());
    let reasons: String = whys(&view::reasons(row.reasons.clone()), w)
        .iter()
        .map(|it| {
            format!(
                "<li class=\"outcome-{}\"><b>{}</b> <span class=\"faint\">{}</span> {} \
                 <code>{}</code><br>{}</li>",
                it.outcome, it.word, w.layer, it.layer, it.rule, it.detail
            )
        })
        .collect();
    format!("<p>{tool} · {asks}</p><ul class=\"plainlist why\">{reasons}</ul>")
}

/// What each command does, in the order of [`USAGES`].
fn meanings(w: &'static Words) -> [&'static str; 10] {
    [
        w.command_approve,
        w.command_deny,
        w.command_why,
        w.command_status,
        w.command_room,
        w.command_pause,
        w.command_wrapup,
        w.command_forget,
        w.command_lang,
        w.command_help,
    ]
}

fn listed(w: &'static Words) -> String {
    let rows: String = USAGES
        .iter()
        .zip(meanings(w))
        .map(|(usage, words)| format!("<li><code>{}</code> {words}</li>", line(usage)))
        .collect();
    format!("<ul class=\"plainlist\">{rows}</ul><p class=\"faint\">{}</p>", shown(w.command_slash))
}

/// What can be picked: an answer to each question that may be answered here, then every command.
pub fn choices(open: &[PermissionRow], w: &'static Words) -> Vec<Choice> {
    let answers = open.iter().filter(|it| not_here(it).is_none()).flat_map(|it| {
        let (id, tool) = (it.id, line(&it.call.tool));
        [("approve", "", w.command_approves), ("deny", " ", w.command_denies)].map(
            |(verb, end, words)| Choice {
                id: format!("command-{verb}-{id}"),
                text: format!("/{verb} {id}{end}"),
                usage: format!("/{verb} {id}"),
                words: fill(words, &[("tool", &tool)]),
            },
        )
    });
    let all = USAGES.iter().zip(meanings(w)).map(|(usage, words)| {
        let (verb, rest) = usage.split_once(' ').map_or((*usage, false), |it| (it.0, true));
        Choice {
            id: format!("command-{}", verb.trim_start_matches('/')),
            text: if rest { format!("{verb} ") } else { verb.to_owned() },
            usage: line(usage),
            words: words.to_owned(),
        }
    });
    answers.chain(all).collect()
}
