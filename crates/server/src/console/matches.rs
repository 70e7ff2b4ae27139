//! What a remembered answer would have matched, for whoever composes one: the card's form and the
//! one that narrows a rule lead here and keep what was chosen. Decides nothing.

use askama::Template;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use chancery_api::permission::{Matched, Matches};
use chancery_store::permission::Before;
use serde::Deserialize;

use super::card::Call;
use super::form::{Signed, back_or};
use super::html::line;
use super::page::{Frame, Room, draw};
use super::rules::{self, Less};
use super::time;
use super::visitor::Visitor;
use super::words::{Words, fill};
use crate::error::Result;
use crate::extract::Params;
use crate::router::App;
use crate::routes::matches::{self, ScopeParams};
use crate::routes::permissions;

/// As much of a call's arguments as fits into a line.
const ARGUMENTS: usize = 100;

#[derive(Template)]
#[template(path = "matches.html")]
struct MatchesPage {
    frame: Frame,
    back: String,
    tool: String,
    told: String,
    /// Whether somebody denied what would have been answered by itself.
    denied: bool,
    rows: Vec<Row>,
    more: bool,
    /// What was chosen: for what, and until when.
    scope: String,
    until: String,
    composes: Composes,
}

enum Composes {
    Answer(Box<Call>),
    Less(Box<rules::Row>),
}

#[derive(Debug)]
struct Row {
    id: String,
    ago: String,
    agent: String,
    arguments: String,
    state: &'static str,
    by: String,
}

#[derive(Debug, Deserialize)]
pub struct Composed {
    #[serde(default)]
    remember: String,
    #[serde(default)]
    expires_after: String,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    back: String,
}

pub async fn of_question(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Composed>,
) -> Result<Response> {
    let (w, caller) = (visitor.words(), visitor.caller.clone());
    let params = Params(ScopeParams::from(form.remember.clone()));
    let state = State(app.clone());
    let Json(found) = matches::of_question(state, caller, Path(id.clone()), params).await?;
    let row = permissions::visible(&app, &visitor.caller, &id).await?;
    let shown = permissions::shown(&app, row).await?;
    let now = app.store.now().await?;
    // What is answered is what was looked at when this was asked for.
    let call = Call { digest: form.digest, ..Call::of(&shown, Before::default(), now, w) };
    let back = back_or(&form.back, &format!("/inbox/{id}")).to_owned();
    let (tool, composes) = (call.tool.clone(), Composes::Answer(Box::new(call)));
    let chosen = (form.remember, form.expires_after);
    draw(&page(&visitor, (Room::Inbox, back), tool, &found, chosen, composes))
}

pub async fn of_rule(
    State(app): State<App>,
    Path(id): Path<String>,
    Signed { visitor, form }: Signed<Less>,
) -> Result<Response> {
    let (w, caller) = (visitor.words(), visitor.caller.clone());
    let params = Params(ScopeParams::from(form.scope.clone()));
    let state = State(app.clone());
    let path = Path(id.clone());
    let Json(found) = matches::of_rule(state.clone(), caller.clone(), path, params).await?;
    let Json(rule) = crate::routes::rules::show(state, caller, Path(id)).await?;
    let row = rules::row(&rule, w, app.store.now().await?);
    let (tool, composes) = (row.tool.clone(), Composes::Less(Box::new(row)));
    let chosen = (form.scope, form.expires_after);
    let back = (Room::Rules, "/rules".to_owned());
    draw(&page(&visitor, back, tool, &found, chosen, composes))
}

fn page(
    visitor: &Visitor,
    (room, back): (Room, String),
    tool: String,
    found: &Matches,
    (scope, until): (String, String),
    composes: Composes,
) -> MatchesPage {
    let w = visitor.words();
    // Whoever changes the language here is led back: this page answers a form.
    let frame = Frame { path: back.clone(), ..Frame::of(visitor, room, w.matches_title) };
    let rows: Vec<Row> = found.questions.iter().map(|it| row(it, &frame)).collect();
    MatchesPage {
        told: told(found, w),
        denied: found.denied > 0,
        more: found.asked > rows.len() as u64,
        frame,
        back,
        tool,
        rows,
        scope,
        until,
        composes,
    }
}

fn row(it: &Matched, frame: &Frame) -> Row {
    let text = it.arguments.to_string();
    let arguments = match text.char_indices().nth(ARGUMENTS) {
        Some((end, _)) => format!("{}…", line(&text[..end])),
        None => line(&text),
    };
    Row {
        id: it.id.clone(),
        ago: time::ago(it.created_at, frame.now(), frame.w),
        agent: line(&it.agent),
        arguments,
        state: frame.w.state_word(&it.status),
        by: it.decided_by.as_deref().map(line).unwrap_or_default(),
    }
}

/// The sentence that somebody reads before they answer.
fn told(found: &Matches, w: &'static Words) -> String {
    let figures = [
        ("n", found.asked),
        ("g", found.granted),
        ("gy", found.granted_by_you),
        ("d", found.denied),
        ("dy", found.denied_by_you),
    ];
    let figures = figures.map(|(name, n)| (name, n.to_string()));
    let gaps: Vec<(&str, &str)> = figures.iter().map(|(name, n)| (*name, &**n)).collect();
    let sentence = fill(if found.asked == 0 { w.matches_none } else { w.matches_some }, &gaps);
    if !found.cut_off {
        return sentence;
    }
    format!("{sentence} {}", fill(w.matches_cut, &[("n", &found.looked_at.to_string())]))
}

/// What an answer may be remembered for.
pub fn scopes(w: &'static Words) -> [(&'static str, &'static str); 3] {
    [("run", w.remember_run), ("agent", w.remember_agent), ("always", w.remember_always)]
}

/// And for how long.
pub fn times(w: &'static Words) -> [(&'static str, &'static str); 4] {
    [("1h", w.hour_1), ("1d", w.day_1), ("7d", w.days_7), ("30d", w.days_30)]
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::console::words::{EN, ZH};

    #[test]
    fn the_sentence_says_who_denied_and_when_it_did_not_look_at_everything() {
        let check = |asked, denied, cut_off, en: &str, zh: &str| {
            let found = Matches {
                scope: "agent".to_owned(),
                since: Timestamp::UNIX_EPOCH,
                asked,
                granted: asked - denied,
                denied,
                granted_by_you: 0,
                denied_by_you: denied,
                looked_at: 500,
                cut_off,
                questions: Vec::new(),
            };
            assert_eq!((&*told(&found, &EN), &*told(&found, &ZH)), (en, zh));
        };
        check(
            11,
            1,
            false,
            "Would have matched 11 asked in 30 days: 10 approved (0 by you), 1 denied (1 by you).",
            "过去 30 天内会匹配 11 次询问：批准 10 次（你 0 次），拒绝 1 次（你 1 次）。",
        );
        check(
            0,
            0,
            true,
            "Would have matched nothing else that was asked in 30 days. Only the newest 500 \
             questions about this tool were looked at.",
            "过去 30 天内没有其他询问与之匹配。 仅查看了关于此工具的最近 500 次询问。",
        );
    }
}
