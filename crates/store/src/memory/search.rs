//! Searching: postings of exactly the partitions within reach, ranked in one place for both
//! databases, tier by tier.

use std::collections::{HashMap, HashSet};

use chancery_domain::memory::quota::quotas;
use chancery_domain::memory::rank::{
    NEIGHBOUR, Posting, Scored, Scores, Weights, beside, best, newer_first,
};
use chancery_domain::memory::{MemoryKind, Plan};

use super::reach::{ReachedTier, reach};
use super::row::{self, Memory};
use super::session::Session;
use super::{marks, padded, terms};
use crate::StoreError;
use crate::sql::Param;

/// One result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub memory: Memory,
    /// 1 for the first.
    pub tier: usize,
    pub tier_name: &'static str,
    pub score: f64,
    /// The terms of the question that it has; empty where it only stands beside what has them.
    pub terms: Vec<String>,
}

/// A reason names so many terms; the others are left out.
const TERMS_SHOWN: usize = 8;

impl Found {
    /// Why it was found, in words.
    pub fn why(&self) -> String {
        // Dates are terms that nobody wrote like that.
        let shown = self.terms.iter().map(|it| it.trim_start_matches('@'));
        let shown: Vec<String> = shown.take(TERMS_SHOWN).map(|it| format!("`{it}`")).collect();
        match shown.is_empty() {
            true => "stands beside what matches".to_owned(),
            false => format!("matches {}", shown.join(", ")),
        }
    }
}

/// So many are looked at for what stands beside them: first a few, then all that can matter. What
/// scores less than so many others is not brought to the top by its neighbours.
const BESIDE_MIN: usize = 64;
const BESIDE_MAX: usize = 256;

pub(super) async fn search(
    session: &impl Session,
    plan: &Plan,
    asked: &[String],
    limit: usize,
) -> Result<Vec<Found>, StoreError> {
    let reach = reach(session, plan).await?;
    if asked.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let keys: Vec<Vec<u8>> = reach
        .partitions()
        .flat_map(|it| asked.iter().map(move |term| terms::key(it.id, term)))
        .collect();
    let lists = session.postings(&keys).await?;
    // By partition, then by term.
    let of_partitions: Vec<&[Vec<Posting>]> = lists.chunks(asked.len()).collect();
    let having = (0..asked.len())
        .map(|term| of_partitions.iter().map(|lists| lists[term].len() as u64).sum::<u64>());
    let weights = Weights::new(reach.corpus(), having);

    let mut tiers = Vec::new();
    let mut rest = &of_partitions[..];
    for tier in &reach.tiers {
        let (own, others) = rest.split_at(tier.partitions.len());
        rest = others;
        // A copy and its original count once, so that some may fall away.
        tiers.push(ranked(session, tier, own, &weights, limit.saturating_mul(2)).await?);
    }
    let docs: Vec<i64> = tiers.iter().flatten().map(|it| it.doc).collect();
    let rows = row::by_docs(session, &docs).await?;
    let mut memories: HashMap<i64, Memory> =
        row::whole(session, &reach, rows).await?.into_iter().collect();
    once_each(&mut tiers, &memories);
    let doc_of: HashMap<_, i64> = memories.iter().map(|(doc, it)| (it.id, *doc)).collect();
    for tier in &mut tiers {
        newer_first(tier, |doc| doc_of.get(&memories.get(&doc)?.near?).copied());
    }
    let found: Vec<(u32, usize)> =
        reach.tiers.iter().zip(&tiers).map(|(tier, found)| (tier.share, found.len())).collect();
    let matched = matched(&tiers, &lists, asked);
    let mut results = Vec::new();
    for (place, (takes, scored)) in quotas(limit, &found).into_iter().zip(tiers).enumerate() {
        for it in scored.into_iter().take(takes) {
            let Some(memory) = memories.remove(&it.doc) else { continue };
            results.push(Found {
                memory,
                tier: place + 1,
                tier_name: reach.tiers[place].name,
                score: it.score,
                terms: matched.get(&it.doc).cloned().unwrap_or_default(),
            });
        }
    }
    Ok(results)
}

/// The best of one tier.
async fn ranked(
    session: &impl Session,
    tier: &ReachedTier,
    of_partitions: &[&[Vec<Posting>]],
    weights: &Weights,
    limit: usize,
) -> Result<Vec<Scored>, StoreError> {
    let (mut episodic, mut others) = (Scores::default(), Scores::default());
    for (partition, lists) in tier.partitions.iter().zip(of_partitions) {
        let scores = match partition.partition.kind {
            MemoryKind::Episodic => &mut episodic,
            MemoryKind::Core | MemoryKind::Archival => &mut others,
        };
        for (term, postings) in lists.iter().enumerate() {
            weights.add(scores, term, postings);
        }
    }
    let mut found = best(others, limit);
    found.extend(with_neighbours(session, &episodic, limit).await?);
    Ok(best(found.into_iter().map(|it| (it.doc, it.score)), limit))
}

/// The best episodes, each with its share of what was said beside it.
async fn with_neighbours(
    session: &impl Session,
    scores: &Scores,
    limit: usize,
) -> Result<Vec<Scored>, StoreError> {
    let mut wide = BESIDE_MIN.max(limit);
    loop {
        let candidates = best(scores.iter().map(|(doc, score)| (*doc, *score)), wide);
        let pairs = neighbours(session, &candidates).await?;
        let found = best(beside(scores, &candidates, &pairs), limit);
        let reachable = candidates.last().map_or(0.0, |it| it.score * (1.0 + NEIGHBOUR));
        let enough = found.len() == limit && found.last().is_some_and(|it| it.score >= reachable);
        if enough || candidates.len() < wide || wide >= BESIDE_MAX {
            return Ok(found);
        }
        wide = BESIDE_MAX;
    }
}

/// Who stands beside whom, both ways: the memories before and after in the same run.
async fn neighbours(
    session: &impl Session,
    candidates: &[Scored],
) -> Result<Vec<(i64, i64)>, StoreError> {
    let mut pairs = Vec::new();
    for some in candidates.chunks(256) {
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

/// Leaves out of later tiers what an earlier one has as its original, or as its copy.
fn once_each(tiers: &mut [Vec<Scored>], memories: &HashMap<i64, Memory>) {
    let mut seen = HashSet::new();
    for tier in tiers {
        tier.retain(|it| {
            let Some(memory) = memories.get(&it.doc) else { return false };
            let originals = || memory.sources.iter().filter_map(|source| source.original);
            if seen.contains(&memory.id) || originals().any(|it| seen.contains(&it)) {
                return false;
            }
            seen.insert(memory.id);
            seen.extend(originals());
            true
        });
    }
}

/// Which terms of the question each result has.
fn matched(
    tiers: &[Vec<Scored>],
    lists: &[Vec<Posting>],
    asked: &[String],
) -> HashMap<i64, Vec<String>> {
    let mut matched: HashMap<i64, Vec<String>> =
        tiers.iter().flatten().map(|it| (it.doc, Vec::new())).collect();
    for (place, list) in lists.iter().enumerate() {
        for posting in list {
            if let Some(terms) = matched.get_mut(&posting.doc) {
                terms.push(asked[place % asked.len()].clone());
            }
        }
    }
    matched
}
