//! Feeds the layer `limits`: what a run has used up, and how often its agent calls. What is not
//! limited is not looked up.

use chancery_domain::id::{AgentId, RunId};
use chancery_domain::policy::{Limits, Reason, Spent};
use chancery_store::{Store, StoreError};

/// What budgets say of any further call of a run. `spent` is its own; what the other runs of its
/// tree have used is in the store.
pub async fn on_budget(
    store: &Store,
    limits: &Limits,
    run: RunId,
    mut spent: Spent,
) -> Result<Vec<Reason>, StoreError> {
    if limits.run_tokens.is_some() {
        let others = store.tokens_beside(run).await?;
        spent.tokens = spent.tokens.saturating_add(others);
    }
    Ok(limits.rule_on(spent))
}

/// What rates say of a call that so many others of the same tool are to be made before.
pub async fn on_rate(
    store: &Store,
    limits: &Limits,
    agent: &AgentId,
    tool: &str,
    before: u32,
) -> Result<Option<Reason>, StoreError> {
    let Some(rate) = limits.rate(tool) else { return Ok(None) };
    let left = store.shares_left(agent, tool, rate).await?;
    Ok(if before < left { None } else { limits.too_often(agent.as_str(), tool) })
}

/// Takes the share that a call needs, just before it is made; says why if there is none.
pub async fn take_share(
    store: &Store,
    limits: &Limits,
    agent: &AgentId,
    tool: &str,
) -> Result<Option<Reason>, StoreError> {
    let Some(rate) = limits.rate(tool) else { return Ok(None) };
    let taken = store.take_share(agent, tool, rate).await?;
    Ok(if taken { None } else { limits.too_often(agent.as_str(), tool) })
}
