//! What is remembered: kept once, found by those whose it is, in the same order everywhere.

use chancery_domain::audit::{Entry, kind};
use chancery_domain::memory::{
    Asked, EpisodeKind, Home, MemoryKind, Mode, Partition, Party, Plan, Scope,
};
use chancery_store::memory::{Memory, NewMemory, Provenance, WriteRefusal, Written};
use jiff::Timestamp;
use serde_json::Value;

use super::*;

pub fn of_run(created: &Created) -> Party {
    Party::of_run(created)
}

fn lin() -> Party {
    Party::of_person("acme", "lin".into())
}

/// A run of lin's own agent.
fn lins() -> Created {
    Created {
        user: "lin".into(),
        agent: "pa".into(),
        project: Some("shop".into()),
        by: Actor::User("lin".into()),
        ..created("goal")
    }
}

fn delivery() -> Created {
    Created { group: Some("grp_delivery".into()), parent: Some(clock::new_run_id()), ..lins() }
}

fn home(party: &Party, scope: Scope, kind: MemoryKind, preference: bool) -> Home {
    party.person_home(Partition { scope, kind, preference }).unwrap()
}

fn knowledge() -> Home {
    home(&lin(), Scope::org("acme"), MemoryKind::Archival, false)
}

fn diary() -> Home {
    let scope = Scope { user: Some("lin".into()), ..Scope::org("acme") };
    home(&lin(), scope, MemoryKind::Episodic, false)
}

pub fn memory(content: &str) -> NewMemory {
    NewMemory {
        id: clock::new_memory_id(),
        content: content.to_owned(),
        metadata: json!({}),
        at: clock::now(),
        made_at: clock::now(),
        made_by: ada(),
        provenance: None,
        seq: None,
        supersedes: None,
        not_from: None,
    }
}

fn on(day: &str, content: &str) -> NewMemory {
    NewMemory { at: format!("{day}T12:00:00Z").parse().unwrap(), ..memory(content) }
}

pub fn of_call(run: RunId, key: &str, new: NewMemory) -> NewMemory {
    let provenance = Provenance {
        key: format!("{run}:{key}"),
        run,
        source: "call",
        original: None,
        sequence: true,
    };
    NewMemory { provenance: Some(provenance), ..new }
}

pub async fn write(store: &Store, home: &Home, new: NewMemory) -> Written {
    store.write_memory(home, new).await.unwrap().unwrap()
}

fn everything(party: &Party) -> Plan {
    party.everything(false, Asked::default())
}

fn flat(party: &Party) -> Plan {
    party.search(Mode::Flat, Asked::default()).unwrap()
}

async fn found(store: &Store, plan: &Plan, question: &str, limit: usize) -> Vec<(usize, String)> {
    let found = store.search_memories(plan, question, limit).await.unwrap();
    found.into_iter().map(|it| (it.tier, it.memory.content)).collect()
}

async fn texts(store: &Store, plan: &Plan, question: &str) -> Vec<String> {
    found(store, plan, question, 10).await.into_iter().map(|it| it.1).collect()
}

async fn all(store: &Store, plan: &Plan) -> Vec<Memory> {
    store.memories(plan, None, 1000).await.unwrap()
}

fn entry() -> Entry {
    Entry::new(clock::new_audit_id(), kind::MEMORY_FORGOTTEN, ada())
}

pub async fn a_memory_is_kept_and_found_with_all_that_was_said_of_it(place: &super::Home) {
    let store = place.open().await;
    let new = NewMemory {
        metadata: json!({"category": "style", "deep": {"a": [1, "二"]}}),
        ..on("2023-05-03", "Lin prefers concise reports in Chinese — 简洁 😀")
    };
    let written = write(&store, &diary(), new.clone()).await;
    assert_eq!(written, Written::New { id: new.id, near: None });
    let read = store.memory(&everything(&lin()), new.id).await.unwrap().unwrap();
    assert_eq!((&read.content, &read.metadata, read.at), (&new.content, &new.metadata, new.at));
    assert_eq!((&read.made_by, read.owner.as_str()), (&new.made_by, "lin"));
    assert_eq!(&read.partition, diary().partition());
    for question in ["concise report", "简洁", "what happened on May 3rd?", "5月3号", "2023-05-03"]
    {
        assert_eq!(texts(&store, &flat(&lin()), question).await, [&*new.content], "{question}");
    }
    assert_eq!(texts(&store, &flat(&lin()), "something else").await, [""; 0]);
    assert_eq!(texts(&store, &flat(&lin()), "the of and").await, [""; 0]);
    assert_eq!(texts(&store, &flat(&lin()), "").await, [""; 0]);
    let why = store.search_memories(&flat(&lin()), "concise report", 1).await.unwrap()[0].why();
    assert_eq!(why, "matches `concis`, `report`");
}

pub async fn the_same_text_is_kept_once_in_a_partition(place: &super::Home) {
    let store = place.open().await;
    let first = write(&store, &knowledge(), memory("the office is closed on Fridays")).await;
    let again = write(&store, &knowledge(), memory(" the office is closed on Fridays\n")).await;
    assert_eq!(again, Written::Known(first.id()));
    let elsewhere = write(&store, &diary(), memory("the office is closed on Fridays")).await;
    assert!(matches!(elsewhere, Written::New { .. }), "{elsewhere:?}");
    assert_eq!(all(&store, &everything(&lin())).await.len(), 2);
}

pub async fn what_says_nearly_the_same_is_linked(place: &super::Home) {
    let store = place.open().await;
    let words = |last: &str| {
        let some: Vec<String> = (0..30).map(|it| format!("word{it}")).collect();
        format!("{} {last}", some.join(" "))
    };
    let first = write(&store, &knowledge(), memory(&words("one"))).await.id();
    let near = write(&store, &knowledge(), memory(&words("two"))).await;
    assert!(matches!(near, Written::New { near: Some(it), .. } if it == first), "{near:?}");
    let other = write(&store, &knowledge(), memory("word1 and something else")).await;
    assert!(matches!(other, Written::New { near: None, .. }), "{other:?}");
    let elsewhere = write(&store, &diary(), memory(&words("three"))).await;
    assert!(matches!(elsewhere, Written::New { near: None, .. }), "not across partitions");
    let plan = everything(&lin());
    assert_eq!(store.memory(&plan, near.id()).await.unwrap().unwrap().near, Some(first));
    assert!(store.forget_memory(&plan, first, entry(), clock::now()).await.unwrap());
    assert_eq!(store.memory(&plan, near.id()).await.unwrap().unwrap().near, None);
}

pub async fn a_correction_takes_the_place_of_what_it_corrects(place: &super::Home) {
    let store = place.open().await;
    let plan = everything(&lin());
    let old = write(&store, &diary(), memory("Lin lives in Paris")).await.id();
    let correct = |id| NewMemory { supersedes: Some(id), ..memory("Lin lives in Berlin") };
    let elsewhere = store.write_memory(&knowledge(), correct(old)).await.unwrap();
    assert_eq!(elsewhere, Err(WriteRefusal::NothingToSupersede(old)), "only in one partition");
    let new = write(&store, &diary(), correct(old)).await.id();
    assert_eq!(texts(&store, &flat(&lin()), "where does Lin live").await, ["Lin lives in Berlin"]);
    let kept = store.memory(&plan, old).await.unwrap().unwrap();
    assert_eq!((&*kept.content, kept.superseded_by), ("Lin lives in Paris", Some(new)));
    let twice = NewMemory { supersedes: Some(old), ..memory("Lin lives in Rome") };
    let twice = store.write_memory(&diary(), twice).await.unwrap();
    assert_eq!(twice, Err(WriteRefusal::NothingToSupersede(old)));
    let again = NewMemory { supersedes: Some(new), ..memory("Lin lives in Paris") };
    let back = write(&store, &diary(), again).await.id();
    assert_ne!(back, old, "nothing is overwritten");
    assert_eq!(texts(&store, &flat(&lin()), "Lin lives").await, ["Lin lives in Paris"]);
    assert!(store.forget_memory(&plan, back, entry(), clock::now()).await.unwrap());
    assert_eq!(all(&store, &plan).await, [], "with all that came before it");
    assert_eq!(texts(&store, &flat(&lin()), "Lin lives").await, [""; 0]);
}

pub async fn what_is_forgotten_is_gone(place: &super::Home) {
    let store = place.open().await;
    let plan = everything(&lin());
    let gone = write(&store, &diary(), memory("the secret recipe has saffron")).await.id();
    write(&store, &diary(), memory("the soup was good")).await;
    assert!(store.forget_memory(&plan, gone, entry(), clock::now()).await.unwrap());
    assert!(!store.forget_memory(&plan, gone, entry(), clock::now()).await.unwrap());
    assert_eq!(store.memory(&plan, gone).await.unwrap(), None);
    assert_eq!(texts(&store, &flat(&lin()), "saffron recipe").await, [""; 0]);
    assert_eq!(texts(&store, &flat(&lin()), "soup").await, ["the soup was good"]);
    let filter = chancery_store::audit::AuditFilter::default();
    let audited = store.audit_page(&filter, None, 10).await.unwrap();
    assert_eq!(audited.len(), 1, "once in the audit");
    // What is left has exact statistics: it scores as if the other had never been.
    let after = store.search_memories(&flat(&lin()), "soup", 1).await.unwrap()[0].score;
    let fresh = place.fresh().await;
    let fresh = fresh.open().await;
    write(&fresh, &diary(), memory("the soup was good")).await;
    assert_eq!(fresh.search_memories(&flat(&lin()), "soup", 1).await.unwrap()[0].score, after);
}

pub async fn another_tenant_is_answered_as_if_there_were_nothing(place: &super::Home) {
    let store = place.open().await;
    let secret =
        write(&store, &diary(), memory("the vault code is hidden in the piano")).await.id();
    let bo = Party::of_person("acme", "bo".into());
    let stranger = Party::of_person("other", "lin".into());
    let missing = clock::new_memory_id();
    for party in [&bo, &stranger] {
        let plan = everything(party);
        assert_eq!(store.memory(&plan, secret).await.unwrap(), None);
        assert_eq!(store.memory(&plan, missing).await.unwrap(), None);
        assert_eq!(all(&store, &plan).await, []);
        assert_eq!(store.memories(&plan, Some(secret), 10).await.unwrap(), []);
        for id in [secret, missing] {
            assert!(!store.forget_memory(&plan, id, entry(), clock::now()).await.unwrap());
        }
        for mode in [Mode::Flat, Mode::Personal, Mode::Group] {
            let asked = Asked { group: Some("g".into()), ..Asked::default() };
            let asked = if mode == Mode::Group { asked } else { Asked::default() };
            let plan = party.search(mode, asked).unwrap();
            assert_eq!(texts(&store, &plan, "vault code piano").await, [""; 0]);
        }
        let scope = Scope { user: Some(party.user().clone()), ..Scope::org(party.org()) };
        let theirs = home_of(party, scope);
        let correct = NewMemory { supersedes: Some(secret), ..memory("the piano is gone") };
        let refused = store.write_memory(&theirs, correct).await.unwrap();
        assert_eq!(refused, Err(WriteRefusal::NothingToSupersede(secret)));
    }
    assert!(store.memory(&everything(&lin()), secret).await.unwrap().is_some());
}

fn home_of(party: &Party, scope: Scope) -> Home {
    home(party, scope, MemoryKind::Episodic, false)
}

pub async fn a_call_that_is_carried_out_again_is_the_same_memory(place: &super::Home) {
    let store = place.open().await;
    let run = make(&store, lins()).await;
    let own = of_run(&lins()).run_home(MemoryKind::Episodic, false).unwrap();
    let first = write(&store, &own, of_call(run, "msg:1", memory("met Ada for lunch"))).await;
    let again = write(&store, &own, of_call(run, "msg:1", memory("met Ada for lunch"))).await;
    assert_eq!(again, Written::Known(first.id()));
    // By its key, not by its text alone: it may have been corrected meanwhile.
    let correct = NewMemory { supersedes: Some(first.id()), ..memory("met Ada for dinner") };
    write(&store, &own, correct).await;
    let late = write(&store, &own, of_call(run, "msg:1", memory("met Ada for lunch"))).await;
    assert_eq!(late, Written::Known(first.id()));
    let read = store.memory(&everything(&lin()), first.id()).await.unwrap().unwrap();
    assert_eq!((read.run, read.seq, read.sources.len()), (Some(run), Some(1), 1));
}

pub async fn what_was_recalled_is_not_stored_again_as_new(place: &super::Home) {
    let store = place.open().await;
    let known = write(&store, &knowledge(), memory("the VPN is called tunnel-7")).await.id();
    let party = of_run(&lins());
    let own = party.run_home(MemoryKind::Episodic, false).unwrap();
    let recalled = || NewMemory {
        not_from: Some(party.run_search(None)),
        ..memory("the VPN is called tunnel-7")
    };
    assert_eq!(write(&store, &own, recalled()).await, Written::Known(known));
    assert_eq!(all(&store, &everything(&lin())).await.len(), 1);
    // What could not be found is news.
    let bos = Created { user: "bo".into(), ..lins() };
    let not_bos = write(&store, &diary(), memory("lin's own note")).await.id();
    let party = of_run(&bos);
    let new = NewMemory { not_from: Some(party.run_search(None)), ..memory("lin's own note") };
    let written = write(&store, &party.run_home(MemoryKind::Episodic, false).unwrap(), new).await;
    assert_ne!(written.id(), not_bos);
}

/// Seed 000: a personal agent finds its person's preferences first, then what the organisation
/// knows, then what happened; three, four and three of ten.
pub async fn a_personal_search_has_preferences_first(place: &super::Home) {
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
pub async fn a_groups_memory_does_not_pollute_a_persons(place: &super::Home) {
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
pub async fn a_groups_search_has_its_blackboard_first(place: &super::Home) {
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
pub async fn a_preference_is_found_by_its_mark(place: &super::Home) {
    let store = place.open().await;
    let party = of_run(&lins());
    let marked = party.run_home(MemoryKind::Core, true).unwrap();
    let scope = Scope { agent: Some("pa".into()), ..marked.partition().scope.clone() };
    let unmarked = home_with(&lin(), scope, MemoryKind::Core);
    write(&store, &marked, memory("tea, never coffee")).await;
    write(&store, &unmarked, memory("coffee was discussed")).await;
    let found_ = found(&store, &party.run_search(None), "coffee", 10).await;
    assert_eq!(found_, [(1, "tea, never coffee".to_owned())]);
    let everything = texts(&store, &flat(&lin()), "coffee").await;
    assert_eq!(everything.len(), 2);
}

fn home_with(party: &Party, scope: Scope, kind: MemoryKind) -> Home {
    home(party, scope, kind, false)
}

pub async fn what_was_said_beside_a_match_is_found_with_it(place: &super::Home) {
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

pub async fn memories_are_listed_newest_first_and_page_by_page(place: &super::Home) {
    let store = place.open().await;
    let mut written = Vec::new();
    for n in 0..25 {
        let place = if n % 2 == 0 { diary() } else { knowledge() };
        written.push(write(&store, &place, memory(&format!("note number {n}"))).await.id());
    }
    written.reverse();
    let plan = everything(&lin());
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = store.memories(&plan, before, 7).await.unwrap();
        before = page.last().map(|it| it.id);
        listed.extend(page.iter().map(|it| it.id));
        if page.len() < 7 {
            break;
        }
    }
    assert_eq!(listed, written);
    let archival = Asked { kind: Some(MemoryKind::Archival), ..Asked::default() };
    assert_eq!(all(&store, &lin().everything(false, archival)).await.len(), 12);
    assert_eq!(all(&store, &lin().everything(true, Asked::default())).await.len(), 13);
}

pub async fn what_is_past_its_time_is_forgotten(place: &super::Home) {
    let store = place.open().await;
    let old: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
    let aged = |text: &str| NewMemory { made_at: old, ..memory(text) };
    write(&store, &diary(), aged("an old episode")).await;
    write(&store, &diary(), memory("a new episode")).await;
    write(&store, &knowledge(), aged("old knowledge")).await;
    let before: Timestamp = "2021-01-01T00:00:00Z".parse().unwrap();
    for (gone, left) in [(1, 2), (0, 2)] {
        let expired = store.expire_memories("acme", MemoryKind::Episodic, before, 10).await;
        assert_eq!(expired.unwrap(), gone);
        assert_eq!(all(&store, &everything(&lin())).await.len(), left);
    }
    assert_eq!(store.expire_memories("other", MemoryKind::Archival, before, 10).await.unwrap(), 0);
    assert_eq!(texts(&store, &flat(&lin()), "episode").await, ["a new episode"]);
}

pub async fn who_write_at_once_write_all_and_count_right(place: &super::Home) {
    let store = place.open().await;
    let other = place.another(&store).await;
    let writing = (0..24).map(|n| {
        let store = if n % 2 == 0 { &store } else { &other };
        async move {
            let text = format!("shared note {}", n / 2);
            write(store, &knowledge(), memory(&text)).await
        }
    });
    let written = futures_util::future::join_all(writing).await;
    let new = written.iter().filter(|it| matches!(it, Written::New { .. })).count();
    assert_eq!(new, 12);
    assert_eq!(all(&store, &everything(&lin())).await.len(), 12);
    assert_eq!(found(&store, &flat(&lin()), "shared note", 100).await.len(), 12);
}

/// A conversation in two languages, and what is asked about it.
pub fn conversation() -> Vec<(&'static str, &'static str)> {
    include_str!("memory/conversation.txt")
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect()
}

pub fn questions() -> Vec<(&'static str, &'static str)> {
    include_str!("memory/questions.txt").lines().filter_map(|it| it.split_once('\t')).collect()
}

/// For every question the ids of the ten best, as places in the conversation.
pub async fn top_ten(place: &super::Home) -> Vec<Vec<usize>> {
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

pub async fn questions_in_two_languages_find_their_answers(place: &super::Home) {
    for ((question, answer), top) in questions().into_iter().zip(top_ten(place).await) {
        let texts: Vec<&str> = top.iter().take(3).map(|it| conversation()[*it].1).collect();
        assert!(texts.iter().any(|it| it.contains(answer)), "{question}: {texts:?}");
    }
}

fn record_of(run: RunId, key: &str, kind: EpisodeKind, content: &str) -> NewMemory {
    let new = NewMemory { metadata: json!({"memory_type": kind.as_str()}), ..memory(content) };
    of_call(run, key, new)
}

/// A group run with its records, up to the moment before it ends.
pub async fn group_run(store: &Store, records: &[(EpisodeKind, &str)]) -> RunId {
    let run = make(store, delivery()).await;
    append(store, run, [started()], Fence::Outside).await.unwrap();
    let board = of_run(&delivery()).blackboard().unwrap();
    for (n, (kind, text)) in records.iter().enumerate() {
        write(store, &board, record_of(run, &n.to_string(), *kind, text)).await;
    }
    run
}

pub async fn a_group_run_that_completes_is_due_and_no_other(place: &super::Home) {
    let store = place.open().await;
    let run = group_run(&store, &[]).await;
    assert_eq!(store.deposits_due().await.unwrap(), 0);
    append(&store, run, [completed("done")], Fence::Outside).await.unwrap();
    for (created, end) in
        [(lins(), completed("done")), (delivery(), failed()), (delivery(), cancelled())]
    {
        let other = make(&store, created).await;
        append(&store, other, [started(), end], Fence::Outside).await.unwrap();
    }
    let due = store.take_deposits(10, Duration::from_secs(60)).await.unwrap();
    assert_eq!(due.iter().map(|it| (it.run, it.tries)).collect::<Vec<_>>(), [(run, 1)]);
    assert_eq!(store.take_deposits(10, Duration::ZERO).await.unwrap(), [], "it is held");
}

/// Seed 000: decisions and the output become the project's knowledge, without the group, and say
/// where they came from.
pub async fn a_deposit_is_made_once_and_says_where_it_came_from(place: &super::Home) {
    let store = place.open().await;
    let decided = [
        (EpisodeKind::Decision, "we ship the cart on Friday"),
        (EpisodeKind::Note, "the coffee is cold"),
    ];
    let run = group_run(&store, &decided).await;
    append(&store, run, [completed("The cart is shipped.")], Fence::Outside).await.unwrap();
    assert_eq!(chancery_runtime::deposit::deposit_due(&store).await.unwrap(), 1);
    assert_eq!(chancery_runtime::deposit::deposit_due(&store).await.unwrap(), 0);
    let asked = Asked { kind: Some(MemoryKind::Archival), ..Asked::default() };
    let mut kept = all(&store, &lin().everything(false, asked)).await;
    kept.sort_by_key(|it| it.metadata["source"].to_string());
    let seen: Vec<(&str, &Value)> =
        kept.iter().map(|it| (&*it.content, &it.metadata["source"])).collect();
    assert_eq!(
        seen,
        [
            ("we ship the cart on Friday", &json!("group_run")),
            ("The cart is shipped.", &json!("group_run_output")),
        ]
    );
    for it in &kept {
        let scope = Scope { project: Some("shop".into()), ..Scope::org("acme") };
        assert_eq!(it.partition, Partition::new(scope, MemoryKind::Archival));
        assert_eq!(it.metadata["source_run_id"], json!(run));
        assert!(it.metadata["deposited_at"].is_string());
        assert_eq!(it.sources[0].run, run);
    }
    let original = kept[0].sources[0].original.unwrap();
    assert_eq!(kept[0].metadata["original_memory_id"], json!(original));
    // Another group of the project finds it; the group itself finds it once.
    let research = Created { group: Some("grp_research".into()), ..delivery() };
    let plan = of_run(&research).run_search(None);
    assert_eq!(found(&store, &plan, "ship Friday", 10).await[0].0, 2);
    let plan = of_run(&delivery()).run_search(None);
    let own = found(&store, &plan, "ship Friday", 10).await;
    assert_eq!(own.iter().filter(|it| it.1.contains("Friday")).count(), 1, "{own:?}");
    // Taken back: the copy goes, the original stays.
    let plan = everything(&lin());
    assert!(store.forget_memory(&plan, kept[0].id, entry(), clock::now()).await.unwrap());
    assert!(store.memory(&plan, original).await.unwrap().is_some());
}

pub async fn an_identical_text_is_linked_and_not_repeated(place: &super::Home) {
    let store = place.open().await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let run = group_run(&store, &[(EpisodeKind::Decision, "prices are in euros")]).await;
        append(&store, run, [completed("prices are in euros")], Fence::Outside).await.unwrap();
        chancery_runtime::deposit::deposit_due(&store).await.unwrap();
        runs.push(run);
    }
    let asked = Asked { kind: Some(MemoryKind::Archival), ..Asked::default() };
    let kept = all(&store, &lin().everything(false, asked)).await;
    assert_eq!(kept.len(), 1);
    let sources: Vec<(RunId, &str)> =
        kept[0].sources.iter().map(|it| (it.run, &*it.kind)).collect();
    for run in runs {
        assert!(sources.contains(&(run, "group_run")), "{sources:?}");
        assert!(sources.contains(&(run, "group_run_output")), "{sources:?}");
    }
}

pub async fn a_deposit_that_two_take_is_made_once(place: &super::Home) {
    let store = place.open().await;
    let other = place.another(&store).await;
    for n in 0..6 {
        let text = format!("decision number {n}");
        let run = group_run(&store, &[(EpisodeKind::Decision, &text)]).await;
        append(&store, run, [completed(&format!("output {n}"))], Fence::Outside).await.unwrap();
    }
    let (one, two) = tokio::join!(
        chancery_runtime::deposit::deposit_due(&store),
        chancery_runtime::deposit::deposit_due(&other),
    );
    (one.unwrap(), two.unwrap());
    assert_eq!(store.deposits_due().await.unwrap(), 0);
    let asked = Asked { kind: Some(MemoryKind::Archival), ..Asked::default() };
    assert_eq!(all(&store, &lin().everything(false, asked)).await.len(), 12);
}

/// Whoever took a deposit may die before it is made, or before it knows that it was.
pub async fn a_deposit_outlives_whoever_took_it(place: &super::Home) {
    let store = place.open().await;
    let run = group_run(&store, &[(EpisodeKind::Decision, "we ship on Friday")]).await;
    append(&store, run, [completed("Shipped.")], Fence::Outside).await.unwrap();
    let taken = store.take_deposits(10, Duration::ZERO).await.unwrap();
    assert_eq!(taken.len(), 1, "taken, and then nothing more is heard of the taker");
    assert_eq!(chancery_runtime::deposit::deposit_due(&store).await.unwrap(), 1);
    let asked = Asked { kind: Some(MemoryKind::Archival), ..Asked::default() };
    let plan = lin().everything(false, asked);
    let kept = all(&store, &plan).await;
    assert_eq!(kept.len(), 2);
    // Made and not known to be made: it is not due any more, so that nothing is made of it.
    let shop = Scope { project: Some("shop".into()), ..Scope::org("acme") };
    let shop = home(&lin(), shop, MemoryKind::Archival, false);
    let late = store.deposit(run, &shop, vec![memory("something else")]).await.unwrap();
    assert_eq!((late, all(&store, &plan).await), (0, kept));
}
