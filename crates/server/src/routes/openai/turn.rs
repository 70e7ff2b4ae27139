//! One turn of a talk: what is said becomes a run, a word into one, a decision, or a reminder.

use std::collections::VecDeque;

use axum::http::HeaderMap;
use chancery_api::run::CreateRun;
use chancery_domain::command;
use chancery_domain::event::{Event, Usage};
use chancery_domain::id::{PermissionId, RunId};
use chancery_domain::text::visible_line;
use chancery_runtime::clock;
use chancery_store::read::RunRow;

use super::follow::{End, Follow, Piece, ended};
use super::models::Addressee;
use super::thread::{self, Thread};
use crate::access::Caller;
use crate::commands::{self, Command, Decided, Line, USAGES};
use crate::error::{ApiError, Result};
use crate::extract::check_text;
use crate::pause;
use crate::router::App;
use crate::routes::runs;

/// What a client hears in answer to one request.
#[derive(Debug)]
pub struct Turn {
    pub run: Option<RunId>,
    said: VecDeque<Piece>,
    follow: Option<Follow>,
    usage: Usage,
}

impl Turn {
    /// Words of our own, and no more.
    pub fn of_words(run: Option<RunId>, text: String, end: End, usage: Usage) -> Turn {
        let said = VecDeque::from([Piece::Words(text), Piece::End(end)]);
        Turn { run, said, follow: None, usage }
    }

    /// What a run says from a place in its log on, after some words of our own.
    pub fn of_run(
        app: &App,
        caller: &Caller,
        run: RunId,
        after: u64,
        before: Option<String>,
    ) -> Turn {
        let said = before.map(|it| Piece::Words(format!("{it}\n\n"))).into_iter().collect();
        let follow = Some(Follow::new(app, caller, run, after));
        Turn { run: Some(run), said, follow, usage: Usage::default() }
    }

    /// The same after some more words of our own.
    pub fn after(mut self, words: Option<String>) -> Turn {
        if let Some(words) = words {
            self.said.push_front(Piece::Words(format!("{words}\n\n")));
        }
        self
    }

    pub async fn next(&mut self) -> Result<Piece> {
        match (self.said.pop_front(), &mut self.follow) {
            (Some(piece), _) => Ok(piece),
            (None, Some(follow)) => follow.next().await,
            (None, None) => Ok(Piece::End(End::Said)),
        }
    }

    pub fn usage(&self) -> Usage {
        self.follow.as_ref().map_or(self.usage, |it| it.usage)
    }
}

/// What a person says, and in which talk.
#[derive(Debug)]
pub struct Spoken<'s> {
    pub to: &'s Addressee,
    pub thread: Option<&'s Thread>,
    pub text: &'s str,
    /// What the client heard last.
    pub heard: &'s str,
}

/// Takes in what a person says.
pub async fn take(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    spoken: Spoken<'_>,
) -> Result<Turn> {
    check_text("input", spoken.text)?;
    let words = |text: String| Ok(Turn::of_words(None, text, End::Said, Usage::default()));
    match commands::read(spoken.text) {
        Line::Command(command) => obey(app, caller, &spoken, command).await,
        Line::Malformed(usage) => words(format!("That is no command. Write exactly: `{usage}`")),
        // Clients have slashes of their own; the console's chat, which has none, answers them.
        Line::Unknown => say(app, caller, headers, &spoken).await,
        Line::Said(text) => say(app, caller, headers, &Spoken { text, ..spoken }).await,
    }
}

async fn say(app: &App, caller: &Caller, headers: &HeaderMap, spoken: &Spoken<'_>) -> Result<Turn> {
    let Some(thread) = spoken.thread else {
        let run = make(app, caller, headers, spoken).await?;
        let text = format!(
            "[{run}: this request names no thread, so it is a run of its own and knows nothing \
             of what was said before.]"
        );
        return Ok(Turn::of_run(app, caller, run, 0, Some(text)));
    };
    let latest = thread::latest(app, spoken.to, &thread.key).await?;
    let before = match latest {
        None => None,
        Some(row) if ended(&row).is_some() => outcome_unheard(app, &row, spoken.heard).await?,
        Some(row) => match join(app, caller, &row, spoken.text).await? {
            Some(turn) => return Ok(turn),
            // It ended meanwhile.
            None => None,
        },
    };
    let run = make(app, caller, headers, spoken).await?;
    Ok(Turn::of_run(app, caller, run, 0, before))
}

async fn make(
    app: &App,
    caller: &Caller,
    headers: &HeaderMap,
    spoken: &Spoken<'_>,
) -> Result<RunId> {
    let body = CreateRun {
        input: spoken.text.to_owned(),
        session_key: spoken.thread.map(|it| it.key.0.clone()),
        ..spoken.to.run.clone()
    };
    runs::make(app, caller, headers, &body).await
}

/// A word into a run that is under way. One that waits for somebody's decision hears nothing:
/// a word in passing must not be taken for one.
async fn join(app: &App, caller: &Caller, row: &RunRow, text: &str) -> Result<Option<Turn>> {
    if let Some(pause) = pause::of(app, row).await?.filter(|it| it.open().next().is_some()) {
        let note = "Your message was not passed on: send it again once this is decided.";
        let text = format!("{}\n{note}", pause.text(&app.public_url));
        let end = End::Waiting(Box::new(pause));
        return Ok(Some(Turn::of_words(Some(row.id), text, end, Usage::default())));
    }
    if row.input == text {
        // A client that asks again, for it did not hear the answer.
        let after = heard_until(app, row.id).await?;
        return Ok(Some(Turn::of_run(app, caller, row.id, after, None)));
    }
    let (message, by) = (clock::new_message_id(), caller.actor());
    let spoke = runs::record(app, row.id, |history, _| {
        command::speak(history, message, text.to_owned(), None, by.clone())
    });
    match spoke.await {
        Ok(()) => Ok(Some(Turn::of_run(app, caller, row.id, row.seq, None))),
        Err(ApiError::Conflict { code: "run_ended", .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The place in a log up to which a client was told, when it was told that the run waits.
async fn heard_until(app: &App, run: RunId) -> Result<u64> {
    let events = app.store.events(run, 0, u32::MAX).await?;
    let waits = |it: &Event| {
        matches!(it, Event::WaitBegan(_) | Event::ChildSpawned(_))
            || !command::requests(it).is_empty()
    };
    Ok(events.iter().rev().find(|it| waits(&it.event)).map_or(0, |it| it.seq))
}

/// How a run ended that the client last heard of as one that waits.
async fn outcome_unheard(app: &App, row: &RunRow, heard: &str) -> Result<Option<String>> {
    // The client's own record is good enough for this: whose run it is was looked up.
    let is_reminder = heard.contains("Waiting for approval (batch ");
    if !is_reminder || heard_until(app, row.id).await? == 0 {
        return Ok(None);
    }
    let text = match ended(row) {
        Some(End::Completed) => row.output.clone().unwrap_or_default(),
        Some(End::Failed(error)) => format!("It failed: {error}"),
        _ => "It was cancelled.".to_owned(),
    };
    Ok(Some(format!("[What waited has gone on: {}.]\n\n{text}\n\n---", row.id)))
}

fn listed() -> String {
    format!("Commands: `{}`. What begins with `//` is said with one slash.", USAGES.join("`, `"))
}

async fn obey(app: &App, caller: &Caller, spoken: &Spoken<'_>, command: Command) -> Result<Turn> {
    let words = |text: String| Turn::of_words(None, text, End::Said, Usage::default());
    let turn = match command {
        Command::Approve(id) => answer(app, caller, id, true, None).await,
        Command::Deny(id, reason) => answer(app, caller, id, false, reason).await,
        Command::Why(id) => why(app, caller, spoken, id).await.map(words),
        Command::Status => status(app, spoken).await,
        Command::Help => Ok(words(listed())),
        Command::Lang(_) => Ok(words("Only the console has another language.".to_owned())),
        Command::Room(_) | Command::Pause | Command::Wrapup | Command::Forget(_) => {
            do_to_talk(app, caller, spoken, &command).await.map(words)
        }
    };
    match turn {
        Err(
            error @ (ApiError::NotFound { .. }
            | ApiError::Forbidden(_)
            | ApiError::Conflict { .. }
            | ApiError::BadRequest { .. }),
        ) => Ok(words(format!("Nothing was done: {error}."))),
        other => other,
    }
}

/// The newest run of the talk.
async fn last(app: &App, spoken: &Spoken<'_>) -> Result<Option<RunRow>> {
    match spoken.thread {
        Some(thread) => thread::latest(app, spoken.to, &thread.key).await,
        None => Ok(None),
    }
}

async fn do_to_talk(
    app: &App,
    caller: &Caller,
    spoken: &Spoken<'_>,
    command: &Command,
) -> Result<String> {
    let last = last(app, spoken).await?;
    let done = commands::obey(app, caller, last.as_ref(), command).await?;
    Ok(done.map(|it| it.text()).unwrap_or_default())
}

/// Why a call is asked about: every layer's word.
async fn why(
    app: &App,
    caller: &Caller,
    spoken: &Spoken<'_>,
    id: Option<PermissionId>,
) -> Result<String> {
    let last = last(app, spoken).await?;
    let Some(row) = commands::question(app, caller, id, last.as_ref()).await? else {
        return Ok("Nothing waits for an answer in this thread.".to_owned());
    };
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
    text.push_str(&format!("\n{}", pause::link(&app.public_url, &row)));
    Ok(text)
}

/// Decides, and goes on with the run if it does.
async fn answer(
    app: &App,
    caller: &Caller,
    id: PermissionId,
    grants: bool,
    reason: Option<String>,
) -> Result<Turn> {
    let decided = commands::decide(app, caller, id, grants, reason).await?;
    go_on(app, caller, vec![decided]).await
}

/// What is heard after decisions: what the run does next, or what is still open.
pub async fn go_on(app: &App, caller: &Caller, decided: Vec<Decided>) -> Result<Turn> {
    let texts: Vec<String> = decided.iter().map(|it| it.done.text()).collect();
    let text = texts.join("\n");
    let is_done = decided.iter().any(Decided::is_done);
    let root = decided.into_iter().find_map(|it| it.root);
    // Who approves what others ask does not hear what comes of it.
    let seen = match &root {
        Some(root) => caller.run(app, &root.id.to_string()).await.ok().map(|it| (it, root.seq)),
        None => None,
    };
    let Some((row, before)) = seen else {
        return Ok(Turn::of_words(None, text, End::Said, Usage::default()));
    };
    match pause::of(app, &row).await? {
        Some(pause) if pause.open().next().is_some() => {
            let text = format!("{text}\n\n{}", pause.text(&app.public_url));
            let end = End::Waiting(Box::new(pause));
            Ok(Turn::of_words(Some(row.id), text, end, Usage::default()))
        }
        _ if is_done => Ok(Turn::of_run(app, caller, row.id, before, Some(text))),
        _ => Ok(Turn::of_words(Some(row.id), text, End::Said, Usage::default())),
    }
}

/// How the talk stands.
async fn status(app: &App, spoken: &Spoken<'_>) -> Result<Turn> {
    let words = |run, text: String, end| Turn::of_words(run, text, end, Usage::default());
    let Some(thread) = spoken.thread else {
        let text = "This request names no thread, so there is no run to speak of.";
        return Ok(words(None, text.to_owned(), End::Said));
    };
    let Some(row) = thread::latest(app, spoken.to, &thread.key).await? else {
        return Ok(words(None, "Nothing has been said in this thread yet.".to_owned(), End::Said));
    };
    let about = format!("{} is {}.", row.id, row.status);
    Ok(match pause::of(app, &row).await? {
        Some(pause) => {
            let text = format!("{about}\n\n{}", pause.text(&app.public_url));
            words(Some(row.id), text, End::Waiting(Box::new(pause)))
        }
        None => words(Some(row.id), about, End::Said),
    })
}
