//! The outbox: what happened is told, what did not is not.

use std::time::Duration;

use chancery_store::outbox::{Notice, Subscription};

use super::*;

const HOLD: Duration = Duration::from_secs(60);

fn subscribed(store: &Store) {
    let topics = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    store.subscribe(vec![
        Subscription {
            subscriber: "ops".into(),
            topics: topics(&["run.created", "run.cancelled"]),
        },
        Subscription { subscriber: "audit".into(), topics: topics(&["run.cancelled"]) },
    ]);
}

fn told(notices: &[Notice]) -> Vec<(&str, &str, u64)> {
    notices.iter().map(|it| (&*it.subscriber, &*it.topic, it.seq)).collect()
}

pub async fn a_notice_is_written_with_its_event(home: &Home) {
    let store = home.open().await;
    make(&store, created("before anyone subscribed")).await;
    subscribed(&store);
    let run = make(&store, created("goal")).await;
    append(&store, run, [started(), cancelled()], Fence::Outside).await.unwrap();
    let mut notices = store.take_notices(10, HOLD).await.unwrap();
    notices.sort_by_key(|it| (it.seq, it.subscriber.clone()));
    assert_eq!(
        told(&notices),
        [("ops", "run.created", 1), ("audit", "run.cancelled", 3), ("ops", "run.cancelled", 3)]
    );
    assert!(notices.iter().all(|it| it.run == run && it.tries == 1), "{notices:?}");
}

pub async fn an_append_that_is_refused_tells_nothing(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("goal")).await;
    subscribed(&store);
    let mut stale = history(&store, run).await.record(cancelled()).unwrap();
    append(&store, run, [started()], Fence::Outside).await.unwrap();
    let refused = store.append(&stale.change().unwrap(), Fence::Outside, clock::now()).await;
    assert!(matches!(refused, Err(AppendError::Conflict { .. })), "{refused:?}");
    assert_eq!(store.outbox_depth().await.unwrap(), 0);
}

pub async fn a_notice_is_taken_by_one_until_it_is_settled(home: &Home) {
    let store = home.open().await;
    subscribed(&store);
    for n in 0..20 {
        make(&store, created(&format!("goal {n}"))).await;
    }
    let other = home.another(&store).await;
    let (here, there) = tokio::join!(store.take_notices(15, HOLD), other.take_notices(15, HOLD));
    let mut ids: Vec<u64> = here.unwrap().iter().chain(&there.unwrap()).map(|it| it.id).collect();
    ids.extend(store.take_notices(20, HOLD).await.unwrap().iter().map(|it| it.id));
    let taken = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((taken, ids.len()), (20, 20), "each is taken once");
    store.settle_notice(ids[0]).await.unwrap();
    assert_eq!(store.outbox_depth().await.unwrap(), 19);
}

pub async fn a_notice_that_was_not_settled_comes_back(home: &Home) {
    let store = home.open().await;
    subscribed(&store);
    make(&store, created("goal")).await;
    let first = store.take_notices(10, Duration::ZERO).await.unwrap();
    let again = store.take_notices(10, HOLD).await.unwrap();
    assert_eq!((first[0].id, again[0].id, again[0].tries), (again[0].id, again[0].id, 2));
    assert_eq!(store.take_notices(10, HOLD).await.unwrap(), []);
    store.postpone_notice(first[0].id, Duration::ZERO).await.unwrap();
    assert_eq!(store.take_notices(10, HOLD).await.unwrap()[0].tries, 3);
}
