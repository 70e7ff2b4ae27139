//! How many results each tier gives.

/// Shares out `limit` results over tiers, each with its share (in hundredths, a hundred together)
/// and what it has found. Quotas add up to the limit, by largest remainder; what a tier does not
/// use flows on to the next, and what is left at the end to those that have more.
pub fn quotas(limit: usize, tiers: &[(u32, usize)]) -> Vec<usize> {
    let mut taken = Vec::with_capacity(tiers.len());
    let mut left = 0;
    for (quota, (_, found)) in shared_out(limit, tiers).into_iter().zip(tiers) {
        let wanted = quota + left;
        let takes = wanted.min(*found);
        left = wanted - takes;
        taken.push(takes);
    }
    for (takes, (_, found)) in taken.iter_mut().zip(tiers) {
        let more = left.min(found - *takes);
        *takes += more;
        left -= more;
    }
    taken
}

fn shared_out(limit: usize, tiers: &[(u32, usize)]) -> Vec<usize> {
    let whole: usize = tiers.iter().map(|(share, _)| *share as usize).sum();
    if whole == 0 {
        return vec![0; tiers.len()];
    }
    // No search is so long that this overflows.
    let limit = limit.min(usize::MAX / 1000);
    let exact = |share: u32| limit * share as usize;
    let mut quotas: Vec<usize> = tiers.iter().map(|(share, _)| exact(*share) / whole).collect();
    let mut order: Vec<usize> = (0..tiers.len()).collect();
    // Of equal remainders the earlier tier has the larger claim.
    order.sort_by_key(|it| std::cmp::Reverse(exact(tiers[*it].0) % whole));
    let missing = limit - quotas.iter().sum::<usize>();
    for tier in order.into_iter().take(missing) {
        quotas[tier] += 1;
    }
    quotas
}
