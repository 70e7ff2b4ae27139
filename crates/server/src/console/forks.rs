//! A run that goes on from another one: the form for it, and on its page what that means for the
//! calls of the other. The run itself is made by the function behind the JSON route.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use chancery_api::run::ForkRun;
use chancery_domain::event::{Forked, Recorded};
use chancery_domain::text::visible;
use chancery_runtime::fork::{self, Known};
use serde::Deserialize;

use super::form::Signed;
use super::html::line;
use super::words::{Words, fill};
use crate::error::{ApiError, Result};
use crate::extract::{Body, bad_request};
use crate::router::App;
use crate::routes::forks;

/// Nobody looks for a place among more; `POST /api/runs/{id}/fork` takes any.
const PLACES_MAX: usize = 200;

/// Where one may go on from, in words that a page has yet to escape.
pub fn places(log: &[Recorded], w: &'static Words) -> Vec<(u64, String)> {
    let mut places: Vec<(u64, String)> = fork::places(log)
        .into_iter()
        .rev()
        .take(PLACES_MAX)
        .map(|(at, tools)| match &*tools {
            [] => (at, w.fork_begin.to_owned()),
            tools => {
                let (n, tools) = (at.to_string(), visible(&tools.join(", ")));
                (at, fill(w.fork_after, &[("n", &n), ("tools", &tools)]))
            }
        })
        .collect();
    places.reverse();
    places
}

/// What a run goes on from. All text in it is ready for a page.
#[derive(Debug)]
pub struct Origin {
    pub words: String,
    /// What is not made again, and what would be. Empty: nothing.
    pub carried: String,
    pub dropped: String,
}

pub async fn origin(app: &App, forked: &Forked, w: &'static Words) -> Result<Origin> {
    let log = app.store.events(forked.run, 0, u32::MAX).await?;
    let (run, at) = (forked.run.to_string(), forked.at.to_string());
    let link = format!("<a href=\"/runs/{run}\"><code>{run}</code></a>");
    let known = fork::known(&log, forked.at);
    let (carried, dropped): (Vec<&Known>, Vec<&Known>) = known.iter().partition(|it| it.carried);
    Ok(Origin {
        words: fill(w.forked_from, &[("run", &link), ("n", &at)]),
        carried: named(&carried, w.fork_carried, w),
        dropped: named(&dropped, w.fork_dropped, w),
    })
}

fn named(calls: &[&Known], sentence: &str, w: &'static Words) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let named: Vec<String> = calls.iter().map(|it| name(it, w)).collect();
    fill(sentence, &[("tools", &named.join(", "))])
}

fn name(known: &Known, w: &'static Words) -> String {
    let tool = format!("<span class=\"tool\">{}</span>", line(&known.call.tool));
    let said = [(known.ran, w.fork_ran), (known.asked, w.fork_asked)];
    let said: Vec<&str> = said.iter().filter(|it| it.0 && !known.carried).map(|it| it.1).collect();
    if said.is_empty() { tool } else { format!("{tool} ({})", said.join(", ")) }
}

/// From where, and with which words; both may be left empty.
#[derive(Debug, Deserialize)]
pub struct Wanted {
    #[serde(default)]
    at: String,
    #[serde(default)]
    input: String,
}

pub async fn make(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Wanted>,
) -> Result<Response> {
    let unread = |_| -> ApiError { bad_request("`at` is the number of an event".to_owned()) };
    let at = Some(&*form.at).filter(|it| !it.is_empty());
    let at = at.map(str::parse).transpose().map_err(unread)?;
    let input = Some(form.input).filter(|it| !it.trim().is_empty());
    let (headers, body) = (HeaderMap::new(), Body(ForkRun { at, input }));
    let made = forks::fork(State(app), visitor.caller, Path(id), headers, body).await?;
    let (_, Json(made)) = made;
    Ok(Redirect::to(&format!("/runs/{}", made.run.id)).into_response())
}
