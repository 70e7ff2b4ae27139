//! A suite's tools under an organisation's law, and batches of calls played through the gate: the
//! rulings are the authority's, the latch is the batch's, and a call counts as made when there is a
//! permit for it.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use async_trait::async_trait;
use chancery_domain::batch::{Gate, Permit, Turn};
use chancery_domain::contract::Warrant;
use chancery_domain::event::{
    Actor, Answer, Call, CallResult, Decision, PermissionDecided, Proposal, Request, RequestKind,
};
use chancery_domain::id::{CallId, WaitKey};
use chancery_domain::policy::{Reason, Risk};
use chancery_runtime::authority::{Authority, Case, Given, Judgment};
use chancery_runtime::clock;
use chancery_runtime::rules::Literals;
use chancery_runtime::tool::{CallContext, Done, Effect, Tool, ToolSpec, Tools};
use chancery_server::organisation::Loaded;
use jiff::Timestamp;

use super::traces::{Recorded, Suite};

const USER: &str = "person";

pub struct World {
    authority: Authority,
    agent: String,
    /// What the names of the suite's tools begin with, as those of a server's do.
    prefix: String,
    now: Timestamp,
}

/// Who answers what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Human {
    /// Nobody: what is asked expires.
    None,
    /// Grants what the person's task needs, and nothing else.
    Careful,
    /// Grants everything.
    RubberStamp,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub struct Played {
    /// Of each call, whether it was made.
    pub made: Vec<bool>,
    pub asks: usize,
    /// Why calls were not simply allowed.
    pub reasons: Vec<(String, Reason)>,
}

impl World {
    pub fn new(org: &Loaded, suite: &Suite, now: Timestamp) -> anyhow::Result<World> {
        let server = org.tools.mcp.keys().next().context("the organisation has no MCP server")?;
        let prefix = format!("mcp__{server}__");
        let mut tools = Tools::default();
        for (name, it) in &suite.tools {
            let mut spec = ToolSpec {
                name: format!("{prefix}{name}"),
                description: it.description.clone(),
                parameters: it.parameters.clone(),
                risk: Risk::High,
                capabilities: Vec::new(),
                effect: Effect::Outside,
                idempotent: false,
                supports_parallel: false,
            };
            org.tools.tools.apply(&mut spec);
            tools.register(Arc::new(OnPaper(spec)))?;
        }
        // Rules on tools that this suite does not have wait for them.
        let _rest = tools.later(&prefix);
        let agent = org.org.agents().next().context("the organisation has no agent")?.0;
        let agent = agent.as_str().to_owned();
        let rules = org.files.rules().map(|(name, text)| (name.to_owned(), text.to_owned()));
        let authority =
            Authority::under(Arc::new(org.org.clone()), Arc::new(tools), rules.collect())
                .map_err(|it| it.first().map_or_else(|| anyhow!("rules"), |it| anyhow!("{it}")))?;
        Ok(World { authority, agent, prefix, now })
    }

    /// Whether a tool only looks something up.
    pub fn reads(&self, tool: &str) -> bool {
        let spec = self.authority.tools().spec(&format!("{}{tool}", self.prefix));
        spec.is_some_and(|it| it.capabilities.iter().any(|it| it == "read"))
    }

    /// One batch, from the model's answer to the last permit.
    pub fn play(
        &self,
        batch: &[&Recorded],
        words: &Literals,
        human: Human,
        needed: &[Recorded],
    ) -> anyhow::Result<Played> {
        let mut played = Played { made: vec![false; batch.len()], ..Played::default() };
        if batch.is_empty() {
            return Ok(played);
        }
        let mut proposals = Vec::with_capacity(batch.len());
        for (place, recorded) in batch.iter().enumerate() {
            let proposal = self.propose(place, recorded, words);
            played.asks += usize::from(proposal.ruling.asks());
            let reasons = proposal.reasons.iter();
            played.reasons.extend(reasons.map(|it| (recorded.tool.clone(), it.clone())));
            proposals.push(proposal);
        }
        let mut gate = Gate::new(clock::new_message_id(), &proposals)?;
        let mut batch_at_work = loop {
            gate = match gate {
                Gate::Settled(settled) => break settled,
                Gate::Open(open) => {
                    let (call, request) = open.asked().next().context("an open batch asks")?;
                    let recorded = batch[place_of(&call.id)?];
                    let (decision, by) = match human {
                        Human::None => (Decision::Expired, Actor::System),
                        Human::Careful if !needed.contains(recorded) => {
                            (Decision::Denied, Actor::User(USER.into()))
                        }
                        Human::Careful | Human::RubberStamp => {
                            (Decision::Granted, Actor::User(USER.into()))
                        }
                    };
                    let decided = PermissionDecided {
                        call: call.id.clone(),
                        permission: request.id,
                        decision,
                        by,
                        comment: None,
                        arguments: None,
                        remember: None,
                    };
                    open.decide(&decided)?
                }
            };
        };
        while let Some(turn) = batch_at_work.next() {
            batch_at_work = match turn {
                Turn::Execute { call, .. } => {
                    let (batch, permit) = batch_at_work.start(&call.id)?;
                    played.made[place_of(&permit.call().id)?] = true;
                    batch.ended(&call.id)?
                }
                Turn::Refuse { call, .. } | Turn::Unknown(call) => {
                    batch_at_work.refused(&call.id)?
                }
            };
        }
        Ok(played)
    }

    fn propose(&self, place: usize, recorded: &Recorded, words: &Literals) -> Proposal {
        let call = Call {
            id: CallId(place.to_string()),
            tool: format!("{}{}", self.prefix, recorded.tool),
            arguments: recorded.args.clone(),
        };
        let Judgment { ruling, reasons } = self.authority.judge(Case {
            agent: &self.agent,
            user: USER,
            delegated: None,
            call: &call,
            given: Given::Whole,
            task: Some(words),
            now: self.now,
            warrant: &Warrant::default(),
            record: None,
            limits: &[],
        });
        let answer = ruling.asks().then(|| Answer::Request(Arc::new(self.request(&call))));
        Proposal { call: Arc::new(call), ruling, reasons, answer }
    }

    fn request(&self, call: &Call) -> Request {
        Request {
            id: clock::new_permission_id(),
            correlation_key: WaitKey::from(call.id.0.as_str()),
            kind: RequestKind::All,
            payload: serde_json::Map::new(),
            risk: None,
            capabilities: Vec::new(),
            arguments_sha256: String::new(),
            definition_sha256: None,
            signature: None,
            asked_at: self.now,
            expires_at: None,
            escalates: false,
        }
    }
}

fn place_of(id: &CallId) -> anyhow::Result<usize> {
    Ok(id.0.parse()?)
}

/// A tool that is known by its schema alone: nothing here is ever carried out.
#[derive(Debug)]
struct OnPaper(ToolSpec);

#[async_trait]
impl Tool for OnPaper {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _: Permit, _: &CallContext) -> Done {
        Done::Result(CallResult::error("NOT_THERE", "this tool is known by its schema alone"))
    }
}
