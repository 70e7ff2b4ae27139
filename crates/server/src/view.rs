//! What the domain and the store say, as the wire says it.

pub mod audit;
pub mod mail;
pub mod memory;
pub mod org;

use chancery_api::permission::{Inquiry, Link, Looked, Permission, Reason, StandingRule, Way};
use chancery_api::run::{DelegatedPermissions, Event, ForkedFrom, Run, Tree, Usage, Wait};
use chancery_api::{token, webhook};
use chancery_domain::command;
use chancery_domain::event::{self, Actor, Forked, Recorded};
use chancery_domain::history::History;
use chancery_domain::id::{MessageId, PermissionId, RunId};
use chancery_domain::policy::{self, Bounds};
use chancery_domain::run;
use chancery_domain::ways;
use chancery_store::delivery;
use chancery_store::permission::PermissionRow;
use chancery_store::read::RunRow;
use chancery_store::rule;
use chancery_store::token::Token;

use crate::error::{ApiError, Result};

pub fn run(row: RunRow) -> Run {
    Run {
        id: row.id.to_string(),
        status: row.status,
        waiting_for: row.waiting_for,
        wait: None,
        forked_from: None,
        agent: row.agent.0,
        role: row.role.0,
        group: row.group.map(|it| it.0),
        user: row.user.0,
        project: row.project.map(|it| it.0),
        session_key: row.session_key.map(|it| it.0),
        parent_run_id: row.parent.map(|it| it.to_string()),
        delegated_permissions: row.delegated.map(delegated),
        input: row.input,
        output: row.output,
        error: row.error,
        usage: Usage {
            input_tokens: row.usage.input_tokens,
            output_tokens: row.usage.output_tokens,
            cost: row.usage.cost(),
        },
        attempt: row.attempt,
        created_at: row.created_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
    }
}

fn delegated(bounds: Bounds) -> DelegatedPermissions {
    let denied = (!bounds.denied_tools.is_empty()).then_some(bounds.denied_tools);
    DelegatedPermissions { allowed_tools: bounds.allowed_tools, denied_tools: denied }
}

pub fn bounds(given: DelegatedPermissions) -> Bounds {
    Bounds {
        allowed_tools: given.allowed_tools,
        denied_tools: given.denied_tools.unwrap_or_default(),
    }
}

/// What would end the wait that a run is in.
pub fn wait(history: &History) -> Option<Wait> {
    let run::Run::Waiting(waiting) = history.run() else { return None };
    let until = match waiting {
        run::Wait::Signal { until, .. } => *until,
        run::Wait::Permissions(batch) => batch.asked().filter_map(|(_, it)| it.expires_at).min(),
        run::Wait::Children(_) | run::Wait::Pause(_) => None,
    };
    let keys = command::awaited_keys(history);
    Some(Wait { correlation_keys: keys.into_iter().map(|it| it.0).collect(), until })
}

/// Where a run goes on from another one: its first event says so.
pub fn forked(log: &[Recorded]) -> Option<&Forked> {
    match log.first().map(|it| &it.event) {
        Some(event::Event::Created(created)) => created.forked.as_deref(),
        _ => None,
    }
}

pub fn forked_from(forked: &Forked) -> ForkedFrom {
    ForkedFrom { run_id: forked.run.to_string(), at: forked.at }
}

pub fn event(recorded: Recorded) -> Result<Event> {
    let body = recorded.event.encode().map_err(|it| ApiError::Internal(it.to_string()))?;
    let data = serde_json::from_str(&body).map_err(|it| ApiError::Internal(it.to_string()))?;
    Ok(Event { seq: recorded.seq, kind: recorded.event.kind().to_owned(), at: recorded.at, data })
}

/// The rows of a tree, parents before children, as one.
pub fn tree(root: RunId, rows: Vec<RunRow>) -> Option<Tree> {
    let mut trees: Vec<(RunId, Option<RunId>, Tree)> = rows
        .into_iter()
        .map(|row| (row.id, row.parent, Tree { run: run(row), children: Vec::new() }))
        .collect();
    // Children come after their parents, so the last one has all of its own already.
    while let Some((id, parent, tree)) = trees.pop() {
        if id == root {
            return Some(tree);
        }
        let above = trees.iter_mut().find(|(id, _, _)| Some(*id) == parent);
        if let Some((_, _, above)) = above {
            above.children.insert(0, tree);
        }
    }
    None
}

/// Who did something, in one word: a person's name as it is, others with what they are.
pub fn actor(by: &Actor) -> String {
    match by {
        Actor::User(user) => user.0.clone(),
        Actor::Service(name) => format!("service:{name}"),
        Actor::Agent(agent) => format!("agent:{agent}"),
        Actor::System => "system".to_owned(),
    }
}

pub fn reasons(reasons: Vec<policy::Reason>) -> Vec<Reason> {
    let reason = |it: policy::Reason| Reason {
        layer: it.layer,
        rule: it.rule,
        outcome: it.outcome.as_str().to_owned(),
        detail: it.detail,
    };
    reasons.into_iter().map(reason).collect()
}

pub fn looked(all: Vec<policy::Looked>) -> Vec<Looked> {
    let looked = |it: policy::Looked| Looked {
        layer: it.at.to_owned(),
        said: it.said.as_str().to_owned(),
        outcome: match it.said {
            policy::Said::Objects(ruling) => Some(ruling.as_str().to_owned()),
            policy::Said::Passes | policy::Said::NotLookedAt => None,
        },
        rule: it.rule,
        detail: it.detail,
        decides: it.decides,
    };
    all.into_iter().map(looked).collect()
}

pub fn ways(ways: Vec<ways::Way>) -> Vec<Way> {
    let way = |it: ways::Way| Way {
        kind: it.kind.as_str().to_owned(),
        text: it.text,
        rule: it.rule,
        who: it.who,
    };
    ways.into_iter().map(way).collect()
}

pub fn permission(row: PermissionRow, chain: Vec<Link>) -> Permission {
    let request = row.request;
    Permission {
        id: row.id.to_string(),
        run_id: row.run.to_string(),
        message_id: row.message.to_string(),
        tool_call_id: row.call.id.0,
        tool: row.call.tool,
        arguments: row.call.arguments,
        arguments_sha256: request.arguments_sha256,
        kind: request.kind.as_str().to_owned(),
        payload: request.payload.into(),
        ruling: row.ruling.as_str().to_owned(),
        reasons: reasons(row.reasons),
        risk: request.risk.map(|it| it.as_str().to_owned()),
        capabilities: request.capabilities,
        chain,
        agent: row.agent.0,
        role: row.role,
        user: row.user.0,
        words: row.words,
        status: row.status,
        decided_by: row.decided_by.as_ref().map(actor),
        decided_at: row.decided_at,
        comment: row.comment,
        decided_arguments: row.decided_arguments,
        created_at: request.asked_at,
        expires_at: row.expires_at,
        escalated_at: row.escalated_at,
        correlation_key: request.correlation_key.0,
        inquiries: Vec::new(),
    }
}

/// What the agent was asked about a question, in the order in which it was.
pub fn inquiries(log: &[Recorded], permission: PermissionId) -> Vec<Inquiry> {
    let explained = |inquiry: MessageId| {
        log.iter().find_map(|it| match &it.event {
            event::Event::PermissionExplained(it) if it.inquiry == inquiry => Some(it.text.clone()),
            _ => None,
        })
    };
    let inquiry = |it: &Recorded| match &it.event {
        event::Event::PermissionInquired(asked) if asked.permission == permission => {
            Some(Inquiry {
                by: actor(&asked.by),
                at: it.at,
                text: asked.text.clone(),
                explanation: explained(asked.message),
            })
        }
        _ => None,
    };
    log.iter().filter_map(inquiry).collect()
}

pub fn link(run: RunRow) -> Link {
    Link {
        run_id: run.id.to_string(),
        agent: run.agent.0,
        role: run.role.0,
        group: run.group.map(|it| it.0),
        user: run.user.0,
    }
}

pub fn standing_rule(rule: rule::StandingRule) -> StandingRule {
    StandingRule {
        id: rule.id.to_string(),
        user: rule.user.0,
        agent: rule.agent.0,
        run_id: rule.run.to_string(),
        scope: rule.scope.as_str().to_owned(),
        tool: rule.tool,
        signature: rule.signature,
        permission_id: rule.permission.to_string(),
        made_by: actor(&rule.made_by),
        made_at: rule.made_at,
        expires_at: rule.expires_at,
        revoked_at: rule.revoked_at,
        revoked_by: rule.revoked_by.as_ref().map(actor),
    }
}

pub fn delivery(it: delivery::Delivery) -> webhook::Delivery {
    webhook::Delivery {
        delivery: it.notice,
        subscriber: it.subscriber,
        topic: it.topic,
        run_id: it.run.to_string(),
        seq: it.seq,
        attempt: it.attempt,
        at: it.at,
        error: it.error,
    }
}

pub fn token(token: Token) -> token::Token {
    token::Token {
        id: token.id.to_string(),
        kind: token.kind.as_str().to_owned(),
        name: token.name,
        operator: token.operator,
        approve: token.approve,
        created_at: token.created_at,
        revoked_at: token.revoked_at,
    }
}
