//! Talk: threads with agents, what they said, what they ask, and the groups that they called.
//! A thread is the runs of one session; speaking is a new run, or a word into the one under way.

mod members;
mod thread;
mod told;

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::run::{CreateRun, Speak};
use chancery_domain::id::{SessionKey, UserId};
use chancery_domain::org::Org;
use chancery_runtime::clock;
use chancery_store::permission::PermissionRow;
use chancery_store::read::{RunFilter, RunRow};
use serde::Deserialize;

use super::form::Signed;
use super::html::line;
use super::look;
use super::page::{Frame, Room, draw, segment};
use super::runs::goal;
use super::time;
use super::visitor::Visitor;
use super::waits::Waits;
use super::words::Words;
use crate::commands::{self, Command, Line};
use crate::error::{ApiError, Result};
use crate::extract::Body;
use crate::pause;
use crate::router::App;
use crate::routes::{runs, steer};

pub use members::Presence;
use thread::Said;
use told::{Choice, Reply, Told};

const THREADS: u32 = 60;
/// The runs of a thread that are shown: the newest.
const RUNS: u32 = 30;

#[derive(Template)]
#[template(path = "chat.html")]
struct ChatPage {
    frame: Frame,
    threads: Vec<Thread>,
    /// Whom one may talk to: agents that are for people first.
    agents: Vec<String>,
    groups: Vec<(String, String)>,
    suggestions: Vec<Suggestion>,
    /// Who is chosen to be talked to.
    to: String,
    open: Option<Open>,
    /// What the system answers to a command.
    told: Option<Told>,
}

/// What one may say with a press, where a model has lines for it.
#[derive(Debug)]
struct Suggestion {
    to: String,
    who: String,
    project: String,
    text: String,
}

/// A thread in the list.
#[derive(Debug)]
struct Thread {
    href: String,
    key: String,
    who: String,
    goal: String,
    ago: String,
    status: String,
    waits: &'static str,
    state: String,
}

/// The thread that is open.
#[derive(Debug)]
struct Open {
    key: String,
    href: String,
    who: String,
    said: Vec<Said>,
    /// A run is under way: what is said goes into it.
    busy: bool,
    /// It is driven, or will be: nobody is waited for.
    works: bool,
    run: String,
    /// What waits for a decision, in any of its runs.
    waiting: Vec<Waiting>,
    choices: Vec<Choice>,
}

/// A question that is open, in one line.
#[derive(Debug)]
struct Waiting {
    id: String,
    href: String,
    tool: String,
    agent: String,
    risk: &'static str,
}

#[derive(Debug, Deserialize)]
pub struct Whom {
    /// The agent that is chosen already.
    #[serde(default)]
    to: String,
}

pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(Whom { to }): Query<Whom>,
) -> Result<Response> {
    let page = page(&app, &visitor, None).await?;
    draw(&ChatPage { to, ..page })
}

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Path(key): Path<String>,
) -> Result<Response> {
    let page = page(&app, &visitor, Some(key)).await?;
    draw(&page)
}

async fn page(app: &App, visitor: &Visitor, key: Option<String>) -> Result<ChatPage> {
    let w = visitor.words();
    let user = visitor.caller.acts_for(None)?;
    let threads = app.store.sessions(&user, THREADS).await?;
    let waits = Waits::of(app, &threads).await?;
    let threads = threads.iter().map(|it| thread(it, &waits, w)).collect();
    let authority = app.authority.get();
    let open = match key {
        None => None,
        Some(key) => Some(opened(app, visitor, &user, key).await?),
    };
    let title =
        open.as_ref().map_or_else(|| w.chat.to_owned(), |it| format!("{} · {}", it.who, w.chat));
    let watch = open.as_ref().map(|it| format!("thread:{}", it.key)).unwrap_or_default();
    Ok(ChatPage {
        frame: Frame::of(visitor, Room::Chat, &title).watching(watch),
        threads,
        agents: agents(authority.org()),
        groups: groups(authority.org()),
        suggestions: suggestions(app, visitor),
        to: String::new(),
        open,
        told: None,
    })
}

fn suggestions(app: &App, visitor: &Visitor) -> Vec<Suggestion> {
    let language = visitor.look.language.code();
    let suggestion = |it: &chancery_runtime::model::Suggestion| Suggestion {
        to: format!("agent:{}", it.agent),
        who: it.agent.clone(),
        project: it.project.clone().unwrap_or_default(),
        text: it.text(language).to_owned(),
    };
    app.models.suggestions().iter().map(suggestion).collect()
}

fn agents(org: &Org) -> Vec<String> {
    let mut agents: Vec<(bool, String)> = org
        .agents()
        .filter(|(_, it)| it.active)
        .map(|(id, it)| (!it.personal, id.to_string()))
        .collect();
    agents.sort();
    agents.into_iter().map(|it| it.1).collect()
}

fn groups(org: &Org) -> Vec<(String, String)> {
    org.groups.iter().map(|(id, it)| (id.to_string(), it.name.clone())).collect()
}

fn thread(run: &RunRow, waits: &Waits, w: &'static Words) -> Thread {
    let stands = waits.stands(run, w);
    let key = run.session_key.as_ref().map(|it| it.0.clone()).unwrap_or_default();
    let who = run.group.as_ref().map_or(run.agent.as_str(), |it| it.as_str());
    Thread {
        href: format!("/chat/{}", segment(&key)),
        who: line(who),
        goal: goal(&run.input),
        ago: time::ago(run.created_at, clock::now(), w),
        status: run.status.clone(),
        waits: stands.waits,
        state: stands.word,
        key,
    }
}

async fn newest(app: &App, user: &UserId, key: &str, limit: u32) -> Result<Vec<RunRow>> {
    let filter = RunFilter {
        user: Some(user.clone()),
        session_key: Some(SessionKey::from(key)),
        roots: true,
        ..RunFilter::default()
    };
    Ok(app.store.runs(&filter, limit).await?)
}

async fn opened(app: &App, visitor: &Visitor, user: &UserId, key: String) -> Result<Open> {
    let mut runs = newest(app, user, &key, RUNS).await?;
    let Some(last) = runs.first().cloned() else {
        return Err(ApiError::NotFound { what: "thread", id: key.chars().take(64).collect() });
    };
    runs.reverse();
    let mut said = Vec::new();
    for run in &runs {
        thread::of(app, visitor, run, &mut said).await?;
    }
    let who = last.group.as_ref().map_or(last.agent.as_str(), |it| it.as_str());
    let asked: Vec<PermissionRow> = match pause::of(app, &last).await? {
        Some(pause) => pause.open().cloned().collect(),
        None => Vec::new(),
    };
    Ok(Open {
        waiting: asked.iter().map(|it| waiting(it, &said)).collect(),
        choices: told::choices(&asked, visitor.words()),
        href: format!("/chat/{}", segment(&key)),
        who: line(who),
        busy: last.ended_at.is_none(),
        works: matches!(&*last.status, "pending" | "running"),
        run: last.id.to_string(),
        key,
        said,
    })
}

fn waiting(row: &PermissionRow, said: &[Said]) -> Waiting {
    let card = row.message.to_string();
    Waiting {
        id: row.id.to_string(),
        // What lies too deep to be drawn here has a page of its own.
        href: if has_card(said, &card) {
            format!("#card-{card}")
        } else {
            format!("/inbox/{}", row.id)
        },
        tool: line(&row.call.tool),
        agent: line(row.agent.as_str()),
        risk: row.request.risk.map_or("none", |it| it.as_str()),
    }
}

fn has_card(said: &[Said], message: &str) -> bool {
    said.iter().any(|it| match it {
        Said::Asked { card } => card.message == message,
        Said::Group { room } => has_card(&room.said, message),
        _ => false,
    })
}

/// The beginning of a thread.
#[derive(Debug, Deserialize)]
pub struct Begin {
    /// `agent:pa` or `group:grp_release`.
    to: String,
    text: String,
    #[serde(default)]
    project: String,
}

pub async fn begin(
    State(app): State<App>,
    headers: HeaderMap,
    Signed { visitor, form }: Signed<Begin>,
) -> Result<Response> {
    let read = commands::read(&form.text);
    let Line::Said(input) = read else {
        let whom = form.to.strip_prefix("agent:").unwrap_or_default().to_owned();
        let page = ChatPage { to: whom, ..page(&app, &visitor, None).await? };
        return replied(&app, &visitor, &headers, page, &form.text, read).await;
    };
    let key = format!("talk-{}", &clock::new_secret()[..12]);
    let (kind, name) = form.to.split_once(':').unwrap_or(("agent", &form.to));
    let name = Some(name.to_owned());
    let new = CreateRun {
        agent: name.clone().filter(|_| kind != "group"),
        group: name.filter(|_| kind == "group"),
        input: input.to_owned(),
        project: Some(form.project).filter(|it| !it.is_empty()),
        session_key: Some(key.clone()),
        ..CreateRun::default()
    };
    let made = runs::create(State(app), visitor.caller, HeaderMap::new(), Body(new)).await?;
    let (_, Json(_)) = made;
    Ok(Redirect::to(&format!("/chat/{}", segment(&key))).into_response())
}

#[derive(Debug, Deserialize)]
pub struct Say {
    text: String,
}

pub async fn say(
    State(app): State<App>,
    Path(key): Path<String>,
    headers: HeaderMap,
    Signed { visitor, form }: Signed<Say>,
) -> Result<Response> {
    let read = commands::read(&form.text);
    let Line::Said(text) = read else {
        return replied_in(&app, &visitor, &headers, key, &form.text, read).await;
    };
    let back = format!("/chat/{}", segment(&key));
    speak(&app, &visitor, key, text.to_owned()).await?;
    Ok(Redirect::to(&back).into_response())
}

/// Answers a command in a thread. The page is drawn once it is obeyed, and shows what came of it.
async fn replied_in(
    app: &App,
    visitor: &Visitor,
    headers: &HeaderMap,
    key: String,
    typed: &str,
    read: Line<'_>,
) -> Result<Response> {
    let back = format!("/chat/{}", segment(&key));
    if let Line::Command(Command::Lang(language)) = read {
        return spoken_in(app, headers, &back, language);
    }
    let user = visitor.caller.acts_for(None)?;
    let last = newest(app, &user, &key, 1).await?.into_iter().next();
    match told::reply(app, visitor, last.as_ref(), typed, read).await? {
        Reply::Shown => Ok(Redirect::to(&back).into_response()),
        Reply::Told(told) => {
            let page = page(app, visitor, Some(key)).await?;
            draw(&ChatPage { told: Some(told), ..page })
        }
    }
}

/// The same where no thread has begun.
async fn replied(
    app: &App,
    visitor: &Visitor,
    headers: &HeaderMap,
    page: ChatPage,
    typed: &str,
    read: Line<'_>,
) -> Result<Response> {
    if let Line::Command(Command::Lang(language)) = read {
        return spoken_in(app, headers, "/chat", language);
    }
    match told::reply(app, visitor, None, typed, read).await? {
        Reply::Shown => Ok(Redirect::to("/chat").into_response()),
        Reply::Told(told) => draw(&ChatPage { told: Some(told), ..page }),
    }
}

fn spoken_in(
    app: &App,
    headers: &HeaderMap,
    back: &str,
    language: look::Language,
) -> Result<Response> {
    let mut response = Redirect::to(back).into_response();
    look::speak(app, headers, &mut response, language)?;
    Ok(response)
}

/// Says something in a thread: into the run under way, else as a new one with the same agent.
pub async fn speak(app: &App, visitor: &Visitor, key: String, text: String) -> Result<()> {
    let user = visitor.caller.acts_for(None)?;
    let last =
        newest(app, &user, &key, 1).await?.into_iter().next().ok_or_else(|| {
            ApiError::NotFound { what: "thread", id: key.chars().take(64).collect() }
        })?;
    if last.ended_at.is_none() {
        let body = Body(Speak { text: text.clone(), to: None });
        let at = Path(last.id.to_string());
        match steer::speak(State(app.clone()), visitor.caller.clone(), at, body).await {
            // It has just ended: what was said begins the next.
            Err(ApiError::Conflict { code: "run_ended", .. }) => {}
            spoken => return spoken.map(|Json(_)| ()),
        }
    }
    let new = CreateRun {
        agent: last.group.is_none().then(|| last.agent.to_string()),
        group: last.group.as_ref().map(ToString::to_string),
        project: last.project.as_ref().map(|it| it.0.clone()),
        input: text,
        session_key: Some(key),
        ..CreateRun::default()
    };
    let (app, caller) = (State(app.clone()), visitor.caller.clone());
    let (_, Json(_)) = runs::create(app, caller, HeaderMap::new(), Body(new)).await?;
    Ok(())
}
