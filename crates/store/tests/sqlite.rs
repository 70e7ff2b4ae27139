//! What only SQLite can go through: one process at a time, a full disk, a writer that is killed.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by failing")]

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use chancery_domain::audit::Entry;
use chancery_domain::history::History;
use chancery_domain::id::{AgentId, RunId};
use chancery_store::fault::clock::{Time, set};
use chancery_store::{Fence, Location, OpenError, Store};
use chancery_testkit::conformance::audit::{sign_in, whole_chain};
use chancery_testkit::conformance::clock;
use chancery_testkit::conformance::{
    Home, append, claim, created, fast_dir, history, make, spoke, started,
};

const CHILD: &str = "CHANCERY_TEST_CHILD_DIR";

async fn open(dir: &Path) -> Result<Store, OpenError> {
    Store::open(&Location::Sqlite(dir.to_owned()), clock::new_worker_id()).await
}

/// This test binary again, as a process of its own that runs one test in `dir`.
#[expect(clippy::disallowed_methods, reason = "a test that kills a process must start one")]
fn child(test: &str, dir: &Path, shell: &str) -> Child {
    Command::new("sh")
        .args(["-c", &format!("{shell} exec \"$0\" --exact {test} --nocapture")])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_second_server_on_the_directory_is_refused() {
    let dir = fast_dir();
    let store = open(dir.path()).await.unwrap();
    let said = open(dir.path()).await.unwrap_err().to_string();
    let sentence = format!(
        "another server uses the data directory `{}`: stop it, choose another directory with `--data`, or share a PostgreSQL with `--database`",
        dir.path().display()
    );
    assert_eq!(said, sentence);
    store.close().await;
    open(dir.path()).await.unwrap();
}

#[tokio::test]
async fn the_record_is_its_owners_though_the_folder_is_not() {
    let dir = fast_dir();
    let mode = |name: &str| dir.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let files = ["chancery.db", "chancery.db-wal", "chancery.db-shm", "chancery.lock"];
    for _ in 0..2 {
        let store = open(dir.path()).await.unwrap();
        assert_eq!(files.map(mode), [0o600; 4]);
        store.close().await;
        // As an earlier version left it.
        let open_to_all = Permissions::from_mode(0o644);
        std::fs::set_permissions(dir.path().join(files[0]), open_to_all).unwrap();
    }
}

/// Seen on PostgreSQL with forty takers: the sixth had read the clock before the fifth.
#[tokio::test]
async fn a_share_is_not_given_again_to_whoever_read_the_clock_a_moment_before() {
    const THEN: i64 = 1_800_000_000_000_000;
    let at = |database| set(Some(Time { process: database, database }));
    let dir = fast_dir();
    let store = open(dir.path()).await.unwrap();
    let agent = AgentId::from("clerk");
    at(THEN);
    for _ in 0..5 {
        assert!(store.take_share(&agent, "pay", 5).await.unwrap());
    }
    at(THEN - 1);
    assert_eq!(store.shares_left(&agent, "pay", 5).await.unwrap(), 0);
    assert!(!store.take_share(&agent, "pay", 5).await.unwrap());
    // A clock that was set back by an hour is believed.
    at(THEN - 3_600_000_000);
    assert_eq!(store.shares_left(&agent, "pay", 5).await.unwrap(), 5);
    assert!(store.take_share(&agent, "pay", 5).await.unwrap());
    assert_eq!(store.shares_left(&agent, "pay", 5).await.unwrap(), 4);
    set(None);
    store.close().await;
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let dir = fast_dir();
    let store = open(dir.path()).await.unwrap();
    let run = make(&store, created("x")).await;
    let change = history(&store, run).await.record(started()).unwrap().change().unwrap();
    store.close().await;
    let refused = store.append(&change, Fence::Outside, clock::now()).await.unwrap_err();
    assert_eq!(refused.to_string(), "the store is closed");
    assert_eq!(store.run(run).await.unwrap_err().to_string(), "the store is closed");
    let again = open(dir.path()).await.unwrap();
    assert_eq!(again.run(run).await.unwrap().unwrap().status, "pending");
}

/// A file that is no database, or a newer one's, is left as it is.
#[tokio::test]
async fn what_is_no_store_of_ours_is_not_touched() {
    let dir = fast_dir();
    let path = dir.path().join("chancery.db");
    std::fs::write(&path, "this is a letter to my aunt, long enough to have a header").unwrap();
    let said = open(dir.path()).await.unwrap_err().to_string();
    assert_eq!(said, "the store failed: file is not a database");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("this is a letter"));
}

async fn says_that_it_is_full(store: &Store, run: RunId) {
    let mut error = None;
    for n in 0..2000 {
        if let Err(it) = append(store, run, [spoke("x".repeat(5000 + n))], Fence::Outside).await {
            error = Some(it.to_string());
            break;
        }
    }
    assert_eq!(error.unwrap(), "the store failed: the disk is full");
}

/// SQLite's own limit stands in for the disk's: the same error, at the same places.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_said_and_survived() {
    let Home::Sqlite(dir) = Home::sqlite().await else { panic!("that is SQLite") };
    let store = open(dir.path()).await.unwrap();
    let run = make(&store, created("x")).await;
    append(&store, run, [started()], Fence::Outside).await.unwrap();
    store.leave_room(Some(40)).await.unwrap();
    says_that_it_is_full(&store, run).await;
    let kept = store.events(run, 0, u32::MAX).await.unwrap();
    History::fold(run, &kept).unwrap();
    assert!(kept.len() > 3, "some of it was written");

    // With room again, what failed works, and so does a new start.
    store.leave_room(None).await.unwrap();
    append(&store, run, [spoke("y".repeat(100_000))], Fence::Outside).await.unwrap();
    store.close().await;
    let store = open(dir.path()).await.unwrap();
    assert_eq!(store.events(run, 0, u32::MAX).await.unwrap().len(), kept.len() + 1);
    assert_eq!(claim(&store, 10).await.len(), 1);
}

/// A group that fails takes all of its entries with it, those that were already chained too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chain_survives_a_full_disk() {
    let dir = fast_dir();
    let store = open(dir.path()).await.unwrap();
    let mut made = 0;
    for _ in 0..20 {
        store.leave_room(Some(30)).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..12 {
            let store = store.clone();
            let detail = serde_json::json!("x".repeat(n * 2000));
            let entry = Entry { detail, ..sign_in("ada") };
            tasks.spawn(async move { store.audit(vec![entry], clock::now()).await });
        }
        made += tasks.join_all().await.into_iter().filter(Result::is_ok).count();
        // With the disk still full, and the writer in the middle of things.
        let verified = store.audit_verify(None).await.unwrap();
        assert!(verified.ok(), "{verified:?}");
        assert_eq!(verified.entries as usize, made);
    }
    assert!(made < 20 * 12, "the disk was never full");
    store.leave_room(None).await.unwrap();
    store.audit(vec![sign_in("ada")], clock::now()).await.unwrap();
    assert_eq!(whole_chain(&store).await.len(), made + 1);
}

/// Files that may not grow: writes really fail, in the middle of the log of writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_cannot_grow_is_survived() {
    let dir = fast_dir();
    // Ignoring the signal makes the write fail instead; 1.4 MB is room for a start and some.
    let mut child = child("limited", dir.path(), "trap '' XFSZ; ulimit -f 1400;");
    let lines: Vec<String> =
        BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok).collect();
    assert!(child.wait().unwrap().success(), "{lines:#?}");
    let run: RunId =
        lines.iter().find_map(|it| it.split_once("run is ")).unwrap().1.parse().unwrap();
    let count: usize =
        lines.iter().find_map(|it| it.split_once("made ")).unwrap().1.parse().unwrap();
    let store = open(dir.path()).await.unwrap();
    let events = store.events(run, 0, u32::MAX).await.unwrap();
    History::fold(run, &events).unwrap();
    // All that was answered for, and nothing of what failed.
    assert_eq!(events.len(), 1 + count);
    append(&store, run, [spoke("on we go")], Fence::Outside).await.unwrap();
}

/// The process of `a_file_that_cannot_grow_is_survived`; by itself, nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limited() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let store = open(Path::new(&dir)).await.unwrap();
    let run = make(&store, created("x")).await;
    let (mut made, mut failed) = (0, 0);
    for n in 0..400 {
        match append(&store, run, [spoke("z".repeat(3000 + n))], Fence::Outside).await {
            Ok(()) => made += 1,
            Err(error) => {
                assert!(error.to_string().starts_with("the store failed: "), "{error}");
                failed += 1;
            }
        }
    }
    assert!(made > 10 && failed > 10, "{made} made, {failed} failed");
    println!("\nrun is {run}\nmade {made}");
}

/// Killed without warning, time and again: what it said was durable is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_a_writer_that_is_killed_leaves_a_readable_store() {
    let dir = fast_dir();
    let mut said: BTreeMap<RunId, u64> = BTreeMap::new();
    let mut signed_in = 0;
    for life in 0..6 {
        let mut child = child("endless", dir.path(), "");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..200 + 30 * life {
            let line = lines.next().unwrap().unwrap();
            signed_in += usize::from(line == "signed in");
            let Some((run, seq)) = line.split_once(" is at ") else { continue };
            said.insert(run.parse().unwrap(), seq.parse().unwrap());
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let store = open(dir.path()).await.unwrap();
        for (run, seq) in &said {
            let events = store.events(*run, 0, u32::MAX).await.unwrap();
            let history = History::fold(*run, &events).unwrap();
            assert!(history.seq() >= *seq, "{run} was at {seq}, and is at {}", history.seq());
            assert_eq!(store.run(*run).await.unwrap().unwrap().seq, history.seq());
        }
        let entries = whole_chain(&store).await.len();
        assert!(entries >= signed_in, "{signed_in} signed in, and {entries} are in the audit");
        store.close().await;
    }
    assert!(signed_in > 100);
}

/// The process of the test above; by itself, nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    let store = open(Path::new(&dir)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            let run = make(&store, created("x")).await;
            let mut history = history(&store, run).await;
            loop {
                history = history.record(spoke("more")).unwrap();
                let change = history.change().unwrap();
                store.append(&change, Fence::Outside, clock::now()).await.unwrap();
                println!("{run} is at {}", history.seq());
                store.audit(vec![sign_in("ada")], clock::now()).await.unwrap();
                println!("signed in");
            }
        });
    }
    tasks.join_all().await;
}
