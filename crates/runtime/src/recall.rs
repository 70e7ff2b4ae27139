//! What an agent remembers as a run begins: what its person wants of it, and what is known about
//! the goal. Recorded, so that a replay reads what was read.

use chancery_domain::event::{Created, MemoryRecalled, Recalled};
use chancery_domain::id::AgentId;
use chancery_domain::memory::Party;
use chancery_store::memory::{Found, Memory};

use crate::authority::Authority;
use crate::embedding::{self, Embeddings};
use crate::journal::{Journal, JournalError};

/// So many preferences are read whatever the goal is, and so much that has to do with it.
const PREFERENCES: usize = 20;
const FOUND: usize = 10;
/// The longest piece, in characters; the whole of it is a search away.
const CONTENT_MAX: usize = 1_000;
/// Whoever may search, remembers.
const SEARCH: &str = "memory_search";

pub async fn recall(
    journal: &mut Journal<'_>,
    authority: &Authority,
    embeddings: Option<&Embeddings>,
    created: &Created,
    agent: &AgentId,
) -> Result<(), JournalError> {
    let delegated = authority.delegation(created);
    let (who, user) = (agent.as_str(), created.user.as_str());
    if !authority.policy().offers(who, user, delegated.as_ref(), SEARCH) {
        return Ok(());
    }
    let party = Party::of_run(created);
    let (preferences, search) = (&party.preferences(), &party.run_search(None));
    let question = &embedding::question(journal.store(), embeddings, &created.input).await;
    let wanted = journal.held(|store| async move {
        let wanted = store.memories(preferences, None, PREFERENCES).await?;
        let found = store.search_memories(search, question.clone(), FOUND).await?;
        Ok((wanted, found))
    });
    let (wanted, found) = wanted.await?;
    let known: Vec<_> = wanted.iter().map(|it| it.id).collect();
    let found = found.iter().filter(|it| !known.contains(&it.memory.id));
    let memories: Vec<Recalled> =
        wanted.iter().map(preference).chain(found.map(what_was_found)).collect();
    if memories.is_empty() {
        return Ok(());
    }
    journal.record(MemoryRecalled { memories })
}

fn preference(memory: &Memory) -> Recalled {
    recalled(memory, "preferences", "a preference".to_owned())
}

fn what_was_found(found: &Found) -> Recalled {
    recalled(&found.memory, found.tier_name, found.why())
}

fn recalled(memory: &Memory, tier: &str, why: String) -> Recalled {
    let content = match memory.content.char_indices().nth(CONTENT_MAX) {
        Some((end, _)) => format!("{}…", &memory.content[..end]),
        None => memory.content.clone(),
    };
    Recalled { memory: memory.id, tier: tier.to_owned(), content, at: memory.at, why }
}
