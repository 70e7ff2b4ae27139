//! A child run: spawned with its parent's wait, given up when it takes too long, cancelled when
//! nobody waits for it any longer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chancery_domain::command::{self, Effect};
use chancery_domain::escalation::{self, Refusal, spawn_of, waited_for_person};
use chancery_domain::event::{
    Actor, Ancestor, Call, CallEnded, CallResult, ChildSpawned, Created, Member, Recorded, Room,
};
use chancery_domain::history::History;
use chancery_domain::id::{GroupId, RunId};
use chancery_domain::org::Org;
use chancery_domain::run::{Run, Wait};
use chancery_store::log::Amendment;
use chancery_store::timer::Due;
use chancery_store::{AppendError, Store, StoreError};
use jiff::Timestamp;
use serde_json::json;

use crate::authority::Authority;
use crate::clock;
use crate::journal::{Journal, JournalError};
use crate::tool::group::Goal;

mod choice;

pub use choice::choose;

/// On which terms goals are handed on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// How long a child may take, the time aside that it waits for a person.
    pub timeout: Duration,
    pub on_timeout: OnTimeout,
    /// How many runs may stand above one another beneath the first.
    pub depth_max: usize,
}

/// What becomes of a child that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    Cancel,
    /// It goes on, and what it comes to is deposited; nobody waits for it.
    Detach,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms { timeout: Duration::from_secs(300), on_timeout: OnTimeout::Cancel, depth_max: 5 }
    }
}

const ORPHANS_MAX: u32 = 256;

/// Hands a goal to a group, or tells the model why not.
pub async fn spawn(
    journal: &mut Journal<'_>,
    authority: &Authority,
    terms: &Terms,
    call: &Call,
    goal: Goal,
) -> Result<(), JournalError> {
    let created = journal.context().created().clone();
    let refused = |result| CallEnded { call: call.id.clone(), result };
    let (group, chosen) = match pick(authority.org(), &created, &goal) {
        Ok(picked) => picked,
        Err(result) => return journal.record(refused(result)),
    };
    let room = match room(authority.org(), &created, &group, terms) {
        Ok(room) => room,
        Err(refusal) => return journal.record(refused(refusal.result())),
    };
    let speaker = journal.speaker()?;
    let asked = goal.delegated_permissions.as_ref();
    let delegated = authority.policy().delegate(
        created.delegated.as_ref(),
        &speaker.agent,
        &created.user,
        asked,
    );
    let run = journal.history()?.id();
    let first = room.members.first().cloned();
    let Member { agent, role } = first.unwrap_or_else(|| speaker.clone());
    let mut ancestors = created.ancestors.clone();
    ancestors.push(Ancestor { run, group: created.group.clone() });
    let child = clock::new_run_id();
    let spawned = ChildSpawned {
        call: call.id.clone(),
        child,
        group: group.clone(),
        goal: goal.goal.clone(),
        chosen,
        spawned_at: journal.database_now().await?,
        limit_seconds: Some(terms.timeout.as_secs().max(1)),
    };
    let input = match &goal.context {
        Some(context) if !context.trim().is_empty() => {
            format!("{}\n\nContext:\n{context}", goal.goal)
        }
        _ => goal.goal,
    };
    journal.spawn(
        spawned,
        Created {
            org: created.org.clone(),
            agent,
            role,
            user: created.user.clone(),
            project: created.project.clone(),
            group: Some(group),
            session_key: None,
            parent: Some(run),
            ancestors,
            room: Some(Arc::new(room)),
            persons_words: journal.context().kept_words(),
            delegated: Some(delegated),
            input,
            by: Actor::Agent(speaker.agent),
            org_version: authority.org().version,
            contract: created.contract.clone(),
            mails: Vec::new(),
            call: None,
            forked: None,
        },
    )
}

/// The group that was named, or one that suits the goal, with the reason.
fn pick(
    org: &Org,
    created: &Created,
    goal: &Goal,
) -> Result<(GroupId, Option<String>), CallResult> {
    if let Some(named) = &goal.group_id {
        return Ok((named.clone(), None));
    }
    let above = |id: &GroupId| escalation::is_above(created, id);
    match choose(org, &goal.goal, created.project.as_ref(), above) {
        Some((group, why)) => Ok((group, Some(why))),
        None => {
            let groups = org.groups_at_work().filter(|(id, _)| !above(id));
            let groups: Vec<_> = groups
                .map(|(id, it)| {
                    json!({"group_id": id, "name": it.name, "description": it.description})
                })
                .collect();
            let said = json!({
                "success": false,
                "error": "no group suits this goal clearly: name one of these as `group_id`",
                "groups": groups,
            });
            Err(escalation::answer("NO_GROUP_CHOSEN", &said))
        }
    }
}

fn room(org: &Org, created: &Created, group: &GroupId, terms: &Terms) -> Result<Room, Refusal> {
    let room = room_of(org, group)?;
    escalation::check(created, group, terms.depth_max)?;
    Ok(room)
}

/// Who speaks in a group's run: its members that are at work.
pub fn room_of(org: &Org, id: &GroupId) -> Result<Room, Refusal> {
    let group = org.groups.get(id).ok_or_else(|| Refusal::UnknownGroup(id.clone()))?;
    let members = group.members.iter().filter_map(|agent| {
        let role = org.active_role_of(agent)?;
        Some(Member { agent: agent.clone(), role: role.id.clone() })
    });
    let members: Vec<Member> = members.collect();
    if members.is_empty() {
        return Err(Refusal::NobodyAtWork(id.clone()));
    }
    Ok(Room { members, lead: group.lead.clone(), rounds: group.rounds.max(1) })
}

/// Gives up the children of a run whose time is up; the time that they waited for a person does
/// not count.
pub async fn overdue(store: &Store, due: &Due, terms: &Terms) -> Result<(), AppendError> {
    let now = store.now().await?;
    let log = store.events(due.run, 0, u32::MAX).await?;
    let Ok(history) = History::fold(due.run, &log) else { return Ok(()) };
    let Run::Waiting(Wait::Children(batch)) = history.run() else { return Ok(()) };
    let children: Vec<RunId> = batch.away().map(|(_, child)| child).collect();
    let mut look: Option<Duration> = None;
    for child in children {
        let Some(spawned) = spawn_of(&log, child) else { continue };
        let Some(limit) = spawned.limit_seconds.map(Duration::from_secs) else { continue };
        let (waited, waits) = person_time(store, child, (spawned.spawned_at, now)).await?;
        let passed = Duration::try_from(now.duration_since(spawned.spawned_at));
        let left = (limit + waited).saturating_sub(passed.unwrap_or_default());
        if left.is_zero() {
            give_up(store, due.run, child, limit, terms.on_timeout).await?;
            continue;
        }
        // While a person is waited for nothing is lost by looking seldom.
        let left = if waits { left.max(limit / 10).max(Duration::from_millis(100)) } else { left };
        look = Some(look.map_or(left, |it| it.min(left)));
    }
    match look {
        Some(wait) => Ok(store.look_again(due, wait).await?),
        None => Ok(()),
    }
}

async fn give_up(
    store: &Store,
    parent: RunId,
    child: RunId,
    limit: Duration,
    on_timeout: OnTimeout,
) -> Result<(), AppendError> {
    let abandoned = on_timeout == OnTimeout::Cancel;
    let given_up = store
        .amend(parent, clock::now(), |history, _| {
            let given_up = escalation::give_up(history, child, limit, abandoned)?;
            // It came back in the last moment.
            Ok::<_, chancery_domain::run::Illegal>(
                given_up.map_or(Amendment::Nothing(()), Amendment::Record),
            )
        })
        .await?;
    if let Err(illegal) = given_up {
        tracing::error!(run.id = %parent, %illegal, "{child} cannot be given up: {illegal}");
    }
    Ok(())
}

/// For how long a run and those beneath it have waited for a person.
async fn person_time(
    store: &Store,
    run: RunId,
    span: (Timestamp, Timestamp),
) -> Result<(Duration, bool), StoreError> {
    let mut logs: HashMap<RunId, Vec<Recorded>> = HashMap::new();
    let mut unread = vec![run];
    while let Some(run) = unread.pop() {
        let log = store.events(run, 0, u32::MAX).await?;
        let children = log.iter().filter_map(|it| match &it.event {
            chancery_domain::event::Event::ChildSpawned(spawned) => Some(spawned.child),
            _ => None,
        });
        unread.extend(children.filter(|it| !logs.contains_key(it)));
        logs.insert(run, log);
    }
    Ok(person_time_in(&logs, run, span))
}

fn person_time_in(
    logs: &HashMap<RunId, Vec<Recorded>>,
    run: RunId,
    span: (Timestamp, Timestamp),
) -> (Duration, bool) {
    let Some(log) = logs.get(&run) else { return Default::default() };
    waited_for_person(log, span, &mut |child, span| person_time_in(logs, child, span))
}

/// Cancels the runs that nobody waits for any longer, and then those beneath them. Answers
/// whether there were any.
pub async fn cancel_orphans(store: &Store) -> Result<bool, StoreError> {
    let orphans = store.orphans(ORPHANS_MAX).await?;
    for run in &orphans {
        let cancelled = store
            .amend(*run, clock::now(), |history, _| {
                match command::cancel(history, Actor::System) {
                    Ok(Effect::Record(history)) => Ok(Amendment::Record(history)),
                    Ok(Effect::Already) => Ok(Amendment::Nothing(())),
                    // It has ended by itself.
                    Err(command::Refusal::Ended(_)) => Ok(Amendment::Nothing(())),
                    Err(refusal) => Err(refusal),
                }
            })
            .await;
        match cancelled {
            Ok(Ok(_)) | Err(AppendError::NoSuchRun(_)) => store.forget_orphan(*run).await?,
            Ok(Err(refusal)) => tracing::error!(run.id = %run, %refusal, "{run} is not cancelled"),
            Err(AppendError::Store(error)) => return Err(error),
            Err(error) => tracing::warn!(run.id = %run, %error, "{run} is not cancelled yet"),
        }
    }
    Ok(!orphans.is_empty())
}
