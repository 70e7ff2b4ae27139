//! Deposits: a group's results become its project's knowledge, once.

use std::time::Duration;

use chancery_domain::memory::{Asked, EpisodeKind, MemoryKind, Partition, Scope};
use chancery_runtime::deposit::deposit_due;
use chancery_store::memory::NewMemory;
use serde_json::Value;

use super::memory::*;
use super::*;

const HOLD: Duration = Duration::from_secs(30);

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
    assert_eq!(deposit_due(&store, HOLD).await.unwrap(), 1);
    assert_eq!(deposit_due(&store, HOLD).await.unwrap(), 0);
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
        deposit_due(&store, HOLD).await.unwrap();
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
    let (one, two) = tokio::join!(deposit_due(&store, HOLD), deposit_due(&other, HOLD));
    assert_eq!(one.unwrap() + two.unwrap(), 6);
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
    assert_eq!(deposit_due(&store, HOLD).await.unwrap(), 1);
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
