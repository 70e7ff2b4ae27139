//! What of a group's work becomes the knowledge of its project.

use super::{EpisodeKind, Home, MemoryKind, Partition, Party, Scope};
use crate::event::Created;
use crate::id::MemoryId;

/// One record of the group that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub id: MemoryId,
    pub kind: EpisodeKind,
    pub content: String,
}

/// One thing to be kept as archival memory of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    pub content: String,
    pub source: Source,
    pub original: Option<MemoryId>,
}

/// In the metadata: `source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Record,
    Output,
}

impl Source {
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Record => "group_run",
            Source::Output => "group_run_output",
        }
    }
}

/// What a completed group run leaves behind: its decisions, and its output in its own words.
/// Evidence, notes and what was still to do stay on the blackboard.
pub fn deposit_plan(records: &[Record], output: &str) -> Vec<Deposit> {
    let decisions = records.iter().filter(|it| it.kind == EpisodeKind::Decision);
    let mut deposits: Vec<Deposit> = decisions
        .map(|it| Deposit {
            content: it.content.clone(),
            source: Source::Record,
            original: Some(it.id),
        })
        .collect();
    deposits.push(Deposit { content: output.to_owned(), source: Source::Output, original: None });
    deposits.retain(|it| !it.content.trim().is_empty());
    deposits
}

/// Where it goes: to the project, or without one to the whole organisation; to no group, user
/// or agent. `None`: the run was no group's.
pub fn deposit_home(created: &Created) -> Option<Home> {
    created.group.as_ref()?;
    let scope = Scope { project: created.project.clone(), ..Scope::org(&created.org) };
    let partition = Partition::new(scope, MemoryKind::Archival);
    // What belongs to nobody in particular may be written by anybody of the organisation.
    Party::of_person(&created.org, created.user.clone()).person_home(partition).ok()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn decisions_and_the_output_are_deposited_and_nothing_else() {
        let record = |n: u128, kind, content: &str| Record {
            id: MemoryId(Uuid::from_u128(n)),
            kind,
            content: content.to_owned(),
        };
        let records = [
            record(1, EpisodeKind::Decision, "we ship on Friday"),
            record(2, EpisodeKind::Note, "lunch"),
            record(3, EpisodeKind::Evidence, "the tests pass"),
            record(4, EpisodeKind::Todo, "tell the users"),
            record(5, EpisodeKind::Decision, "  "),
        ];
        let plan = deposit_plan(&records, "Shipped.");
        let seen: Vec<_> = plan.iter().map(|it| (&*it.content, it.source.as_str())).collect();
        assert_eq!(seen, [("we ship on Friday", "group_run"), ("Shipped.", "group_run_output")]);
        assert_eq!(plan[0].original, Some(records[0].id));
        assert_eq!(deposit_plan(&[], " \n"), []);
    }
}
