//! Latency: searches in scopes of two sizes among many memories, beside a read of one row by its
//! key; writes beside the commit that they need.

use std::path::Path;
use std::time::{Duration, Instant};

use chancery_domain::event::Actor;
use chancery_domain::memory::{Asked, Home, MemoryKind, Mode, Partition, Party, Scope};
use chancery_runtime::clock;
use chancery_store::Store;
use chancery_store::memory::NewMemory;
use chancery_store::raw;
use serde_json::json;

use super::{Figure, MemoryArgs, org_of_its_own, tidy_up};
use crate::output;

const SMALL: usize = 5_000;
const LARGE: usize = 100_000;
const CHUNK: usize = 2_000;
/// As many words as people use of a language.
const VOCABULARY: u64 = 20_000;
/// How long the raw commit is measured.
const RAW: Duration = Duration::from_secs(2);

pub(super) async fn measure(
    store: &Store,
    database: Option<&str>,
    dir: &Path,
    args: &MemoryArgs,
    note: &mut impl FnMut(Figure) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let party = Party::of_person(&org_of_its_own("speed"), "bench".into());
    let measured = measure_as(&party, store, database, dir, args, note).await;
    tidy_up(store, party.org()).await?;
    measured
}

async fn measure_as(
    party: &Party,
    store: &Store,
    database: Option<&str>,
    dir: &Path,
    args: &MemoryArgs,
    note: &mut impl FnMut(Figure) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut words = Words(0x2545_f491_4f6c_dd1d);
    let large = LARGE.min(args.memories / 2);
    let mut sizes = vec![("large".to_owned(), large)];
    let small = SMALL.min(args.memories.saturating_sub(large)).max(1);
    let others = args.memories.saturating_sub(large) / small;
    sizes.extend((0..others).map(|n| (format!("small{n}"), small)));
    let began = Instant::now();
    for (place, (space, size)) in sizes.iter().enumerate() {
        load(store, &home(party, space)?, *size, &mut words).await?;
        if place % 20 == 0 {
            output::note(format_args!("{} of {} scopes are loaded", place + 1, sizes.len()));
        }
    }
    let rate = args.memories as f64 / began.elapsed().as_secs_f64();
    let what = format!("{} memories, loaded", args.memories);
    note(Figure { what, value: rate, unit: "/s", ratio: None })?;

    // The least that a read costs: one look-up by a key, in the same store.
    let point = timed(args.rounds, async |_| {
        store.run(clock::new_run_id()).await?;
        Ok(())
    });
    let point = point.await?.p50;
    note(figure("one look-up by a key, p50".to_owned(), point, None))?;
    for (space, size) in [("small0", small), ("large", large)] {
        let asked = Asked { project: Some(space.into()), ..Asked::default() };
        let plan = party.search(Mode::Flat, asked)?;
        let mut questions = Vec::new();
        for _ in 0..args.rounds {
            questions.push(words.question());
        }
        let took = timed(args.rounds, async |n| {
            store.search_memories(&plan, &*questions[n], 10).await?;
            Ok(())
        });
        let took = took.await?;
        let what = |part: &str| format!("a search among {size} of {}, {part}", args.memories);
        note(figure(what("p50"), took.p50, Some(point)))?;
        note(figure(what("p95"), took.p95, Some(point)))?;
    }

    let commit = match database {
        None => raw::sqlite_single(dir, raw::Shape::Row, RAW)?.p50,
        Some(url) => raw::postgres(url, 1, RAW).await?.p50,
    };
    note(figure("a raw commit, p50".to_owned(), commit, None))?;
    let home = home(party, "small0")?;
    let texts: Vec<String> = (0..args.rounds).map(|_| words.sentence()).collect();
    let took = timed(args.rounds, async |n| {
        let _ = store.write_memory(&home, memory(texts[n].clone())).await?;
        Ok(())
    });
    let took = took.await?;
    note(figure("a write with its terms, p50".to_owned(), took.p50, Some(commit)))?;
    note(figure("a write with its terms, p95".to_owned(), took.p95, Some(commit)))
}

fn figure(what: String, took: Duration, beside: Option<Duration>) -> Figure {
    let ratio = beside.map(|it| took.as_secs_f64() / it.as_secs_f64().max(1e-9));
    Figure { what, value: took.as_secs_f64() * 1e3, unit: "ms", ratio }
}

struct Took {
    p50: Duration,
    p95: Duration,
}

async fn timed(
    rounds: usize,
    each: impl AsyncFn(usize) -> anyhow::Result<()>,
) -> anyhow::Result<Took> {
    let mut times = Vec::with_capacity(rounds);
    for n in 0..rounds.max(1) {
        let began = Instant::now();
        each(n).await?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    Ok(Took { p50: at(50), p95: at(95) })
}

fn home(party: &Party, space: &str) -> anyhow::Result<Home> {
    let scope = Scope { project: Some(space.into()), ..Scope::org(party.org()) };
    Ok(party.person_home(Partition::new(scope, MemoryKind::Episodic))?)
}

async fn load(store: &Store, home: &Home, size: usize, words: &mut Words) -> anyhow::Result<()> {
    let mut left = size;
    while left > 0 {
        let some = left.min(CHUNK);
        let memories = (0..some).map(|_| memory(words.sentence())).collect();
        store.load_memories(home, memories).await?;
        left -= some;
    }
    Ok(())
}

fn memory(content: String) -> NewMemory {
    let now = clock::now();
    NewMemory {
        id: clock::new_memory_id(),
        content,
        metadata: json!({}),
        at: now,
        made_at: now,
        made_by: Actor::System,
        provenance: None,
        seq: None,
        supersedes: None,
        not_from: None,
    }
}

/// A small generator of our own: words come as often as in a language, a few very often.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The n-th most frequent word comes about 1/n as often as the first.
    fn word(&mut self) -> u64 {
        let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((VOCABULARY as f64).powf(share) as u64).min(VOCABULARY - 1)
    }

    fn sentence(&mut self) -> String {
        let length = 12 + self.next() % 12;
        let words: Vec<String> = (0..length).map(|_| spelt(self.word())).collect();
        format!("{} {:x}", words.join(" "), self.next())
    }

    /// Six words, of which the most frequent are left out as a question's small words are.
    fn question(&mut self) -> String {
        let mut words = Vec::new();
        while words.len() < 6 {
            let word = self.word();
            if word > 100 {
                words.push(spelt(word));
            }
        }
        words.join(" ")
    }
}

/// A word that no stemmer shortens.
fn spelt(mut word: u64) -> String {
    let mut text = "q".to_owned();
    loop {
        text.push(char::from(b"bcdfgjkmpqvxz"[(word % 13) as usize]));
        word /= 13;
        if word == 0 {
            return text;
        }
    }
}
