//! Many memories at once, as measurements need them: into one partition, in one transaction,
//! without looking for what is like them.

use chancery_domain::memory::Home;

use super::session::{EVERYONE, Line, Session, Wall};
use super::{NewMemory, terms, within, write};
use crate::sql::Param;
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

    /// Takes away all that an organisation has, a partition at a time. For one that was made to
    /// measure.
    pub async fn unload_memories(&self, org: &str) -> Result<(), StoreError> {
        let mut left = true;
        while left {
            let wall = Wall { org: org.to_owned(), user: EVERYONE.to_owned() };
            let org = org.to_owned();
            let gone: Result<bool, StoreError> =
                within!(write, self, wall, session => unload_one(session, &org));
            left = gone?;
        }
        Ok(())
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

/// Answers whether there was one.
async fn unload_one(session: &impl Session, org: &str) -> Result<bool, StoreError> {
    let sql = "SELECT id FROM memory_partitions WHERE org_id = $1 LIMIT 1";
    let found = session.rows(sql, vec![Param::Text(org.to_owned())], |row| row.int(0)).await?;
    let Some(id) = found.first().copied() else { return Ok(false) };
    let partition = u32::try_from(id).map_err(|it| StoreError::Unreadable(it.to_string()))?;
    session.lock(partition).await?;
    session.admit(&[partition]).await?;
    let from = partition.to_be_bytes().to_vec();
    let next = partition.checked_add(1).map_or(vec![0xff; 8], |it| it.to_be_bytes().to_vec());
    let sql = "DELETE FROM memory_term WHERE k >= $1 AND k < $2";
    session.execute(sql, vec![Param::Bytes(from), Param::Bytes(next)]).await?;
    for sql in [
        "DELETE FROM memory_vectors WHERE partition_id = $1",
        "DELETE FROM memory_sources WHERE doc IN (SELECT doc FROM memories WHERE partition_id = $1)",
        "DELETE FROM memories WHERE partition_id = $1",
        "DELETE FROM memory_partitions WHERE id = $1",
    ] {
        session.execute(sql, vec![Param::Int(id)]).await?;
    }
    Ok(true)
}
