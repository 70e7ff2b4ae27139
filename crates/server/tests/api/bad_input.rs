//! What cannot be meant is refused with a problem, and nothing comes of it.

use std::io::{BufRead as _, Write as _};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, answer};

#[tokio::test]
async fn a_body_that_is_not_what_is_expected_is_refused_with_its_place() {
    let server = Server::start().await;
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let deep_payload = format!(r#"{{"correlation_key": "k", "payload": {deep}}}"#);
    for (path, body, said) in [
        ("/api/runs", "", "EOF"),
        ("/api/runs", "{", "EOF"),
        ("/api/runs", "[]", "expected an object"),
        ("/api/runs", r#"["pa", null, "x", null, null, null, null]"#, "expected an object"),
        (
            "/api/runs",
            r#"{"agent": "pa", "input": "x", "delegated_permissions": [["read_file"], []]}"#,
            "expected an object",
        ),
        ("/api/runs", "null", "null"),
        ("/api/runs", r#"{"agent": "pa"}"#, "missing field `input`"),
        ("/api/runs", r#"{"agent": 7, "input": "x"}"#, "at `agent`"),
        ("/api/runs", r#"{"agent": "pa", "input": {}}"#, "at `input`"),
        ("/api/runs", r#"{"agent": "pa", "input": "x", "inputt": 1}"#, "inputt"),
        (
            "/api/runs",
            r#"{"agent": "pa", "input": "x", "delegated_permissions": {"allowed_tools": [1]}}"#,
            "at `delegated_permissions.allowed_tools[0]`",
        ),
        ("/api/runs", r#"{"agent": "pa", "input": "x"} tail"#, "one JSON value"),
        ("/api/runs", r#"{"agent": "pa", "input": "x", "input": "y"}"#, "duplicate field"),
        ("/api/runs", r#"{"agent": "pa", "input": "\ud800"}"#, "hex escape"),
        ("/api/runs", &deep, ""),
        ("/api/tokens", r#"{"kind": "human", "name": "x", "operator": "yes"}"#, "at `operator`"),
        ("/api/runs/ID/signal", &deep_payload, "recursion"),
        ("/api/runs/ID/messages", r#"{"text": 1}"#, "at `text`"),
    ] {
        let id = server.operator().run("x").await["id"].as_str().unwrap().to_owned();
        let path = path.replace("ID", &id);
        let refused = server.operator().post_raw(&path, body.to_owned()).await;
        let detail = refused.problem(400, "bad_request");
        assert!(detail.contains(said), "{path} {body:.80}: {detail}");
    }
    let invalid = server.operator().post_raw("/api/runs", b"{\"agent\": \"\xff\"}".to_vec()).await;
    invalid.problem(400, "bad_request");
    server.running.stop().await;
}

#[tokio::test]
async fn values_that_cannot_be_meant_are_refused() {
    let server = Server::start().await;
    let long = "x".repeat(257);
    for (body, code) in [
        (json!({"agent": "pa", "input": ""}), "bad_request"),
        (json!({"agent": "pa", "input": " \n"}), "bad_request"),
        (json!({"agent": "pa", "input": "a\u{0}b"}), "bad_request"),
        (json!({"agent": "pa", "input": "x", "user": ""}), "bad_request"),
        (json!({"agent": "pa", "input": "x", "user": "a\u{0}"}), "bad_request"),
        (json!({"agent": "pa", "input": "x", "project": long}), "bad_request"),
        (json!({"agent": "pa", "input": "x", "session_key": "a\nb"}), "bad_request"),
        (json!({"input": "x"}), "bad_request"),
        (json!({"agent": "pa", "group": "grp_1", "input": "x"}), "bad_request"),
        (json!({"group": "grp_1", "input": "x"}), "unknown_group"),
        (json!({"agent": "stranger", "input": "x"}), "unknown_agent"),
        (json!({"agent": "a\u{0}b", "input": "x"}), "unknown_agent"),
        (json!({"agent": "x".repeat(1_000_000), "input": "x"}), "unknown_agent"),
    ] {
        server.operator().post("/api/runs", &body).await.problem(400, code);
    }
    let run = server.operator().waiting().await;
    let nested = (0..100).fold(Value::Null, |inner, _| json!([inner]));
    let signal = json!({"correlation_key": "go", "payload": nested});
    let path = format!("/api/runs/{run}/signal");
    server.operator().post(&path, &signal).await.problem(400, "bad_request");
    let key = json!({"correlation_key": "k".repeat(1_000_000)});
    server.operator().post(&path, &key).await.problem(404, "not_found");
    let path = format!("/api/runs/{run}/messages");
    for message in
        [json!({"text": ""}), json!({"text": "a\u{0}b"}), json!({"text": "x", "tone": "kind"})]
    {
        server.operator().post(&path, &message).await.problem(400, "bad_request");
    }
    let stranger = json!({"text": "x", "to": "someone"});
    server.operator().post(&path, &stranger).await.problem(400, "unknown_member");
    // Nothing came of any of it.
    let listed = server.operator().get("/api/runs").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    server.running.stop().await;
}

#[tokio::test]
async fn unknown_ids_paths_methods_and_parameters_are_problems() {
    let server = Server::start().await;
    let operator = server.operator();
    let long = format!("run_{}", "a".repeat(5000));
    for id in [
        "run_00000000000000000000000000000000",
        "run_0000",
        "run_zz",
        "x",
        "run_%00",
        "%22%3E%3Cscript%3E",
        "run_00000000-0000-0000-0000-000000000000",
        "..%2Ftokens",
        &long,
    ] {
        let detail = operator.get(&format!("/api/runs/{id}")).await.problem(404, "not_found");
        assert!(detail.chars().count() < 100, "{detail}");
    }
    operator.get("/api/runs/%ff").await.problem(400, "unreadable");
    // The console is for people who are signed in, whatever token comes with the request.
    operator.get("/").await.problem(401, "unauthenticated");
    for path in ["/api", "/api/nothing", "/api/runs/x/y", "/docs/nothing.js"] {
        operator.get(path).await.problem(404, "not_found");
    }
    for (method, path, allow) in [
        (Method::DELETE, "/api/runs", "POST,GET,HEAD"),
        (Method::PUT, "/api/runs/run_1", "GET,HEAD"),
        (Method::GET, "/api/runs/run_1/cancel", "POST"),
        (Method::POST, "/healthz", "GET,HEAD"),
        (Method::PATCH, "/openapi.json", "GET,HEAD"),
    ] {
        let refused = answer(operator.request(method, path)).await;
        refused.problem(405, "method_not_allowed");
        assert_eq!(refused.header("allow"), allow, "{path}");
    }
    for query in [
        "limit=-1",
        "limit=x",
        "limit=4294967296",
        "limit=",
        "status=odd",
        "status=PENDING",
        "cursor=7",
        "parent=run_1",
        "agent=%00",
        "group=%0a",
        "colour=red",
        "limit=1&limit=2",
    ] {
        let refused = operator.get(&format!("/api/runs?{query}")).await;
        assert_eq!(refused.status, 400, "{query}: {refused:?}");
        refused.problem(400, "bad_request");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_read_to_its_end() {
    let server = Server::with(|config| config.limits.body_bytes = 2048).await;
    let body = |length: usize| json!({"agent": "pa", "input": "x".repeat(length)}).to_string();
    let post = async |body: reqwest::Body| server.operator().post_raw("/api/runs", body).await;
    assert_eq!(post(body(1000).into()).await.status, 201);
    post(body(3000).into()).await.problem(413, "too_large");
    let pieces = (0..4).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1000]));
    let chunked = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
    post(chunked).await.problem(413, "too_large");
    server.running.stop().await;
}

/// The first line of the answer to what an HTTP library would not send.
fn raw(server: &Server, request: &[u8]) -> String {
    let mut socket = std::net::TcpStream::connect(server.running.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.write_all(request).unwrap();
    let mut line = String::new();
    std::io::BufReader::new(socket).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_no_library_sends_are_refused() {
    let server = Server::start().await;
    let token = server.running.local_token.clone();
    let with = |line: &str, more: &[u8]| {
        let head = format!("{line}\r\nHost: x\r\nAuthorization: Bearer {token}\r\n");
        [head.as_bytes(), more].concat()
    };
    let create = "POST /api/runs HTTP/1.1";
    for (request, status) in [
        (b"nonsense\r\n\r\n".to_vec(), "400 Bad Request"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec(), "200 OK"),
        (
            b"GET /api/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n".to_vec(),
            "401 Unauthorized",
        ),
        (with("GET /api/runs HTTP/1.1", b"Idempotency-Key: \xff\r\n\r\n"), "200 OK"),
        (with(create, b"Idempotency-Key: \xff\r\nContent-Length: 30\r\n\r\n{\"agent\":\"pa\",\"input\":\"abcde\"}"), "400 Bad Request"),
        // Two lengths, or a length and chunks: the two ways to smuggle a request.
        (with(create, b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), "400 Bad Request"),
        (with(create, b"Transfer-Encoding: gzip\r\n\r\n{}"), "400 Bad Request"),
        (with(create, b"Content-Length: -1\r\n\r\n{}"), "400 Bad Request"),
        (
            with("GET /healthz HTTP/1.1", &[b"X: ".as_slice(), &[b'x'; 1 << 20], b"\r\n\r\n"].concat()),
            "431 Request Header Fields Too Large",
        ),
    ] {
        let answered = raw(&server, &request);
        let shown = String::from_utf8_lossy(&request).chars().take(200).collect::<String>();
        assert_eq!(answered, format!("HTTP/1.1 {status}"), "{shown}");
    }
    assert_eq!(server.nobody().get("/healthz").await.status, 200);
    server.running.stop().await;
}
