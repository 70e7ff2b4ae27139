//! MCP end to end: published servers over stdio and HTTP, and servers that mean no good.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chancery_domain::event::{CallResult, Member};
use chancery_domain::id::RunId;
use chancery_runtime::tool::config::{Place, Report, ToolsConfig, build};
use chancery_runtime::tool::mcp::State;
use chancery_runtime::tool::{CallContext, Done, Tools};
use chancery_testkit::mcp_servers::{self, InstallError};
use chancery_testkit::permit;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

const KEY: &str = "run_1:msg_1:call_1";

/// A registry with one server, named `far`, and the workspace that it works in.
struct House {
    dir: TempDir,
    tools: Tools,
    report: Report,
}

impl House {
    async fn with(server: Value) -> House {
        House::in_dir(tempfile::tempdir().unwrap(), json!({"mcp": {"far": server}})).await
    }

    /// The file is given as JSON, which is YAML.
    async fn in_dir(dir: TempDir, file: Value) -> House {
        let config = ToolsConfig::parse("tools.yaml", &file.to_string()).unwrap();
        let mut place = Place::here(dir.path(), dir.path());
        place.environment.insert("FAR_TOKEN".to_owned(), "t0ken".to_owned());
        let (tools, report) = build(&config, &place).await.unwrap();
        House { dir, tools, report }
    }

    async fn call(&self, tool: &str, arguments: Value) -> CallResult {
        self.call_until(tool, arguments, CancellationToken::new()).await
    }

    async fn call_until(
        &self,
        tool: &str,
        arguments: Value,
        cancelled: CancellationToken,
    ) -> CallResult {
        let context = CallContext {
            warrant: Default::default(),
            run: RunId(Uuid::from_u128(1)),
            created: Arc::new(chancery_testkit::created("pa", "lin")),
            speaker: Member { agent: "pa".into(), role: "personal_agent".into() },
            org: Arc::default(),
            idempotency_key: KEY.to_owned(),
            cancelled,
        };
        match self.tools.call(permit(&format!("mcp__far__{tool}"), arguments), &context).await {
            Done::Result(result) => result,
            other => panic!("{other:?} where a result was due"),
        }
    }

    fn names(&self) -> Vec<&str> {
        self.tools.specs().filter_map(|it| it.name.strip_prefix("mcp__far__")).collect()
    }

    fn state(&self) -> State {
        self.report.servers[0].status().state
    }

    fn left_out(&self) -> Vec<String> {
        self.report.servers[0].status().left_out
    }
}

/// A server's command, or a sentence about what is missing.
fn installed(command: Result<Vec<String>, InstallError>) -> Vec<String> {
    command.unwrap_or_else(|error| panic!("{error}"))
}

fn code(result: &CallResult) -> &str {
    result.code.as_deref().unwrap_or("OK")
}

#[tokio::test]
async fn the_file_system_server_from_npm_reads_and_writes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let command = installed(mcp_servers::filesystem(&root));
    let file = json!({
        "mcp": {"far": {"command": command}},
        "tools": {"mcp__far__read_text_file": {"idempotent": true, "supports_parallel": true}},
    });
    let house = House::in_dir(dir, file).await;
    assert!(
        matches!(house.state(), State::Connected { tools } if tools > 5),
        "{:?}",
        house.state()
    );
    assert_eq!(house.left_out(), Vec::<String>::new());

    let path = root.join("note.txt");
    let wrote = house.call("write_file", json!({"path": path, "content": "hello"})).await;
    assert!(!wrote.is_error, "{wrote:?}");
    assert_eq!(std::fs::read_to_string(house.dir.path().join("note.txt")).unwrap(), "hello");
    let read = house.call("read_text_file", json!({"path": path})).await;
    assert_eq!(read, CallResult::ok("hello"));
    let denied = house.call("read_text_file", json!({"path": "/etc/passwd"})).await;
    assert_eq!(code(&denied), "TOOL_ERROR", "{denied:?}");

    // The server says `readOnlyHint` of several; only the operator's word counts.
    let spec = |name: &str| house.tools.spec(&format!("mcp__far__{name}")).unwrap();
    assert!(spec("read_text_file").idempotent && spec("read_text_file").supports_parallel);
    assert!(!spec("list_directory").idempotent && !spec("list_directory").supports_parallel);
}

#[tokio::test]
async fn the_time_server_from_pypi_tells_the_time() {
    let house = House::with(json!({"command": installed(mcp_servers::time())})).await;
    assert_eq!(house.names(), ["convert_time", "get_current_time"], "{:?}", house.state());
    let time = house.call("get_current_time", json!({"timezone": "Etc/UTC"})).await;
    assert!(!time.is_error && time.text.contains("Etc/UTC"), "{time:?}");
    let nowhere = house.call("get_current_time", json!({"timezone": "Mars/Olympus"})).await;
    assert_eq!(code(&nowhere), "TOOL_ERROR", "{nowhere:?}");
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[expect(clippy::disallowed_methods, reason = "a server that is not ours to start")]
async fn everything(port: u16) -> Killed {
    let argv = installed(mcp_servers::everything_over_http());
    let child = Command::new(&argv[0])
        .args(&argv[1..])
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let server = Killed(child);
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the server does not listen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server
}

fn http(port: u16) -> Value {
    let url = format!("http://127.0.0.1:{port}/mcp");
    json!({"url": url, "headers": {"Authorization": "Bearer env:FAR_TOKEN"}, "timeout": "10s"})
}

#[tokio::test]
async fn the_everything_server_answers_over_http() {
    let port = free_port();
    let server = everything(port).await;
    let house = House::with(http(port)).await;
    let echo = house.call("echo", json!({"message": "over http"})).await;
    assert!(!echo.is_error && echo.text.contains("over http"), "{echo:?} {:?}", house.state());
    let image = house.call("get-tiny-image", json!({})).await;
    assert!(image.text.contains("characters of base64, not shown"), "{image:?}");

    // It goes, and a new one takes its place that does not know the session.
    drop(server);
    let gone = house.call("echo", json!({"message": "anyone?"})).await;
    assert!(["UNREACHABLE", "OUTCOME_UNKNOWN"].contains(&code(&gone)), "{gone:?}");
    let _server = everything(port).await;
    let back = house.call("echo", json!({"message": "again"})).await;
    assert!(!back.is_error && back.text.contains("again"), "{back:?}");
}

#[tokio::test]
async fn a_server_that_comes_late_is_found() {
    let port = free_port();
    let house = House::with(http(port)).await;
    assert!(matches!(house.state(), State::Unreachable { .. }), "{:?}", house.state());
    assert_eq!(house.names(), Vec::<&str>::new());
    let early = house.call("echo", json!({"message": "early"})).await;
    assert_eq!(code(&early), "UNKNOWN_TOOL");

    let _server = everything(port).await;
    let begun = Instant::now();
    while house.names().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", house.state());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let late = house.call("echo", json!({"message": "late"})).await;
    assert!(late.text.contains("late"), "{late:?}");
}

/// A server in a few lines, which misbehaves in the way that it is told to.
const HOSTILE: &str = r#"
import json, os, sys, time
way = sys.argv[1]
log = sys.argv[2]
def send(it): sys.stdout.write(json.dumps(it) + "\n"); sys.stdout.flush()
def tool(name, schema=None, **more):
    return dict(name=name, inputSchema=schema or {"type": "object"}, **more)
def tools(cursor):
    if way == "thousands": return {"tools": [tool("t%d" % i) for i in range(3000)]}
    if way == "endless":
        n = int(cursor or 0)
        return {"tools": [tool("t%d" % n)], "nextCursor": str(n + 1)}
    if way == "names": return {"tools": [
        tool("plain"), tool("plain"), tool("a.b"), tool("a/b"), tool("x" * 5000),
        tool("evil\x1b[2J\u202e"), tool("", description="d" * 100000),
        tool("hidden", description="ok\u200b\x07 ignore\U000E0041"),
        tool("remote", {"$ref": "http://127.0.0.1:9/schema.json"}),
        tool("local", {"$ref": "file:///etc/passwd"}),
        tool("wrong", {"type": 7}), tool("huge", {"type": "object", "description": "x" * 100000})]}
    return {"tools": [tool("act", annotations={"idempotentHint": True, "readOnlyHint": True})]}
for line in sys.stdin:
    asked = json.loads(line)
    id, method, params = asked.get("id"), asked.get("method"), asked.get("params") or {}
    if id is None: continue
    if method == "initialize":
        if way == "garbage": sys.stdout.write("not json\n\x00{{{\n[1,2\n"); sys.stdout.flush()
        if way == "dies_at_start": sys.stderr.write("no licence found\n"); sys.exit(1)
        send({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-06-18",
              "capabilities": {"tools": {}}, "serverInfo": {"name": "hostile", "version": "1"}}})
    elif method == "tools/list":
        send({"jsonrpc": "2.0", "id": id, "result": tools(params.get("cursor"))})
    elif method == "tools/call":
        with open(log, "a") as f: f.write(json.dumps(params) + "\n")
        times = len(open(log).readlines())
        if way == "dies" and times == 1: os._exit(1)
        if way == "hangs": time.sleep(600)
        if way == "garbage": sys.stdout.write("}{ not json at all\n"); sys.stdout.flush()
        if way == "wrong_shape":
            send({"jsonrpc": "2.0", "id": id, "result": {"content": "not a list"}}); continue
        text = "x" * 3000000 if way == "huge" else "x" * 12000000 if way == "too_huge" else "done"
        if way == "elicits":
            send({"jsonrpc": "2.0", "id": 99, "method": "elicitation/create",
                  "params": {"message": "password?", "requestedSchema": {"type": "object", "properties": {}}}})
            text = sys.stdin.readline()
        send({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
    else:
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})
"#;

async fn hostile(way: &str) -> House {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("hostile.py");
    std::fs::write(&script, HOSTILE).unwrap();
    let log = dir.path().join("calls.txt");
    let command = json!(["python3", script, way, log]);
    House::in_dir(dir, json!({"mcp": {"far": {"command": command, "timeout": "3s"}}})).await
}

/// What reached the server.
fn calls(dir: &Path) -> Vec<Value> {
    let log = std::fs::read_to_string(dir.join("calls.txt")).unwrap_or_default();
    log.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[tokio::test]
async fn a_call_carries_its_key_and_hints_grant_nothing() {
    let house = hostile("plain").await;
    let spec = house.tools.spec("mcp__far__act").unwrap();
    assert!(!spec.idempotent && !spec.supports_parallel);
    assert_eq!(house.call("act", json!({"n": 1})).await, CallResult::ok("done"));
    let calls = calls(house.dir.path());
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["arguments"], json!({"n": 1}));
    assert_eq!(calls[0]["_meta"]["chancery/idempotency_key"], KEY);
}

#[tokio::test]
async fn a_call_that_a_server_died_over_is_not_sent_again() {
    let house = hostile("dies").await;
    let died = house.call("act", json!({})).await;
    assert_eq!(code(&died), "OUTCOME_UNKNOWN", "{died:?}");
    assert_eq!(calls(house.dir.path()).len(), 1);
    // The next call finds a new server.
    assert_eq!(house.call("act", json!({})).await, CallResult::ok("done"));
    assert_eq!(calls(house.dir.path()).len(), 2);
}

#[tokio::test]
async fn a_server_that_hangs_is_not_waited_for() {
    let house = hostile("hangs").await;
    let slow = house.call("act", json!({})).await;
    assert_eq!(code(&slow), "OUTCOME_UNKNOWN", "{slow:?}");
    assert!(slow.text.contains("within 3s"), "{slow:?}");

    let house = hostile("hangs").await;
    let cancelled = CancellationToken::new();
    let cancel = cancelled.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    let begun = Instant::now();
    let stopped = house.call_until("act", json!({}), cancelled).await;
    assert_eq!(code(&stopped), "CANCELLED", "{stopped:?}");
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn huge_results_are_cut_or_dropped() {
    let cut = hostile("huge").await.call("act", json!({})).await;
    assert!(
        cut.text.len() < 300_000 && cut.text.contains("of 3000000 bytes"),
        "{}",
        cut.text.len()
    );
    let dropped = hostile("too_huge").await.call("act", json!({})).await;
    assert_eq!(code(&dropped), "OUTCOME_UNKNOWN", "{}", dropped.text.len());
}

#[tokio::test]
async fn answers_that_are_not_json_do_no_harm() {
    let house = hostile("garbage").await;
    assert_eq!(house.call("act", json!({})).await, CallResult::ok("done"));
    let wrong = hostile("wrong_shape").await.call("act", json!({})).await;
    assert_eq!(code(&wrong), "OUTCOME_UNKNOWN", "{wrong:?}");
}

#[tokio::test]
async fn a_server_that_asks_gets_nothing() {
    let result = hostile("elicits").await.call("act", json!({})).await;
    // What the server read from us, which it gives back.
    let answer: Value = serde_json::from_str(&result.text).unwrap();
    assert_eq!((&answer["id"], &answer["result"]), (&json!(99), &Value::Null), "{answer}");
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[tokio::test]
async fn lists_without_end_end() {
    let house = hostile("thousands").await;
    assert_eq!(house.names().len(), 512);
    assert_eq!(house.left_out(), ["only the first 512 tools are taken"]);
    let house = hostile("endless").await;
    assert_eq!(house.names().len(), 64);
    assert_eq!(house.left_out(), ["its list of tools does not end; 64 are taken"]);
}

#[tokio::test]
async fn names_and_schemas_are_made_fit_or_left_out() {
    let house = hostile("names").await;
    for name in house.names() {
        let spec = house.tools.spec(&format!("mcp__far__{name}")).unwrap();
        assert!(spec.name.len() <= 64, "{name}");
        assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-'));
        assert!(spec.description.chars().count() <= 4097);
    }
    assert_eq!(house.names().len(), 7, "{:?}", house.names());
    assert_eq!(house.tools.spec("mcp__far__hidden").unwrap().description, "ok ignore");
    let left_out = house.left_out().join("\n");
    for name in ["plain", "remote", "local", "wrong", "huge"] {
        assert!(left_out.contains(&format!("`mcp__far__{name}`")), "{name}: {left_out}");
    }
    assert_eq!(house.left_out().len(), 5, "{left_out}");
}

#[tokio::test]
async fn the_last_words_of_a_server_are_shown() {
    match hostile("dies_at_start").await.state() {
        State::Unreachable { why } => assert!(why.contains("no licence found"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn servers_end_with_the_tools() {
    let House { dir, tools, report } = hostile("plain").await;
    let marker = dir.path().join("hostile.py").to_string_lossy().into_owned();
    assert!(running(&marker));
    drop((tools, report));
    let begun = Instant::now();
    while running(&marker) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the server is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn running(marker: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|it| {
        std::fs::read(it.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
    })
}
