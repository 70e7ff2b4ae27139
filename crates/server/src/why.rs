//! Why something was ruled as it was: every layer as it was then, what the rules in force say of
//! the same, and what would let it through. Reads the record and asks the functions that rule;
//! runs nothing, and records nothing.

use chancery_domain::audit::{Entry, kind};
use chancery_domain::id::{ContractId, RunId, UserId};
use chancery_domain::mail::{BOARD, Draft, Step, steps_looked_at};
use chancery_domain::policy::{Layer, Looked, Manner, Reason, Ruling, Said, looked_at};
use chancery_domain::ways::{self, Asker, Way};
use chancery_store::mail::{Behalf, RejectionRow};

use crate::access::Caller;
use crate::error::{ApiError, Result};
use crate::router::App;
use crate::routes::authorize::{self, Asked};

/// All that there is to say of a ruling.
#[derive(Debug, Default)]
pub struct Why {
    /// As it was then. Empty: the record names none.
    pub layers: Vec<Looked>,
    pub now: Option<Now>,
    pub ways: Vec<Way>,
}

/// What the rules in force say of the same.
#[derive(Debug)]
pub struct Now {
    pub ruling: Ruling,
    pub version: u64,
    pub layers: Vec<Looked>,
}

pub async fn of(app: &App, caller: &Caller, entry: &Entry) -> Result<Why> {
    match &*entry.kind {
        kind::MAIL_REJECTED => {
            let Some(reason) = entry.reasons.first() else { return Ok(Why::default()) };
            let text = |name: &str| entry.detail[name].as_str().unwrap_or_default();
            let mail = Rejected {
                from: entry.agent.as_ref().map_or(BOARD, |it| it.as_str()),
                to: text("to"),
                kind: text("type"),
                step: &reason.rule,
                reason: &reason.detail,
                user: entry.user.as_ref().map_or("", |it| it.as_str()),
                run: entry.run,
                about: entry.detail["contract_ref"].as_str(),
            };
            of_mail(app, caller, mail).await
        }
        // What became of a call that was lost is no question of the rules.
        kind::PERMISSION_REQUESTED if entry.detail["kind"] == "recover" => Ok(Why::default()),
        kind::RULING | kind::PERMISSION_REQUESTED => of_call(app, caller, entry).await,
        _ => Ok(Why::default()),
    }
}

/// Of a mail's rejection, whether the audit has an entry of it or not.
pub async fn of_rejection(app: &App, caller: &Caller, it: &RejectionRow) -> Result<Why> {
    let mail = Rejected {
        from: &it.from,
        to: &it.to,
        kind: &it.kind,
        step: &it.step,
        reason: &it.reason,
        user: it.user.as_str(),
        run: it.run,
        // The audit alone knows.
        about: None,
    };
    of_mail(app, caller, mail).await
}

async fn of_call(app: &App, caller: &Caller, entry: &Entry) -> Result<Why> {
    let (Some(agent), Some(tool)) = (&entry.agent, &entry.tool) else { return Ok(Why::default()) };
    let manner = Manner {
        arguments_aside: entry.detail["arguments_aside"] == true,
        // Only what is asked about as it is to run says of which kind the question is.
        rates_aside: entry.detail.get("kind").is_some(),
    };
    // One that was refused after it had been cleared has its sentence and no more.
    let named = !entry.reasons.is_empty();
    let layers = if named { looked_at(&entry.reasons, manner) } else { Vec::new() };
    let user = entry.user.clone().unwrap_or_else(|| UserId::from(""));
    let (run, seen) = match run(app, caller, entry.run).await? {
        Some(said) => (Some(said), true),
        None => (None, entry.run.is_none()),
    };
    let arguments = entry.detail.get("arguments").filter(|it| it.is_object()).cloned();
    let aside = arguments.is_none();
    let asked = Asked { agent: agent.clone(), user, tool: tool.clone(), arguments, run };
    let ruled = authorize::rule(app, &asked).await?;
    let may_ask = seen && caller.asks_for(Some(asked.user.as_str()), agent).is_ok();
    let mut standing = if may_ask { ruled.judgment.reasons.clone() } else { Vec::new() };
    // What cannot be asked again stands as it was: the arguments that are not kept, how deep the
    // run is, and everything where somebody may not ask.
    let kept = |it: &&Reason| {
        let argued = [Layer::Tool, Layer::Arguments].into_iter().any(|at| it.layer == at.as_str());
        !may_ask || aside && argued || it.rule == "escalation.depth"
    };
    standing.extend(entry.reasons.iter().filter(kept).cloned());
    let objects = standing.iter().any(|it| it.outcome > Ruling::Allow);
    let ways = match entry.ruling {
        None | Some(Ruling::Allow) => Vec::new(),
        Some(_) if was_granted(app, entry).await? => Vec::new(),
        Some(_) if objects => ruled.ways(&asked, &standing),
        Some(_) => vec![Way::open()],
    };
    let now = may_ask.then(|| Now {
        ruling: ruled.judgment.ruling,
        version: ruled.authority.org().version,
        layers: {
            let manner = Manner { arguments_aside: aside, rates_aside: false };
            let mut reasons = ruled.judgment.reasons.clone();
            reasons.extend(ruled.layers.iter().filter(|it| it.rule.is_empty()).cloned());
            looked_at(&reasons, manner)
        },
    });
    Ok(Why { layers, now, ways })
}

/// The run that it is about, where the caller may look at it.
async fn run(
    app: &App,
    caller: &Caller,
    run: Option<RunId>,
) -> Result<Option<(RunId, authorize::Said)>> {
    let Some(run) = run else { return Ok(None) };
    match caller.run(app, &run.to_string()).await {
        Ok(_) => Ok(Some((run, authorize::Said::of(app, run).await?))),
        Err(ApiError::NotFound { .. } | ApiError::Forbidden(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether somebody has approved what is asked.
async fn was_granted(app: &App, entry: &Entry) -> Result<bool> {
    let Some(Ok(id)) = entry.reference.as_deref().map(str::parse) else { return Ok(false) };
    let row = app.store.permission(id).await?;
    Ok(row.is_some_and(|it| it.status == "granted"))
}

/// A mail that was not delivered, as far as it is kept.
#[derive(Debug, Clone, Copy)]
struct Rejected<'r> {
    from: &'r str,
    to: &'r str,
    kind: &'r str,
    step: &'r str,
    reason: &'r str,
    user: &'r str,
    run: Option<RunId>,
    /// The contract that it was about.
    about: Option<&'r str>,
}

async fn of_mail(app: &App, caller: &Caller, mail: Rejected<'_>) -> Result<Why> {
    let Rejected { from, to, kind, .. } = mail;
    let step = Step::ALL.into_iter().find(|at| at.as_str() == mail.step);
    let Some(step) = step else { return Ok(Why::default()) };
    let layers = steps_looked_at(Some((step, mail.reason)));
    let authority = app.authority.get();
    let run = run(app, caller, mail.run).await?;
    let user = UserId::from(mail.user);
    let contract_ref = mail.about.map(ContractId::from);
    let draft = Draft { contract_ref, ..Draft::bare(to, kind) };
    let contract = run.as_ref().and_then(|it| it.1.created.contract.clone());
    let behalf = Behalf { user: user.clone(), project: None, delegated: None, run: None, contract };
    let outgoing = app.mailroom.from_outside(draft, from, caller.actor(), behalf);
    let rejected = app.store.try_mail(authority.org(), outgoing).await?;
    let delegated = run.as_ref().and_then(|it| authority.delegation(&it.1.created));
    let who = Asker {
        policy: authority.policy(),
        agent: from,
        user: user.as_str(),
        delegated: delegated.as_ref(),
        // What a run was given is about its calls, and not about whom it writes to.
        givers: &[],
    };
    let ways = match (step, &rejected) {
        // What the mail said is not kept, so these two cannot be asked again.
        (Step::Attachments | Step::Fields, _) => ways::of_mail(&who, to, kind, step),
        (_, Some(it)) => ways::of_mail(&who, to, kind, it.step),
        (_, None) => vec![Way::open()],
    };
    let now = Now {
        ruling: if rejected.is_some() { Ruling::Deny } else { Ruling::Allow },
        version: authority.org().version,
        layers: unread(steps_looked_at(rejected.as_ref().map(|it| (it.step, &*it.reason)))),
    };
    Ok(Why { layers, now: Some(now), ways })
}

/// What a mail said is not kept where it was rejected: the steps over that are not asked again.
fn unread(mut steps: Vec<Looked>) -> Vec<Looked> {
    let over = [Step::Attachments.as_str(), Step::Fields.as_str()];
    for it in steps.iter_mut().filter(|it| over.contains(&it.at) && it.said == Said::Passes) {
        it.said = Said::NotLookedAt;
        "what the mail said is not kept".clone_into(&mut it.detail);
    }
    steps
}
