//! The resident launcher comes and goes with its server, and what it made with it.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chancery_runtime::sandbox::{
    Input, Isolation, Launched, Launcher, Limits, Settings, Users, Walls,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

async fn launcher(workspace: &TempDir) -> Arc<Launcher> {
    let settings = Settings {
        launcher: Some(PathBuf::from(env!("CARGO_BIN_EXE_chancery"))),
        users: Some(Users::default()),
        programs: Vec::new(),
        limits: Limits::default(),
        workspace: workspace.path().to_owned(),
    };
    match Isolation::require(settings).await {
        Isolation::On(launcher) => launcher,
        other => panic!("{other:?}"),
    }
}

fn workspace() -> TempDir {
    tempfile::Builder::new().prefix("chancery-resident-").tempdir_in("/var/tmp").unwrap()
}

fn launch(launcher: &Launcher, workspace: &TempDir, argv: &[&str]) -> Launched {
    let argv: Vec<String> = argv.iter().map(|it| (*it).to_owned()).collect();
    let walls = Walls::around(workspace.path(), false);
    let none = BTreeMap::new();
    launcher.launch(&argv, &none, workspace.path(), &walls, Input::Nothing).unwrap()
}

/// Those whose command line has this in it.
fn processes(words: &str) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|it| {
        let number = it.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(it.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(words).then(|| Pid::from_raw(number)).flatten()
    });
    all.collect()
}

fn children_of_ours() -> Vec<Pid> {
    let ours = std::process::id().to_string();
    let is_ours = |it: &Pid| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", it.as_raw_nonzero()));
        status.is_ok_and(|it| it.lines().any(|it| it == format!("PPid:\t{ours}")))
    };
    processes("__confine resident").into_iter().filter(is_ours).collect()
}

async fn until(what: impl Fn() -> bool) {
    for _ in 0..500 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it does not come about");
}

#[tokio::test]
async fn a_launcher_that_was_killed_is_replaced() {
    let workspace = workspace();
    let launcher = launcher(&workspace).await;
    let residents = children_of_ours();
    assert_eq!(residents.len(), 1);
    kill_process(residents[0], Signal::KILL).unwrap();
    let mut launched = launch(&launcher, &workspace, &["/bin/true"]);
    assert!(launched.end.wait().await.unwrap().unwrap().success());
    until(|| children_of_ours().len() == 1).await;
    assert_ne!(children_of_ours(), residents);
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_find_it_gone_at_a_time_do_not_end_one_anothers_processes() {
    let workspace = Arc::new(workspace());
    let launcher = launcher(&workspace).await;
    for _ in 0..5 {
        for resident in children_of_ours() {
            kill_process(resident, Signal::KILL).unwrap();
        }
        let all = (0..8).map(|number| {
            let (launcher, workspace) = (launcher.clone(), workspace.clone());
            tokio::task::spawn_blocking(move || {
                let script = format!("sleep 0.1; exit {number}");
                launch(&launcher, &workspace, &["/bin/sh", "-c", &script])
            })
        });
        let all = futures_util::future::join_all(all).await.into_iter().map(|launched| async {
            let mut launched = launched.unwrap();
            launched.end.wait().await.unwrap().unwrap().code()
        });
        let codes = futures_util::future::join_all(all).await;
        assert_eq!(codes, (0..8).map(Some).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn what_is_behind_walls_ends_with_its_server() {
    let workspace = workspace();
    let launcher = launcher(&workspace).await;
    let words = ["/bin/sleep", &format!("{}", 100_000 + std::process::id())];
    let launched = launch(&launcher, &workspace, &words);
    let line = words.join(" ");
    until(|| !processes(&line).is_empty()).await;
    // As if we were gone: nobody is left who would end it.
    std::mem::forget(launched);
    drop(launcher);
    until(|| processes(&line).is_empty()).await;
}

#[tokio::test]
async fn many_are_made_at_a_time_and_each_has_its_own_end() {
    let workspace = workspace();
    let launcher = launcher(&workspace).await;
    let all = (0..40).map(|number| {
        let script = format!("exit {number}");
        let mut launched = launch(&launcher, &workspace, &["/bin/sh", "-c", &script]);
        async move { launched.end.wait().await.unwrap().unwrap().code() }
    });
    let codes = futures_util::future::join_all(all).await;
    assert_eq!(codes, (0..40).map(Some).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_process_that_dies_of_a_signal_is_told_so() {
    use std::os::unix::process::ExitStatusExt as _;
    let workspace = workspace();
    let launcher = launcher(&workspace).await;
    let mut launched = launch(&launcher, &workspace, &["/bin/sh", "-c", "kill -TERM $$"]);
    assert_eq!(launched.end.wait().await.unwrap().unwrap().signal(), Some(15));
}
