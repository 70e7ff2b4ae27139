//! Runs above and beneath each other: made together, ended together, or not at all.

use chancery_domain::event::*;
use chancery_domain::id::*;
use chancery_store::timer::Due;

use super::*;

/// A run that has handed a goal on for each of these calls, and waits for what comes back.
async fn waiting(store: &Store, calls: &[&str]) -> (RunId, Vec<RunId>) {
    let run = make(store, created("above")).await;
    let lease = claim_one(store).await;
    let batch: Vec<_> = calls.iter().map(|call| (*call, Ruling::Allow)).collect();
    let mut history = history(store, run).await.record(started()).unwrap();
    history = history.record(proposed(&batch, 1)).unwrap();
    let children: Vec<RunId> = calls.iter().map(|_| clock::new_run_id()).collect();
    for call in calls {
        history = history.record(begins(call)).unwrap();
    }
    for (call, child) in calls.iter().zip(&children) {
        history = history.spawn(spawned(call, *child), beneath(run)).unwrap();
    }
    store.append(&history.change().unwrap(), Fence::Lease(&lease), clock::now()).await.unwrap();
    (run, children)
}

fn begins(call: &str) -> Event {
    CallStarted { call: call.into(), idempotency_key: String::new() }.into()
}

fn beneath(parent: RunId) -> Created {
    let ancestors = vec![Ancestor { run: parent, group: None }];
    Created { parent: Some(parent), ancestors, group: Some("legal".into()), ..created("beneath") }
}

fn spawned(call: &str, child: RunId) -> ChildSpawned {
    ChildSpawned {
        call: call.into(),
        child,
        group: "legal".into(),
        goal: "beneath".to_owned(),
        chosen: None,
        spawned_at: clock::now(),
        limit_seconds: Some(300),
    }
}

/// A child's last events, as whoever drives it has them.
async fn ends(store: &Store, child: RunId, output: &str) -> Result<(), AppendError> {
    let events = [started(), completed(output)];
    append(store, child, events, Fence::Outside).await
}

async fn kinds(store: &Store, run: RunId) -> Vec<&'static str> {
    store.events(run, 0, 1000).await.unwrap().iter().map(|it| it.event.kind()).collect()
}

async fn status(store: &Store, run: RunId) -> String {
    store.run(run).await.unwrap().unwrap().status
}

pub async fn what_is_waited_for_in_the_end_is_found_through_runs_that_wait_for_others(home: &Home) {
    let store = home.open().await;
    let (run, children) = waiting(&store, &["a", "b"]).await;
    let waits = async |depth: u32| -> Vec<Option<String>> {
        let found = store.waits_beneath(&[run, children[0]], depth).await.unwrap();
        assert!(found.iter().all(|it| it.0 == run), "{found:?}");
        let mut waits: Vec<_> = found.into_iter().map(|it| it.1).collect();
        waits.sort();
        waits
    };
    let some = |it: &str| Some(it.to_owned());
    assert_eq!(waits(16).await, [None, None]);
    // One asks a person; the other hands its goal on to one that waits for a signal.
    let asks = [started(), proposed(&[("c", Ruling::RequireApproval)], 1)];
    append(&store, children[0], asks, Fence::Outside).await.unwrap();
    let grandchild = clock::new_run_id();
    let mut above = history(&store, children[1]).await;
    for event in [started(), proposed(&[("d", Ruling::Allow)], 1), begins("d")] {
        above = above.record(event).unwrap();
    }
    above = above.spawn(spawned("d", grandchild), beneath(children[1])).unwrap();
    store.append(&above.change().unwrap(), Fence::Outside, clock::now()).await.unwrap();
    let wait = [started(), proposed(&[("e", Ruling::Allow)], 1), begins("e"), waits_for("e")];
    append(&store, grandchild, wait, Fence::Outside).await.unwrap();
    assert_eq!(waits(16).await, [some("permission"), some("signal")]);
    assert_eq!(waits(1).await, [some("permission")]);
    // What has ended is waited for no longer.
    append(&store, children[0], [cancelled()], Fence::Outside).await.unwrap();
    assert_eq!(waits(16).await, [some("signal")]);
    assert_eq!(store.waits_beneath(&[], 16).await.unwrap(), []);
    assert_eq!(store.waits_beneath(&[grandchild], 16).await.unwrap(), []);
}

fn waits_for(call: &str) -> Event {
    super::waits(call, "key", None)
}

pub async fn a_child_is_made_with_its_parents_wait_or_not_at_all(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("above")).await;
    let lease = claim_one(&store).await;
    let staged = history(&store, run).await.record(started()).unwrap();
    let mut staged = staged.record(proposed(&[("a", Ruling::Allow)], 1)).unwrap();
    staged = staged.record(begins("a")).unwrap();
    let child = clock::new_run_id();
    let change = staged.spawn(spawned("a", child), beneath(run)).unwrap().change().unwrap();
    // Somebody is faster: neither the wait nor the child is there.
    append(&store, run, [spoke("hm")], Fence::Outside).await.unwrap();
    let refused = store.append(&change, Fence::Lease(&lease), clock::now()).await.unwrap_err();
    assert!(matches!(refused, AppendError::Conflict { .. }), "{refused}");
    assert!(store.run(child).await.unwrap().is_none());
    assert!(store.events(child, 0, 10).await.unwrap().is_empty());
    assert_eq!(kinds(&store, run).await, ["run.created", "message.user"]);
    // With a wait that is there the child is there, wants a worker, and its parent wants none.
    store.release(lease, chancery_store::queue::Release::Handover).await.unwrap();
    append(&store, run, [Cancelled { by: ada() }.into()], Fence::Outside).await.unwrap();
    let (run, children) = waiting(&store, &["a"]).await;
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!((&*row.status, row.waiting_for.as_deref()), ("waiting", Some("child")));
    let lease = claim_one(&store).await;
    assert_eq!(lease.run(), children[0]);
}

pub async fn a_child_ends_with_its_parents_wait_for_it(home: &Home) {
    let store = home.open().await;
    let (run, children) = waiting(&store, &["a", "b"]).await;
    ends(&store, children[1], "second").await.unwrap();
    assert_eq!(status(&store, run).await, "waiting", "another one is away");
    let last = history(&store, children[0]).await.record(started()).unwrap();
    let last = last.record(completed("first")).unwrap().change().unwrap();
    store.append(&last, Fence::Outside, clock::now()).await.unwrap();
    assert_eq!(status(&store, run).await, "running");
    let ended = kinds(&store, run).await;
    assert_eq!(ended[ended.len() - 2..], ["child.ended", "child.ended"]);
    // What the children used is the parent's to account for.
    let row = store.run(run).await.unwrap().unwrap();
    let child = store.run(children[0]).await.unwrap().unwrap();
    assert_eq!(child.usage, Usage { input_tokens: 1, output_tokens: 1, cost_micros: 5 });
    assert_eq!(row.usage, Usage { input_tokens: 3, output_tokens: 3, cost_micros: 3 + 2 * 5 });
    // An end that is appended twice is no second end.
    let again = store.append(&last, Fence::Outside, clock::now()).await.unwrap_err();
    assert!(matches!(again, AppendError::Conflict { .. }), "{again}");
    assert_eq!(kinds(&store, run).await, ended);
}

pub async fn two_children_that_end_at_the_same_instant_wake_their_parent_once(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    for _ in 0..10 {
        let (run, children) = waiting(&store, &["a", "b"]).await;
        claim(&store, 2).await;
        let (one, two) =
            tokio::join!(ends(&store, children[0], "first"), ends(&other, children[1], "second"),);
        one.unwrap();
        two.unwrap();
        let ended = kinds(&store, run).await;
        assert_eq!(ended.iter().filter(|it| **it == "child.ended").count(), 2, "{ended:?}");
        let lease = claim_one(&store).await;
        assert_eq!((lease.run(), lease.attempt()), (run, 2));
        append(&store, run, [Cancelled { by: ada() }.into()], Fence::Outside).await.unwrap();
    }
}

pub async fn a_run_that_ends_badly_leaves_its_children_to_be_cancelled(home: &Home) {
    let store = home.open().await;
    let (run, children) = waiting(&store, &["a", "b"]).await;
    ends(&store, children[0], "first").await.unwrap();
    assert!(store.orphans(10).await.unwrap().is_empty());
    append(&store, run, [Cancelled { by: ada() }.into()], Fence::Outside).await.unwrap();
    assert_eq!(store.orphans(10).await.unwrap(), [children[1]], "the other one has ended");
    // It may end by itself meanwhile; its parent does not hear of it any more.
    let before = kinds(&store, run).await;
    ends(&store, children[1], "second").await.unwrap();
    assert_eq!(kinds(&store, run).await, before);
    store.forget_orphan(children[1]).await.unwrap();
    assert!(store.orphans(10).await.unwrap().is_empty());
}

pub async fn a_deadline_that_is_looked_at_too_soon_is_looked_at_again(home: &Home) {
    let store = home.open().await;
    let (run, children) = waiting(&store, &["a"]).await;
    let key = chancery_domain::escalation::deadline_key(children[0]);
    let due = Due { run, key };
    assert!(store.due(10).await.unwrap().is_empty());
    store.look_again(&due, Duration::ZERO).await.unwrap();
    assert_eq!(store.due(10).await.unwrap(), std::slice::from_ref(&due));
    store.look_again(&due, Duration::from_secs(60)).await.unwrap();
    assert!(store.due(10).await.unwrap().is_empty());
    // It goes with the wait.
    store.look_again(&due, Duration::ZERO).await.unwrap();
    ends(&store, children[0], "back").await.unwrap();
    assert!(store.due(10).await.unwrap().is_empty());
}
