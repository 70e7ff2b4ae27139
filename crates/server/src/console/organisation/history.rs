//! The organisation's history: every version that was in force, what each of them changed, and
//! what lies between two. To go back is to begin a draft from an earlier one: there is no second
//! way to put something in force.

use std::collections::BTreeMap;

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use chancery_api::org::{Difference, Version, VersionFiles};
use chancery_runtime::clock;
use serde::Deserialize;

use super::draft::lines_between;
use crate::access::Operator;
use crate::console::audit::operator;
use crate::console::card::DiffLine;
use crate::console::meaning::{Means, means};
use crate::console::page::{Frame, Room, draw};
use crate::console::time;
use crate::console::visitor::Visitor;
use crate::console::wire::{Of, actor, word};
use crate::console::words::{Words, fill};
use crate::error::Result;
use crate::extract::Params;
use crate::organisation::difference::difference;
use crate::organisation::{Files, Loaded, Mistakes, load};
use crate::router::App;
use crate::routes::org;
use crate::view;

/// Each of them is read whole, to say what it changed.
const PAGE: u32 = 20;
/// Of one version; the comparison has them all.
const DIFFERENCES_MAX: usize = 6;

#[derive(Template)]
#[template(path = "history.html")]
struct HistoryPage {
    frame: Frame,
    rows: Vec<Row>,
    next: Option<String>,
    compared: Option<Compared>,
    from: String,
    to: String,
}

struct Row {
    number: u64,
    /// Ready for a page.
    ago: String,
    by: String,
    source: String,
    in_force: bool,
    changed: Changed,
}

/// What a version changed.
enum Changed {
    First,
    Unread,
    Differences { shown: Vec<Means>, more: String },
}

struct Compared {
    differences: Vec<Means>,
    /// One of the two cannot be read by this server: only their lines are compared.
    unread: bool,
    diff: Vec<DiffLine>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Beginning {
    #[serde(default)]
    cursor: Option<String>,
}

pub async fn list(
    State(app): State<App>,
    visitor: Visitor,
    Query(Beginning { cursor }): Query<Beginning>,
) -> Result<Response> {
    let operator = operator(&visitor)?;
    let w = visitor.words();
    let params = Params(org::VersionsParams::of(PAGE, cursor));
    let Json(page) = org::versions(State(app.clone()), operator.clone(), params).await?;
    let in_force = app.organisation.state().version.number;
    let mut rows = Vec::new();
    let mut after = None;
    for version in page.items {
        let number = version.version;
        let own = match after.take() {
            Some(own) => own,
            None => read(&app, &operator, number).await?,
        };
        let before = match number.checked_sub(1).filter(|it| *it > 0) {
            Some(before) => Some(read(&app, &operator, before).await?),
            None => None,
        };
        let changed = changed(before.as_ref(), &own, w);
        rows.push(row(version, in_force, changed, w));
        after = before;
    }
    let (from, to) = (in_force.saturating_sub(1).max(1).to_string(), in_force.to_string());
    let frame = Frame::of(&visitor, Room::Organisation, w.history);
    draw(&HistoryPage { frame, rows, next: page.next_cursor, compared: None, from, to })
}

#[derive(Debug, Deserialize)]
pub struct Two {
    from: String,
    to: String,
}

/// What lies between two of them, in words and in lines.
pub async fn compare(
    State(app): State<App>,
    visitor: Visitor,
    Query(Two { from, to }): Query<Two>,
) -> Result<Response> {
    let operator = operator(&visitor)?;
    let old = kept(&app, &operator, &from).await?.files;
    let new = kept(&app, &operator, &to).await?.files;
    let differences = match (loaded(old.clone()), loaded(new.clone())) {
        (Some(old), Some(new)) => Some(between(&old, &new, visitor.words())),
        _ => None,
    };
    let compared = Compared {
        unread: differences.is_none(),
        differences: differences.unwrap_or_default(),
        diff: lines_between(&old, &new),
    };
    let frame = Frame::of(&visitor, Room::Organisation, visitor.words().history);
    let (rows, next) = (Vec::new(), None);
    draw(&HistoryPage { frame, rows, next, compared: Some(compared), from, to })
}

async fn kept(app: &App, operator: &Operator, number: &str) -> Result<VersionFiles> {
    let path = Path(number.trim().to_owned());
    let Json(kept) = org::version(State(app.clone()), operator.clone(), path).await?;
    Ok(kept)
}

async fn read(app: &App, operator: &Operator, number: u64) -> Result<Option<Loaded>> {
    Ok(loaded(kept(app, operator, &number.to_string()).await?.files))
}

/// What was in force once may say what is a mistake now.
fn loaded(files: BTreeMap<String, String>) -> Option<Loaded> {
    let mut mistakes = Mistakes::default();
    let files = Files::new(files, &mut mistakes);
    load(files, mistakes).ok()
}

fn between(old: &Loaded, new: &Loaded, w: &'static Words) -> Vec<Means> {
    let differences: Vec<Difference> =
        difference(old, new).into_iter().map(view::org::difference).collect();
    means(&differences, w)
}

fn changed(before: Option<&Option<Loaded>>, own: &Option<Loaded>, w: &'static Words) -> Changed {
    match (before, own) {
        (None, _) => Changed::First,
        (Some(Some(before)), Some(own)) => {
            let mut shown = between(before, own, w);
            let more = shown.len().saturating_sub(DIFFERENCES_MAX);
            shown.truncate(DIFFERENCES_MAX);
            let more = match more {
                0 => String::new(),
                n => fill(w.history_more, &[("n", &n.to_string())]),
            };
            Changed::Differences { shown, more }
        }
        _ => Changed::Unread,
    }
}

fn row(it: Version, in_force: u64, changed: Changed, w: &'static Words) -> Row {
    Row {
        number: it.version,
        ago: time::ago(it.at, clock::now(), w),
        by: actor(&it.by, w).into_owned(),
        source: word(Of::Source, &it.source, w).to_owned(),
        in_force: it.version == in_force,
        changed,
    }
}
