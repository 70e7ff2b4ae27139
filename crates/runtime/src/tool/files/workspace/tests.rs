//! Ways out of a workspace, and that none of them is one.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const LIMIT: usize = 1024;
const SECRET: &str = "what lies outside";

/// A root with a neighbour whose name begins like its own, and links that lead everywhere.
fn house() -> (TempDir, Workspace) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("ws");
    let outside = dir.path().join("ws-evil");
    fs::create_dir_all(root.join("sub/deep")).unwrap();
    fs::create_dir_all(outside.join("sub")).unwrap();
    fs::write(root.join("plain.txt"), "inside").unwrap();
    fs::write(root.join("sub/file"), "inside").unwrap();
    fs::write(root.join(".env"), SECRET).unwrap();
    for name in ["plain.txt", "file", "sub/file", "secret.txt"] {
        fs::write(outside.join(name), SECRET).unwrap();
    }
    fs::write(dir.path().join("secret.txt"), SECRET).unwrap();
    symlink(&outside, root.join("out")).unwrap();
    symlink("../ws-evil", root.join("out_relative")).unwrap();
    symlink("../../ws-evil/secret.txt", root.join("sub/out_file")).unwrap();
    symlink("/", root.join("slash")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    symlink("/proc/self/cwd", root.join("cwd")).unwrap();
    symlink("sub", root.join("inner")).unwrap();
    symlink(".env", root.join("notes.txt")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    (dir, workspace)
}

fn read(workspace: &Workspace, path: &str) -> String {
    match workspace.read(path, LIMIT) {
        Ok(text) => text,
        Err(error) => error.code().to_owned(),
    }
}

fn write(workspace: &Workspace, path: &str) -> &'static str {
    match workspace.write(path, b"new", LIMIT) {
        Ok(()) => "OK",
        Err(error) => error.code(),
    }
}

#[test]
fn reading_stays_beneath_the_root() {
    let (_dir, workspace) = house();
    for (path, expected) in [
        ("plain.txt", "inside"),
        ("./sub/../plain.txt", "inside"),
        ("inner/file", "inside"),
        ("", "INVALID_PATH"),
        ("plain\0.txt", "INVALID_PATH"),
        ("/etc/passwd", "OUTSIDE_WORKSPACE"),
        ("../secret.txt", "OUTSIDE_WORKSPACE"),
        ("../ws-evil/secret.txt", "OUTSIDE_WORKSPACE"),
        ("../ws/plain.txt", "OUTSIDE_WORKSPACE"),
        ("out/secret.txt", "OUTSIDE_WORKSPACE"),
        ("out_relative/secret.txt", "OUTSIDE_WORKSPACE"),
        ("sub/out_file", "OUTSIDE_WORKSPACE"),
        ("slash/etc/passwd", "OUTSIDE_WORKSPACE"),
        ("magic/etc/passwd", "OUTSIDE_WORKSPACE"),
        ("sub", "NOT_A_FILE"),
        (".", "NOT_A_FILE"),
        ("nothing", "NOT_FOUND"),
        ("dangling", "NOT_FOUND"),
        (".env", "PROTECTED_FILE"),
        ("sub/../.env", "PROTECTED_FILE"),
        // Not by its own name, but by that of what it points to.
        ("notes.txt", "PROTECTED_FILE"),
    ] {
        assert_eq!(read(&workspace, path), expected, "{path:?}");
    }
}

#[test]
fn special_files_are_not_waited_for() {
    let (dir, workspace) = house();
    let fifo = dir.path().join("ws/fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, Mode::from_raw_mode(0o600)).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("ws/socket")).unwrap();
    for path in ["fifo", "socket"] {
        assert_eq!(read(&workspace, path), "NOT_A_FILE", "{path}");
        assert_eq!(write(&workspace, path), "NOT_A_FILE", "{path}");
    }
}

#[test]
fn what_cannot_be_shown_is_said() {
    let (dir, workspace) = house();
    fs::write(dir.path().join("ws/big"), vec![b'x'; 3000]).unwrap();
    fs::write(dir.path().join("ws/bytes"), b"ok\xff").unwrap();
    fs::hard_link(dir.path().join("secret.txt"), dir.path().join("ws/linked")).unwrap();
    for (path, expected) in [
        ("big", "`big` has 3000 bytes, more than the 1024 that are taken at once"),
        ("bytes", "`bytes` is not UTF-8 text: the byte at 2 is not"),
        ("linked", "`linked` has another name, perhaps outside the workspace (it is a hard link)"),
    ] {
        assert_eq!(workspace.read(path, LIMIT).unwrap_err().to_string(), expected);
    }
    assert_eq!(workspace.write("x", &[b'x'; 1025], LIMIT).unwrap_err().code(), "TOO_LARGE");
}

#[test]
fn writing_stays_beneath_the_root() {
    let (dir, workspace) = house();
    for (path, expected) in [
        ("new.txt", "OK"),
        ("plain.txt", "OK"),
        ("a/b/c/new.txt", "OK"),
        ("inner/new.txt", "OK"),
        ("out/new.txt", "OUTSIDE_WORKSPACE"),
        ("../new.txt", "OUTSIDE_WORKSPACE"),
        ("missing/../../new.txt", "OUTSIDE_WORKSPACE"),
        ("/tmp/new.txt", "OUTSIDE_WORKSPACE"),
        ("sub/out_file", "NOT_A_FILE"),
        ("dangling/new.txt", "NOT_FOUND"),
        ("sub", "NOT_A_FILE"),
        ("new/", "INVALID_PATH"),
        ("sub/..", "INVALID_PATH"),
        (".git/hooks/pre-commit", "PROTECTED_FILE"),
        ("deploy.key", "PROTECTED_FILE"),
    ] {
        assert_eq!(write(&workspace, path), expected, "{path:?}");
    }
    assert_eq!(fs::read_to_string(dir.path().join("ws/sub/new.txt")).unwrap(), "new");
    assert_eq!(fs::read_to_string(dir.path().join("ws-evil/secret.txt")).unwrap(), SECRET);
    let left: Vec<_> = fs::read_dir(dir.path().join("ws"))
        .unwrap()
        .filter(|it| it.as_ref().unwrap().file_name().to_string_lossy().ends_with(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn writing_replaces_the_name_and_not_the_file() {
    let (dir, workspace) = house();
    let other = dir.path().join("other-name");
    let inside = dir.path().join("ws/run.sh");
    fs::write(&other, "old").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(&other, &inside).unwrap();
    assert_eq!(write(&workspace, "run.sh"), "OK");
    assert_eq!(fs::read_to_string(&other).unwrap(), "old");
    assert_eq!(fs::read_to_string(&inside).unwrap(), "new");
    assert_eq!(fs::metadata(&inside).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn a_root_that_is_swapped_for_a_link_changes_nothing() {
    let (dir, workspace) = house();
    fs::rename(dir.path().join("ws"), dir.path().join("moved")).unwrap();
    symlink(dir.path().join("ws-evil"), dir.path().join("ws")).unwrap();
    assert_eq!(read(&workspace, "plain.txt"), "inside");
}

#[test]
fn a_directory_that_turns_into_a_link_while_it_is_walked_leads_nowhere() {
    let (dir, workspace) = house();
    let (real, link) = (dir.path().join("ws/sub"), dir.path().join("ws/out"));
    let stop = AtomicBool::new(false);
    let outside = dir.path().join("ws-evil");
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let (cwd, exchange) = (rustix::fs::CWD, rustix::fs::RenameFlags::EXCHANGE);
                rustix::fs::renameat_with(cwd, &real, cwd, &link, exchange).unwrap();
            }
        });
        let begun = Instant::now();
        let mut seen = BTreeSet::new();
        while begun.elapsed() < Duration::from_millis(700) {
            seen.insert(read(&workspace, "sub/file"));
            write(&workspace, "sub/planted/deep.txt");
        }
        stop.store(true, Ordering::Relaxed);
        assert!(!seen.contains(SECRET), "{seen:?}");
        assert!(seen.contains("inside"), "{seen:?}");
    });
    assert!(!outside.join("planted").exists());
}

/// Parts that a path could be put together from by someone who wants out.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just(String::new()),
        prop::sample::select(vec![
            "sub",
            "deep",
            "inner",
            "out",
            "out_relative",
            "out_file",
            "slash",
            "magic",
            "cwd",
            "ws",
            "ws-evil",
            "proc",
            "self",
            "root",
            "fd",
            "etc",
            "passwd",
            "plain.txt",
            "file",
            "secret.txt",
            "notes.txt",
            ".env",
            "dangling",
            "new",
        ])
        .prop_map(str::to_owned),
        "[a-z.~%\\\\]{1,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_path_leaves_the_root(parts in prop::collection::vec(part(), 1..8), absolute: bool) {
        let (dir, workspace) = house();
        let mut path = parts.join("/");
        if absolute {
            path = format!("{}/{path}", dir.path().display());
        }
        if let Ok(text) = workspace.read(&path, LIMIT) {
            prop_assert_eq!(text, "inside", "{}", path);
        }
        let before = listing(&dir);
        let _ = workspace.write(&path, b"planted", LIMIT);
        prop_assert_eq!(before, listing(&dir), "{}", path);
    }
}

/// Everything outside the root, with its content.
fn listing(dir: &TempDir) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![dir.path().to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap() {
                it if it.is_dir() && entry.path() == dir.path().join("ws") => {}
                it if it.is_dir() => {
                    found.push((entry.path(), String::new()));
                    open.push(entry.path());
                }
                _ => found.push((entry.path(), fs::read_to_string(entry.path()).unwrap())),
            }
        }
    }
    found.sort();
    found
}
