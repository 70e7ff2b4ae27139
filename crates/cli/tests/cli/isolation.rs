//! Commands of a real server, behind walls and where there are none to be had.

use std::path::Path;

use crate::harness::{Place, program, went};

const ROLES: &str = "
extends: builtin
roles:
  clerk:
    display_name: Clerk
    level: 3
    reports_to: [ceo]
    prompt: You are a clerk.
    tools: [look, keep, who]
    file_scope: {read: [docs/], write: [desk/, agents/clerk/]}
agents:
  clerk: {role: clerk}
";

const TOOLS: &str = r#"
commands:
  look:
    description: Looks at a file
    command: [/bin/cat, "--", "{path}"]
    parameters: {type: object, properties: {path: {type: string}}, required: [path]}
    risk: low
  keep:
    description: Keeps a copy
    command: [/bin/cp, "--", "docs/a", "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to]}
    risk: low
  who:
    description: Says what it is
    command: [/bin/sh, -c, "id -u; echo $HOME; ls ~ | grep -c x$; ulimit -c; touch ~/x agents/clerk/x"]
    risk: low
"#;

/// What a clerk hears of a command.
fn heard(place: &Place, tool: &str, arguments: &str) -> String {
    let scenario = format!(
        "agents: {{clerk: [{{when: {{user_matches: go}}, call: {{tool: {tool}, args: {arguments}}}}}]}}\n\
         fallback: \"heard: {{{{result}}}}\"\n"
    );
    place.write("scenario.yaml", &scenario);
    let server = place.serve(&["--org", "org"]);
    let went = place.chancery(&["run", "start", "go", "--agent", "clerk", "--wait", "--json"]);
    server.stop();
    let _ = std::fs::remove_file(place.path("chancery-data/server"));
    assert_eq!(went.code, 0, "{went:?}");
    went.json()["output"].as_str().unwrap().to_owned()
}

fn office(settings: &str) -> Place {
    let place = Place::configured(settings);
    std::fs::create_dir(place.path("org")).unwrap();
    place.write("org/roles.yaml", ROLES);
    place.write("org/tools.yaml", TOOLS);
    for name in ["docs", "desk", "private"] {
        std::fs::create_dir_all(place.path("chancery-data/workspace").join(name)).unwrap();
    }
    place.write("chancery-data/workspace/docs/a", "the text\n");
    place.write("chancery-data/workspace/private/b", "s3cret\n");
    place.write("outside", "s3cret\n");
    place
}

#[test]
fn a_command_reaches_its_roles_scope_and_nothing_else() {
    let place = office("");
    let outside = place.path("outside").display().to_string();
    assert!(heard(&place, "look", "{path: docs/a}").contains("the text"));
    for path in ["private/b", "../../outside", &outside, "/etc/shadow", "/proc/1/environ"] {
        let heard = heard(&place, "look", &format!("{{path: {path}}}"));
        assert!(heard.contains("exit code 1") && !heard.contains("s3cret"), "{path}: {heard}");
    }
    assert!(heard(&place, "keep", "{to: desk/a}").contains("exit code 0"));
    let kept = std::fs::read_to_string(place.path("chancery-data/workspace/desk/a")).unwrap();
    assert_eq!(kept, "the text\n");
    for to in ["docs/b", "private/c", "d"] {
        let heard = heard(&place, "keep", &format!("{{to: {to}}}"));
        assert!(heard.contains("exit code 1"), "{to}: {heard}");
        assert!(!place.path("chancery-data/workspace").join(to).exists(), "{to}");
    }
}

#[test]
fn a_command_has_a_user_and_a_home_of_its_own() {
    use std::os::unix::fs::MetadataExt as _;
    let place = office("");
    heard(&place, "who", "{}");
    let heard = heard(&place, "who", "{}");
    assert!(heard.contains("exit code 0"), "{heard}");
    let lines: Vec<&str> = heard.lines().collect();
    let own = place.path("chancery-data/workspace/agents/clerk").metadata().unwrap();
    let ours = place.dir.path().metadata().unwrap().uid();
    if ours == 0 {
        // As root there is nothing that a machine for tests could lack.
        assert_eq!(own.mode() & 0o777, 0o700);
        assert!(own.uid() >= 1_900_000_000, "{}", own.uid());
    }
    // The user, the home with nothing of the last time in it, no cores.
    let at = lines.iter().position(|it| *it == "--- output").unwrap();
    assert_eq!(lines[at + 1], own.uid().to_string());
    assert_ne!(lines[at + 2], place.dir.path().display().to_string());
    assert_eq!(lines[at + 3..], ["0", "0"]);
}

#[test]
fn the_first_processes_of_a_container_have_the_same_walls() {
    let place = office("");
    let chancery = env!("CARGO_BIN_EXE_chancery");
    let walls = |isolated: &[&str], script: &str| {
        let mut command = program(Path::new("unshare"));
        command.current_dir(place.dir.path());
        if !rustix::process::geteuid().is_root() {
            command.arg("--map-root-user");
        }
        command.args(isolated).args(["/bin/sh", "-c", script, chancery]);
        let doctor = went(command);
        let line = doctor.out.lines().find(|it| it.contains("isolation"));
        line.unwrap_or_else(|| panic!("{doctor:?}")).to_owned()
    };
    let own_numbers = ["--pid", "--fork", "--mount-proc"];
    let outside = walls(&["--mount"], "exec $0 doctor");
    assert!(outside.starts_with("ok"), "{outside}");
    assert_eq!(walls(&own_numbers, "exec $0 doctor"), outside, "as process 1");
    assert_eq!(walls(&own_numbers, "$0 doctor; true"), outside, "as process 2");
}

#[test]
fn without_walls_to_be_had_commands_are_refused() {
    let place = office("isolation.launcher = \"/bin/true\"");
    let heard = heard(&place, "look", "{path: docs/a}");
    assert!(heard.contains("command `look` was not started"), "{heard}");
    let doctor = place.chancery(&["doctor"]);
    assert!(doctor.out.contains("FAIL  isolation") && doctor.code == 1, "{doctor:?}");
    assert!(doctor.out.contains("LACKING: commands are refused"), "{doctor:?}");
}

#[test]
fn only_the_operators_own_word_takes_the_walls_away() {
    let place = office("isolation.mode = \"off\"");
    let outside = place.path("outside").display().to_string();
    assert!(heard(&place, "look", &format!("{{path: {outside}}}")).contains("s3cret"));
    let doctor = place.chancery(&["doctor"]);
    assert!(doctor.out.contains("OFF   isolation"), "{doctor:?}");
    let walled = office("").chancery(&["doctor"]);
    assert!(walled.out.contains("ok    isolation     Landlock, seccomp"), "{walled:?}");
}
