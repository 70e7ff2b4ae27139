//! Whatever is done to the audit behind the store's back shows, on both databases.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use chancery_domain::audit::Entry;
use chancery_domain::id::AgentId;
use chancery_store::Store;
use chancery_store::audit::{Bad, Head, Why};
use chancery_testkit::conformance::audit::{sign_in, whole_chain};
use chancery_testkit::conformance::{Home, clock};

const ENTRIES: i64 = 700;

/// Carries out what nobody may.
async fn tamper(home: &Home, sql: &str) {
    match home {
        Home::Sqlite(dir) => {
            let connection = rusqlite::Connection::open(dir.path().join("chancery.db")).unwrap();
            connection.execute_batch(sql).unwrap_or_else(|it| panic!("{it}: {sql}"));
        }
        Home::Postgres(database) => {
            let connected = tokio_postgres::connect(&database.url(), tokio_postgres::NoTls).await;
            let (client, connection) = connected.unwrap();
            tokio::spawn(connection);
            client.batch_execute(sql).await.unwrap_or_else(|it| panic!("{it}: {sql}"));
        }
    }
}

/// A chain of some pages.
async fn filled(home: &Home) -> Store {
    let store = home.open().await;
    let entry = |n: i64| Entry {
        agent: Some(AgentId(format!("agent {n}"))),
        tool: Some("git_push".to_owned()),
        ..sign_in("ada")
    };
    store.audit((1..=ENTRIES).map(entry).collect(), clock::now()).await.unwrap();
    assert_eq!(whole_chain(&store).await.len() as i64, ENTRIES);
    store
}

/// Undoes one act before the next: every act is tried on a chain that holds.
async fn each_act_shows(home: &Home, acts: &[(&str, i64, Why)]) {
    let store = filled(home).await;
    tamper(
        home,
        "CREATE TABLE audit_was AS SELECT * FROM audit; CREATE TABLE head_was AS SELECT * FROM audit_head;",
    )
    .await;
    for (act, seq, why) in acts {
        tamper(home, act).await;
        let verified = store.audit_verify(None).await.unwrap();
        assert_eq!(verified.first_bad, Some(Bad { seq: *seq, why: *why }), "{act}");
        if !matches!(why, Why::Head | Why::Stray) {
            assert_eq!(verified.entries as i64, seq - 1, "{act}");
        }
        tamper(
            home,
            "DELETE FROM audit; DELETE FROM audit_head;
             INSERT INTO audit SELECT * FROM audit_was; INSERT INTO audit_head SELECT * FROM head_was;",
        )
        .await;
        assert!(store.audit_verify(None).await.unwrap().ok());
    }
    store.close().await;
}

fn acts() -> Vec<(&'static str, i64, Why)> {
    vec![
        // The text: a word of it, a blank in it, all of it, its place, its time.
        (
            "UPDATE audit SET entry = replace(entry, 'git_push', 'git_pull') WHERE seq = 300",
            300,
            Why::Hash,
        ),
        ("UPDATE audit SET entry = entry || ' ' WHERE seq = 1", 1, Why::Hash),
        ("UPDATE audit SET entry = '{}' WHERE seq = 700", 700, Why::Hash),
        ("UPDATE audit SET entry = 'no JSON' WHERE seq = 256", 256, Why::Hash),
        // Its hash.
        (
            "UPDATE audit SET hash = (SELECT hash FROM audit WHERE seq = 5) WHERE seq = 6",
            6,
            Why::Hash,
        ),
        // What one looks for it by.
        ("UPDATE audit SET agent = 'other' WHERE seq = 2", 2, Why::Copies),
        ("UPDATE audit SET agent = NULL WHERE seq = 2", 2, Why::Copies),
        ("UPDATE audit SET tool = 'other' WHERE seq = 257", 257, Why::Copies),
        ("UPDATE audit SET ruling = 'allow' WHERE seq = 3", 3, Why::Copies),
        ("UPDATE audit SET user_id = 'eve' WHERE seq = 3", 3, Why::Copies),
        ("UPDATE audit SET kind = 'ruling' WHERE seq = 3", 3, Why::Copies),
        ("UPDATE audit SET at = at + 1 WHERE seq = 3", 3, Why::Copies),
        ("UPDATE audit SET run_id = id WHERE seq = 3", 3, Why::Copies),
        // Gone: one, the first, the last, all.
        ("DELETE FROM audit WHERE seq = 256", 256, Why::Missing),
        ("DELETE FROM audit WHERE seq = 1", 1, Why::Missing),
        ("DELETE FROM audit WHERE seq = 700", 700, Why::Missing),
        ("DELETE FROM audit", 1, Why::Missing),
        // Gone, and the gap closed.
        (
            "DELETE FROM audit WHERE seq = 699; UPDATE audit SET seq = 699 WHERE seq = 700; UPDATE audit_head SET seq = 699",
            699,
            Why::Hash,
        ),
        // Exchanged.
        (
            "UPDATE audit SET seq = 0 WHERE seq = 8; UPDATE audit SET seq = 8 WHERE seq = 9; UPDATE audit SET seq = 9 WHERE seq = 0",
            8,
            Why::Hash,
        ),
        // The head.
        ("UPDATE audit_head SET seq = 699", 699, Why::Head),
        ("UPDATE audit_head SET seq = 701", 701, Why::Missing),
        ("UPDATE audit_head SET seq = -1", 701, Why::Missing),
        ("UPDATE audit_head SET hash = (SELECT hash FROM audit WHERE seq = 699)", 700, Why::Head),
        ("DELETE FROM audit_head", 0, Why::Head),
    ]
}

/// Put in where it does not belong: before the first, after the last, far away.
fn put_in(id: &'static str) -> Vec<(String, i64, Why)> {
    let put = |seq: i64| {
        format!(
            "INSERT INTO audit (seq, id, at, kind, entry, hash)
             SELECT {seq}, {id}, at, kind, entry, hash FROM audit WHERE seq = 700"
        )
    };
    vec![
        (put(0), 0, Why::Stray),
        (put(i64::MIN), i64::MIN, Why::Stray),
        (put(701), 701, Why::Stray),
        (put(i64::MAX), i64::MAX, Why::Stray),
    ]
}

async fn everything_shows(home: &Home, id: &'static str) {
    let put_in = put_in(id);
    let mut acts = acts();
    acts.extend(put_in.iter().map(|(act, seq, why)| (&**act, *seq, *why)));
    each_act_shows(home, &acts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_done_to_the_chain_shows_on_sqlite() {
    everything_shows(&Home::sqlite().await, "zeroblob(16)").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_done_to_the_chain_shows_on_postgres() {
    everything_shows(&Home::postgres().await, "'00000000-0000-0000-0000-000000000000'::uuid").await;
}

/// SQLite keeps what it is given, of whatever type.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_another_type_show() {
    let acts = [
        ("UPDATE audit SET entry = CAST(entry AS BLOB) WHERE seq = 9", 9, Why::Unreadable),
        ("UPDATE audit SET hash = 'short' WHERE seq = 9", 9, Why::Unreadable),
        ("UPDATE audit SET at = 'noon' WHERE seq = 9", 9, Why::Unreadable),
        ("UPDATE audit_head SET hash = 7", 700, Why::Head),
    ];
    each_act_shows(&Home::sqlite().await, &acts).await;
}

/// Without an anchor, a tail that is cut off together with the head, and a past that is written
/// anew, cannot be told from the truth. With one, they can.
async fn an_anchor_shows_the_rest(home: &Home) {
    let store = filled(home).await;
    let (anchor, _) = store.audit_head().await.unwrap();
    let chain = whole_chain(&store).await;
    let of = |seq: u64| Head { seq, hash: chain[seq as usize - 1].hash };
    assert!(store.audit_verify(Some(anchor)).await.unwrap().ok());
    assert!(store.audit_verify(Some(of(1))).await.unwrap().ok());
    assert!(store.audit_verify(Some(Head::NONE)).await.unwrap().ok());
    let verified = store.audit_verify(Some(Head { seq: 0, hash: [1; 32] })).await.unwrap();
    assert_eq!(verified.first_bad.unwrap().why, Why::Anchor);
    let verified = store.audit_verify(Some(Head { seq: 300, ..anchor })).await.unwrap();
    assert_eq!(verified.first_bad, Some(Bad { seq: 300, why: Why::Anchor }));
    // It holds while the chain grows, too.
    store.audit(vec![sign_in("ada")], clock::now()).await.unwrap();
    assert!(store.audit_verify(Some(anchor)).await.unwrap().ok());

    tamper(
        home,
        "DELETE FROM audit WHERE seq > 600;
         UPDATE audit_head SET seq = 600, hash = (SELECT hash FROM audit WHERE seq = 600)",
    )
    .await;
    assert!(store.audit_verify(None).await.unwrap().ok());
    let cut = store.audit_verify(Some(anchor)).await.unwrap();
    assert_eq!(cut.first_bad, Some(Bad { seq: 700, why: Why::CutOff }));
    assert_eq!(cut.entries, 600);
    store.close().await;

    // Whoever knows how can write the rest anew: by opening the store as we do.
    let store = home.open().await;
    let entries = (0..200).map(|_| sign_in("eve")).collect();
    store.audit(entries, clock::now()).await.unwrap();
    assert!(store.audit_verify(None).await.unwrap().ok());
    let anew = store.audit_verify(Some(anchor)).await.unwrap();
    assert_eq!(anew.first_bad, Some(Bad { seq: 700, why: Why::Anchor }));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_anchor_shows_the_rest_on_sqlite() {
    an_anchor_shows_the_rest(&Home::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_anchor_shows_the_rest_on_postgres() {
    an_anchor_shows_the_rest(&Home::postgres().await).await;
}

/// What is written while somebody verifies is no reason to raise an alarm.
async fn verifying_is_not_disturbed(home: &Home) {
    let store = filled(home).await;
    let writer = store.clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let writing = tokio::spawn(async move {
        let mut stopped = stopped;
        while stopped.try_recv().is_err() {
            writer.audit(vec![sign_in("ada"), sign_in("bob")], clock::now()).await.unwrap();
        }
    });
    for _ in 0..10 {
        let (anchor, _) = store.audit_head().await.unwrap();
        let verified = store.audit_verify(Some(anchor)).await.unwrap();
        assert!(verified.ok(), "{verified:?}");
    }
    stop.send(()).unwrap();
    writing.await.unwrap();
    assert!(whole_chain(&store).await.len() as i64 > ENTRIES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifying_is_not_disturbed_on_sqlite() {
    verifying_is_not_disturbed(&Home::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verifying_is_not_disturbed_on_postgres() {
    verifying_is_not_disturbed(&Home::postgres().await).await;
}
