//! Limits: turns that are shared by all servers, and what a tree of runs has used up.

use super::*;

pub async fn the_last_turn_is_taken_by_one(home: &Home) {
    let store = home.open().await;
    let other = home.another(&store).await;
    let agent = AgentId::from("clerk");
    // A share comes back after twelve seconds.
    assert_eq!(store.shares_left(&agent, "pay", 5).await.unwrap(), 5);
    let mut takers = tokio::task::JoinSet::new();
    for n in 0..40 {
        let (store, agent) = (if n % 2 == 0 { &store } else { &other }.clone(), agent.clone());
        takers.spawn(async move { store.take_share(&agent, "pay", 5).await.unwrap() });
    }
    let taken = takers.join_all().await.into_iter().filter(|it| *it).count();
    assert_eq!(taken, 5);
    assert_eq!(other.shares_left(&agent, "pay", 5).await.unwrap(), 0);
    // Others have their own, whatever they are called.
    for (agent, tool) in [("clerk", "note"), ("boss", "pay"), ("a\0'", "b\u{1f980}\0")] {
        let agent = AgentId::from(agent);
        assert!(store.take_share(&agent, tool, 2).await.unwrap());
        assert_eq!(other.shares_left(&agent, tool, 2).await.unwrap(), 1);
    }
    // Who has a higher rate from now on has turns again; where there are none, none is taken.
    assert!(store.take_share(&agent, "pay", 600).await.is_ok());
    assert_eq!(store.shares_left(&agent, "never", 0).await.unwrap(), 0);
    assert!(!store.take_share(&agent, "never", 0).await.unwrap());
}

pub async fn a_share_comes_back_with_time(home: &Home) {
    let store = home.open().await;
    let agent = AgentId::from("clerk");
    const RATE: u32 = 60;
    for _ in 0..RATE {
        assert!(store.take_share(&agent, "note", RATE).await.unwrap());
    }
    // A second is the share of each; the first comes back within two.
    let began = std::time::Instant::now();
    while store.shares_left(&agent, "note", RATE).await.unwrap() == 0 {
        assert!(began.elapsed() < Duration::from_secs(20));
    }
    assert!(store.take_share(&agent, "note", RATE).await.unwrap());
}

pub async fn the_tokens_of_a_tree_are_those_of_all_its_runs(home: &Home) {
    let store = home.open().await;
    let root = make(&store, created("root")).await;
    let child = make(&store, Created { parent: Some(root), ..created("child") }).await;
    let other = make(&store, Created { parent: Some(root), ..created("other") }).await;
    let below = make(&store, Created { parent: Some(child), ..created("below") }).await;
    make(&store, created("a tree of its own")).await;
    for (run, tokens) in [(root, 1), (child, 10), (other, 100), (below, 1000)] {
        // Each counts twice: what is read and what is said.
        let events = [started(), proposed(&[("a", Ruling::Allow)], tokens)];
        append(&store, run, events, Fence::Outside).await.unwrap();
    }
    for (run, beside) in [(root, 2220), (child, 2202), (other, 2022), (below, 222)] {
        assert_eq!(store.tokens_beside(run).await.unwrap(), beside);
    }
    assert_eq!(store.tokens_beside(clock::new_run_id()).await.unwrap(), 0);
}
