//! What is found of what is remembered: tiers in their order, neighbours, two languages.

use chancery_domain::memory::vector::Vector;
use chancery_domain::memory::{MemoryKind, Scope};
use chancery_runtime::clock;
use chancery_store::memory::{Meaning, Question};

use super::memory::*;
use super::{Created, Home, make};

/// Seed 000: a personal agent finds its person's preferences first, then what the organisation
/// knows, then what happened; three, four and three of ten.
pub async fn a_personal_search_has_preferences_first(place: &Home) {
    let store = place.open().await;
    let party = of_run(&lins());
    let preferences = party.run_home(MemoryKind::Core, true).unwrap();
    let history = party.run_home(MemoryKind::Episodic, false).unwrap();
    for n in 0..6 {
        write(&store, &history, memory(&format!("happened {n}: a report was written"))).await;
        write(&store, &knowledge(), memory(&format!("known {n}: a report has a title"))).await;
        write(&store, &preferences, memory(&format!("preferred {n}: a concise report"))).await;
    }
    let plan = party.run_search(None);
    let found_ = found(&store, &plan, "write the report", 10).await;
    let tiers: Vec<usize> = found_.iter().map(|it| it.0).collect();
    assert_eq!(tiers, [1, 1, 1, 2, 2, 2, 2, 3, 3, 3]);
    let begins = ["preferred", "known", "happened"];
    assert!(found_.iter().all(|(tier, text)| text.starts_with(begins[tier - 1])), "{found_:?}");
    let tiers = |found: Vec<(usize, String)>| found.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(tiers(found(&store, &plan, "report", 5).await), [1, 1, 2, 2, 3]);
    assert_eq!(tiers(found(&store, &plan, "title", 10).await), [2; 6], "what is unused flows on");
    assert_eq!(found(&store, &plan, "report", 100).await.len(), 18, "never above what there is");
    assert_eq!(found(&store, &plan, "report", 0).await, []);
}

/// Seed 000: what a group writes for its task is not among what its members' people prefer.
pub async fn a_groups_memory_does_not_pollute_a_persons(place: &Home) {
    let store = place.open().await;
    let (personal, group) = (of_run(&lins()), of_run(&delivery()));
    let blackboard = group.blackboard().unwrap();
    for kind in [MemoryKind::Core, MemoryKind::Episodic] {
        let board = group.run_home(kind, false).unwrap();
        write(&store, &board, memory("the group wants long reports in German")).await;
    }
    assert_eq!(blackboard.partition().scope.user, None);
    let preferences = personal.run_home(MemoryKind::Core, true).unwrap();
    write(&store, &preferences, memory("Lin wants short reports in Chinese")).await;
    let plan = personal.run_search(None);
    assert_eq!(texts(&store, &plan, "reports").await, ["Lin wants short reports in Chinese"]);
    assert!(group.run_home(MemoryKind::Core, true).is_err(), "a group has no preferences");
}

/// Seed 000: a group finds its blackboard first, then its project's knowledge, then the
/// organisation's.
pub async fn a_groups_search_has_its_blackboard_first(place: &Home) {
    let store = place.open().await;
    let party = of_run(&delivery());
    let board = party.blackboard().unwrap();
    let project = Scope { project: Some("shop".into()), ..Scope::org("acme") };
    let project = home(&lin(), project, MemoryKind::Archival, false);
    let other = Scope { project: Some("bank".into()), ..Scope::org("acme") };
    let other = home(&lin(), other, MemoryKind::Archival, false);
    for n in 0..6 {
        write(&store, &board, memory(&format!("board {n}: release"))).await;
        write(&store, &project, memory(&format!("project {n}: release"))).await;
        write(&store, &knowledge(), memory(&format!("org {n}: release"))).await;
        write(&store, &other, memory(&format!("another project {n}: release"))).await;
    }
    let plan = party.run_search(None);
    let found_ = found(&store, &plan, "release", 10).await;
    let tiers: Vec<usize> = found_.iter().map(|it| it.0).collect();
    assert_eq!(tiers, [1, 1, 1, 1, 1, 2, 2, 2, 3, 3]);
    let begins = ["board", "project", "org"];
    assert!(found_.iter().all(|(tier, text)| text.starts_with(begins[tier - 1])), "{found_:?}");
    let other_group = Created { group: Some("grp_research".into()), ..delivery() };
    let theirs = texts(&store, &of_run(&other_group).run_search(None), "board").await;
    assert_eq!(theirs, [""; 0]);
}

/// Seed 000: preferences are marked as such, and found as such.
pub async fn a_preference_is_found_by_its_mark(place: &Home) {
    let store = place.open().await;
    let party = of_run(&lins());
    let marked = party.run_home(MemoryKind::Core, true).unwrap();
    let scope = Scope { agent: Some("pa".into()), ..marked.partition().scope.clone() };
    let unmarked = home(&lin(), scope, MemoryKind::Core, false);
    write(&store, &marked, memory("tea, never coffee")).await;
    write(&store, &unmarked, memory("coffee was discussed")).await;
    let found_ = found(&store, &party.run_search(None), "coffee", 10).await;
    assert_eq!(found_, [(1, "tea, never coffee".to_owned())]);
    let everything = texts(&store, &flat(&lin()), "coffee").await;
    assert_eq!(everything.len(), 2);
}

pub async fn what_was_said_beside_a_match_is_found_with_it(place: &Home) {
    let store = place.open().await;
    let run = make(&store, lins()).await;
    let own = of_run(&lins()).run_home(MemoryKind::Episodic, false).unwrap();
    for (n, text) in ["hello", "which painters do you like?", "Leonardo and Raphael", "goodbye"]
        .into_iter()
        .enumerate()
    {
        write(&store, &own, of_call(run, &n.to_string(), memory(text))).await;
    }
    write(&store, &own, of_call(make(&store, lins()).await, "0", memory("unrelated"))).await;
    let found_ = texts(&store, &of_run(&lins()).run_search(None), "painters").await;
    assert_eq!(found_[0], "which painters do you like?");
    assert!(found_.contains(&"Leonardo and Raphael".to_owned()), "{found_:?}");
    assert!(!found_.contains(&"unrelated".to_owned()), "{found_:?}");
}

/// Where hundreds match alike, those that stand beside a match come first, however old they are.
pub async fn neighbours_count_however_many_match(place: &Home) {
    let store = place.open().await;
    let run = make(&store, lins()).await;
    let own = of_run(&lins()).run_home(MemoryKind::Episodic, false).unwrap();
    for (n, text) in ["lantern first", "lantern second"].into_iter().enumerate() {
        write(&store, &own, of_call(run, &n.to_string(), memory(text))).await;
    }
    let alone = (0..700).map(|n| memory(&format!("lantern number{n}"))).collect();
    store.load_memories(&own, alone).await.unwrap();
    let mut found_ = texts(&store, &of_run(&lins()).run_search(None), "lantern").await;
    found_[..2].sort_unstable();
    assert_eq!(found_[..2], ["lantern first", "lantern second"]);
}

/// A vector finds what it is near to, of its own space, until the memory is gone.
pub async fn a_vector_is_kept_for_a_memory_that_is_there_and_found_in_its_space(place: &Home) {
    let store = place.open().await;
    let space = store.vector_space("one").await.unwrap();
    let other = store.vector_space("other").await.unwrap();
    assert_eq!(store.vector_space("one").await.unwrap(), space);
    let ids = ["near", "far", "gone"].map(memory);
    for new in &ids {
        write(&store, &knowledge(), new.clone()).await;
    }
    let unread = store.unread_memories("acme", space, 10).await.unwrap();
    assert_eq!(unread.len(), 3);
    assert_eq!(store.unread_memories("acme", space, 2).await.unwrap().len(), 2);
    assert_eq!(store.unread_memories("others", space, 10).await.unwrap(), []);
    // Forgotten while somebody looks at it.
    let gone = ids[2].id;
    assert!(store.forget_memory(&everything(&lin()), gone, entry(), clock::now()).await.unwrap());
    let read = unread.into_iter().map(|it| {
        let said = if it.content == "far" { [0.1, 1.0] } else { [1.0, 0.1] };
        (it, Vector::of(&said))
    });
    store.keep_vectors("acme", space, read.collect()).await.unwrap();
    assert_eq!(store.unread_memories("acme", space, 10).await.unwrap(), []);
    assert_eq!(store.unread_memories("acme", other, 10).await.unwrap().len(), 2);
    let vector = Vector::of(&[1.0, 0.0]).unwrap();
    let plan = flat(&lin());
    let search = async |space, text| {
        let meaning = Some(Meaning { space, vector: vector.clone() });
        let question = Question { text, meaning };
        let found = store.search_memories(&plan, question, 10).await.unwrap();
        found.into_iter().map(|it| it.memory.content).collect::<Vec<_>>()
    };
    assert_eq!(search(space, "something").await, ["near", "far"]);
    assert_eq!(search(space, "").await, ["near", "far"]);
    assert_eq!(search(other, "something").await, [""; 0]);
    // Words and meaning have the same weight: of two that are each the best by one, the newer.
    assert_eq!(search(space, "far").await, ["far", "near"]);
    // A text that is not to be had in vectors is looked at once, too.
    let none: Vec<_> = store.unread_memories("acme", other, 10).await.unwrap();
    let none = none.into_iter().map(|it| (it, None)).collect();
    store.keep_vectors("acme", other, none).await.unwrap();
    assert_eq!(store.unread_memories("acme", other, 10).await.unwrap(), []);
    assert_eq!(search(space, "something").await, [""; 0], "a memory is in one space at a time");
}

/// A conversation in two languages, and what is asked about it.
pub fn conversation() -> Vec<(&'static str, &'static str)> {
    include_str!("recall/conversation.txt")
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect()
}

pub fn questions() -> Vec<(&'static str, &'static str)> {
    include_str!("recall/questions.txt").lines().filter_map(|it| it.split_once('\t')).collect()
}

/// For every question the ids of the ten best, as places in the conversation.
pub async fn top_ten(place: &Home) -> Vec<Vec<usize>> {
    let store = place.open().await;
    let run = make(&store, lins()).await;
    let own = of_run(&lins()).run_home(MemoryKind::Episodic, false).unwrap();
    let mut ids = Vec::new();
    for (n, (day, text)) in conversation().into_iter().enumerate() {
        ids.push(write(&store, &own, of_call(run, &n.to_string(), on(day, text))).await.id());
    }
    let mut tops = Vec::new();
    for (question, _) in questions() {
        let found = store.search_memories(&flat(&lin()), question, 10).await.unwrap();
        let place = |id| ids.iter().position(|it| *it == id).unwrap();
        tops.push(found.into_iter().map(|it| place(it.memory.id)).collect());
    }
    tops
}

pub async fn questions_in_two_languages_find_their_answers(place: &Home) {
    for ((question, answer), top) in questions().into_iter().zip(top_ten(place).await) {
        let texts: Vec<&str> = top.iter().take(3).map(|it| conversation()[*it].1).collect();
        assert!(texts.iter().any(|it| it.contains(answer)), "{question}: {texts:?}");
    }
}
