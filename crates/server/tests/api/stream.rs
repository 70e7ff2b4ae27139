//! The log of a run, live: server-sent events that can be taken up again anywhere.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Caller, Server, answer, id};

/// An open stream, and what has come of it that was not looked at yet.
struct Live {
    response: reqwest::Response,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Frame {
    id: u64,
    kind: String,
    data: Value,
}

impl Live {
    async fn open(caller: &Caller, run: &str, last: Option<&str>) -> Live {
        let path = format!("/api/runs/{run}/events");
        let mut request = caller.request(Method::GET, &path).header("Accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "text/event-stream");
        assert_eq!(
            (header("cache-control"), header("x-accel-buffering")),
            ("no-store".into(), "no".into())
        );
        Live { response, text: String::new() }
    }

    /// The next block; `None`: the stream has ended.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let chunk = tokio::time::timeout(Duration::from_secs(25), self.response.chunk());
            let chunk = chunk.await.expect("something comes in time").unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn next(&mut self) -> Option<Frame> {
        let block = self.block().await?;
        let field = |name: &str| {
            let line = block.lines().find_map(|it| it.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("no {name} in {block}")).to_owned()
        };
        let data: Value = serde_json::from_str(&field("data")).unwrap();
        let frame = Frame { id: field("id").parse().unwrap(), kind: field("event"), data };
        assert_eq!(
            (&frame.data["seq"], &frame.data["type"]),
            (&json!(frame.id), &json!(frame.kind))
        );
        Some(frame)
    }

    async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

async fn signal(caller: &Caller, run: &str) {
    let path = format!("/api/runs/{run}/signal");
    assert_eq!(caller.post(&path, &json!({"correlation_key": "go"})).await.status, 200);
}

#[tokio::test]
async fn a_stream_shows_the_log_then_what_comes_and_ends_with_the_run() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = operator.waiting().await;
    let mut live = Live::open(&operator, &run, None).await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|it: &Frame| it.kind != "wait.began") {
        seen.push(live.next().await.unwrap());
    }
    let began = Instant::now();
    signal(&operator, &run).await;
    seen.push(live.next().await.unwrap());
    assert!(began.elapsed() < Duration::from_millis(900), "woken, not polled");
    seen.extend(live.rest().await);
    assert_eq!(seen.last().unwrap().kind, "run.completed");
    let logged = operator.get(&format!("/api/runs/{run}/events")).await.json();
    let streamed: Vec<Value> = seen.into_iter().map(|it| it.data).collect();
    assert_eq!(&streamed, logged["items"].as_array().unwrap());
    server.running.stop().await;
}

#[tokio::test]
async fn a_stream_is_taken_up_anywhere_without_gap_or_double() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = operator.waiting().await;
    signal(&operator, &run).await;
    operator.until(&run, "completed").await;
    let whole = Live::open(&operator, &run, None).await.rest().await;
    let ids: Vec<u64> = whole.iter().map(|it| it.id).collect();
    assert_eq!(ids, (1..=whole.len() as u64).collect::<Vec<_>>());
    for last in 0..=whole.len() {
        let rest = Live::open(&operator, &run, Some(&last.to_string())).await.rest().await;
        assert_eq!(rest, whole[last..], "{last}");
    }
    // Beyond the end, as far as a store can count.
    for last in ["1000", "9223372036854775807"] {
        assert_eq!(Live::open(&operator, &run, Some(last)).await.rest().await, []);
    }
    for bad in ["x", "-1", "1.5", "", "9223372036854775808", "18446744073709551616"] {
        let path = format!("/api/runs/{run}/events");
        let request = operator.request(Method::GET, &path).header("Accept", "text/event-stream");
        answer(request.header("Last-Event-ID", bad)).await.problem(400, "bad_request");
    }
    server.running.stop().await;
}

#[tokio::test]
async fn reconnecting_while_the_log_grows_loses_nothing() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = operator.waiting().await;
    let writer = {
        let (operator, run) = (operator.clone(), run.clone());
        tokio::spawn(async move {
            for n in 0..60 {
                let body = json!({"text": format!("message {n}")});
                let path = format!("/api/runs/{run}/messages");
                assert_eq!(operator.post(&path, &body).await.status, 200);
            }
            signal(&operator, &run).await;
        })
    };
    let mut seen: Vec<Frame> = Vec::new();
    while seen.last().is_none_or(|it| it.kind != "run.completed") {
        let last = seen.last().map(|it| it.id.to_string());
        let mut live = Live::open(&operator, &run, last.as_deref()).await;
        for _ in 0..7 {
            match live.next().await {
                Some(frame) => seen.push(frame),
                None => break,
            }
        }
    }
    writer.await.unwrap();
    let ids: Vec<u64> = seen.iter().map(|it| it.id).collect();
    assert_eq!(ids, (1..=seen.len() as u64).collect::<Vec<_>>());
    let logged = operator.get(&format!("/api/runs/{run}/events")).await.json();
    assert_eq!(logged["items"].as_array().unwrap().len(), seen.len());
    server.running.stop().await;
}

#[tokio::test]
async fn many_streams_see_the_same_and_end_promptly_when_the_server_stops() {
    let server = Server::start().await;
    let operator = server.operator();
    let (ends, stays) = (operator.waiting().await, operator.waiting().await);
    let mut ending = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let live = Live::open(&operator, &ends, None).await;
        ending.spawn(live.rest());
    }
    let mut staying = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let live = Live::open(&operator, &stays, None).await;
        staying.spawn(live.rest());
    }
    signal(&operator, &ends).await;
    let seen = ending.join_all().await;
    assert!(seen.iter().all(|it| *it == seen[0]), "{seen:?}");
    assert_eq!(seen[0].last().unwrap().kind, "run.completed");
    let began = Instant::now();
    server.running.stop().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    for seen in staying.join_all().await {
        assert_eq!(seen.last().unwrap().kind, "wait.began");
    }
}

#[tokio::test]
async fn a_quiet_stream_is_kept_alive_by_comments() {
    let server = Server::start().await;
    let operator = server.operator();
    let run = operator.waiting().await;
    let logged = operator.get(&format!("/api/runs/{run}/events")).await.json();
    let last = logged["items"].as_array().unwrap().len().to_string();
    let mut live = Live::open(&operator, &run, Some(&last)).await;
    assert_eq!(live.block().await.unwrap(), ": here");
    signal(&operator, &run).await;
    assert_eq!(live.rest().await.last().unwrap().kind, "run.completed");
    server.running.stop().await;
}

#[tokio::test]
async fn what_an_agent_says_cannot_break_out_of_its_frame() {
    let server = Server::start().await;
    let operator = server.operator();
    let input = "a\n\nevent: run.completed\ndata: {}\r\rid: 99\u{2028}b";
    let run = id(&operator.run(input).await);
    operator.until(&run, "completed").await;
    let seen = Live::open(&operator, &run, None).await.rest().await;
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[2].data["data"]["output"], format!("heard: {input}"));
    server.running.stop().await;
}

#[tokio::test]
async fn a_stream_ends_with_the_token_that_opened_it() {
    let server = Server::start().await;
    let (lin, max) = (server.human("lin").await, server.human("max").await);
    let (of_lin, of_max) = (lin.waiting().await, max.waiting().await);
    let mut gone = Live::open(&lin, &of_lin, None).await;
    let mut stays = Live::open(&max, &of_max, None).await;
    let tokens = server.operator().get("/api/tokens").await.json();
    let token = tokens["items"].as_array().unwrap().iter().find(|it| it["name"] == "lin").cloned();
    let revoke = format!("/api/tokens/{}/revoke", token.unwrap()["id"].as_str().unwrap());
    assert_eq!(server.operator().post(&revoke, &json!({})).await.status, 200);
    while gone.block().await.is_some() {}
    let signal = json!({"correlation_key": "go", "payload": {"note": "x"}});
    let path = format!("/api/runs/{of_max}/signal");
    assert_eq!(max.post(&path, &signal).await.status, 200);
    let mut kinds = Vec::new();
    while let Some(frame) = stays.next().await {
        kinds.push(frame.kind);
    }
    assert_eq!(kinds.last().map(String::as_str), Some("run.completed"), "{kinds:?}");
    server.running.stop().await;
}
