//! Goals handed down and back, with every fault at every point.

use chancery_testkit::simulator::family::{Blow, Families, Plot};

fn plot(parts: &[(&'static str, &[&[&'static str]])]) -> Plot {
    parts
        .iter()
        .map(|(who, batches)| (*who, batches.iter().map(|it| it.to_vec()).collect()))
        .collect()
}

/// One after the other, side by side with something after them, and one beneath the other.
fn plots() -> Vec<Plot> {
    vec![
        plot(&[("root", &[&["a"], &["write"]]), ("a", &[&["write"]])]),
        plot(&[("root", &[&["a", "b", "write"]]), ("a", &[&["write"]]), ("b", &[])]),
        plot(&[("root", &[&["write", "a"]]), ("a", &[&["b"], &["write"]]), ("b", &[&["write"]])]),
    ]
}

async fn at_every_point(blow: Blow) {
    let families = Families::new().await;
    for plot in plots() {
        let points = families.explore(&plot, blow).await;
        assert!(points > 20, "{points} points of {plot:?}");
    }
}

#[tokio::test]
async fn a_crash_at_every_point_loses_and_doubles_no_child() {
    at_every_point(Blow::Crash).await;
}

#[tokio::test]
async fn a_store_that_is_away_at_every_point_loses_and_doubles_no_child() {
    at_every_point(Blow::Away).await;
}

#[tokio::test]
async fn whoever_cancels_at_every_point_leaves_nobody_behind() {
    at_every_point(Blow::CancelAndCrash).await;
}

#[tokio::test]
async fn a_worker_that_was_replaced_at_every_point_hands_nothing_on_twice() {
    at_every_point(Blow::Takeover).await;
}

#[tokio::test]
async fn a_queue_with_one_place_runs_a_tree_five_deep() {
    let deep: &[(&'static str, &[&[&'static str]])] = &[
        ("root", &[&["a"], &["write"]]),
        ("a", &[&["b"], &["write"]]),
        ("b", &[&["c"], &["write"]]),
        ("c", &[&["d"], &["write"]]),
        ("d", &[&["e"], &["write"]]),
        ("e", &[&["write"]]),
    ];
    let families = Families::new().await;
    assert_eq!(families.play(&plot(deep), None).await, Ok(false));
}
