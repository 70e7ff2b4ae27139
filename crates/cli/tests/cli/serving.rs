//! `serve`, and tokens through it.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use crate::harness::{Place, went};

#[test]
fn a_server_is_found_by_its_directory_and_leaves_it_tidy() {
    let place = Place::configured("");
    let server = place.serve(&["--workers", "2"]);
    for file in ["token", "server"] {
        let mode = place.path("chancery-data").join(file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert_eq!(place.chancery(&["run", "ls", "--json"]).json()["items"], serde_json::json!([]));
    let doctor = place.chancery(&["doctor"]);
    assert!(doctor.out.contains("in use by a server, version"), "{doctor:?}");
    let second = place.chancery(&["serve"]);
    let said = second.failed(1);
    assert!(said.starts_with("another server uses the data directory `chancery-data`"), "{said}");
    // The second one took nothing from the first.
    assert_eq!(place.chancery(&["run", "ls"]).code, 0);
    assert_eq!(server.stop(), 0);
    assert!(!place.path("chancery-data/token").exists());
    assert!(!place.path("chancery-data/server").exists());
    place.chancery(&["run", "ls"]).failed(1);
}

#[test]
fn the_doctor_knows_our_own_server_wherever_it_listens() {
    for ip in ["127.0.0.1", "0.0.0.0", "[::]"] {
        // Nobody else has it a moment later.
        let free = std::net::TcpListener::bind(format!("{ip}:0")).unwrap();
        let address = format!("{ip}:{}", free.local_addr().unwrap().port());
        drop(free);
        let place = Place::configured("");
        let _server = place.serve(&["--listen", &address]);
        let mut command = place.command(&["doctor"]);
        command.env("CHANCERY_LISTEN", &address);
        let doctor = went(command);
        assert!(doctor.out.contains(&format!("{address}: our server answers")), "{doctor:?}");
        assert_eq!(doctor.code, 0, "{doctor:?}");
    }
}

#[test]
fn a_log_that_goes_to_a_file_has_no_colours() {
    let place = Place::configured("");
    std::fs::create_dir(place.path("org")).unwrap();
    // Warned of at the start: it hides a tool that is built in.
    let tools = "extends: builtin\ncommands:\n  read_logs:\n    description: Reads\n    command: [/bin/true]\n    risk: low\n";
    place.write("org/tools.yaml", tools);
    let log = std::fs::File::create(place.path("log")).unwrap();
    let mut command = place.command(&["serve", "--org", "org"]);
    let mut child = command.stdout(std::process::Stdio::null()).stderr(log).spawn().unwrap();
    let began = Instant::now();
    while !place.path("chancery-data/server").exists() {
        assert!(began.elapsed() < Duration::from_secs(30), "the server does not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let log = std::fs::read_to_string(place.path("log")).unwrap();
    assert!(log.contains("W111") && !log.contains('\u{1b}'), "{log}");
}

#[test]
fn a_taken_port_is_one_line() {
    let place = Place::configured("");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = place.chancery(&["serve", "--listen", &address]);
    assert!(refused.failed(1).starts_with(&format!("cannot listen on {address}: ")), "{refused:?}");
    assert!(!place.path("chancery-data/token").exists());
}

#[test]
fn tokens_are_made_listed_used_and_revoked() {
    let place = Place::configured("");
    let server = place.serve(&[]);
    let made = place.chancery(&["token", "new", "--kind", "human", "--user", "lin", "--json"]);
    let (secret, id) = (made.json()["token"].clone(), made.json()["id"].clone());
    let (secret, id) = (secret.as_str().unwrap(), id.as_str().unwrap());
    let listed = place.chancery(&["token", "ls"]);
    let line = listed.done().lines().find(|it| it.contains(id)).unwrap();
    assert!(line.contains("human") && line.contains("lin") && line.ends_with("valid"), "{line}");
    assert!(!listed.out.contains(secret));
    let started = place.chancery(&["run", "start", "hello", "--token", secret, "--json"]);
    assert_eq!(started.json()["user"], "lin");
    // Not theirs to see, and not theirs to do.
    let other = place.chancery(&["run", "start", "hello", "--json"]).json();
    let other = other["id"].as_str().unwrap();
    place.chancery(&["run", "show", other, "--token", secret]).failed(1);
    assert_eq!(
        place.chancery(&["token", "ls", "--token", secret]).failed(4),
        "this is for operators"
    );
    let mut command = place.command(&["run", "ls"]);
    command.env("CHANCERY_TOKEN", "wrong");
    went(command).failed(4);
    assert_eq!(place.chancery(&["token", "revoke", id]).done(), format!("{id} is revoked\n"));
    place.chancery(&["run", "ls", "--token", secret]).failed(4);
    assert!(place.chancery(&["token", "revoke", "tok_1"]).failed(1).contains("tok_1"));
    let listed = place.chancery(&["token", "ls", "--json"]).json();
    assert!(listed["items"].as_array().unwrap().len() >= 2, "{listed}");
    let stranger = place.chancery(&["token", "new", "--kind", "agent", "--agent", "stranger"]);
    assert_eq!(stranger.failed(1), "there is no agent `stranger`");
    assert_eq!(server.stop(), 0);
}

#[test]
fn a_second_signal_ends_a_server_at_once() {
    let place = Place::configured("[limits]\ngrace_seconds = 600\n");
    place.write("scenario.yaml", "agents:\n  pa:\n    - {say: late, delay_ms: 60000}\n");
    let server = place.serve(&[]);
    let run = place.chancery(&["run", "start", "x", "--json"]).json();
    let began = Instant::now();
    while place.chancery(&["run", "show", run["id"].as_str().unwrap(), "--json"]).json()["status"]
        != "running"
    {
        assert!(began.elapsed() < Duration::from_secs(20));
    }
    server.signal("-TERM");
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    assert_eq!(server.stop(), 130);
    assert!(began.elapsed() < Duration::from_secs(5));
}
