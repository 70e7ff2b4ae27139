//! Searching: postings of exactly the partitions within reach, ranked in one place for both
//! databases, tier by tier.

use std::collections::{HashMap, HashSet};

use chancery_domain::memory::quota::quotas;
use chancery_domain::memory::rank::{Posting, Scored, Scores, Weights, best, newer_first};
use chancery_domain::memory::vector::{Nearest, fused};
use chancery_domain::memory::{MemoryKind, Plan};

use super::reach::{ReachedTier, reach};
use super::row::{self, Memory};
use super::session::Session;
use super::vectors::{Meaning, nearest};
use super::{beside, terms};
use crate::StoreError;

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
    /// How near it is in meaning, from nought to one, where somebody could tell.
    pub nearness: Option<f64>,
}

/// A reason names so many terms; the others are left out.
const TERMS_SHOWN: usize = 8;

impl Found {
    /// Why it was found, in words.
    pub fn why(&self) -> String {
        // Dates are terms that nobody wrote like that.
        let shown = self.terms.iter().map(|it| it.trim_start_matches('@'));
        let shown: Vec<String> = shown.take(TERMS_SHOWN).map(|it| format!("`{it}`")).collect();
        match (shown.is_empty(), self.nearness) {
            (true, None) => "stands beside what matches".to_owned(),
            (true, Some(_)) => "is near in meaning".to_owned(),
            (false, _) => format!("matches {}", shown.join(", ")),
        }
    }
}

/// So many of each signal are weighed against each other.
const FUSED: usize = 100;

pub(super) async fn search(
    session: &impl Session,
    plan: &Plan,
    asked: &[String],
    meaning: Option<&Meaning>,
    limit: usize,
) -> Result<Vec<Found>, StoreError> {
    let reach = reach(session, plan).await?;
    if (asked.is_empty() && meaning.is_none()) || limit == 0 {
        return Ok(Vec::new());
    }
    let keys: Vec<Vec<u8>> = reach
        .partitions()
        .flat_map(|it| asked.iter().map(move |term| terms::key(it.id, term)))
        .collect();
    let lists = session.postings(&keys).await?;
    // By partition, then by term.
    let of_partitions: Vec<&[Vec<Posting>]> = match asked.len() {
        0 => reach.partitions().map(|_| &[][..]).collect(),
        terms => lists.chunks(terms).collect(),
    };
    let having = (0..asked.len())
        .map(|term| of_partitions.iter().map(|lists| lists[term].len() as u64).sum::<u64>());
    let weights = Weights::new(reach.corpus(), having);

    let (mut tiers, mut near) = (Vec::new(), HashMap::new());
    let mut rest = &of_partitions[..];
    for tier in &reach.tiers {
        let (own, others) = rest.split_at(tier.partitions.len());
        rest = others;
        // A copy and its original count once, so that some may fall away.
        let wanted = limit.saturating_mul(2);
        let close = match meaning {
            Some(meaning) => nearest(session, tier, meaning, wanted.max(FUSED)).await?,
            None => Nearest::default(),
        };
        if close.found.is_empty() {
            tiers.push(ranked(session, tier, own, &weights, wanted).await?);
            continue;
        }
        let lexical = ranked(session, tier, own, &weights, wanted.max(FUSED)).await?;
        tiers.push(fused(&lexical, &close, wanted));
        near.extend(close.found.into_iter().map(|it| (it.doc, it.score)));
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
                nearness: near.get(&it.doc).copied(),
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
    found.extend(beside::with_neighbours(session, tier, &episodic, limit).await?);
    Ok(best(found.into_iter().map(|it| (it.doc, it.score)), limit))
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
