//! Recall: of what answers a question, how much is among the first five and the first ten.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::Context as _;
use chancery_domain::event::Actor;
use chancery_domain::id::{MemoryId, RunId};
use chancery_domain::memory::{Asked, Home, MemoryKind, Mode, Partition, Party, Scope};
use chancery_runtime::clock;
use chancery_runtime::embedding::Memories;
use chancery_store::memory::{self, NewMemory, Provenance};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Figure, org_of_its_own, tidy_up};

#[derive(Debug, Deserialize)]
struct Remembered {
    id: String,
    space: String,
    /// Its place in the conversation.
    order: i64,
    /// The day, or the time.
    #[serde(default)]
    at: String,
    text: String,
}

#[derive(Debug, Deserialize)]
struct Question {
    space: String,
    text: String,
    relevant: Vec<String>,
}

/// More memories than this are not written at once.
const CHUNK: usize = 1000;

pub(super) async fn measure(
    kept: &Memories,
    sets: &Path,
    note: &mut impl FnMut(Figure) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut memories: BTreeMap<String, Vec<Remembered>> = BTreeMap::new();
    let mut questions: BTreeMap<String, Vec<Question>> = BTreeMap::new();
    let listed = std::fs::read_dir(sets).with_context(|| format!("`{}`", sets.display()))?;
    for entry in listed {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(set) = name.strip_suffix(".memories.jsonl") {
            memories.insert(set.to_owned(), read(&path)?);
        } else if let Some(set) = name.strip_suffix(".queries.jsonl") {
            questions.insert(set.to_owned(), read(&path)?);
        }
    }
    anyhow::ensure!(!questions.is_empty(), "`{}` holds no `*.queries.jsonl`", sets.display());
    for (set, questions) in questions {
        let space = |it: &Vec<Remembered>| {
            questions.iter().all(|asked| it.iter().any(|found| found.space == asked.space))
        };
        // A set of questions without memories of its own is asked of those that it speaks of.
        let of = memories.get(&set).or_else(|| memories.values().find(|it| space(it)));
        let Some(of) = of else {
            anyhow::bail!("`{set}.queries.jsonl` has no memories to be asked of");
        };
        let loaded = load(kept, &set, of).await?;
        for (how, kept) in ways(kept) {
            let (five, ten) = recall(&kept, &loaded, &questions).await?;
            for (what, value) in [("R@5", five), ("R@10", ten)] {
                let what = format!("{set}: {what} of {} questions{how}", questions.len());
                note(Figure { what, value, unit: "%", ratio: None })?;
            }
        }
        tidy_up(&kept.store, loaded.party.org()).await?;
    }
    Ok(())
}

fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("`{}`", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(n, line)| {
            serde_json::from_str(line).with_context(|| format!("`{}`:{}", path.display(), n + 1))
        })
        .collect()
}

/// By words alone, and by meaning too where somebody can tell.
fn ways(kept: &Memories) -> Vec<(&'static str, Memories)> {
    let mut ways = vec![("", Memories::from(kept.store.clone()))];
    if kept.embeddings.is_some() {
        ways.push((", by meaning too", kept.clone()));
    }
    ways
}

/// A set as it is kept, in an organisation of its own.
struct Loaded<'m> {
    party: Party,
    names: HashMap<MemoryId, &'m str>,
}

async fn load<'m>(
    kept: &Memories,
    set: &str,
    memories: &'m [Remembered],
) -> anyhow::Result<Loaded<'m>> {
    let party = Party::of_person(&org_of_its_own(set), "bench".into());
    let mut names = HashMap::new();
    let mut spaces: BTreeMap<&str, Vec<&Remembered>> = BTreeMap::new();
    for it in memories {
        spaces.entry(&it.space).or_default().push(it);
    }
    for (space, mut of_space) in spaces {
        of_space.sort_by_key(|it| it.order);
        let home = home(&party, space)?;
        let mut days: HashMap<&str, RunId> = HashMap::new();
        let mut new = Vec::new();
        for it in of_space {
            // What was said on one day was said in one conversation.
            let day = it.at.get(..10).unwrap_or(&it.at);
            let run = *days.entry(day).or_insert_with(clock::new_run_id);
            let memory = memory(it, day, run)?;
            names.insert(memory.id, it.id.as_str());
            new.push(memory);
        }
        for some in new.chunks(CHUNK) {
            kept.store.load_memories(&home, some.to_vec()).await?;
        }
    }
    if let Some(embeddings) = &kept.embeddings {
        while embeddings.read_some(&kept.store, party.org()).await? > 0 {}
    }
    Ok(Loaded { party, names })
}

/// The averages over all questions, in hundredths.
async fn recall(
    kept: &Memories,
    Loaded { party, names }: &Loaded<'_>,
    questions: &[Question],
) -> anyhow::Result<(f64, f64)> {
    let (mut five, mut ten) = (0.0, 0.0);
    for question in questions {
        let asked = Asked { project: Some(question.space.as_str().into()), ..Asked::default() };
        let plan = party.search(Mode::Flat, asked)?;
        // What nobody tells the meaning of is no result of a measurement.
        let meaning = match &kept.embeddings {
            Some(embeddings) => embeddings.meaning(&kept.store, &question.text).await?,
            None => None,
        };
        let asked = memory::Question { text: &question.text, meaning };
        let found = kept.store.search_memories(&plan, asked, 10).await?;
        let found: Vec<&str> =
            found.iter().filter_map(|it| names.get(&it.memory.id).copied()).collect();
        let share = |first: usize| {
            let hits = found.iter().take(first);
            let hits = hits.filter(|it| question.relevant.iter().any(|id| id == *it)).count();
            hits as f64 / question.relevant.len().max(1) as f64
        };
        five += share(5);
        ten += share(10);
    }
    let hundredths = 100.0 / questions.len().max(1) as f64;
    Ok((five * hundredths, ten * hundredths))
}

fn home(party: &Party, space: &str) -> anyhow::Result<Home> {
    let scope = Scope { project: Some(space.into()), ..Scope::org(party.org()) };
    Ok(party.person_home(Partition::new(scope, MemoryKind::Episodic))?)
}

fn memory(it: &Remembered, day: &str, run: RunId) -> anyhow::Result<NewMemory> {
    let now = clock::now();
    let at = match day.parse::<jiff::civil::Date>() {
        Ok(day) => day.to_zoned(jiff::tz::TimeZone::UTC)?.timestamp(),
        Err(_) => now,
    };
    Ok(NewMemory {
        id: clock::new_memory_id(),
        content: it.text.clone(),
        // Two lines may say the same of different days: each is a memory of its own here.
        metadata: json!({"memory_type": it.id}),
        at,
        made_at: now,
        made_by: Actor::System,
        provenance: Some(Provenance {
            key: format!("{run}:{}", it.order),
            run,
            source: "call",
            original: None,
            sequence: true,
        }),
        seq: Some(it.order),
        supersedes: None,
        not_from: None,
    })
}
