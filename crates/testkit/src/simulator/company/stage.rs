//! What the servers of a company work with: an organisation with groups, tools that count, and a
//! model that asks for whatever the dice say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chancery_domain::batch::Permit;
use chancery_domain::event::{Call, CallResult, Usage};
use chancery_domain::id::{AgentId, GroupId, WaitKey};
use chancery_domain::org::{Agent, Group};
use chancery_runtime::authority::{Authority, InForce};
use chancery_runtime::escalation::{self, OnTimeout};
use chancery_runtime::gate::{OnExpiry, OnPartialDeny, Terms};
use chancery_runtime::model::{Message, Model, ModelError, Models, RawCall, Reply, Request};
use chancery_runtime::tool::group::{Conclude, EscalateToGroup, ListAvailableGroups};
use chancery_runtime::tool::{CallContext, Description, Done, Effect, Tool, ToolSpec, Tools};
use chancery_runtime::{Limits, Parts};
use chancery_store::Store;
use chancery_store::fault::Seat;
use serde_json::json;

use super::super::dice::Dice;
use super::super::people::Law;
use super::super::world::{self, Act, World};
use super::fate::{Fate, Mistake};
use super::ledger::Ledger;

/// Each with its members; the first leads where somebody does.
const GROUPS: [(&str, &[&str], bool, u32); 3] = [
    ("red", &["rosa", "rene"], false, 1),
    ("blue", &["bela", "bo"], true, 2),
    ("green", &["gil"], false, 1),
];
/// How deep goals are handed on.
const DEPTH: usize = 3;
/// One context in so many is held against the log.
const LOOKED_AT: u64 = 6;

#[derive(Debug, Clone)]
pub struct Stage {
    pub world: Arc<World>,
    ledger: Arc<Ledger>,
    mistake: Option<Mistake>,
    seed: u64,
    /// How often chance was asked.
    asked: Arc<AtomicU64>,
}

impl Stage {
    pub fn new(fate: &Fate, seed: u64, ledger: Arc<Ledger>) -> Stage {
        let (world, asked) = (Arc::default(), Arc::default());
        Stage { world, ledger, mistake: fate.mistake, seed, asked }
    }

    pub fn ledger(&self) -> Arc<Ledger> {
        self.ledger.clone()
    }

    /// Dice for one occasion: which it is, is told by how many there were before.
    fn dice(&self) -> Dice {
        Dice::new(self.seed ^ self.asked.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9))
    }

    pub fn parts(&self, fate: &Fate, store: &Store, seat: &Seat) -> Parts {
        let (stage, record) = (self.clone(), store.clone());
        let model = Playwright { stage, seat: seat.clone(), store: record };
        Parts {
            store: store.clone(),
            authority: InForce::new(self.authority(seat)),
            models: Arc::new(Models::new(Arc::new(model), BTreeMap::new())),
            limits: Limits {
                concurrency: fate.concurrency,
                lease: fate.lease,
                attempts: fate.attempts,
                on_unknown_outcome: fate.on_unknown,
            },
            terms: Terms {
                expire_after: fate.expire_after,
                on_expiry: if fate.escalates { OnExpiry::Escalate } else { OnExpiry::Deny },
                on_partial_deny: match fate.abort_batch {
                    true => OnPartialDeny::AbortBatch,
                    false => OnPartialDeny::Continue,
                },
                record_allows: false,
            },
            escalation: escalation::Terms {
                timeout: fate.child_timeout,
                on_timeout: if fate.detach { OnTimeout::Detach } else { OnTimeout::Cancel },
                depth_max: DEPTH,
            },
            embeddings: None,
        }
    }

    /// The rules as they are now, and the tools that a server has under them.
    pub fn authority(&self, seat: &Seat) -> Authority {
        let law = self.world.law();
        let names = GROUPS.iter().flat_map(|(_, members, ..)| members.iter());
        let agents = names.chain(&["clerk"]).map(|it| (AgentId::from(*it), Agent::of("worker")));
        let mut org = world::org(law, agents);
        org.groups = GROUPS.iter().map(|it| (GroupId::from(it.0), group(it))).collect();
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(EscalateToGroup::new(EscalateToGroup::spec())),
            Arc::new(ListAvailableGroups::new(ListAvailableGroups::spec())),
            Arc::new(Conclude::new(Conclude::spec())),
        ];
        for act in Act::ALL {
            if act == Act::Nonsense || act == Act::Ask && law == Law::Gone {
                continue;
            }
            let (spec, stage, seat) = (world::spec(act), self.clone(), seat.clone());
            tools.push(Arc::new(Deed { spec, stage, seat }));
        }
        let mut registered = Tools::default();
        for tool in tools {
            if let Err(error) = registered.register(tool) {
                self.ledger.wrong(error.to_string());
            }
        }
        Authority::new(Arc::new(org), Arc::new(registered))
    }
}

fn group((name, members, led, rounds): &(&str, &[&str], bool, u32)) -> Group {
    Group {
        name: (*name).to_owned(),
        description: String::new(),
        tags: vec![],
        members: members.iter().map(|it| AgentId::from(*it)).collect(),
        lead: led.then(|| AgentId::from(members[0])),
        rounds: *rounds,
        place: None,
    }
}

/// A tool. It takes a while, now and then, and is seen when it takes effect.
#[derive(Debug)]
struct Deed {
    spec: ToolSpec,
    stage: Stage,
    seat: Seat,
}

#[async_trait]
impl Tool for Deed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, permit: Permit, context: &CallContext) -> Done {
        let mut dice = self.stage.dice();
        self.seat.point().await;
        if self.spec.effect == Effect::Log {
            let key = permit.call().arguments["key"].as_str().unwrap_or_default();
            let timeout = dice.once_in(2).then(|| Duration::from_secs(dice.between(1, 30)));
            return Done::Wait { key: WaitKey::from(key), timeout };
        }
        linger(&mut dice).await;
        let key = &context.idempotency_key;
        let times = if self.stage.mistake == Some(Mistake::ActsTwice) { 2 } else { 1 };
        for _ in 0..times {
            let count = self.stage.world.takes_effect(key, &permit.call().arguments);
            self.stage.ledger.took_effect(context.run, key, count);
        }
        linger(&mut dice).await;
        self.seat.point().await;
        Done::Result(CallResult::ok(key.clone()))
    }

    async fn describe(&self, call: &Call) -> Description {
        if self.stage.mistake == Some(Mistake::ActsWhileAsked) {
            self.stage.ledger.took_effect_unbidden(&call.tool);
        }
        Description { signature: Some(self.spec.name.clone()), ..Description::default() }
    }
}

async fn linger(dice: &mut Dice) {
    if dice.once_in(5) {
        let wait = dice.pick(&[1, 10, 60, 400]);
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
}

/// A model without a plan: calls for a while, and then words, which are all that it was told.
#[derive(Debug)]
struct Playwright {
    stage: Stage,
    seat: Seat,
    store: Store,
}

#[async_trait]
impl Model for Playwright {
    async fn generate(&self, request: Request<'_>) -> Result<Reply, ModelError> {
        let mut dice = self.stage.dice();
        self.seat.point().await;
        linger(&mut dice).await;
        if dice.once_in(LOOKED_AT)
            && let Err(wrong) = world::judge(&self.store, &request).await
            && !wrong.contains("on purpose")
        {
            self.stage.ledger.wrong(wrong);
        }
        let model = "playwright".to_owned();
        if dice.once_in(250) {
            let (tries, detail) = (1, "it is busy".to_owned());
            return Err(ModelError::Unavailable { model, tries, detail });
        }
        let batches = request
            .messages
            .iter()
            .filter(|it| matches!(it, Message::Assistant { calls, .. } if !calls.is_empty()));
        let place = batches.count() as u64;
        let depth = request.run.map_or(0, |it| self.stage.ledger.depth(it));
        let most = if depth == 0 { 5 } else { 2 };
        let goes_on = place < most && !dice.once_in(5);
        let calls = match goes_on {
            true => (0..dice.between(1, 4)).map(|n| call(&mut dice, (place, n), depth)).collect(),
            false => Vec::new(),
        };
        let heard = request.messages.iter().filter_map(|it| match it {
            Message::User { text } => Some(&**text),
            _ => None,
        });
        let text = if goes_on { String::new() } else { heard.collect::<Vec<_>>().join("|") };
        // What a group says is its own, or it would be deposited once for many.
        let text = match request.run {
            Some(run) if depth > 0 && !goes_on => format!("{text}|{run}"),
            _ => text,
        };
        self.seat.point().await;
        let usage = Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() };
        Ok(Reply { text, calls, usage, model })
    }
}

fn call(dice: &mut Dice, (place, n): (u64, u64), depth: usize) -> RawCall {
    // The same names in every batch: they are unique within one alone.
    let id = format!("c{n}");
    let (tool, arguments) = match dice.roll(20) {
        0..4 => (Act::Write.tool(), None),
        4..8 => (Act::Look.tool(), None),
        8..10 => (Act::Safe.tool(), None),
        10 => (Act::Denied.tool(), None),
        11 => (Act::Nonsense.tool(), None),
        12 => (Act::Wait.tool(), None),
        13..15 => (Act::Ask.tool(), None),
        15 => (Act::AskHuman.tool(), None),
        16 if depth > 0 => (Conclude::NAME, Some(json!({"answer": format!("enough-{place}-{n}")}))),
        16 => (ListAvailableGroups::NAME, Some(json!({}))),
        17 if depth > 1 => (Act::Write.tool(), None),
        _ => {
            let group = dice.pick(&GROUPS).0;
            (EscalateToGroup::NAME, Some(json!({"group_id": group, "goal": "your part"})))
        }
    };
    let key = || json!({"key": format!("key-{place}-{n}-{}", dice.roll(1000))});
    let arguments = arguments.unwrap_or_else(key).to_string();
    RawCall { id, tool: tool.to_owned(), arguments }
}
