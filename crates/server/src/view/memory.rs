//! What is remembered, as the wire shows it.

use chancery_api::memory::{FoundMemory, Memory, MemoryScope, MemorySource};
use chancery_domain::event::Actor;
use chancery_domain::memory::Scope;
use chancery_store::memory;

pub fn memory(it: memory::Memory) -> Memory {
    let Scope { org: _, user, project, group, agent } = it.partition.scope;
    Memory {
        id: it.id.to_string(),
        content: it.content,
        kind: it.partition.kind.as_str().to_owned(),
        scope: MemoryScope {
            user: user.map(|it| it.0),
            project: project.map(|it| it.0),
            group: group.map(|it| it.0),
            agent: agent.map(|it| it.0),
        },
        metadata: it.metadata,
        at: it.at,
        created_at: it.made_at,
        created_by: by(it.made_by),
        similar_to: it.near.map(|it| it.to_string()),
        superseded_by: it.superseded_by.map(|it| it.to_string()),
        sources: it.sources.into_iter().map(source).collect(),
    }
}

fn source(it: memory::Source) -> MemorySource {
    MemorySource {
        run_id: it.run.to_string(),
        source: it.kind,
        original_memory_id: it.original.map(|it| it.to_string()),
        at: it.at,
    }
}

pub fn by(actor: Actor) -> String {
    match actor {
        Actor::User(it) => it.0,
        Actor::Service(it) => format!("service:{it}"),
        Actor::Agent(it) => format!("agent:{it}"),
        Actor::System => "system".to_owned(),
    }
}

pub fn found(it: memory::Found) -> FoundMemory {
    let why = it.why();
    FoundMemory {
        tier: u32::try_from(it.tier).unwrap_or(u32::MAX),
        tier_name: it.tier_name.to_owned(),
        score: it.score,
        why,
        memory: memory(it.memory),
    }
}
