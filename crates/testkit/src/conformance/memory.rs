//! What is remembered: kept once, found by those whose it is, in the same order everywhere.

use chancery_domain::audit::{Entry, kind};
use chancery_domain::memory::{Asked, Home, MemoryKind, Mode, Partition, Party, Plan, Scope};
use chancery_store::memory::{Memory, NewMemory, Provenance, WriteRefusal, Written};
use jiff::Timestamp;

use super::*;

pub fn of_run(created: &Created) -> Party {
    Party::of_run(created)
}

pub(super) fn lin() -> Party {
    Party::of_person("acme", "lin".into())
}

/// A run of lin's own agent.
pub(super) fn lins() -> Created {
    Created {
        user: "lin".into(),
        agent: "pa".into(),
        project: Some("shop".into()),
        by: Actor::User("lin".into()),
        ..created("goal")
    }
}

pub(super) fn delivery() -> Created {
    Created { group: Some("grp_delivery".into()), parent: Some(clock::new_run_id()), ..lins() }
}

pub(super) fn home(party: &Party, scope: Scope, kind: MemoryKind, preference: bool) -> Home {
    party.person_home(Partition { scope, kind, preference }).unwrap()
}

pub(super) fn knowledge() -> Home {
    home(&lin(), Scope::org("acme"), MemoryKind::Archival, false)
}

pub(super) fn diary() -> Home {
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

pub(super) fn on(day: &str, content: &str) -> NewMemory {
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

pub(super) fn everything(party: &Party) -> Plan {
    party.everything(false, Asked::default())
}

pub(super) fn flat(party: &Party) -> Plan {
    party.search(Mode::Flat, Asked::default()).unwrap()
}

pub(super) async fn found(
    store: &Store,
    plan: &Plan,
    question: &str,
    limit: usize,
) -> Vec<(usize, String)> {
    let found = store.search_memories(plan, question, limit).await.unwrap();
    found.into_iter().map(|it| (it.tier, it.memory.content)).collect()
}

pub(super) async fn texts(store: &Store, plan: &Plan, question: &str) -> Vec<String> {
    found(store, plan, question, 10).await.into_iter().map(|it| it.1).collect()
}

pub(super) async fn all(store: &Store, plan: &Plan) -> Vec<Memory> {
    store.memories(plan, None, 1000).await.unwrap()
}

pub(super) fn entry() -> Entry {
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
        let theirs = home(party, scope, MemoryKind::Episodic, false);
        let correct = NewMemory { supersedes: Some(secret), ..memory("the piano is gone") };
        let refused = store.write_memory(&theirs, correct).await.unwrap();
        assert_eq!(refused, Err(WriteRefusal::NothingToSupersede(secret)));
    }
    assert!(store.memory(&everything(&lin()), secret).await.unwrap().is_some());
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
