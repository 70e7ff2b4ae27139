//! Many memories at once, as measurements need them: into one partition, in one transaction,
//! without looking for what is like them.

use chancery_domain::memory::Home;

use super::session::{Line, Session, Wall};
use super::{NewMemory, terms, within, write};
use crate::{Database, Store, StoreError};

impl Store {
    /// Keeps memories that are known to be new and to differ.
    pub async fn load_memories(
        &self,
        home: &Home,
        memories: Vec<NewMemory>,
    ) -> Result<(), StoreError> {
        let (wall, home) = (Wall::of_home(home), home.clone());
        within!(write, self, wall, session => load(session, &home, &memories))
    }
}

async fn load(
    session: &impl Session,
    home: &Home,
    memories: &[NewMemory],
) -> Result<(), StoreError> {
    let partition = write::intern(session, home.partition()).await?.id;
    session.lock(partition).await?;
    session.admit(&[partition]).await?;
    let (mut rows, mut of_memories, mut length) = (Vec::new(), Vec::new(), 0);
    for new in memories {
        let lines = terms::lines(partition, &new.content, new.at);
        let own = lines.first().map_or(0, |it| i64::from(it.length));
        rows.push(write::values(home, new, partition, new.seq, own, None)?);
        of_memories.push(lines);
        length += own;
    }
    let docs = session.rows_each(&write::insertion(), rows, |row| row.int(0)).await?;
    let mut lines: Vec<(i64, Line)> = docs
        .iter()
        .zip(of_memories)
        .flat_map(|(doc, lines)| lines.into_iter().map(|line| (*doc, line)))
        .collect();
    // Neighbours in the index are written one after the other.
    lines.sort_unstable_by(|(a, one), (b, other)| (&one.key, a).cmp(&(&other.key, b)));
    session.index(&lines).await?;
    write::count(session, partition, docs.len() as i64, length).await
}
