//! A full disk under SQLite: a clear refusal, nothing corrupt, and on it goes when there is room.
//!
//! The data directory is a small tmpfs in a mount namespace of its own, which needs no root.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::json;

use crate::house::House;
use crate::kills::{Doors, attend, settle_and_audit};
use crate::server::Start;
use crate::{model, until};

/// The disk, for as long as this process holds its namespace.
#[derive(Debug)]
struct SmallDisk {
    holder: Child,
    dir: PathBuf,
}

impl SmallDisk {
    #[expect(clippy::disallowed_methods, reason = "a namespace lives as long as a process in it")]
    async fn mounted_at(dir: &Path) -> SmallDisk {
        std::fs::create_dir(dir).unwrap();
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "/bin/sh", "-c"]);
        unshare
            .arg("mount -t tmpfs -o size=48m tmpfs \"$0\" && : > \"$0/mounted\" && exec sleep 600");
        let holder = unshare.arg(dir).stdin(Stdio::null()).spawn().unwrap();
        let disk = SmallDisk { holder, dir: dir.to_owned() };
        until("the disk is not mounted", Duration::from_secs(10), async || {
            disk.seen(&dir.join("mounted")).exists().then_some(())
        })
        .await;
        disk
    }

    /// A path of the namespace, seen from here.
    fn seen(&self, path: &Path) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.holder.id()));
        root.join(path.strip_prefix("/").unwrap())
    }

    fn start(&self, start: Start) -> Start {
        let target = self.holder.id().to_string();
        let words = ["nsenter", "--user", "--mount", "--preserve-credentials", "--target", &target];
        Start { launcher: words.map(str::to_owned).to_vec(), ..start }
    }

    /// Leaves no byte.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.seen(&self.dir.join("filler"))).unwrap();
        while filler.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.seen(&self.dir.join("filler"))).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[tokio::test]
async fn heavy_a_full_disk_is_said_and_survived() {
    let house = House::new();
    let model = model::start("fake").await;
    let disk = SmallDisk::mounted_at(&house.data("one")).await;
    let start = disk.start(house.start("one", &model));
    let mut server = start.serve().await;
    let api = server.api.clone();
    let plan = ["u"; 30].join(" ");
    let keys: Vec<String> = (0..8).map(|number| format!("run-{number}")).collect();
    let mut runs = join_all(keys.iter().map(|key| api.create(key, &plan))).await;
    runs.push(api.create("waits", "w e").await);
    api.reaches(&runs[8], "waiting", Duration::from_secs(20)).await;

    disk.fill();
    let large: Vec<String> = (0..1000).map(|it| format!("{it}-{}", "x".repeat(200))).collect();
    let mut number = 0;
    let problem = until("the disk is never full", Duration::from_secs(30), async || {
        number += 1;
        let body = json!({"agent": "pa", "input": "done", "session_key": null, "user": "u",
            "project": "p", "delegated_permissions": {"denied_tools": large}});
        match api.try_post("/api/runs", &format!("large-{number}"), &body).await? {
            (503, problem) => Some(problem),
            (201, _) => None,
            other => panic!("{other:?}"),
        }
    })
    .await;
    println!("after {number} requests: {problem}");
    assert_eq!(problem["code"], "unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("the disk is full"), "{problem}");
    until("the log does not say it", Duration::from_secs(10), async || {
        server.said().iter().any(|it| it.contains("the disk is full")).then_some(())
    })
    .await;
    // What is there can be read.
    assert_eq!(api.run(&runs[8]).await["status"], "waiting");

    disk.make_room();
    let attendant = attend(Doors::of(vec![api.clone()]));
    runs.push(api.create("after", "e").await);
    let figures = settle_and_audit(&house, &api, &runs).await;
    attendant.abort();
    println!("{figures:?}, {} lines in the log", server.said().len());
    assert_eq!(figures.unknown, 0, "no server died, so every outcome is known");
    server.signal(Signal::TERM);
    assert_eq!(server.end(Duration::from_secs(20)).await.code(), Some(0));
    assert_sound(&disk.seen(&house.data("one").join("chancery.db")));
    let server = start.serve().await;
    let run = server.api.create("at last", "e").await;
    server.api.reaches(&run, "completed", Duration::from_secs(20)).await;
}

fn assert_sound(file: &Path) {
    let database = rusqlite::Connection::open(file).unwrap();
    let said: String =
        database.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
    assert_eq!(said, "ok");
}
