//! Writing: the same text is kept once in a partition, what says nearly the same is linked to it,
//! and a correction takes the place of what it corrects without overwriting it.

use chancery_domain::id::MemoryId;
use chancery_domain::memory::analyse::{self, Terms};
use chancery_domain::memory::{EpisodeKind, Home, Partition, Plan, Scope};
use sha2::{Digest as _, Sha256};

use super::reach::{COLUMNS, Interned, interned, reach};
use super::row::{self, MemoryRow};
use super::session::{Line, Session};
use super::{NewMemory, WriteRefusal, Written, marks, terms, vectors};
use crate::StoreError;
use crate::sql::Param;

/// So many that share a mark are looked at: the others say something else most likely.
const ALIKE_MAX: usize = 32;

pub(super) async fn write(
    session: &impl Session,
    home: &Home,
    new: &NewMemory,
) -> Result<Result<Written, WriteRefusal>, StoreError> {
    let partition = intern(session, home.partition()).await?;
    session.lock(partition.id).await?;
    if let Some(provenance) = &new.provenance {
        let sql = "SELECT doc FROM memory_sources WHERE key = $1";
        let key = vec![Param::Text(provenance.key.clone())];
        let known = session.rows(sql, key, |row| row.int(0)).await?;
        if let Some(row) = row::by_doc(session, known.first().copied()).await? {
            return Ok(Ok(Written::Known(row.id)));
        }
    }
    if let Some(recalled) = &new.not_from
        && let Some(row) = recall(session, recalled, new).await?
    {
        return Ok(Ok(Written::Known(row)));
    }
    session.admit(&[partition.id]).await?;
    if let Some(known) = same(session, &partition, &new.hash()).await? {
        note_source(session, home, new, known.doc).await?;
        return Ok(Ok(Written::Known(known.id)));
    }
    let corrected = match new.supersedes {
        None => None,
        Some(id) => match row::by_id(session, id).await? {
            Some(row) if row.partition_id == partition.id && row.superseded_by.is_none() => {
                Some(row)
            }
            // Another partition's, another's, forgotten or corrected before: one answer for all.
            _ => return Ok(Err(WriteRefusal::NothingToSupersede(id))),
        },
    };
    let words = terms::of_words(&new.content);
    let near = near(session, partition.id, &words).await?;
    let near = near.filter(|it| Some(*it) != new.supersedes);
    if let Some(corrected) = &corrected {
        supersede(session, corrected, new.id).await?;
    }
    let doc = insert(session, home, new, &partition, near).await?;
    note_source(session, home, new, doc).await?;
    Ok(Ok(Written::New { id: new.id, near }))
}

/// The partition's number, which it has for ever.
pub(super) async fn intern(
    session: &impl Session,
    partition: &Partition,
) -> Result<Interned, StoreError> {
    let tuple = partition.tuple();
    let find = format!("SELECT {COLUMNS} FROM memory_partitions WHERE tuple = $1");
    let find = async || session.rows(&find, vec![Param::Text(tuple.clone())], interned).await;
    if let Some(found) = find().await?.into_iter().next() {
        return Ok(found);
    }
    let Scope { org, user, project, group, agent } = &partition.scope;
    let text = |it: Option<&str>| Param::Text(it.unwrap_or_default().to_owned());
    session
        .execute(
            "INSERT INTO memory_partitions (tuple, org_id, user_id, project_id, group_id, agent_id,
               kind, preference) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING",
            vec![
                Param::Text(tuple.clone()),
                Param::Text(org.clone()),
                text(user.as_ref().map(|it| it.as_str())),
                text(project.as_ref().map(|it| it.as_str())),
                text(group.as_ref().map(|it| it.as_str())),
                text(agent.as_ref().map(|it| it.as_str())),
                Param::Text(partition.kind.as_str().to_owned()),
                Param::Int(i64::from(partition.preference)),
            ],
        )
        .await?;
    let missing = || StoreError::Failed("a partition was not made".to_owned());
    find().await?.into_iter().next().ok_or_else(missing)
}

/// What was found by a search of the same run and is to be written again is no news.
async fn recall(
    session: &impl Session,
    plan: &Plan,
    new: &NewMemory,
) -> Result<Option<MemoryId>, StoreError> {
    let reach = reach(session, plan).await?;
    let hashes: Vec<[u8; 32]> = std::iter::once("")
        .chain(EpisodeKind::ALL.map(EpisodeKind::as_str))
        .map(|recorded| hash(recorded, &new.content))
        .collect();
    let sql =
        "SELECT id FROM memories WHERE partition_id = $1 AND hash = $2 AND superseded_by IS NULL";
    let each = reach
        .partitions()
        .flat_map(|it| hashes.iter().map(move |hash| (it.id, hash)))
        .map(|(id, hash)| vec![Param::Int(i64::from(id)), Param::Bytes(hash.to_vec())])
        .collect();
    let found = session.rows_each(sql, each, |row| Ok(MemoryId(row.uuid(0)?))).await?;
    Ok(found.into_iter().next())
}

async fn same(
    session: &impl Session,
    partition: &Interned,
    hash: &[u8],
) -> Result<Option<MemoryRow>, StoreError> {
    let sql = "SELECT doc FROM memories
        WHERE partition_id = $1 AND hash = $2 AND superseded_by IS NULL";
    let params = vec![Param::Int(i64::from(partition.id)), Param::Bytes(hash.to_vec())];
    let found = session.rows(sql, params, |row| row.int(0)).await?;
    row::by_doc(session, found.first().copied()).await
}

/// A memory of the partition that says nearly the same.
async fn near(
    session: &impl Session,
    partition: u32,
    words: &Terms,
) -> Result<Option<MemoryId>, StoreError> {
    let lists = session.postings(&terms::marks(partition, words)).await?;
    let sizes = terms::sizes_alike(words.distinct());
    let mut docs: Vec<i64> = lists
        .into_iter()
        .flatten()
        .filter(|it| sizes.contains(&(it.count as usize)))
        .map(|it| it.doc)
        .collect();
    docs.sort_unstable();
    docs.dedup();
    docs.truncate(ALIKE_MAX);
    let rows = row::by_docs(session, &docs).await?;
    let alike = rows.into_iter().find(|it| terms::are_alike(words, &terms::of_words(&it.content)));
    Ok(alike.map(|it| it.id))
}

async fn insert(
    session: &impl Session,
    home: &Home,
    new: &NewMemory,
    partition: &Interned,
    near: Option<MemoryId>,
) -> Result<i64, StoreError> {
    let lines = terms::lines(partition.id, &new.content, new.at);
    let length = lines.first().map_or(0, |it| i64::from(it.length));
    let run = new.provenance.as_ref().and_then(|it| it.sequence.then_some(it.run));
    let seq = match (run, new.seq) {
        (None, seq) | (_, seq @ Some(_)) => seq,
        (Some(run), None) => {
            let sql = "SELECT max(seq) FROM memories WHERE run_id = $1 AND partition_id = $2";
            let params = vec![Param::Uuid(run.0), Param::Int(i64::from(partition.id))];
            let last = session.rows(sql, params, |row| row.opt_int(0)).await?;
            Some(last.into_iter().flatten().next().unwrap_or_default() + 1)
        }
    };
    let values = values(home, new, partition.id, seq, length, near)?;
    let made = session.rows(&insertion(), values, |row| row.int(0)).await?;
    let doc = made.first().copied();
    let doc = doc.ok_or_else(|| StoreError::Failed("a memory was not made".to_owned()))?;
    let lines: Vec<(i64, Line)> = lines.into_iter().map(|it| (doc, it)).collect();
    session.index(&lines).await?;
    count(session, partition.id, 1, length).await?;
    Ok(doc)
}

pub(super) fn insertion() -> String {
    format!(
        "INSERT INTO memories (id, partition_id, org_id, user_id, content, metadata, hash, run_id, seq,
           at, made_at, made_by, owner, length, analyser, near) VALUES ({}) RETURNING doc",
        marks(1, 16)
    )
}

pub(super) fn values(
    home: &Home,
    new: &NewMemory,
    partition: u32,
    seq: Option<i64>,
    length: i64,
    near: Option<MemoryId>,
) -> Result<Vec<Param>, StoreError> {
    let scope = &home.partition().scope;
    let run = new.provenance.as_ref().and_then(|it| it.sequence.then_some(it.run));
    Ok(vec![
        Param::Uuid(new.id.0),
        Param::Int(i64::from(partition)),
        Param::Text(scope.org.clone()),
        Param::Text(scope.user.as_ref().map(|it| it.0.clone()).unwrap_or_default()),
        Param::Text(new.content.clone()),
        Param::Text(new.metadata.to_string()),
        Param::Bytes(new.hash().to_vec()),
        run.map_or(Param::Null, |it| Param::Uuid(it.0)),
        seq.map_or(Param::Null, Param::Int),
        Param::Int(new.at.as_microsecond()),
        Param::Int(new.made_at.as_microsecond()),
        Param::Text(row::actor(&new.made_by)?),
        Param::Text(home.owner().0.clone()),
        Param::Int(length),
        Param::Int(analyse::VERSION),
        near.map_or(Param::Null, |it| Param::Uuid(it.0)),
    ])
}

/// The partition's statistics are exact: they move with what is indexed.
pub(super) async fn count(
    session: &impl Session,
    partition: u32,
    docs: i64,
    length: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE memory_partitions SET docs = docs + $1, length = length + $2 WHERE id = $3";
    let params = vec![Param::Int(docs), Param::Int(length), Param::Int(i64::from(partition))];
    session.execute(sql, params).await?;
    Ok(())
}

/// What is corrected stays to be read, and is found no more.
async fn supersede(
    session: &impl Session,
    old: &MemoryRow,
    by: MemoryId,
) -> Result<(), StoreError> {
    unindex(session, old).await?;
    let sql = "UPDATE memories SET superseded_by = $1 WHERE doc = $2";
    session.execute(sql, vec![Param::Uuid(by.0), Param::Int(old.doc)]).await?;
    Ok(())
}

pub(super) async fn unindex(session: &impl Session, row: &MemoryRow) -> Result<(), StoreError> {
    let lines = terms::lines(row.partition_id, &row.content, row.at);
    let keys: Vec<Vec<u8>> = lines.into_iter().map(|it| it.key).collect();
    let gone = session.unindex(row.doc, &keys).await?;
    if row.analyser != analyse::VERSION || gone != keys.len() as u64 {
        // It was indexed by another version of the analyser: all that the partition has is looked
        // through.
        let next =
            row.partition_id.checked_add(1).map_or(vec![0xff; 8], |it| it.to_be_bytes().to_vec());
        let sql = "DELETE FROM memory_term WHERE k >= $1 AND k < $2 AND doc = $3";
        let from = row.partition_id.to_be_bytes().to_vec();
        session
            .execute(sql, vec![Param::Bytes(from), Param::Bytes(next), Param::Int(row.doc)])
            .await?;
    }
    vectors::remove(session, row.partition_id, row.doc).await?;
    count(session, row.partition_id, -1, -row.length).await
}

async fn note_source(
    session: &impl Session,
    home: &Home,
    new: &NewMemory,
    doc: i64,
) -> Result<(), StoreError> {
    let Some(provenance) = &new.provenance else { return Ok(()) };
    let original = match provenance.original {
        None => None,
        Some(id) => row::by_id(session, id).await?.map(|it| it.doc),
    };
    session
        .execute(
            "INSERT INTO memory_sources (key, org_id, doc, run_id, source, original, at)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
            vec![
                Param::Text(provenance.key.clone()),
                Param::Text(home.partition().scope.org.clone()),
                Param::Int(doc),
                Param::Uuid(provenance.run.0),
                Param::Text(provenance.source.to_owned()),
                original.map_or(Param::Null, Param::Int),
                Param::Int(new.made_at.as_microsecond()),
            ],
        )
        .await?;
    Ok(())
}

impl NewMemory {
    /// What makes two memories of a partition the same: the text, and as what it was recorded.
    fn hash(&self) -> [u8; 32] {
        hash(self.metadata["memory_type"].as_str().unwrap_or_default(), &self.content)
    }
}

fn hash(recorded: &str, content: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(recorded.as_bytes());
    hash.update([0]);
    hash.update(content.trim().as_bytes());
    hash.finalize().into()
}
