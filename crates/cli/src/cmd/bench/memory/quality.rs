//! Recall: of what answers a question, how much is among the first five and the first ten.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::Context as _;
use chancery_domain::event::Actor;
use chancery_domain::id::RunId;
use chancery_domain::memory::{Asked, Home, MemoryKind, Mode, Partition, Party, Scope};
use chancery_runtime::clock;
use chancery_store::Store;
use chancery_store::memory::{NewMemory, Provenance};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Figure, org_of_its_own};

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
    store: &Store,
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
        let (five, ten) = recall(store, &set, of, &questions).await?;
        for (what, value) in [("R@5", five), ("R@10", ten)] {
            let what = format!("{set}: {what} of {} questions", questions.len());
            note(Figure { what, value, unit: "%", ratio: None })?;
        }
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

/// The averages over all questions, in hundredths.
async fn recall(
    store: &Store,
    set: &str,
    memories: &[Remembered],
    questions: &[Question],
) -> anyhow::Result<(f64, f64)> {
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
            store.load_memories(&home, some.to_vec()).await?;
        }
    }
    let (mut five, mut ten) = (0.0, 0.0);
    for question in questions {
        let asked = Asked { project: Some(question.space.as_str().into()), ..Asked::default() };
        let plan = party.search(Mode::Flat, asked)?;
        let found = store.search_memories(&plan, &question.text, 10).await?;
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
