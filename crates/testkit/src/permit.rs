//! Permits for tests of tools. Even here there is only one way to one: through a settled batch.

use std::sync::Arc;

use chancery_domain::batch::{Gate, Permit};
use chancery_domain::event::{Actor, Call, Created, Proposal};
use chancery_domain::id::{CallId, MessageId};
use chancery_domain::policy::Ruling;
use serde_json::Value;
use uuid::Uuid;

/// A run that a person asked for, as it is made.
pub fn created(agent: &str, user: &str) -> Created {
    Created {
        org: "default".to_owned(),
        agent: agent.into(),
        role: "personal_agent".into(),
        user: user.into(),
        project: None,
        group: None,
        session_key: None,
        parent: None,
        ancestors: Vec::new(),
        room: None,
        persons_words: Vec::new(),
        delegated: None,
        input: "do it".to_owned(),
        by: Actor::User(user.into()),
        org_version: 0,
        contract: None,
        mails: vec![],
        call: None,
        forked: None,
    }
}

/// The right to one call of `tool`, as an agent that may do anything would have it.
pub fn permit(tool: &str, arguments: Value) -> Permit {
    let id = CallId::from("call_1");
    let call = Arc::new(Call { id: id.clone(), tool: tool.to_owned(), arguments });
    let proposal = Proposal { call, ruling: Ruling::Allow, reasons: Vec::new(), answer: None };
    let Ok(Gate::Settled(batch)) = Gate::new(MessageId(Uuid::from_u128(1)), &[proposal]) else {
        panic!("a batch of one allowed call is settled");
    };
    let Ok((_, permit)) = batch.start(&id) else {
        panic!("its call is the next one");
    };
    permit
}
