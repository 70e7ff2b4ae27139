//! What memories mean. A vector is written after its memory, whenever a model gets to it: which
//! memories still want one is written on their rows, so that nothing waits and nothing is lost.

use chancery_domain::id::MemoryId;
use chancery_domain::memory::vector::{Nearest, Vector};

use super::reach::ReachedTier;
use super::session::{self, Session, Wall};
use super::within;
use crate::sql::{Columns, Param};
use crate::{Database, Store, StoreError};

/// Vectors of one space can be compared: one model's, with as many dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space(i64);

/// What a question means, for those who can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meaning {
    pub space: Space,
    pub vector: Vector,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question<'q> {
    pub text: &'q str,
    pub meaning: Option<Meaning>,
}

impl<'q> From<&'q str> for Question<'q> {
    fn from(text: &'q str) -> Question<'q> {
        Question { text, meaning: None }
    }
}

/// A memory without a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub id: MemoryId,
    pub content: String,
    doc: i64,
    partition: u32,
}

impl Store {
    /// The space of that name, from now on.
    pub async fn vector_space(&self, name: &str) -> Result<Space, StoreError> {
        let find = async || {
            let name = vec![Param::Text(name.to_owned())];
            self.query("SELECT id FROM memory_spaces WHERE name = $1", name, |row| row.int(0)).await
        };
        if let Some(id) = find().await?.first() {
            return Ok(Space(*id));
        }
        let sql = "INSERT INTO memory_spaces (name) VALUES ($1) ON CONFLICT DO NOTHING";
        self.execute(sql, vec![Param::Text(name.to_owned())]).await?;
        let missing = || StoreError::Failed("a space was not made".to_owned());
        find().await?.first().map(|id| Space(*id)).ok_or_else(missing)
    }

    /// Memories of an organisation that were not looked at in a space, the new ones first.
    pub async fn unread_memories(
        &self,
        org: &str,
        space: Space,
        limit: u32,
    ) -> Result<Vec<Unread>, StoreError> {
        let (wall, org) = (system(org), org.to_owned());
        within!(read, self, wall, session => unread(session, &org, space, limit))
    }

    /// Keeps what came of looking at memories: a vector, or nothing. What was corrected or
    /// forgotten meanwhile is passed over.
    pub async fn keep_vectors(
        &self,
        org: &str,
        space: Space,
        mut read: Vec<(Unread, Option<Vector>)>,
    ) -> Result<(), StoreError> {
        // Partition by partition, as all who lock several do.
        read.sort_by_key(|(it, _)| it.partition);
        let wall = system(org);
        within!(write, self, wall, session => keep(session, space, &read))
    }
}

fn system(org: &str) -> Wall {
    Wall { org: org.to_owned(), user: session::EVERYONE.to_owned() }
}

async fn unread(
    session: &impl Session,
    org: &str,
    space: Space,
    limit: u32,
) -> Result<Vec<Unread>, StoreError> {
    let mut found = Vec::new();
    // What no model has looked at is in space 0; what another one has, before or after this.
    for side in ["<", ">"] {
        let left = i64::from(limit) - found.len() as i64;
        let sql = format!(
            "SELECT id, content, doc, partition_id FROM memories
             WHERE org_id = $1 AND space {side} $2 AND superseded_by IS NULL
             ORDER BY space, doc LIMIT $3"
        );
        let params = vec![Param::Text(org.to_owned()), Param::Int(space.0), Param::Int(left)];
        let decode = |row: &dyn Columns| {
            let partition = u32::try_from(row.int(3)?);
            Ok(Unread {
                id: MemoryId(row.uuid(0)?),
                content: row.text(1)?,
                doc: row.int(2)?,
                partition: partition.map_err(|it| StoreError::Unreadable(it.to_string()))?,
            })
        };
        found.extend(session.rows(&sql, params, decode).await?);
    }
    Ok(found)
}

async fn keep(
    session: &impl Session,
    space: Space,
    read: &[(Unread, Option<Vector>)],
) -> Result<(), StoreError> {
    for of_partition in read.chunk_by(|(a, _), (b, _)| a.partition == b.partition) {
        let Some(partition) = of_partition.first().map(|(it, _)| it.partition) else { continue };
        session.lock(partition).await?;
        session.admit(&[partition]).await?;
        for (memory, vector) in of_partition {
            let sql = "UPDATE memories SET space = $1 WHERE doc = $2 AND superseded_by IS NULL";
            let params = vec![Param::Int(space.0), Param::Int(memory.doc)];
            if session.execute(sql, params).await? == 0 {
                continue;
            }
            remove(session, partition, memory.doc).await?;
            if let Some(vector) = vector {
                let sql = "INSERT INTO memory_vectors (partition_id, doc, space, v)
                    VALUES ($1, $2, $3, $4)";
                let params = vec![
                    Param::Int(i64::from(partition)),
                    Param::Int(memory.doc),
                    Param::Int(space.0),
                    Param::Bytes(vector.to_bytes()),
                ];
                session.execute(sql, params).await?;
            }
        }
    }
    Ok(())
}

/// A memory that is not found any more has no vector either.
pub(super) async fn remove(
    session: &impl Session,
    partition: u32,
    doc: i64,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM memory_vectors WHERE partition_id = $1 AND doc = $2";
    session.execute(sql, vec![Param::Int(i64::from(partition)), Param::Int(doc)]).await?;
    Ok(())
}

/// The nearest of a tier, of all that have a vector.
pub(super) async fn nearest(
    session: &impl Session,
    tier: &ReachedTier,
    meaning: &Meaning,
    limit: usize,
) -> Result<Nearest, StoreError> {
    let (mut cosines, length) = (Vec::new(), meaning.vector.dimensions());
    for partition in &tier.partitions {
        let each = &mut |doc: i64, kept: &[u8]| cosines.push((doc, meaning.vector.cosine(kept)));
        session.vectors(partition.id, meaning.space.0, length, each).await?;
    }
    Ok(Nearest::of(cosines, limit))
}
