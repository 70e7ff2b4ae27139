//! What is remembered, where it belongs, who may read it and in which order it is found. Pure.
//!
//! A memory belongs to one [`Partition`], and a search is a [`Plan`]: tiers of partitions, made
//! by [`Party`] alone, out of who asks and not out of what is asked. There is no filter to forget.

pub mod analyse;
pub mod deposit;
pub mod quota;
pub mod rank;
pub mod vector;

mod date;
mod party;
mod stop;

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, GroupId, ProjectId, UserId};

pub use party::{Asked, Home, Mode, Narrow, Party, Plan, Refusal, Tier, Which};

/// How long a memory lives and what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    Core,
    Episodic,
    Archival,
}

/// Whom a memory belongs to. What is absent is nobody's, and not anybody's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    pub org: String,
    pub user: Option<UserId>,
    pub project: Option<ProjectId>,
    pub group: Option<GroupId>,
    pub agent: Option<AgentId>,
}

/// Where a memory is kept: the smallest thing that is read as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition {
    pub scope: Scope,
    pub kind: MemoryKind,
    /// What the person wants of their own agent (in the metadata: `pa_preference`).
    pub preference: bool,
}

/// What a group's members write down for each other. On the wire `memory_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpisodeKind {
    Decision,
    Evidence,
    Todo,
    Note,
}

impl MemoryKind {
    pub const ALL: [MemoryKind; 3] = [MemoryKind::Core, MemoryKind::Episodic, MemoryKind::Archival];

    pub fn as_str(self) -> &'static str {
        match self {
            MemoryKind::Core => "core",
            MemoryKind::Episodic => "episodic",
            MemoryKind::Archival => "archival",
        }
    }

    pub fn parse(text: &str) -> Option<MemoryKind> {
        MemoryKind::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

impl EpisodeKind {
    pub const ALL: [EpisodeKind; 4] =
        [EpisodeKind::Decision, EpisodeKind::Evidence, EpisodeKind::Todo, EpisodeKind::Note];

    pub fn as_str(self) -> &'static str {
        match self {
            EpisodeKind::Decision => "DECISION",
            EpisodeKind::Evidence => "EVIDENCE",
            EpisodeKind::Todo => "TODO",
            EpisodeKind::Note => "NOTE",
        }
    }

    pub fn parse(text: &str) -> Option<EpisodeKind> {
        EpisodeKind::ALL.into_iter().find(|it| it.as_str() == text)
    }
}

impl Scope {
    /// What the whole organisation knows.
    pub fn org(org: &str) -> Scope {
        Scope { org: org.to_owned(), user: None, project: None, group: None, agent: None }
    }
}

impl Partition {
    pub fn new(scope: Scope, kind: MemoryKind) -> Partition {
        Partition { scope, kind, preference: false }
    }

    /// One text for one partition, and no other: what it is interned by.
    pub fn tuple(&self) -> String {
        let Scope { org, user, project, group, agent } = &self.scope;
        let parts = (
            org,
            user.as_ref().map(UserId::as_str),
            project.as_ref().map(ProjectId::as_str),
            group.as_ref().map(GroupId::as_str),
            agent.as_ref().map(AgentId::as_str),
            self.kind.as_str(),
            self.preference,
        );
        // Texts and a boolean are always JSON.
        serde_json::to_string(&parts).unwrap_or_default()
    }
}
