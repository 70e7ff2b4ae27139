//! The write path: appended whole or not at all, once, in order, by whoever may.

use std::collections::BTreeSet;

use chancery_domain::event::*;
use chancery_domain::history::{Change, History};
use chancery_domain::id::*;
use chancery_runtime::clock;
use chancery_store::log::{Amendment, CreateOutcome, IdempotencyKey};
use chancery_store::{AppendError, Changed, Fence, Store};

use super::*;

pub async fn an_append_is_held_to_its_place_in_the_log(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    let first = history(&store, run).await.record(started()).unwrap().change().unwrap();
    let second = history(&store, run).await.record(spoke("hm")).unwrap();
    let second = second.record(spoke("and")).unwrap().change().unwrap();
    store.append(&first, Fence::Outside, clock::now()).await.unwrap();
    for _ in 0..2 {
        match store.append(&second, Fence::Outside, clock::now()).await {
            Err(AppendError::Conflict { run: at, expected: 1, found: 2 }) => assert_eq!(at, run),
            other => panic!("{other:?}"),
        }
    }
    let kinds: Vec<_> = store.events(run, 0, 10).await.unwrap();
    let kinds: Vec<_> = kinds.iter().map(|it| it.event.kind()).collect();
    assert_eq!(kinds, ["run.created", "run.started"]);
}

/// Whoever was not answered asks again, and is told what became of it.
pub async fn a_change_that_was_made_is_recognised_when_it_is_appended_again(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let run = make(&store, created("x")).await;
    let lease = claim_one(&store).await;
    let mut begun = history(&store, run).await.record(started()).unwrap();
    let change = begun.change().unwrap();
    for _ in 0..3 {
        store.append_again(&change, &lease, clock::now()).await.unwrap();
    }
    // Others may have spoken since.
    append(&store, run, [spoke("hm")], Fence::Outside).await.unwrap();
    store.append_again(&change, &lease, clock::now()).await.unwrap();
    assert_eq!(store.events(run, 0, 100).await.unwrap().len(), 3);
    // What is not in the log was not made.
    let late = begun.record(proposed(&[("a", Ruling::Allow)], 1)).unwrap().change().unwrap();
    let refused = store.append_again(&late, &lease, clock::now()).await.unwrap_err();
    assert!(matches!(refused, AppendError::Conflict { expected: 2, found: 3, .. }), "{refused}");
    // And one's own words in the log are of no use once another has the run.
    let_die(&store).await;
    assert_eq!(other.rescue().await.unwrap(), 1);
    claim_one(&other).await;
    let refused = store.append_again(&change, &lease, clock::now()).await.unwrap_err();
    assert!(matches!(refused, AppendError::LeaseLost(_)), "{refused}");
}

pub async fn there_is_no_appending_to_no_run(home: &Home) {
    let store = home.open().await;
    let run = clock::new_run_id();
    let mut history = History::create(run, created("x"));
    history.change().unwrap();
    let change = history.record(started()).unwrap().change().unwrap();
    match store.append(&change, Fence::Outside, clock::now()).await {
        Err(AppendError::NoSuchRun(found)) => assert_eq!(found, run),
        other => panic!("{other:?}"),
    }
    let nothing = store.amend(run, clock::now(), |_, _| Ok::<_, ()>(Amendment::Nothing(()))).await;
    assert!(matches!(nothing, Err(AppendError::NoSuchRun(_))));
    assert!(store.run(run).await.unwrap().is_none());
}

/// Whatever an old attempt knows, it writes nothing once another has the run: not after the
/// rescue and the next claim, nor after its own worker has claimed the run again.
pub async fn a_lost_lease_writes_nothing(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let run = make(&store, created("x")).await;
    other.beat(Duration::from_secs(60)).await.unwrap();
    let old = claim_one(&store).await;
    append(&store, run, [started()], Fence::Lease(&old)).await.unwrap();
    let_die(&store).await;
    assert_eq!(other.rescue().await.unwrap(), 1);
    let new = claim_one(&other).await;
    assert_eq!((old.attempt(), new.attempt()), (1, 2));
    let lost = async |lease: &Lease| {
        let refused = append(&store, run, [spoke("late")], Fence::Lease(lease)).await;
        assert!(matches!(refused, Err(AppendError::LeaseLost(_))), "{refused:?}");
    };
    lost(&old).await;
    append(&other, run, [failed()], Fence::Lease(&new)).await.unwrap();
    // At an old place in the log it is the lease that is named, too.
    append(&store, run, [Resumed { by: ada() }.into()], Fence::Outside).await.unwrap();
    lost(&old).await;
    let mine = claim_one(&store).await;
    assert_eq!(mine.attempt(), 3);
    lost(&old).await;
    lost(&new).await;
    append(&store, run, [completed("y")], Fence::Lease(&mine)).await.unwrap();
    assert_eq!(store.run(run).await.unwrap().unwrap().status, "completed");
}

fn first_event(input: &str) -> (RunId, Change) {
    let run = clock::new_run_id();
    (run, History::create(run, created(input)).change().unwrap())
}

fn key(caller: &str, request: u8) -> Option<IdempotencyKey> {
    let (caller, key) = (caller.to_owned(), "monday".to_owned());
    Some(IdempotencyKey { caller, key, request_sha256: [request; 32] })
}

pub async fn a_request_with_a_key_makes_one_run(home: &Home) {
    let store = home.open().await;
    let create = async |caller: &str, request: u8| {
        let (run, change) = first_event("x");
        (run, store.create(&change, key(caller, request), clock::now()).await.unwrap())
    };
    let (run, made) = create("ada", 1).await;
    assert_eq!(made, CreateOutcome::Created);
    assert_eq!(create("ada", 1).await.1, CreateOutcome::Existed(run));
    assert_eq!(create("ada", 2).await.1, CreateOutcome::KeyReused);
    // Another caller's key is another key.
    assert_eq!(create("bo", 2).await.1, CreateOutcome::Created);
    assert_eq!(store.count_by_status().await.unwrap(), [("pending".to_owned(), 2)]);
    assert_eq!(store.queue_depth().await.unwrap(), (2, 0));
}

pub async fn the_same_request_at_once_makes_one_run(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let store = if n % 2 == 0 { store.clone() } else { other.clone() };
        tasks.spawn(async move {
            let (run, change) = first_event("x");
            match store.create(&change, key("ada", 1), clock::now()).await.unwrap() {
                CreateOutcome::Created => run,
                CreateOutcome::Existed(run) => run,
                CreateOutcome::KeyReused => panic!("it is the same request"),
            }
        });
    }
    let runs: BTreeSet<RunId> = tasks.join_all().await.into_iter().collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(store.count_by_status().await.unwrap(), [("pending".to_owned(), 1)]);
}

/// Log and row hold whatever can be said; only NUL is replaced in the row, in both databases.
pub async fn odd_and_large_texts_survive(home: &Home) {
    let store = home.open().await;
    let odd = "nul \0, crab \u{1f980}, \u{10ffff}, quote ' \" \\ $1 ?1 %s {}\r\n\u{2028}";
    let run = make(&store, created(odd)).await;
    let large = "ünï🦀".repeat(5 * 1024 * 1024 / 10);
    append(&store, run, [started(), spoke(odd), spoke(&large)], Fence::Outside).await.unwrap();
    append(&store, run, [completed(odd)], Fence::Outside).await.unwrap();
    let said: Vec<String> = store
        .events(run, 0, 10)
        .await
        .unwrap()
        .into_iter()
        .filter_map(|it| match it.event {
            Event::Created(it) => Some(it.input),
            Event::UserSpoke(it) => Some(it.text),
            Event::Completed(it) => Some(it.output),
            _ => None,
        })
        .collect();
    assert!(said == [odd, odd, &large, odd], "a text was changed on its way");
    let row = store.run(run).await.unwrap().unwrap();
    let shown = odd.replace('\0', "\u{fffd}");
    assert_eq!((row.input, row.output), (shown.clone(), Some(shown)));
    // Claiming reads the log by a path of its own.
    let run = make(&store, created(odd)).await;
    let claimed = store.claim(1).await.unwrap().remove(0);
    assert_eq!(claimed.log.unwrap(), store.events(run, 0, 10).await.unwrap());
}

/// A far side that counts its tokens wrongly must not make a run, or its neighbours, unreadable.
pub async fn absurd_token_counts_break_nothing(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    append(&store, run, [started()], Fence::Outside).await.unwrap();
    for tokens in [u64::MAX, i64::MAX as u64, i64::MAX as u64] {
        let batch = proposed(&[("a", Ruling::Allow)], tokens);
        let BatchProposed { message, .. } = match &batch {
            Event::BatchProposed(it) => it.clone(),
            other => panic!("{other:?}"),
        };
        let events = [batch, call_started("a"), call_ended("a"), BatchClosed { message }.into()];
        append(&store, run, events, Fence::Outside).await.unwrap();
    }
    let rows = store.runs(&Default::default(), 10).await.unwrap();
    let Usage { input_tokens, cost_micros, .. } = rows[0].usage;
    for shown in [input_tokens, cost_micros] {
        assert!((1_000_000_000_000..=i64::MAX as u64).contains(&shown), "{shown}");
    }
    let logged = store.events(run, 2, 1).await.unwrap().remove(0).event;
    assert!(matches!(logged, Event::BatchProposed(it) if it.usage.input_tokens == u64::MAX));
}

pub async fn events_are_read_from_a_place_and_up_to_a_number(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    let noise = make(&store, created("noise")).await;
    append(&store, noise, [started()], Fence::Outside).await.unwrap();
    for n in 2..=9 {
        append(&store, run, [spoke(n.to_string())], Fence::Outside).await.unwrap();
    }
    let seqs = async |after, limit| -> Vec<u64> {
        store.events(run, after, limit).await.unwrap().iter().map(|it| it.seq).collect()
    };
    assert_eq!(seqs(0, 100).await, (1..=9).collect::<Vec<u64>>());
    assert_eq!(seqs(0, 3).await, [1, 2, 3]);
    assert_eq!(seqs(7, 100).await, [8, 9]);
    assert_eq!(seqs(9, 100).await, [] as [u64; 0]);
    assert_eq!(seqs(4, 2).await, [5, 6]);
    assert_eq!(seqs(0, 0).await, [] as [u64; 0]);
    assert_eq!(seqs(1_000_000, 5).await, [] as [u64; 0]);
}

async fn say(store: &Store, run: RunId, text: String) {
    let said = store.amend(run, clock::now(), |history, _| {
        history.record(spoke(text.clone())).map(Amendment::<()>::Record)
    });
    assert!(matches!(said.await.unwrap(), Ok(None)));
}

pub async fn a_hundred_speakers_at_once_are_all_heard(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let run = make(&store, created("x")).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..100 {
        let store = if n % 2 == 0 { store.clone() } else { other.clone() };
        tasks.spawn(async move { say(&store, run, format!("{n:03}")).await });
    }
    tasks.join_all().await;
    let events = store.events(run, 0, u32::MAX).await.unwrap();
    let mut texts: Vec<String> = events
        .iter()
        .filter_map(|it| match &it.event {
            Event::UserSpoke(it) => Some(it.text.clone()),
            _ => None,
        })
        .collect();
    texts.sort();
    assert_eq!(texts, (0..100).map(|n| format!("{n:03}")).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap().seq, 101);
}

pub async fn whoever_listens_hears_of_a_change(home: &Home) {
    let store = home.open().await;
    let mut changes = store.bell().changes();
    // What the opening rang for (another server may have spoken) is not what is listened for.
    let mut next = async || loop {
        match changes.recv().await.unwrap() {
            Changed::Something => {}
            heard => return heard,
        }
    };
    let run = make(&store, created("x")).await;
    assert_eq!(next().await, Changed::Outside(run));
    store.bell().work().await;
    let lease = claim_one(&store).await;
    append(&store, run, [started()], Fence::Lease(&lease)).await.unwrap();
    assert_eq!(next().await, Changed::Driven(run));
    say(&store, run, "hm".to_owned()).await;
    assert_eq!(next().await, Changed::Outside(run));
    let wait = [proposed(&[("a", Ruling::Allow)], 1), call_started("a"), waits("a", "k", None)];
    append(&store, run, wait, Fence::Lease(&lease)).await.unwrap();
    assert_eq!(next().await, Changed::Driven(run));
    append(&store, run, [signalled("k")], Fence::Outside).await.unwrap();
    store.bell().work().await;
}
