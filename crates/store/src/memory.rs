//! What is remembered. Every read takes a [`Plan`] and every write a [`Home`], which only
//! `domain::memory` makes, of who asks: there is no filter to forget, and no number of a
//! partition leaves this module. On PostgreSQL row-level security is a second wall.
//!
//! The engines' own full text is not used: the terms are ours, so that both databases find the
//! same, in any language.

mod beside;
mod deposit;
mod forget;
mod load;
mod reach;
mod row;
mod search;
pub(crate) mod session;
mod terms;
mod vectors;
mod write;

use chancery_domain::audit::Entry;
use chancery_domain::event::Actor;
use chancery_domain::id::{MemoryId, RunId};
use chancery_domain::memory::{Home, MemoryKind, Plan, analyse};
use jiff::Timestamp;
use serde_json::Value;

use self::session::Wall;
use crate::audit::drafts;
use crate::{Database, Mark, Store, StoreError};

pub use deposit::Due;
pub use row::{Memory, Source};
pub use search::Found;
pub use vectors::{Meaning, Question, Space, Unread};

/// A memory that is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemory {
    pub id: MemoryId,
    pub content: String,
    /// An object.
    pub metadata: Value,
    /// The day that it is about.
    pub at: Timestamp,
    pub made_at: Timestamp,
    pub made_by: Actor,
    pub provenance: Option<Provenance>,
    /// Its place among what its run wrote there; without one, the next.
    pub seq: Option<i64>,
    /// What it corrects, in the same partition.
    pub supersedes: Option<MemoryId>,
    /// What the writer could have found: a text that is there already is no news.
    pub not_from: Option<Plan>,
}

/// Which run a memory comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The same key is the same write, however often it is made.
    pub key: String,
    pub run: RunId,
    /// `call`, `group_run` or `group_run_output`.
    pub source: &'static str,
    /// The record that it is a copy of.
    pub original: Option<MemoryId>,
    /// Whether it stands beside what the same run wrote before and after it.
    pub sequence: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    New {
        id: MemoryId,
        /// An earlier one that says nearly the same.
        near: Option<MemoryId>,
    },
    /// It was there before.
    Known(MemoryId),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteRefusal {
    #[error("there is no memory `{0}` here that could be corrected")]
    NothingToSupersede(MemoryId),
}

impl Written {
    pub fn id(self) -> MemoryId {
        match self {
            Written::New { id, .. } | Written::Known(id) => id,
        }
    }
}

/// Carries out the same work on either database, in one transaction.
macro_rules! within {
    ($how:ident, $store:expr, $wall:expr, $session:ident => $work:expr) => {{
        let wall: $crate::memory::session::Wall = $wall;
        match &$store.inner.database {
            Database::Sqlite(sqlite) => {
                let chain = sqlite.chain.clone();
                let work = move |connection: &rusqlite::Connection| {
                    let $session = &$crate::memory::session::Local { connection, chain };
                    $crate::memory::session::at_once($work)
                };
                sqlite.$how(work).await
            }
            Database::Postgres(postgres) => {
                let mut client = postgres.client().await?;
                let transaction = client.transaction().await?;
                let $session = &$crate::memory::session::Remote(&transaction);
                $session.let_in(&wall).await?;
                let done = $work.await?;
                transaction.commit().await?;
                Ok(done)
            }
        }
    }};
}
pub(crate) use within;

impl Store {
    /// Keeps a memory where it belongs, unless it is there.
    pub async fn write_memory(
        &self,
        home: &Home,
        new: NewMemory,
    ) -> Result<Result<Written, WriteRefusal>, StoreError> {
        #[cfg(feature = "faults")]
        self.point().await?;
        let (wall, home) = (Wall::of_home(home), home.clone());
        let written: Result<_, StoreError> =
            within!(write, self, wall, session => write::write(session, &home, &new));
        #[cfg(feature = "faults")]
        self.point().await?;
        written
    }

    /// The memories of a plan that have the most in common with a question, in the order of its
    /// tiers, at most `limit`.
    pub async fn search_memories(
        &self,
        plan: &Plan,
        question: impl Into<Question<'_>>,
        limit: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let Question { text, meaning } = question.into();
        let (wall, plan, asked) = (Wall::of(plan), plan.clone(), analyse::query(text));
        within!(read, self, wall, session =>
            search::search(session, &plan, &asked, meaning.as_ref(), limit))
    }

    /// One memory. What is not within the plan is not there.
    pub async fn memory(&self, plan: &Plan, id: MemoryId) -> Result<Option<Memory>, StoreError> {
        let (wall, plan) = (Wall::of(plan), plan.clone());
        within!(read, self, wall, session => one(session, &plan, id))
    }

    /// The newest first, from before one on.
    pub async fn memories(
        &self,
        plan: &Plan,
        before: Option<MemoryId>,
        limit: usize,
    ) -> Result<Vec<Memory>, StoreError> {
        let (wall, plan) = (Wall::of(plan), plan.clone());
        within!(read, self, wall, session => page(session, &plan, before, limit))
    }

    /// Another answer, and a page of these memories is another.
    pub async fn mark_of_memories(&self, plan: &Plan) -> Result<Mark, StoreError> {
        let (wall, plan) = (Wall::of(plan), plan.clone());
        within!(read, self, wall, session => marked(session, &plan))
    }

    /// Forgets a memory, and all that it had taken the place of. Answers whether it was there.
    pub async fn forget_memory(
        &self,
        plan: &Plan,
        id: MemoryId,
        entry: Entry,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let drafts = drafts(vec![entry], at)?;
        let (wall, plan) = (Wall::of(plan), plan.clone());
        within!(write, self, wall, session => forgotten(session, &plan, id, &drafts))
    }

    /// Forgets what of a kind was made before a time, at most so many. Answers how many.
    pub async fn expire_memories(
        &self,
        org: &str,
        kind: MemoryKind,
        before: Timestamp,
        limit: u32,
    ) -> Result<usize, StoreError> {
        let wall = Wall { org: org.to_owned(), user: session::EVERYONE.to_owned() };
        let org = org.to_owned();
        within!(write, self, wall, session => expired(session, &org, kind, before, limit))
    }
}

async fn one(
    session: &impl session::Session,
    plan: &Plan,
    id: MemoryId,
) -> Result<Option<Memory>, StoreError> {
    let reach = reach::reach(session, plan).await?;
    let row = row::by_id(session, id).await?;
    let found = row::whole(session, &reach, row.into_iter().collect()).await?;
    Ok(found.into_iter().next().map(|(_, memory)| memory))
}

async fn page(
    session: &impl session::Session,
    plan: &Plan,
    before: Option<MemoryId>,
    limit: usize,
) -> Result<Vec<Memory>, StoreError> {
    let reach = reach::reach(session, plan).await?;
    let rows = row::page(session, &reach, before, limit).await?;
    let found = row::whole(session, &reach, rows).await?;
    Ok(found.into_iter().map(|(_, memory)| memory).collect())
}

/// Partitions count what is in them; what takes the place of another is the newest.
async fn marked(session: &impl session::Session, plan: &Plan) -> Result<Mark, StoreError> {
    let reach = reach::reach(session, plan).await?;
    let corpus = reach.corpus();
    let newest = row::page(session, &reach, None, 1).await?;
    let (high, low) = newest.first().map_or((0, 0), |it| it.id.0.as_u64_pair());
    Ok(Mark([corpus.docs, corpus.length, high, low].map(u64::cast_signed).to_vec()))
}

async fn forgotten(
    session: &impl session::Session,
    plan: &Plan,
    id: MemoryId,
    drafts: &[crate::audit::Draft],
) -> Result<bool, StoreError> {
    let reach = reach::reach(session, plan).await?;
    let row = row::by_id(session, id).await?;
    let Some(row) = row.filter(|it| reach.partition(it.partition_id).is_some()) else {
        return Ok(false);
    };
    if !forget::forget(session, row.partition_id, id).await? {
        return Ok(false);
    }
    session.audit(drafts).await?;
    Ok(true)
}

async fn expired(
    session: &impl session::Session,
    org: &str,
    kind: MemoryKind,
    before: Timestamp,
    limit: u32,
) -> Result<usize, StoreError> {
    let mut gone = 0;
    // Partition by partition, as all who lock several do.
    let mut outdated = forget::outdated(session, org, kind, before, limit).await?;
    outdated.sort_unstable();
    for (partition, id) in outdated {
        gone += usize::from(forget::forget(session, partition, id).await?);
    }
    Ok(gone)
}

impl Wall {
    fn of_home(home: &Home) -> Wall {
        let user = home.owner().0.clone();
        Wall { org: home.partition().scope.org.clone(), user }
    }
}

/// `$1, $2, …`
fn marks(from: usize, count: usize) -> String {
    let marks: Vec<String> = (from..from + count).map(|n| format!("${n}")).collect();
    marks.join(", ")
}

/// The same numbers, as many as a power of two: so that there are few statements to prepare.
fn padded(docs: &[i64]) -> Vec<i64> {
    let mut padded = docs.to_vec();
    if let Some(last) = docs.last() {
        padded.resize(docs.len().next_power_of_two(), *last);
    }
    padded
}

fn none_is_empty(text: String) -> Option<String> {
    Some(text).filter(|it| !it.is_empty())
}
