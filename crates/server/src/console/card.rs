//! What people are asked, as a page shows it: the server draws the call, the agent is quoted. The
//! same card stands in the inbox and in a talk.

mod call;

use chancery_api::permission::Permission;
use chancery_domain::event::{Event, Recorded};
use chancery_domain::id::{AgentId, RunId};
use chancery_domain::policy::Ruling;
use chancery_runtime::clock;
use chancery_store::permission::PermissionFilter;
use jiff::{SignedDuration, Timestamp};

pub use call::{Call, DiffLine, Field, Why, diff, fields, whys};

use super::html::line;
use super::time;
use super::visitor::Visitor;
use super::wire::actor;
use super::words::Words;
use crate::error::Result;
use crate::router::App;
use crate::routes::permissions;

/// How far back one looks for what was answered before.
const BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The newest questions of a run, among which those of a batch are looked for.
const BATCH_MAX: u32 = 200;

/// One batch: all its calls, also those that ask nothing.
#[derive(Debug)]
pub struct Card {
    pub run: String,
    pub message: String,
    /// Whether the reader may look at the run itself.
    pub sees_run: bool,
    /// From the person down to whoever asks.
    pub chain: Vec<Step>,
    pub calls: Vec<Call>,
    pub open: usize,
    pub asked: usize,
    /// How long it has waited.
    pub waited: String,
    pub expires: Option<Expiry>,
}

impl Card {
    /// Whether nobody answered something in time.
    pub fn has_expired(&self) -> bool {
        self.calls.iter().any(|it| it.state == "expired")
    }
}

#[derive(Debug)]
pub struct Step {
    pub name: String,
    /// Empty: nothing to look at.
    pub href: String,
}

#[derive(Debug)]
pub struct Expiry {
    pub left: String,
    pub soon: bool,
}

/// The batch that a question belongs to.
pub async fn of(app: &App, visitor: &Visitor, permission: &Permission) -> Result<Card> {
    let caller = &visitor.caller;
    let w = visitor.words();
    let run: RunId = permission.run_id.parse().map_err(|_| missing(&permission.run_id))?;
    let filter = PermissionFilter {
        run: Some(run),
        user: caller.asked_for(app)?,
        newest_first: true,
        ..PermissionFilter::default()
    };
    let mut asked = Vec::new();
    for row in app.store.permissions(&filter, BATCH_MAX).await?.into_iter().rev() {
        if row.message.to_string() == permission.message_id {
            asked.push(permissions::shown(app, row).await?);
        }
    }
    // One that lies far back in a long run is not among the newest.
    if !asked.iter().any(|it| it.id == permission.id) {
        asked.insert(0, permission.clone());
    }
    let now = app.store.now().await?;
    let mut calls = Vec::new();
    for it in &asked {
        let agent = AgentId::from(&*it.agent);
        let since = now - BEFORE;
        let before = app.store.asked_before(&agent, &it.tool, since).await?;
        calls.push(Call::of(it, before, now, w));
    }
    let sees_run = caller.run(app, &permission.run_id).await.is_ok();
    let log = app.store.events(run, 0, u32::MAX).await?;
    for call in &mut calls {
        call.heard(&log);
    }
    let calls = among_siblings(log, &permission.message_id, calls, w);
    let pending = || asked.iter().filter(|it| it.status == "pending");
    let expires = pending().filter_map(|it| it.expires_at).min();
    Ok(Card {
        chain: chain(permission, sees_run),
        open: pending().count(),
        asked: asked.len(),
        waited: time::waited(permission.created_at, now, w),
        expires: expires.map(|at| Expiry::of(at, now, w)),
        run: permission.run_id.clone(),
        message: permission.message_id.clone(),
        sees_run,
        calls,
    })
}

fn missing(id: &str) -> crate::error::ApiError {
    crate::error::ApiError::NotFound { what: "run", id: id.to_owned() }
}

impl Expiry {
    fn of(at: Timestamp, now: Timestamp, w: &'static Words) -> Expiry {
        let soon = at.duration_since(now) < SignedDuration::from_hours(1);
        Expiry { left: time::left(at, now, w), soon }
    }
}

/// All calls of the batch in the model's order. Those that ask nothing are named, and no more is
/// said of them: whoever answers need not be somebody who sees the run.
fn among_siblings(
    log: Vec<Recorded>,
    message: &str,
    mut asked: Vec<Call>,
    w: &'static Words,
) -> Vec<Call> {
    let mut calls = Vec::new();
    for recorded in log {
        let Event::BatchProposed(batch) = recorded.event else { continue };
        if batch.message.to_string() != message {
            continue;
        }
        for it in &batch.calls {
            // One call may have been asked about more than once.
            let place = |call: &Call| call.call_id == it.call.id.as_str();
            if !asked.iter().any(place) {
                calls.push(Call::silent(it, w));
            }
            while let Some(at) = asked.iter().position(place) {
                calls.push(asked.remove(at));
            }
        }
    }
    calls.extend(asked);
    for (number, call) in calls.iter_mut().enumerate() {
        call.number = number + 1;
    }
    calls
}

fn chain(permission: &Permission, sees_run: bool) -> Vec<Step> {
    let mut steps = vec![Step { name: line(&permission.user), href: String::new() }];
    for link in permission.chain.iter().rev() {
        let href = if sees_run { format!("/runs/{}", link.run_id) } else { String::new() };
        if let Some(group) = &link.group {
            steps.push(Step { name: line(group), href: href.clone() });
        }
        steps.push(Step { name: line(&link.agent), href });
    }
    steps
}

/// A batch in a list.
#[derive(Debug)]
pub struct Row {
    pub id: String,
    pub message: String,
    pub tool: String,
    pub more: usize,
    pub risk: String,
    pub who: String,
    pub user: String,
    pub status: String,
    pub decided: String,
    pub waited: String,
    pub expires: Option<Expiry>,
    pub escalated: bool,
    /// Of what was shown: it may be picked, with others like it.
    pub pick: Option<Pick>,
}

/// What makes a row fit to be answered with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    pub digest: String,
    /// The same among those that may be answered together.
    pub like: String,
}

/// Questions as rows: one for each batch, the riskiest first, then the oldest.
pub fn rows(asked: &[Permission], w: &'static Words) -> Vec<Row> {
    let now = clock::now();
    let mut rows: Vec<(u8, Row)> = Vec::new();
    for it in asked {
        let known = rows.iter_mut().find(|(_, row)| row.message == it.message_id);
        let rank = rank(it.risk.as_deref());
        match known {
            Some((highest, row)) => {
                row.more += 1;
                row.pick = None;
                if rank < *highest {
                    *highest = rank;
                    (row.tool, row.risk) = (line(&it.tool), risk(it));
                    row.id.clone_from(&it.id);
                }
            }
            None => rows.push((rank, row(it, now, w))),
        }
    }
    // The oldest come first already, and stay so among those of one risk.
    rows.sort_by_key(|(rank, _)| *rank);
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    // One alone is answered on its card.
    let likes: Vec<String> =
        rows.iter().filter_map(|it| it.pick.as_ref().map(|it| it.like.clone())).collect();
    let alone = |it: &Pick| likes.iter().filter(|like| **like == it.like).count() < 2;
    for row in &mut rows {
        row.pick = row.pick.take().filter(|it| !alone(it));
    }
    rows
}

pub fn row(it: &Permission, now: Timestamp, w: &'static Words) -> Row {
    let who = match it.chain.first().and_then(|it| it.group.as_deref()) {
        Some(group) => format!("{} · {}", line(&it.agent), line(group)),
        None => line(&it.agent),
    };
    let decided = it.decided_at.map(|at| time::ago(at, now, w));
    let by = it.decided_by.as_deref().map(|it| line(&actor(it, w)));
    let decided: Vec<String> = by.into_iter().chain(decided).collect();
    Row {
        id: it.id.clone(),
        message: it.message_id.clone(),
        tool: line(&it.tool),
        more: 0,
        risk: risk(it),
        who,
        user: line(&it.user),
        status: it.status.clone(),
        decided: decided.join(" · "),
        waited: time::waited(it.created_at, now, w),
        expires: it.expires_at.map(|at| Expiry::of(at, now, w)),
        escalated: it.escalated_at.is_some(),
        pick: pick(it),
    }
}

/// Only what is of low or medium risk, and asks no person each time.
fn pick(it: &Permission) -> Option<Pick> {
    let plain = matches!(it.risk.as_deref(), Some("low" | "medium"))
        && it.ruling == Ruling::RequireApproval.as_str()
        && it.kind != "recover"
        && it.status == "pending";
    let like = format!("{}\n{}", it.agent, it.tool);
    plain.then(|| Pick { digest: it.arguments_sha256.clone(), like })
}

fn risk(it: &Permission) -> String {
    it.risk.clone().unwrap_or_else(|| "none".to_owned())
}

fn rank(risk: Option<&str>) -> u8 {
    match risk {
        Some("high") => 0,
        Some("medium") => 1,
        Some("low") => 2,
        // What nobody has said anything of may be anything.
        _ => 0,
    }
}
