//! What stands beside a match: the memories before and after it in the same run.

use chancery_domain::memory::rank::{NEIGHBOUR, Scored, Scores, beside, best};
use uuid::Uuid;

use super::reach::ReachedTier;
use super::session::Session;
use super::{marks, padded};
use crate::StoreError;
use crate::sql::{Columns, Param};

/// So many are looked at for what stands beside them: first a few, then more. Where the scores
/// lie so close together that any may come to the top by its neighbours, all of them.
const STEPS: [usize; 2] = [64, 512];
/// Parameters of one statement.
const CHUNK: usize = 256;

/// The best episodes, each with its share of what was said beside it.
pub(super) async fn with_neighbours(
    session: &impl Session,
    tier: &ReachedTier,
    scores: &Scores,
    limit: usize,
) -> Result<Vec<Scored>, StoreError> {
    let mut pairs = Vec::new();
    let mut looked_at = 0;
    for wide in STEPS {
        let wide = wide.max(limit);
        let candidates = best(scores.iter().map(|(doc, score)| (*doc, *score)), wide);
        pairs.extend(neighbours(session, &candidates[looked_at..]).await?);
        looked_at = candidates.len();
        let found = best(beside(scores, &candidates, &pairs), limit);
        // Whoever was not looked at has less than the last of them, and so have its neighbours.
        let reachable = candidates.last().map_or(0.0, |it| it.score * (1.0 + NEIGHBOUR));
        let enough = found.len() == limit && found.last().is_some_and(|it| it.score >= reachable);
        if enough || candidates.len() < wide {
            return Ok(found);
        }
    }
    let pairs = all_neighbours(session, tier, scores).await?;
    let candidates = best(scores.iter().map(|(doc, score)| (*doc, *score)), usize::MAX);
    Ok(best(beside(scores, &candidates, &pairs), limit))
}

/// Who stands beside whom, both ways.
async fn neighbours(
    session: &impl Session,
    candidates: &[Scored],
) -> Result<Vec<(i64, i64)>, StoreError> {
    let mut pairs = Vec::new();
    for some in candidates.chunks(CHUNK) {
        let docs: Vec<i64> = some.iter().map(|it| it.doc).collect();
        let docs = padded(&docs);
        let sql = format!(
            "SELECT m.doc, n.doc FROM memories m JOIN memories n ON n.run_id = m.run_id
               AND n.seq BETWEEN m.seq - 1 AND m.seq + 1 AND n.partition_id = m.partition_id
               AND n.doc <> m.doc AND n.superseded_by IS NULL
             WHERE m.doc IN ({})",
            marks(1, docs.len())
        );
        let params = docs.into_iter().map(Param::Int).collect();
        pairs.extend(session.rows(&sql, params, |row| Ok((row.int(0)?, row.int(1)?))).await?);
    }
    let back: Vec<(i64, i64)> = pairs.iter().map(|(one, other)| (*other, *one)).collect();
    pairs.extend(back);
    Ok(pairs)
}

/// The same for all that have a score, in one walk along each partition.
async fn all_neighbours(
    session: &impl Session,
    tier: &ReachedTier,
    scores: &Scores,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let sql = "SELECT run_id, seq, doc FROM memories
        WHERE partition_id = $1 AND run_id IS NOT NULL AND superseded_by IS NULL
        ORDER BY run_id, seq";
    let mut pairs = Vec::new();
    for partition in &tier.partitions {
        let params = vec![Param::Int(i64::from(partition.id))];
        let decode = |row: &dyn Columns| Ok((row.uuid(0)?, row.opt_int(1)?, row.int(2)?));
        let line: Vec<(Uuid, Option<i64>, i64)> = session.rows(sql, params, decode).await?;
        for (place, (run, seq, doc)) in line.iter().enumerate() {
            let after = line[place + 1..].iter().take_while(|(other, later, _)| {
                other == run && matches!((seq, later), (Some(a), Some(b)) if b - a <= 1)
            });
            for (_, _, other) in after {
                if scores.contains_key(doc) || scores.contains_key(other) {
                    pairs.extend([(*doc, *other), (*other, *doc)]);
                }
            }
        }
    }
    Ok(pairs)
}
