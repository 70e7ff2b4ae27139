//! Row, queue and timer say what a fold of the log says, after every single append.

use chancery_domain::event::*;
use chancery_domain::history::Posture;
use chancery_domain::policy::Ruling::{Allow, RequireApproval, RequireHuman};
use chancery_domain::run::{Outcome, Run};
use chancery_runtime::clock;
use chancery_store::read::RunRow;
use chancery_store::{Fence, Store};
use jiff::Timestamp;

use super::*;

/// Everything that the store keeps beside a log, as the log alone would have it.
#[derive(Debug, PartialEq)]
struct Beside {
    status: String,
    waiting_for: Option<String>,
    output: Option<String>,
    error: Option<String>,
    usage: Usage,
    seq: u64,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    queued: bool,
    deadline: Option<WaitKey>,
}

async fn stored(store: &Store, run: RunId) -> Beside {
    let row: RunRow = store.run(run).await.unwrap().unwrap();
    // The runs of these tests are alone in their store, and their deadlines have passed.
    let (queued, _) = store.queue_depth().await.unwrap();
    let due = store.due(10).await.unwrap();
    assert!(queued <= 1 && due.len() <= 1 && due.iter().all(|it| it.run == run));
    Beside {
        status: row.status,
        waiting_for: row.waiting_for,
        output: row.output,
        error: row.error,
        usage: row.usage,
        seq: row.seq,
        created_at: row.created_at,
        started_at: row.started_at,
        ended_at: row.ended_at,
        queued: queued == 1,
        deadline: due.into_iter().next().map(|it| it.key),
    }
}

fn folded(run: RunId, events: &[Recorded]) -> Beside {
    let history = History::fold(run, events).unwrap();
    let run = history.run();
    let (mut usage, mut started_at) = (Usage::default(), None);
    for it in events {
        let used = match &it.event {
            Event::BatchProposed(it) => it.usage,
            Event::Completed(it) => it.usage,
            Event::Started(_) => {
                started_at = Some(it.at);
                continue;
            }
            _ => continue,
        };
        usage.input_tokens += used.input_tokens;
        usage.output_tokens += used.output_tokens;
        usage.cost_micros += used.cost_micros;
    }
    let (output, error) = match run {
        Run::Finished(Outcome::Completed { output }) => (Some(output.clone()), None),
        Run::Finished(Outcome::Failed { error, .. }) => (None, Some(error.clone())),
        _ => (None, None),
    };
    let deadline = match run {
        Run::Waiting(chancery_domain::run::Wait::Signal { key, until: Some(_), .. }) => {
            Some(key.clone())
        }
        _ => None,
    };
    Beside {
        status: run.status().to_owned(),
        waiting_for: run.waiting_for().map(str::to_owned),
        output,
        error,
        usage,
        seq: history.seq(),
        created_at: events[0].at,
        started_at,
        ended_at: matches!(run, Run::Finished(_)).then(|| events.last().unwrap().at),
        queued: run.wants_worker(),
        deadline,
    }
}

/// Appends group by group, and compares after each.
async fn check(home: &Home, groups: Vec<Vec<Event>>) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    for group in std::iter::once(vec![]).chain(groups) {
        if !group.is_empty() {
            append(&store, run, group, Fence::Outside).await.unwrap();
        }
        let events = store.events(run, 0, u32::MAX).await.unwrap();
        assert_eq!(stored(&store, run).await, folded(run, &events), "{events:#?}");
    }
    store.close().await;
}

fn past() -> Option<Timestamp> {
    Some(Timestamp::UNIX_EPOCH)
}

pub async fn a_run_with_a_deadline_that_is_met(home: &Home) {
    let batch = vec![proposed(&[("a", Allow)], 7)];
    let wait = vec![call_started("a"), waits("a", "k", past())];
    let words = vec![spoke("are you there?")];
    let end = vec![closed_after(&batch), completed("fine")];
    check(home, vec![vec![started()], batch, wait, words, vec![signalled("k")], end]).await;
}

pub async fn a_run_with_a_deadline_that_passes(home: &Home) {
    let batch = vec![proposed(&[("a", Allow)], 7), call_started("a"), waits("a", "k", past())];
    let expired = vec![WaitExpired { correlation_key: WaitKey::from("k") }.into()];
    check(home, vec![vec![started()], batch, expired, vec![cancelled()]]).await;
}

pub async fn a_run_cancelled_while_it_waits(home: &Home) {
    let batch = vec![proposed(&[("a", Allow)], 7), call_started("a"), waits("a", "k", past())];
    check(home, vec![vec![started()], batch, vec![cancelled()]]).await;
}

pub async fn a_run_that_is_asked_about_twice(home: &Home) {
    let batch = vec![proposed(&[("a", RequireApproval), ("b", RequireApproval)], 3)];
    let recover = PermissionRequested {
        message: MessageId(uuid::Uuid::from_u128(3)),
        call: "a".into(),
        tool: "act".to_owned(),
        arguments: json!({}),
        ruling: RequireHuman,
        reasons: vec![],
        request: request(RequestKind::Recover),
    };
    let recover = Event::from(recover);
    let asks = &batch[0];
    let end = vec![call_started("b"), call_ended("b"), closed_after(&batch), completed("y")];
    check(
        home,
        vec![
            vec![started()],
            batch.clone(),
            vec![decided(asks, "a", Decision::Granted)],
            vec![decided(asks, "b", Decision::Granted)],
            vec![call_started("a")],
            vec![recover.clone()],
            vec![decided(&recover, "a", Decision::Supplied(CallResult::ok("so it was")))],
            end,
        ],
    )
    .await;
}

pub async fn a_run_that_fails_and_is_resumed(home: &Home) {
    let resumed = || vec![Resumed { by: ada() }.into()];
    check(
        home,
        vec![
            vec![started()],
            vec![failed()],
            resumed(),
            vec![failed()],
            resumed(),
            vec![completed("y")],
        ],
    )
    .await;
}

pub async fn a_run_that_ends_before_it_starts(home: &Home) {
    check(home, vec![vec![spoke("never mind")], vec![cancelled()]]).await;
}

pub async fn a_whole_run_in_one_append(home: &Home) {
    let batch = proposed(&[("a", Allow)], 3);
    let close = closed_after(std::slice::from_ref(&batch));
    let all = vec![started(), batch, call_started("a"), call_ended("a"), close, completed("y")];
    check(home, vec![all]).await;
}

/// A deadline is a run's and the key's, whatever characters the key is of.
pub async fn a_deadline_knows_its_key_whatever_it_is_of(home: &Home) {
    let store = home.open().await;
    for key in ["plain", "with \0 in it", "crab \u{1f980}", "'; --"] {
        let run = make(&store, created("x")).await;
        let events =
            [started(), proposed(&[("a", Allow)], 1), call_started("a"), waits("a", key, past())];
        append(&store, run, events, Fence::Outside).await.unwrap();
        let due = store.due(10).await.unwrap();
        assert_eq!(due.len(), 1, "{due:?}");
        assert!(due[0].run == run && due[0].is_for(&WaitKey::from(key)), "{due:?}");
        assert!(!due[0].is_for(&WaitKey::from("another")));
        append(&store, run, [signalled(key)], Fence::Outside).await.unwrap();
        assert_eq!(store.due(10).await.unwrap(), []);
    }
}

pub async fn the_next_deadline_is_known(home: &Home) {
    let store = home.open().await;
    assert_eq!(store.next_due().await.unwrap(), None);
    let hour = store.now().await.unwrap() + Duration::from_secs(3600);
    for (until, most) in [(None, None), (Some(hour), Some(3600)), (past(), Some(0))] {
        let run = make(&store, created("x")).await;
        let wait = waits("a", "k", until);
        let events = [started(), proposed(&[("a", Allow)], 1), call_started("a"), wait];
        append(&store, run, events, Fence::Outside).await.unwrap();
        let next = store.next_due().await.unwrap();
        assert_eq!(next.is_some(), most.is_some());
        let near = |it: Duration, most: u64| it.as_secs() <= most && it.as_secs() + 60 >= most;
        assert!(next.zip(most).is_none_or(|(it, most)| near(it, most)), "{next:?}");
    }
    // What is not due is not told.
    assert_eq!(store.due(10).await.unwrap().len(), 1);
}

fn closed_after(events: &[Event]) -> Event {
    let message = events.iter().find_map(|it| match it {
        Event::BatchProposed(it) => Some(it.message),
        _ => None,
    });
    BatchClosed { message: message.unwrap() }.into()
}

/// The row never says less than the posture that the domain reports for it.
pub async fn the_posture_of_a_change_is_that_of_its_row(home: &Home) {
    let store = home.open().await;
    let run = make(&store, created("x")).await;
    let mut history = history(&store, run).await.record(started()).unwrap();
    let change = history.change().unwrap();
    let Posture { status, waiting_for, .. } = change.after().clone();
    store.append(&change, Fence::Outside, clock::now()).await.unwrap();
    let row = store.run(run).await.unwrap().unwrap();
    assert_eq!((&*row.status, row.waiting_for.as_deref()), (status, waiting_for));
}
