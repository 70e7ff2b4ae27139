//! What a draft would have meant: calls that were made and mail that was sent once more, under the
//! rules in force and under the draft. Nothing runs, and nothing is recorded.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use chancery_domain::contract::Warrant;
use chancery_domain::event::{Created, Event, Recorded};
use chancery_domain::id::{AgentId, RunId};
use chancery_domain::mail::{self, Draft, Known};
use chancery_domain::org::Org;
use chancery_domain::policy::Ruling;
use chancery_runtime::authority::{Authority, Case, Given, Judgment};
use chancery_runtime::context::Context;
use chancery_runtime::rules::Literals;
use chancery_store::mail::Attempt;
use chancery_store::read::{RunFilter, RunRow};
use chancery_store::{Store, StoreError};
use jiff::{SignedDuration, Timestamp};

/// How far back a draft is tried on what happened, unless somebody says.
pub const BACK: SignedDuration = SignedDuration::from_hours(30 * 24);
/// More runs than this are not looked through while somebody waits for a page.
const RUNS_MAX: usize = 2000;
const PAGE: u32 = 200;
/// Nor are more mails.
const MAILS_MAX: u32 = 2000;

/// Calls that are ruled on alike, and otherwise than now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    pub agent: String,
    pub user: String,
    pub tool: String,
    pub before: Ruling,
    pub after: Ruling,
    /// What decides under the draft, or decided until now.
    pub because: String,
}

/// How often, and where it can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub times: u64,
    pub run: RunId,
}

/// Mails between the same two that would have come to something else.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MailChange {
    pub from: String,
    pub to: String,
    pub kind: String,
    /// It was blocked and would have been delivered; otherwise it is the other way round.
    pub passes: bool,
    /// Why it was blocked, or would be.
    pub because: String,
}

/// How often, and the newest run that sent one, where a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailSeen {
    pub times: u64,
    pub run: Option<RunId>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Impact {
    pub runs: u64,
    pub calls: u64,
    /// Of tools that the draft cannot know before it is in force: an MCP server's.
    pub unknown: u64,
    /// There were more runs than were looked through: these are the newest.
    pub cut_off: bool,
    pub changes: BTreeMap<Change, Seen>,
    pub mail: MailImpact,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailImpact {
    pub mails: u64,
    /// There were more than were looked through: these are the newest.
    pub cut_off: bool,
    pub changes: BTreeMap<MailChange, MailSeen>,
}

impl Impact {
    /// How many calls would be ruled on more, and how many less, strictly.
    pub fn stricter_and_looser(&self) -> (u64, u64) {
        let count = |stricter: bool| {
            let of = self.changes.iter().filter(|(it, _)| (it.after > it.before) == stricter);
            of.map(|(_, seen)| seen.times).sum()
        };
        (count(true), count(false))
    }
}

impl MailImpact {
    /// How many blocked mails would have passed, and how many delivered ones been blocked.
    pub fn passed_and_blocked(&self) -> (u64, u64) {
        let count = |passes: bool| {
            let of = self.changes.iter().filter(|(it, _)| it.passes == passes);
            of.map(|(_, seen)| seen.times).sum()
        };
        (count(true), count(false))
    }
}

/// Looks through the calls of every run that was asked for since then, and the mail.
pub async fn impact(
    store: &Store,
    now: &Authority,
    draft: &Authority,
    since: Timestamp,
    at: Timestamp,
) -> Result<Impact, StoreError> {
    let mut found = Impact::default();
    let mut warrants = HashMap::new();
    let rows = recent(store, since).await?;
    found.cut_off = rows.len() >= RUNS_MAX;
    for row in &rows {
        found.runs += 1;
        let log = store.events(row.id, 0, u32::MAX).await?;
        let Some(Event::Created(created)) = log.first().map(|it| it.event.clone()) else {
            continue;
        };
        for agent in speakers(&log, &created) {
            let key = (agent.clone(), created.contract.clone());
            if let Entry::Vacant(place) = warrants.entry(key) {
                place.insert(store.warrant(&agent, created.contract.as_ref()).await?);
            }
        }
        let nothing = Warrant::default();
        let warrant = |agent: &AgentId| {
            warrants.get(&(agent.clone(), created.contract.clone())).unwrap_or(&nothing)
        };
        replay(row.id, &log, &created, [now, draft], at, warrant, &mut found);
    }
    found.mail = impact_on_mail(store, [now.org(), draft.org()], since).await?;
    Ok(found)
}

/// Looks through the mail that somebody wanted to send since then.
pub async fn impact_on_mail(
    store: &Store,
    orgs: [&Org; 2],
    since: Timestamp,
) -> Result<MailImpact, StoreError> {
    let mut found = MailImpact::default();
    let attempts = store.mail_attempts(since, MAILS_MAX).await?;
    found.cut_off = attempts.len() >= MAILS_MAX as usize;
    for attempt in &attempts {
        found.mails += 1;
        let mail = Draft::bare(&attempt.to, &attempt.kind);
        let mut known = Known::default();
        if orgs.iter().any(|org| mail::needs(org, &attempt.from, &mail).contracts) {
            for name in [&attempt.from, &attempt.to] {
                known.contracts.extend(store.contracts_active_at(name, attempt.at).await?);
            }
        }
        if let Some(change) = otherwise(attempt, orgs, &known) {
            let none = MailSeen { times: 0, run: attempt.run };
            found.changes.entry(change).or_insert(none).times += 1;
        }
    }
    Ok(found)
}

/// What another organisation makes of a mail, if that is not what became of it. What stood in it
/// is left aside, and so is what has been changed since by others than the draft.
fn otherwise(attempt: &Attempt, [now, draft]: [&Org; 2], known: &Known) -> Option<MailChange> {
    let rejected = |org: &Org| {
        let mail = Draft::bare(&attempt.to, &attempt.kind);
        mail::route(org, &attempt.from, &mail, known).err().map(|it| it.reason)
    };
    let (passes, because) = match (&attempt.rejected, rejected(now), rejected(draft)) {
        (Some(_), Some(because), None) => (true, because),
        (None, None, Some(because)) => (false, because),
        _ => return None,
    };
    let Attempt { from, to, kind, .. } = attempt.clone();
    Some(MailChange { from, to, kind, passes, because })
}

async fn recent(store: &Store, since: Timestamp) -> Result<Vec<RunRow>, StoreError> {
    let mut rows: Vec<RunRow> = Vec::new();
    loop {
        let before = rows.last().map(|it| it.id);
        let filter = RunFilter { before, ..RunFilter::default() };
        let page = store.runs(&filter, PAGE).await?;
        let full = page.len() == PAGE as usize;
        let known = rows.len();
        rows.extend(page.into_iter().take_while(|it| it.created_at >= since));
        let all = rows.len() - known == PAGE as usize;
        if !full || !all || rows.len() >= RUNS_MAX {
            rows.truncate(RUNS_MAX);
            return Ok(rows);
        }
    }
}

fn speakers(log: &[Recorded], created: &Created) -> Vec<AgentId> {
    let turns = log.iter().filter_map(|it| match &it.event {
        Event::TurnBegan(turn) => Some(turn.member.agent.clone()),
        _ => None,
    });
    let mut all: Vec<AgentId> = std::iter::once(created.agent.clone()).chain(turns).collect();
    all.sort();
    all.dedup();
    all
}

fn replay<'w>(
    run: RunId,
    log: &[Recorded],
    created: &Created,
    [now, draft]: [&Authority; 2],
    at: Timestamp,
    warrant: impl Fn(&AgentId) -> &'w Warrant,
    found: &mut Impact,
) {
    let mut speaker = created.agent.clone();
    let mut context = Context::new(created.clone(), Vec::new());
    for recorded in log {
        context.follow(&recorded.event);
        let batch = match &recorded.event {
            Event::TurnBegan(turn) => {
                speaker = turn.member.agent.clone();
                continue;
            }
            Event::BatchProposed(batch) => batch,
            _ => continue,
        };
        for proposal in &batch.calls {
            found.calls += 1;
            let tool = &proposal.call.tool;
            let known = |it: &Authority| it.tools().spec(tool).is_some();
            if tool.starts_with("mcp__") && known(now) && !known(draft) {
                found.unknown += 1;
                continue;
            }
            let judge = |authority: &Authority| -> Judgment {
                let literals = authority.has_rules().then(|| Literals::of(context.persons_words()));
                authority.judge(Case {
                    agent: speaker.as_str(),
                    user: created.user.as_str(),
                    delegated: authority.delegation(created).as_ref(),
                    call: &proposal.call,
                    given: Given::Whole,
                    task: literals.as_ref(),
                    now: at,
                    warrant: warrant(&speaker),
                    record: None,
                    limits: &[],
                })
            };
            let (before, after) = (judge(now), judge(draft));
            if before.ruling == after.ruling {
                continue;
            }
            let because = after.reasons.first().or(before.reasons.first());
            let change = Change {
                agent: speaker.to_string(),
                user: created.user.to_string(),
                tool: tool.clone(),
                before: before.ruling,
                after: after.ruling,
                because: because.map(|it| it.detail.clone()).unwrap_or_default(),
            };
            found.changes.entry(change).or_insert(Seen { times: 0, run }).times += 1;
        }
    }
}
