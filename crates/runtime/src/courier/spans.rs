//! A run as OpenTelemetry tells it: spans of the GenAI conventions, made from the log when the run
//! has ended. Their ids are made of the run's, so that a trace that is sent twice is one trace, and
//! a run that went through five servers and three days is one span. No word of a person, a model
//! or a tool is in them.

use chancery_domain::command;
use chancery_domain::event::{Actor, Created, Decision, Event, Recorded, Usage};
use chancery_domain::id::{CallId, RunId};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub trace: String,
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub start: Timestamp,
    pub end: Timestamp,
    pub attributes: Vec<(&'static str, Value)>,
    /// What went wrong, by its code alone.
    pub error: Option<String>,
}

/// Empty for a log that does not begin as one.
pub(super) fn spans(run: RunId, events: &[Recorded]) -> Vec<Span> {
    let Some((first, Event::Created(created))) = events.first().map(|it| (it, &it.event)) else {
        return Vec::new();
    };
    let last = events.last().unwrap_or(first);
    let mut story = Story {
        run,
        trace: hex(created.ancestors.first().map_or(run, |it| it.run).0.as_bytes()),
        agent: created.agent.to_string(),
        ended: last.at,
        outside: created.call.is_some(),
        spans: Vec::new(),
    };
    story.whole(created, first.at, &last.event, events);
    let mut before = first.at;
    for (place, recorded) in events.iter().enumerate() {
        story.tell(recorded, before, &events[place..]);
        before = recorded.at;
    }
    story.spans
}

struct Story {
    run: RunId,
    trace: String,
    /// Who has the floor.
    agent: String,
    ended: Timestamp,
    /// An agent outside made the call: no model was asked.
    outside: bool,
    spans: Vec<Span>,
}

impl Story {
    fn whole(&mut self, created: &Created, start: Timestamp, last: &Event, events: &[Recorded]) {
        let usage = events.iter().fold(Usage::default(), |mut sum, it| {
            sum += it.event.usage();
            sum
        });
        let (status, error) = match last {
            Event::Completed(_) => ("completed", None),
            Event::Failed(_) => ("failed", Some("failed".to_owned())),
            Event::Cancelled(_) => ("cancelled", Some("cancelled".to_owned())),
            _ => ("running", None),
        };
        let mut attributes = vec![
            ("gen_ai.operation.name", json!("invoke_agent")),
            ("gen_ai.agent.id", json!(created.agent)),
            ("gen_ai.agent.name", json!(created.agent)),
            ("gen_ai.usage.input_tokens", json!(usage.input_tokens)),
            ("gen_ai.usage.output_tokens", json!(usage.output_tokens)),
            ("chancery.run.id", json!(self.run.to_string())),
            ("chancery.run.status", json!(status)),
            ("chancery.role", json!(created.role)),
            ("enduser.id", json!(created.user)),
        ];
        attributes.extend(cost(usage));
        if let Some(key) = &created.session_key {
            attributes.push(("gen_ai.conversation.id", json!(key)));
        }
        if let Some(group) = &created.group {
            attributes.push(("chancery.group", json!(group)));
        }
        self.spans.push(Span {
            trace: self.trace.clone(),
            id: id(self.run, "run"),
            parent: created.parent.map(|it| id(it, "run")),
            name: format!("invoke_agent {}", created.agent),
            start,
            end: self.ended,
            attributes,
            error,
        });
    }

    fn tell(&mut self, it: &Recorded, before: Timestamp, after: &[Recorded]) {
        match &it.event {
            Event::TurnBegan(turn) => self.agent = turn.member.agent.to_string(),
            Event::BatchProposed(batch) => {
                self.chat(it, before, &batch.model, batch.usage);
                for call in &batch.calls {
                    self.call(&call.call.id, &call.call.tool, after);
                }
            }
            Event::TurnEnded(turn) => self.chat(it, before, &turn.model, turn.usage),
            Event::Completed(done) if !done.model.is_empty() => {
                self.chat(it, before, &done.model, done.usage);
            }
            _ => {}
        }
        for (call, request) in command::requests(&it.event) {
            let decided = after.iter().find_map(|later| match &later.event {
                Event::PermissionDecided(word) if word.permission == request.id => {
                    Some((later.at, word))
                }
                _ => None,
            });
            let (end, outcome, by) = match decided {
                None => (self.ended, "unanswered", Value::Null),
                Some((at, word)) => (at, outcome(&word.decision), by(&word.by)),
            };
            let attributes = vec![
                ("chancery.decision.id", json!(request.id.to_string())),
                ("chancery.decision.outcome", json!(outcome)),
                ("chancery.decision.by", by),
                ("chancery.batch.id", json!(message(&it.event))),
                ("chancery.risk", json!(request.risk.map(|it| it.as_str()))),
                ("chancery.policy.rule", rule(&it.event, call)),
                ("gen_ai.tool.call.id", json!(call)),
                ("gen_ai.agent.id", json!(self.agent)),
            ];
            let name = "approval.wait".to_owned();
            let id = id(self.run, &format!("wait {}", request.id));
            self.add(id, name, (it.at, end), attributes, None);
        }
    }

    fn chat(&mut self, it: &Recorded, before: Timestamp, model: &str, usage: Usage) {
        if self.outside {
            return;
        }
        let mut attributes = vec![
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.request.model", json!(model)),
            ("gen_ai.usage.input_tokens", json!(usage.input_tokens)),
            ("gen_ai.usage.output_tokens", json!(usage.output_tokens)),
            ("gen_ai.agent.id", json!(self.agent)),
        ];
        attributes.extend(cost(usage));
        let id = id(self.run, &format!("chat {}", it.seq));
        self.add(id, format!("chat {model}"), (before, it.at), attributes, None);
    }

    /// From its start to its result. One that never started took no time.
    fn call(&mut self, call: &CallId, tool: &str, after: &[Recorded]) {
        let started = after.iter().find_map(|it| match &it.event {
            Event::CallStarted(started) if started.call == *call => Some(it.at),
            _ => None,
        });
        let ended = after.iter().find_map(|it| match &it.event {
            Event::CallEnded(ended) if ended.call == *call => Some((it.at, &ended.result)),
            Event::CallRefused(refused) if refused.call == *call => Some((it.at, &refused.result)),
            Event::ChildEnded(ended) if ended.call == *call => Some((it.at, &ended.result)),
            _ => None,
        });
        let (end, error) = match ended {
            None => (self.ended, Some("unknown".to_owned())),
            Some((at, result)) if result.is_error => {
                (at, Some(result.code.clone().unwrap_or_else(|| "error".to_owned())))
            }
            Some((at, _)) => (at, None),
        };
        let attributes = vec![
            ("gen_ai.operation.name", json!("execute_tool")),
            ("gen_ai.tool.name", json!(tool)),
            ("gen_ai.tool.call.id", json!(call)),
            ("gen_ai.agent.id", json!(self.agent)),
        ];
        let id = id(self.run, &format!("call {call}"));
        let name = format!("execute_tool {tool}");
        self.add(id, name, (started.unwrap_or(end), end), attributes, error);
    }

    fn add(
        &mut self,
        id: String,
        name: String,
        (start, end): (Timestamp, Timestamp),
        attributes: Vec<(&'static str, Value)>,
        error: Option<String>,
    ) {
        let (trace, parent) = (self.trace.clone(), self.spans.first().map(|it| it.id.clone()));
        // Clocks of two servers may differ; a span never ends before it begins.
        let end = end.max(start);
        self.spans.push(Span { trace, id, parent, name, start, end, attributes, error });
    }
}

/// The conventions have no name for it.
fn cost(usage: Usage) -> Option<(&'static str, Value)> {
    usage.cost().map(|it| ("chancery.usage.cost", json!(it)))
}

fn outcome(decision: &Decision) -> &'static str {
    match decision {
        Decision::Granted => "granted",
        Decision::Denied => "denied",
        Decision::Supplied(_) => "supplied",
        Decision::Expired => "expired",
    }
}

fn by(actor: &Actor) -> Value {
    match actor {
        Actor::User(user) => json!(user),
        Actor::Service(name) => json!(name),
        Actor::Agent(agent) => json!(agent),
        Actor::System => json!("system"),
    }
}

fn message(event: &Event) -> Option<String> {
    match event {
        Event::BatchProposed(it) => Some(it.message.to_string()),
        Event::PermissionRequested(it) => Some(it.message.to_string()),
        _ => None,
    }
}

fn rule(event: &Event, call: &CallId) -> Value {
    let reasons = match event {
        Event::BatchProposed(it) => {
            it.calls.iter().find(|it| it.call.id == *call).map(|it| &it.reasons)
        }
        Event::PermissionRequested(it) => Some(&it.reasons),
        _ => None,
    };
    reasons.and_then(|it| it.first()).map_or(Value::Null, |it| json!(it.rule))
}

fn id(run: RunId, of: &str) -> String {
    let digest = Sha256::new().chain_update(run.0.as_bytes()).chain_update(of).finalize();
    hex(&digest[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}
