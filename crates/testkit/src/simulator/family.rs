//! Runs beneath runs, with every fault at every point: real drives over a real SQLite store, one
//! run at a time, so that a parent that held anything while it waits would never see its children.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::command;
use chancery_domain::event::{CallResult, Event, Recorded, Usage};
use chancery_domain::history::History;
use chancery_domain::id::{AgentId, GroupId, RunId};
use chancery_domain::org::{Agent, Group, Org, Role};
use chancery_domain::policy::Risk;
use chancery_domain::run::Run;
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::escalation::cancel_orphans;
use chancery_runtime::journal::JournalError;
use chancery_runtime::model::{Message, Model, ModelError, Models, RawCall, Reply, Request};
use chancery_runtime::runner::{self, Reins};
use chancery_runtime::tool::group::EscalateToGroup;
use chancery_runtime::tool::{CallContext, Done, Effect, Tool, ToolSpec, Tools};
use chancery_runtime::worker::Pulse;
use chancery_runtime::{Limits, Parts, UnknownOutcome, clock};
use chancery_store::fault::Fuse;
use chancery_store::log::Amendment;
use chancery_store::{AppendError, Location, Store};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::conformance::{ada, created, fast_dir};

const LIVES_MAX: usize = 40;
const AWAY: u64 = 1;

/// What an agent does before it answers: its batches, each call the name of a group to hand the
/// next part to, or `write`.
pub type Plot = BTreeMap<&'static str, Vec<Vec<&'static str>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    Crash,
    /// The store does not answer for a while; what it was asked to write may have been written.
    Away,
    /// A person cancels the first run, and then the crash.
    CancelAndCrash,
    /// The process stands still while another does all that is left to do, and then goes on.
    Takeover,
}

impl Blow {
    pub const ALL: [Blow; 4] = [Blow::Crash, Blow::Away, Blow::CancelAndCrash, Blow::Takeover];
}

#[derive(Debug)]
pub struct Families {
    store: Store,
    _dir: TempDir,
}

impl Families {
    pub async fn new() -> Families {
        let dir = fast_dir();
        let location = Location::Sqlite(dir.path().to_owned());
        match Store::open(&location, clock::new_worker_id()).await {
            Ok(store) => Families { store, _dir: dir },
            Err(error) => panic!("cannot open a store: {error}"),
        }
    }

    /// Plays a plot once for every point of its first life. Answers how many there were.
    pub async fn explore(&self, plot: &Plot, blow: Blow) -> u64 {
        for point in 0.. {
            match self.play(plot, Some((point, blow))).await {
                Ok(false) => return point,
                Ok(true) => {}
                Err(wrong) => panic!("{blow:?} at point {point} of {plot:?}: {wrong}"),
            }
        }
        unreachable!("a life has an end")
    }

    /// Plays a plot to its end. Answers whether the blow was come to.
    pub async fn play(&self, plot: &Plot, blow: Option<(u64, Blow)>) -> Result<bool, String> {
        let root = clock::new_run_id();
        let first = History::create(root, created("root")).change().ok_or("nothing is staged")?;
        self.store.create(&first, None, clock::now()).await.map_err(told)?;
        let effects = Arc::new(Effects::default());
        let game = Game { store: &self.store, plot, root, effects };
        let struck = game.life(blow).await?;
        for life in 0.. {
            if game.is_over().await? {
                break;
            }
            if life == LIVES_MAX {
                return Err("no end".to_owned());
            }
            game.life(None).await?;
        }
        game.judge(blow.is_some() && struck).await?;
        Ok(struck)
    }
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What the far side has seen, by idempotency key.
#[derive(Debug, Default)]
struct Effects {
    seen: Mutex<BTreeMap<String, u32>>,
    model_calls: AtomicU64,
}

struct Game<'s> {
    store: &'s Store,
    plot: &'s Plot,
    root: RunId,
    effects: Arc<Effects>,
}

impl Game<'_> {
    async fn life(&self, blow: Option<(u64, Blow)>) -> Result<bool, String> {
        let fuse = blow.map_or_else(Fuse::never, |(point, _)| Fuse::at(point));
        let store = self.store.disguised(clock::new_worker_id(), Some(fuse.clone()));
        store.rescue().await.map_err(told)?;
        let mut work = Box::pin(self.work(&store, &fuse));
        tokio::select! {
            biased;
            () = fuse.blown() => {}
            worked = &mut work => return worked.map(|()| false),
        }
        match blow {
            Some((_, Blow::Crash)) => drop(work),
            Some((_, Blow::CancelAndCrash)) => {
                drop(work);
                self.cancel().await?;
            }
            Some((_, Blow::Away)) => {
                fuse.go_away(AWAY);
                fuse.mend();
                work.await?;
            }
            Some((_, Blow::Takeover)) => {
                Box::pin(self.life(None)).await?;
                fuse.mend();
                work.await?;
            }
            None => return Err("blew without a plan".to_owned()),
        }
        Ok(true)
    }

    async fn work(&self, store: &Store, fuse: &Fuse) -> Result<(), String> {
        let parts = self.parts(store, fuse);
        let pulse = Arc::new(Pulse::new(Duration::MAX, store));
        let token = CancellationToken::new;
        loop {
            // Those beneath them are left behind in turn.
            while matches!(cancel_orphans(store).await, Ok(true)) {}
            let claimed = match store.claim(1).await {
                Ok(claimed) => claimed,
                Err(error) if error.may_pass() => {
                    store.free_all_but(&Default::default()).await.map_err(told)?;
                    continue;
                }
                Err(error) => return Err(told(error)),
            };
            if claimed.is_empty() {
                let orphaned = !store.orphans(1).await.map_err(told)?.is_empty();
                if orphaned {
                    continue;
                }
                return Ok(());
            }
            for claimed in claimed {
                let log = claimed.log.map_err(told)?;
                let reins =
                    Reins { halt: token(), stop: token(), aside: token(), pulse: pulse.clone() };
                match runner::drive(&parts, &claimed.lease, &log, &reins).await {
                    Ok(runner::Driven::Parked) => {}
                    Ok(runner::Driven::Handover) => {
                        let how = chancery_store::queue::Release::Handover;
                        store.release(claimed.lease, how).await.map_err(told)?;
                    }
                    Err(JournalError::Append(AppendError::LeaseLost(_))) => {}
                    Err(error) => return Err(format!("the drive failed: {error}")),
                }
            }
        }
    }

    async fn cancel(&self) -> Result<(), String> {
        let cancelled = self.store.amend(self.root, clock::now(), |history, _| {
            Ok::<_, String>(match command::cancel(history, ada()) {
                Ok(command::Effect::Record(history)) => Amendment::Record(history),
                _ => Amendment::Nothing(()),
            })
        });
        cancelled.await.map_err(told)??;
        Ok(())
    }

    fn parts(&self, store: &Store, fuse: &Fuse) -> Parts {
        let worker = || Agent::of("worker");
        let names = self.plot.keys().filter(|it| **it != "root");
        let agents = names.clone().map(|it| (AgentId::from(*it), worker()));
        let agents = agents.chain([(AgentId::from("clerk"), worker())]);
        let mut org = Org::new([Role::unlimited("worker")], agents).unwrap_or_default();
        org.groups = names.map(|it| (GroupId::from(*it), group(it))).collect();
        let mut tools = Tools::default();
        let write = Write { spec: write_spec(), effects: self.effects.clone(), fuse: fuse.clone() };
        let escalate = EscalateToGroup::new(EscalateToGroup::spec());
        for tool in [Arc::new(write) as Arc<dyn Tool>, Arc::new(escalate)] {
            if let Err(error) = tools.register(tool) {
                panic!("{error}");
            }
        }
        let model =
            Actors { plot: self.plot.clone(), effects: self.effects.clone(), fuse: fuse.clone() };
        Parts {
            store: store.clone(),
            authority: InForce::new(Authority::new(Arc::new(org), Arc::new(tools))),
            models: Arc::new(Models::new(Arc::new(model), BTreeMap::new())),
            limits: Limits {
                attempts: u32::MAX,
                on_unknown_outcome: UnknownOutcome::Fail,
                ..Limits::default()
            },
            terms: Default::default(),
            escalation: Default::default(),
            embeddings: None,
        }
    }

    async fn logs(&self) -> Result<BTreeMap<RunId, Vec<Recorded>>, String> {
        let rows = self.store.tree(self.root, 1000).await.map_err(told)?;
        let mut logs = BTreeMap::new();
        for row in rows {
            logs.insert(row.id, self.store.events(row.id, 0, u32::MAX).await.map_err(told)?);
        }
        Ok(logs)
    }

    async fn is_over(&self) -> Result<bool, String> {
        for (run, log) in self.logs().await? {
            if !matches!(History::fold(run, &log).map_err(told)?.run(), Run::Finished(_)) {
                return Ok(false);
            }
        }
        Ok(self.store.orphans(1).await.map_err(told)?.is_empty())
    }

    async fn judge(&self, struck: bool) -> Result<(), String> {
        let calls = self.effects.model_calls.load(Ordering::SeqCst);
        self.life(None).await?;
        if self.effects.model_calls.load(Ordering::SeqCst) != calls {
            return Err("a tree that has ended asked the model".to_owned());
        }
        let seen = self.effects.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((key, times)) = seen.iter().find(|(_, times)| **times > 1) {
            return Err(format!("{key} took effect {times} times"));
        }
        let logs = self.logs().await?;
        for (run, log) in &logs {
            family_holds(*run, log, &logs)?;
        }
        let root = History::fold(self.root, &logs[&self.root]).map_err(told)?;
        let cancelled = root.run().status() == "cancelled";
        if cancelled {
            nobody_goes_on(self.root, &logs)?;
        }
        let wanted = |at: usize| {
            let plotted = self.plot.values().flatten().flatten();
            plotted.filter(|it| (**it == "write") == (at == 0)).count()
        };
        if !cancelled && logs.len() != wanted(1) + 1 {
            return Err(format!("{} runs for {} goals", logs.len(), wanted(1)));
        }
        if !struck && seen.len() != wanted(0) {
            return Err(format!("{} effects, not {}", seen.len(), wanted(0)));
        }
        Ok(())
    }
}

/// Whoever had not ended when the first run was cancelled is cancelled, too.
fn nobody_goes_on(root: RunId, logs: &BTreeMap<RunId, Vec<Recorded>>) -> Result<(), String> {
    let last = |log: &[Recorded]| log.last().map(|it| (it.at, it.event.kind()));
    let cancelled = last(&logs[&root]);
    for (run, log) in logs {
        let end = last(log);
        if end.map(|it| it.0) > cancelled.map(|it| it.0)
            && end.map(|it| it.1) != Some("run.cancelled")
        {
            return Err(format!("{run} went on after the first run was cancelled: {end:?}"));
        }
    }
    Ok(())
}

/// A parent's log and its children's say the same.
pub fn family_holds(
    run: RunId,
    log: &[Recorded],
    logs: &BTreeMap<RunId, Vec<Recorded>>,
) -> Result<(), String> {
    let spawned: Vec<RunId> = log
        .iter()
        .filter_map(|it| match &it.event {
            Event::ChildSpawned(it) => Some(it.child),
            _ => None,
        })
        .collect();
    let children = logs.iter().filter(|(_, log)| match log.first().map(|it| &it.event) {
        Some(Event::Created(created)) => created.parent == Some(run),
        _ => false,
    });
    let mut made: Vec<RunId> = children.map(|(child, _)| *child).collect();
    let mut named = spawned.clone();
    made.sort();
    named.sort();
    if made != named {
        return Err(format!("{run} names {named:?} and has {made:?}"));
    }
    for child in spawned {
        let ended =
            log.iter().filter(|it| matches!(&it.event, Event::ChildEnded(it) if it.child == child));
        let (ended, of) = (ended.count(), &logs[&child]);
        let completed = of.iter().any(|it| matches!(it.event, Event::Completed(_)));
        let parent_ended = log.iter().any(|it| matches!(it.event, Event::Cancelled(_)));
        match ended {
            1 => {}
            0 if parent_ended => {}
            _ => return Err(format!("{run} was told {ended} times of {child}, {completed}")),
        }
    }
    Ok(())
}

fn group(name: &str) -> Group {
    Group {
        name: name.to_owned(),
        description: String::new(),
        tags: vec![],
        members: vec![AgentId::from(name)],
        lead: None,
        rounds: 1,
        place: None,
    }
}

fn write_spec() -> ToolSpec {
    ToolSpec {
        name: "write".to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        risk: Risk::Low,
        capabilities: vec![],
        effect: Effect::Outside,
        idempotent: false,
        supports_parallel: false,
    }
}

#[derive(Debug)]
struct Write {
    spec: ToolSpec,
    effects: Arc<Effects>,
    fuse: Fuse,
}

#[async_trait]
impl Tool for Write {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Permit, context: &CallContext) -> Done {
        self.fuse.point().await;
        {
            let mut seen = self.effects.seen.lock().unwrap_or_else(PoisonError::into_inner);
            *seen.entry(context.idempotency_key.clone()).or_default() += 1;
        }
        self.fuse.point().await;
        Done::Result(CallResult::ok("written"))
    }
}

/// Does what the plot has for whoever speaks, and then says its name.
#[derive(Debug)]
struct Actors {
    plot: Plot,
    effects: Arc<Effects>,
    fuse: Fuse,
}

#[async_trait]
impl Model for Actors {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        self.effects.model_calls.fetch_add(1, Ordering::SeqCst);
        self.fuse.point().await;
        let name = match request.agent.as_str() {
            "clerk" => "root",
            name => name,
        };
        let asked =
            |it: &&Message| matches!(it, Message::Assistant { calls, .. } if !calls.is_empty());
        let place = request.messages.iter().filter(asked).count();
        let batch = self.plot.get(name).and_then(|it| it.get(place));
        let call = |(n, what): (usize, &&str)| RawCall {
            id: format!("c{n}"),
            tool: if *what == "write" {
                "write".to_owned()
            } else {
                EscalateToGroup::NAME.to_owned()
            },
            arguments: match *what {
                "write" => json!({}),
                group => json!({"group_id": group, "goal": "your part"}),
            }
            .to_string(),
        };
        let calls = batch.map(|it| it.iter().enumerate().map(call).collect()).unwrap_or_default();
        let (usage, model) = (Usage::default(), "actors".to_owned());
        Ok(Reply { text: name.to_owned(), calls, usage, model })
    }
}
