//! Jumping: pages, agents, what waits, and runs, by a piece of their name. Nothing is found that
//! its own page would not show.

use askama::Template;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use chancery_domain::id::{PermissionId, RunId};
use chancery_store::permission::PermissionFilter;
use chancery_store::read::RunFilter;
use serde::Deserialize;

use super::html::line;
use super::page::{Frame, Room, draw, escaped, segment};
use super::runs::goal;
use super::visitor::Visitor;
use super::waits::Waits;
use super::wire::{Of, word};
use crate::error::Result;
use crate::router::App;
use crate::routes::{audit, contracts, mail};

/// The newest runs and questions are looked through; older ones are found on their pages.
const NEWEST: u32 = 200;
const FOUND_MAX: usize = 20;
const ASKED_MAX: usize = 200;

#[derive(Template)]
#[template(path = "jump.html")]
struct JumpPage {
    frame: Frame,
    q: String,
    found: Vec<Found>,
}

/// All text in it is ready for a page.
#[derive(Debug)]
struct Found {
    href: String,
    name: String,
    kind: &'static str,
    more: String,
}

#[derive(Debug, Deserialize)]
pub struct Asked {
    #[serde(default)]
    q: String,
}

pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Query(Asked { q }): Query<Asked>,
) -> Result<Response> {
    let q: String = q.trim().chars().take(ASKED_MAX).collect();
    let frame = Frame::of(&visitor, Room::Nowhere, visitor.words().jump);
    let mut found = pages(&frame, &q);
    if !q.is_empty() {
        found.extend(named(&app, &visitor, &q).await);
        found.extend(asked(&app, &visitor, &q).await?);
        found.extend(agents(&app, &visitor, &q));
        found.extend(runs(&app, &visitor, &q).await?);
    }
    found.truncate(FOUND_MAX);
    draw(&JumpPage { frame, q, found })
}

/// Whether one of the texts has every word of what is looked for.
fn fits(q: &str, texts: &[&str]) -> bool {
    let texts: Vec<String> = texts.iter().map(|it| it.to_lowercase()).collect();
    let wanted = q.to_lowercase();
    wanted.split_whitespace().all(|word| texts.iter().any(|it| it.contains(word)))
}

fn pages(frame: &Frame, q: &str) -> Vec<Found> {
    let w = frame.w;
    let mut pages: Vec<(&str, &str)> =
        frame.rooms().into_iter().map(|(_, href, name)| (href, name)).collect();
    pages.extend([
        ("/help", w.keys_title),
        ("/inbox?show=decided", w.decided_tab),
        ("/mail?show=contracts", w.contracts),
        ("/mail?show=rejections", w.rejected),
    ]);
    let found = pages.into_iter().filter(|(href, name)| fits(q, &[name, href]));
    let page = |(href, name): (&str, &str)| Found {
        href: href.to_owned(),
        name: line(name),
        kind: w.jump_page,
        more: String::new(),
    };
    found.map(page).collect()
}

fn agents(app: &App, visitor: &Visitor, q: &str) -> Vec<Found> {
    let w = visitor.words();
    let authority = app.authority.get();
    let found = authority
        .org()
        .agents()
        .filter(|(id, it)| it.active && fits(q, &[id.as_str(), it.role.as_str()]));
    let agent = |id: &str, role: &str| Found {
        href: format!("/chat?to={}", escaped(id)),
        name: line(id),
        kind: w.agent,
        more: line(role),
    };
    found.map(|(id, it)| agent(id.as_str(), it.role.as_str())).collect()
}

/// What has this very id, if its own page would show it.
async fn named(app: &App, visitor: &Visitor, q: &str) -> Option<Found> {
    let w = visitor.words();
    let found = |page: &str, name: &str, kind| Found {
        href: format!("/{page}/{}", segment(q)),
        name: format!("<span lang=\"\">{}</span>", line(name)),
        kind,
        more: line(q),
    };
    let (state, caller, id) = (State(app.clone()), visitor.caller.clone(), Path(q.to_owned()));
    match q.split_once(['-', '_'])?.0 {
        "MAIL" => {
            let Json(it) = mail::show(state, caller, id).await.ok()?;
            Some(found("mail", &it.subject, w.mail))
        }
        "CTR" => {
            let Json(it) = contracts::show(state, caller, id).await.ok()?;
            Some(found("contracts", &it.contract.title, w.contract))
        }
        "aud" => {
            let Json(it) = audit::show(state, caller, id).await.ok()?;
            Some(found("audit", word(Of::Entry, &it.kind, w), w.audit))
        }
        _ => None,
    }
}

async fn asked(app: &App, visitor: &Visitor, q: &str) -> Result<Vec<Found>> {
    let w = visitor.words();
    let user = visitor.caller.asked_for(app)?;
    let mut rows = Vec::new();
    if let Ok(id) = q.parse::<PermissionId>() {
        let row = app.store.permission(id).await?;
        rows.extend(row.filter(|it| user.as_ref().is_none_or(|user| *user == it.user)));
    } else {
        let status = Some("pending".to_owned());
        let filter = PermissionFilter { status, user, ..PermissionFilter::default() };
        rows = app.store.permissions(&filter, NEWEST).await?;
        rows.retain(|it| fits(q, &[&it.call.tool, it.agent.as_str(), it.user.as_str()]));
    }
    let question = |it: &chancery_store::permission::PermissionRow| Found {
        href: format!("/inbox/{}", it.id),
        name: line(&it.call.tool),
        kind: w.state_word(&it.status),
        more: line(it.agent.as_str()),
    };
    Ok(rows.iter().map(question).collect())
}

async fn runs(app: &App, visitor: &Visitor, q: &str) -> Result<Vec<Found>> {
    let w = visitor.words();
    let mut rows = Vec::new();
    if q.parse::<RunId>().is_ok() {
        rows.extend(visitor.caller.run(app, q).await.ok());
    } else {
        let filter = RunFilter { user: visitor.caller.sees()?, ..RunFilter::default() };
        rows = app.store.runs(&filter, NEWEST).await?;
        rows.retain(|it| {
            let group = it.group.as_ref().map_or("", |it| it.as_str());
            fits(q, &[&it.input, it.agent.as_str(), group])
        });
    }
    let waits = Waits::of(app, &rows).await?;
    let run = |it: &chancery_store::read::RunRow| Found {
        href: format!("/runs/{}", it.id),
        name: format!("<span lang=\"\">{}</span>", goal(&it.input)),
        kind: w.run,
        more: format!("{} · {}", line(it.agent.as_str()), waits.stands(it, w).word),
    };
    Ok(rows.iter().map(run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_must_be_found_somewhere() {
        assert!(fits("", &["anything"]));
        assert!(fits("DEP work", &["docker_deploy", "devops_worker"]));
        assert!(!fits("deploy ceo", &["docker_deploy", "devops_worker"]));
        assert!(fits("定价", &["发布定价修复"]));
    }
}
