//! From a plan to the partitions that there are: the only way to their numbers.

use std::collections::BTreeSet;

use chancery_domain::id::{AgentId, GroupId, ProjectId, UserId};
use chancery_domain::memory::rank::Corpus;
use chancery_domain::memory::{MemoryKind, Partition, Plan, Scope, Which};

use super::session::{Session, Wall};
use super::{marks, none_is_empty};
use crate::StoreError;
use crate::sql::{Columns, Param};

/// The partitions of a plan, as they are numbered. Holding it is the right to read them.
#[derive(Debug)]
pub(super) struct Reach {
    pub tiers: Vec<ReachedTier>,
}

#[derive(Debug)]
pub(super) struct ReachedTier {
    pub name: &'static str,
    pub share: u32,
    pub partitions: Vec<Interned>,
}

#[derive(Debug, Clone)]
pub(super) struct Interned {
    pub id: u32,
    pub partition: Partition,
    pub corpus: Corpus,
}

pub(super) const COLUMNS: &str =
    "id, org_id, user_id, project_id, group_id, agent_id, kind, preference, docs, length";

impl Wall {
    pub(super) fn of(plan: &Plan) -> Wall {
        Wall { org: plan.org().to_owned(), user: plan.user().0.clone() }
    }
}

/// Finds the partitions of a plan, and lets the session in to them.
pub(super) async fn reach(session: &impl Session, plan: &Plan) -> Result<Reach, StoreError> {
    let mut tiers = Vec::new();
    // One partition belongs to the first tier that has it.
    let mut seen = BTreeSet::new();
    for tier in plan.tiers() {
        let found = match &tier.which {
            Which::These(these) if these.is_empty() => Vec::new(),
            Which::These(these) => {
                let places = marks(1, these.len());
                let sql =
                    format!("SELECT {COLUMNS} FROM memory_partitions WHERE tuple IN ({places})");
                let tuples = these.iter().map(|it| Param::Text(it.tuple())).collect();
                session.rows(&sql, tuples, interned).await?
            }
            Which::All(_) => {
                let sql = format!(
                    "SELECT {COLUMNS} FROM memory_partitions
                     WHERE org_id = $1 AND user_id IN ('', $2) ORDER BY id"
                );
                let whose = vec![
                    Param::Text(plan.org().to_owned()),
                    Param::Text(plan.user().as_str().to_owned()),
                ];
                session.rows(&sql, whose, interned).await?
            }
        };
        let admitted = |it: &Interned| plan.admits(tier, &it.partition) && !seen.contains(&it.id);
        let partitions: Vec<Interned> = found.into_iter().filter(admitted).collect();
        seen.extend(partitions.iter().map(|it| it.id));
        tiers.push(ReachedTier { name: tier.name, share: tier.share, partitions });
    }
    session.admit(&seen.into_iter().collect::<Vec<u32>>()).await?;
    Ok(Reach { tiers })
}

impl Reach {
    pub(super) fn partitions(&self) -> impl Iterator<Item = &Interned> {
        self.tiers.iter().flat_map(|it| &it.partitions)
    }

    pub(super) fn partition(&self, id: u32) -> Option<&Partition> {
        self.partitions().find(|it| it.id == id).map(|it| &it.partition)
    }

    /// All that is searched, as one.
    pub(super) fn corpus(&self) -> Corpus {
        self.partitions().fold(Corpus::default(), |sum, it| Corpus {
            docs: sum.docs + it.corpus.docs,
            length: sum.length + it.corpus.length,
        })
    }
}

pub(super) fn interned(row: &dyn Columns) -> Result<Interned, StoreError> {
    let unreadable = |what: String| StoreError::Unreadable(what);
    let kind = row.text(6)?;
    let kind =
        MemoryKind::parse(&kind).ok_or_else(|| unreadable(format!("a memory of type `{kind}`")))?;
    let id = u32::try_from(row.int(0)?)
        .map_err(|it| unreadable(format!("the number of a partition: {it}")))?;
    let scope = Scope {
        org: row.text(1)?,
        user: none_is_empty(row.text(2)?).map(UserId),
        project: none_is_empty(row.text(3)?).map(ProjectId),
        group: none_is_empty(row.text(4)?).map(GroupId),
        agent: none_is_empty(row.text(5)?).map(AgentId),
    };
    let partition = Partition { scope, kind, preference: row.int(7)? != 0 };
    let count = |it: i64| u64::try_from(it).unwrap_or_default();
    let corpus = Corpus { docs: count(row.int(8)?), length: count(row.int(9)?) };
    Ok(Interned { id, partition, corpus })
}
