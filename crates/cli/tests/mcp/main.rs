//! Agents outside, with the clients that people use: the official SDK and the Inspector, over HTTP
//! and over standard input and output, against the real binary. Effects are counted at the far
//! side.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test panics")]

#[expect(dead_code, reason = "shared with the tests of the command line")]
#[path = "../cli/harness.rs"]
mod harness;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use chancery_testkit::mcp_servers;
use serde_json::{Value, json};

use harness::{Place, Serving, program};

const CLIENT: &str = include_str!("client.py");

const ROLES: &str = r#"
extends: builtin
roles:
  payer: {prompt: You pay., tools: ["pa*", note, "mcp__files__*"], deny_tools: [mcp__files__write_file]}
agents:
  payer: {role: payer}
"#;

const TOOLS: &str = r#"
extends: builtin
commands:
  note:
    description: Notes something
    command: [/bin/sh, -c, 'echo "note $1" >> LEDGER; echo "noted $1"', sh, "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to]}
    risk: low
  pay:
    description: Pays somebody
    command: [/bin/sh, -c, 'echo "pay $1" >> LEDGER; echo "paid $1"', sh, "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to]}
    risk: high
  park:
    description: Stays until it is let go
    command: [/bin/sh, -c, 'echo "park $1" >> LEDGER; while [ ! -e GO ]; do sleep 0.1; done', sh, "{to}"]
    parameters: {type: object, properties: {to: {type: string}}, required: [to]}
    risk: low
mcp:
  files: {command: FILES}
tools:
  mcp__files__list_directory: {risk: low}
"#;

/// A server with an agent that may pay, and a token of that agent's.
struct Bank {
    place: Place,
    serving: Serving,
    token: String,
}

/// The two ways there, and the two ways to begin.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Http,
    Stdio,
}
const WAYS: [(By, &str); 4] =
    [(By::Http, "auto"), (By::Http, "legacy"), (By::Stdio, "auto"), (By::Stdio, "legacy")];

impl Bank {
    fn open(more: &str) -> Bank {
        let place = Place::configured(&format!(
            "org = \"org\"\n[isolation]\nmode = \"off\"\n[limits]\nlease_seconds = 1\n{more}"
        ));
        std::fs::create_dir(place.path("org")).unwrap();
        std::fs::create_dir(place.path("shelf")).unwrap();
        std::fs::write(place.path("shelf/book.txt"), "a book").unwrap();
        place.write("client.py", CLIENT);
        place.write("org/roles.yaml", ROLES);
        let files = json!(mcp_servers::filesystem(&place.path("shelf")).unwrap()).to_string();
        let tools = TOOLS.replace("LEDGER", &place.path("ledger").display().to_string());
        let tools = tools.replace("GO", &place.path("go").display().to_string());
        place.write("org/tools.yaml", &tools.replace("FILES", &files));
        let serving = place.serve(&[]);
        let made = place.chancery(&["token", "new", "--kind", "agent", "--agent", "payer"]);
        let token = made.done().trim().to_owned();
        Bank { place, serving, token }
    }

    fn url(&self) -> String {
        std::fs::read_to_string(self.place.path("chancery-data/server")).unwrap()
    }

    /// Killed, and started again where it was.
    fn killed(mut self) -> Bank {
        let url = self.url();
        self.serving.signal("-KILL");
        std::fs::remove_file(self.place.path("chancery-data/server")).unwrap();
        drop(self.serving);
        let listen = url.trim_start_matches("http://");
        self.serving = self.place.serve(&["--listen", listen]);
        self
    }

    /// An agent outside that does these things one after the other.
    fn agent(&self, (by, mode): (By, &str), todo: Value) -> Agent {
        let how = match by {
            By::Http => json!({"url": self.url(), "token": self.token}),
            By::Stdio => json!({
                "command": env!("CARGO_BIN_EXE_chancery"), "env_url": self.url(), "token": self.token,
            }),
        };
        let mut command = program(&mcp_servers::python_with_sdk().unwrap());
        command.arg(self.place.path("client.py")).args([&how.to_string(), mode, &todo.to_string()]);
        command.env("NO_PROXY", "127.0.0.1").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Agent { child, said }
    }

    /// The one question that is open, once it is.
    fn question(&self) -> String {
        let began = Instant::now();
        loop {
            let page = self.place.chancery(&["approval", "ls", "--json"]).json();
            if let Some(id) = page["items"][0]["id"].as_str() {
                return id.to_owned();
            }
            assert!(began.elapsed() < Duration::from_secs(60), "nobody is asked");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn decide(&self, word: &str, id: &str) {
        let because = if word == "deny" { "-r" } else { "-c" };
        let went = self.place.chancery(&["approval", word, id, because, "said so"]);
        assert_eq!(went.code, 0, "{went:?}");
    }

    fn ledger(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.place.path("ledger")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn inspect(&self, arguments: &[&str]) -> Value {
        let argv = mcp_servers::inspector().unwrap();
        let mut command = program(Path::new(&argv[0]));
        command.args(&argv[1..]).arg(format!("{}/mcp", self.url()));
        command.args(["--transport", "http", "--header"]);
        command.arg(format!("Authorization: Bearer {}", self.token)).args(arguments);
        command.env("NO_PROXY", "127.0.0.1").stdin(Stdio::null());
        command.env("HOME", self.place.dir.path());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(&said)
            .unwrap_or_else(|it| panic!("{it}: {said}{}", String::from_utf8_lossy(&output.stderr)))
    }
}

struct Agent {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Agent {
    /// The next thing that it says.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|it| panic!("{it}: {line:?}"))
    }

    /// Its next result, whatever it was told before.
    fn result(&mut self) -> Value {
        loop {
            let said = self.next();
            if said.get("progress").is_none() {
                return said["result"].clone();
            }
        }
    }

    #[track_caller]
    fn ends(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[test]
fn heavy_the_sdk_sees_the_tools_of_the_role_and_meets_the_gate_every_way() {
    let bank = Bank::open("");
    let listed = bank.place.chancery(&["mcp", "ls", "--json"]).json();
    assert_eq!(
        (&listed["items"][0]["name"], &listed["items"][0]["state"]),
        (&json!("files"), &json!("connected"))
    );
    for (round, way) in WAYS.into_iter().enumerate() {
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        let mut agent = bank.agent(
            way,
            json!([
                "tools",
                {"call": "note", "with": {"to": a}},
                {"call": "mcp__files__write_file", "with": {"path": "x", "content": "x"}},
                {"call": "mcp__files__list_directory", "with": {"path": bank.place.path("shelf")}},
                {"call": "pay", "with": {"to": a}},
                {"call": "pay", "with": {"to": b}},
                "resources",
            ]),
        );
        let tools = agent.next()["tools"].clone();
        let tools: Vec<&str> =
            tools.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        assert!(tools.contains(&"pay") && tools.contains(&"mcp__files__read_file"), "{tools:?}");
        let others = tools.iter().filter(|it| !it.starts_with("mcp__files__"));
        assert_eq!(others.copied().collect::<Vec<_>>(), ["note", "park", "pay"]);
        assert!(!tools.contains(&"mcp__files__write_file"), "{tools:?}");

        assert!(text(&agent.result()).ends_with(&format!("noted {a}")), "{way:?}");
        let denied = agent.result();
        assert_eq!(
            (&denied["isError"], &denied["structuredContent"]["code"]),
            (&json!(true), &json!("PERMISSION_DENIED"))
        );
        let decision = denied["structuredContent"]["decision_id"].as_str().unwrap();
        let why = bank.place.chancery(&["why", decision, "--json"]);
        assert!(why.out.contains("mcp__files__write_file"), "{why:?}");
        assert!(text(&agent.result()).contains("book.txt"), "{way:?}");

        let asked = bank.question();
        let told = agent.next();
        assert!(told["message"].as_str().unwrap().contains(&asked), "{told}");
        bank.decide("approve", &asked);
        assert!(text(&agent.result()).ends_with(&format!("paid {a}")), "{way:?}");
        bank.decide("deny", &bank.question());
        let denied = agent.result();
        assert_eq!(
            (&denied["isError"], &denied["structuredContent"]["code"]),
            (&json!(true), &json!("DENIED"))
        );
        assert_eq!(agent.next(), json!({"resources": ["chancery://inbox"]}));
        agent.ends();
    }
    let expected = (0..4).flat_map(|it| [format!("note a{it}"), format!("pay a{it}")]);
    assert_eq!(bank.ledger(), expected.collect::<Vec<_>>());
}

#[test]
fn heavy_a_call_that_is_pending_is_found_by_its_key_and_by_its_resource() {
    let bank = Bank::open("[mcp]\non_ask = \"pending\"\n");
    let call =
        json!({"call": "pay", "with": {"to": "a"}, "meta": {"chancery/idempotency_key": "k"}});
    let way = WAYS[0];
    let mut agent = bank.agent(way, json!([call]));
    let pending = agent.result()["structuredContent"].clone();
    agent.ends();
    let asked = bank.question();
    assert_eq!(
        (&pending["status"], &pending["permissions"][0]["id"]),
        (&json!("pending"), &json!(asked))
    );
    let bank = bank.killed();
    bank.decide("approve", &asked);
    let began = Instant::now();
    loop {
        let read = json!({"read": pending["result_at"]});
        let mut agent = bank.agent(way, json!([read, call]));
        let shown = agent.next()["read"].clone();
        let again = agent.result();
        if shown["structuredContent"]["status"] != "pending" {
            assert!(
                text(&shown).ends_with("paid a") && text(&again).ends_with("paid a"),
                "{again}"
            );
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{shown}");
    }
    assert_eq!(bank.ledger(), ["pay a"]);
}

#[test]
fn heavy_a_server_that_is_killed_while_a_call_waits_is_not_noticed_over_stdio() {
    let bank = Bank::open("");
    let mut agent = bank.agent((By::Stdio, "auto"), json!([{"call": "pay", "with": {"to": "a"}}]));
    let asked = bank.question();
    let bank = bank.killed();
    assert_eq!(bank.question(), asked);
    bank.decide("approve", &asked);
    assert!(text(&agent.result()).ends_with("paid a"));
    agent.ends();
    assert_eq!(bank.ledger(), ["pay a"]);
}

#[test]
fn heavy_a_call_that_was_running_at_a_kill_is_put_to_a_person_and_not_run_again() {
    let bank = Bank::open("");
    let call =
        json!([{"call": "park", "with": {"to": "a"}, "meta": {"chancery/idempotency_key": "k"}}]);
    let mut agent = bank.agent((By::Stdio, "auto"), call);
    let began = Instant::now();
    while bank.ledger().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never ran");
        std::thread::sleep(Duration::from_millis(20));
    }
    let bank = bank.killed();
    bank.place.write("go", "");
    let asked = bank.question();
    let shown = bank.place.chancery(&["approval", "show", &asked, "--json"]);
    assert!(shown.out.contains("\"recover\""), "{shown:?}");
    bank.decide("deny", &asked);
    let unknown = agent.result();
    assert_eq!(unknown["structuredContent"]["code"], "OUTCOME_UNKNOWN", "{unknown}");
    agent.ends();
    assert_eq!(bank.ledger(), ["park a"]);
}

#[test]
fn heavy_the_inspector_lists_the_tools_of_the_role_and_calls_one() {
    let bank = Bank::open("");
    let listed = bank.inspect(&["--method", "tools/list"]);
    let names: Vec<_> =
        listed["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"pay") && !names.contains(&"mcp__files__write_file"), "{names:?}");
    let said =
        bank.inspect(&["--method", "tools/call", "--tool-name", "note", "--tool-arg", "to=i"]);
    assert!(text(&said).ends_with("noted i"), "{said}");
    assert_eq!(bank.ledger(), ["note i"]);
    let said = bank.inspect(&["--method", "resources/list"]);
    assert_eq!(said["resources"][0]["uri"], "chancery://inbox");
}
