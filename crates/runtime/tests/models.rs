//! The adapters against a server that behaves well and badly, over real sockets. What holds for
//! both protocols is checked for both. Long because it is one list of behaviours, and a new one belongs
//! beside its likes.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chancery_domain::event::{Call, CallResult, Usage};
use chancery_domain::id::AgentId;
use chancery_runtime::model::{
    Message, Model, ModelError, Patience, RawCall, Reply, Request, Secret, SetupError, ToolOffer,
    anthropic, openai,
};
use chancery_testkit::fake_model::{Answer, Behaviour, End, FakeModel, Protocol, Raw};
use serde_json::{Value, json};

const KEY: &str = "sk-test-51d0c0ffee";
const RUN: &str = "run_00000000000000000000000000000007";
const CHAT: Protocol = Protocol::ChatCompletions;
const MESSAGES: Protocol = Protocol::Messages;
const BOTH: [Protocol; 2] = [CHAT, MESSAGES];

/// Long where nothing should be waited for, short where a pause is certain.
const PATIENCE: Patience = Patience {
    first_byte: Duration::from_secs(20),
    between: Duration::from_secs(20),
    whole: Duration::from_secs(40),
    retries: 2,
    backoff: Duration::from_millis(1),
};

fn chat_config(base_url: &str) -> openai::Config {
    openai::Config {
        name: "main".to_owned(),
        base_url: base_url.to_owned(),
        model: "asked-for".to_owned(),
        api_key: Some(Secret::from(KEY)),
        patience: PATIENCE,
        max_output_tokens: Some(300),
        temperature: Some(0.2),
    }
}

fn messages_config(base_url: &str) -> anthropic::Config {
    anthropic::Config {
        name: "main".to_owned(),
        base_url: base_url.to_owned(),
        model: "asked-for".to_owned(),
        api_key: Some(Secret::from(KEY)),
        patience: PATIENCE,
        max_output_tokens: Some(300),
        temperature: Some(0.2),
    }
}

fn model(protocol: Protocol, base_url: &str, patience: Patience) -> Box<dyn Model> {
    match protocol {
        Protocol::ChatCompletions => {
            let config = openai::Config { patience, ..chat_config(base_url) };
            Box::new(openai::OpenAi::new(config).unwrap())
        }
        Protocol::Messages => {
            let config = anthropic::Config { patience, ..messages_config(base_url) };
            Box::new(anthropic::Anthropic::new(config).unwrap())
        }
    }
}

fn url(server: &FakeModel, protocol: Protocol) -> String {
    match protocol {
        Protocol::ChatCompletions => server.chat_url(),
        Protocol::Messages => server.messages_url(),
    }
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

async fn ask(model: &dyn Model, messages: &[Message]) -> Result<Reply, ModelError> {
    let agent = AgentId::from("it_manager");
    let tool = ToolOffer {
        name: "read_logs".to_owned(),
        description: "Reads logs.".to_owned(),
        parameters: json!({"type": "object"}),
    };
    let tools = [&tool];
    let run = RUN.parse().unwrap();
    let request = Request { run, agent: &agent, system: "Be brief.", messages, tools: &tools };
    model.generate(request).await
}

/// What comes of one question, and how many requests it took.
async fn outcome(
    protocol: Protocol,
    patience: Patience,
    behaviours: impl IntoIterator<Item = Behaviour>,
) -> (Result<Reply, ModelError>, usize) {
    let server = FakeModel::start().await.unwrap();
    for behaviour in behaviours {
        server.will(behaviour);
    }
    let model = model(protocol, &url(&server, protocol), patience);
    let result = ask(&*model, &[user("hello")]).await;
    (result, server.requests().len())
}

fn reply(text: &str, calls: &[(&str, &str, &str)]) -> Reply {
    let call = |(id, tool, arguments): &(&str, &str, &str)| RawCall {
        id: (*id).to_owned(),
        tool: (*tool).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Reply {
        text: text.to_owned(),
        calls: calls.iter().map(call).collect(),
        usage: Usage { input_tokens: 12, output_tokens: 7 },
        model: "fake-1".to_owned(),
    }
}

fn unavailable(tries: u32, detail: &str) -> ModelError {
    ModelError::Unavailable { model: "main".to_owned(), tries, detail: detail.to_owned() }
}

fn refused(detail: &str) -> ModelError {
    ModelError::Refused { model: "main".to_owned(), detail: detail.to_owned() }
}

/// Not an answer, and not asked for again.
#[track_caller]
fn assert_malformed((result, requests): (Result<Reply, ModelError>, usize), start: &str) {
    match result {
        Err(ModelError::Malformed { model, detail }) if model == "main" => {
            assert!(detail.starts_with(start), "{detail}");
        }
        other => panic!("not malformed but {other:?}"),
    }
    assert_eq!(requests, 1);
}

fn document(document: &Value) -> Behaviour {
    Behaviour::Raw(Raw::new(200, "application/json", [document.to_string()]))
}

fn fine() -> Behaviour {
    Behaviour::Stream(Answer::text("fine"))
}

// Answers.

fn busy_answer() -> Answer {
    Answer::text("Two things, 先看日志 🚀.")
        .and_call("read_logs", r#"{"service": "web", "lines": 200}"#)
        .and_call("docker_build", r#"{"image":"shop/web:1.8.3","note":"定价"}"#)
}

fn busy_reply() -> Reply {
    reply(
        "Two things, 先看日志 🚀.",
        &[
            ("fake_1", "read_logs", r#"{"service": "web", "lines": 200}"#),
            ("fake_2", "docker_build", r#"{"image":"shop/web:1.8.3","note":"定价"}"#),
        ],
    )
}

#[tokio::test]
async fn words_and_parallel_calls_are_put_together_from_many_fragments() {
    for protocol in BOTH {
        for fragment in [1, 3, 1000] {
            let answer = Answer { fragment, ..busy_answer() };
            let result = outcome(protocol, PATIENCE, [Behaviour::Stream(answer)]).await;
            assert_eq!(result, (Ok(busy_reply()), 1), "{protocol:?} by {fragment}");
        }
    }
}

#[tokio::test]
async fn a_stream_may_be_cut_into_pieces_anywhere() {
    for protocol in BOTH {
        for bytes in [1, 7, 100_000] {
            let sliced = Behaviour::Sliced { answer: busy_answer(), bytes };
            let result = outcome(protocol, PATIENCE, [sliced]).await;
            assert_eq!(result, (Ok(busy_reply()), 1), "{protocol:?} by {bytes}");
        }
    }
}

#[tokio::test]
async fn an_answer_in_one_document_is_as_good_as_a_stream() {
    for protocol in BOTH {
        let answer = Answer::text("Hm.").and_call("read_logs", r#"{"n":1}"#);
        let result = outcome(protocol, PATIENCE, [Behaviour::Plain(answer)]).await;
        let expected = reply("Hm.", &[("fake_1", "read_logs", r#"{"n":1}"#)]);
        assert_eq!(result, (Ok(expected), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object() {
    for protocol in BOTH {
        let answer = Answer::call("read_logs", "");
        let result = outcome(protocol, PATIENCE, [Behaviour::Stream(answer)]).await;
        assert_eq!(result, (Ok(reply("", &[("fake_1", "read_logs", "{}")])), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_passed_on_as_they_are() {
    for protocol in BOTH {
        let answer = Answer::call("read_logs", r#"{"service": "#);
        let result = outcome(protocol, PATIENCE, [Behaviour::Stream(answer)]).await;
        let expected = reply("", &[("fake_1", "read_logs", r#"{"service": "#)]);
        assert_eq!(result, (Ok(expected), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn an_id_that_an_earlier_call_has_is_replaced() {
    for protocol in BOTH {
        let server = FakeModel::start().await.unwrap();
        server.otherwise(|_, _| Behaviour::Stream(Answer::call("read_logs", "{}")));
        let model = model(protocol, &url(&server, protocol), PATIENCE);
        let (tool, arguments) = ("read_logs".to_owned(), json!({}));
        let earlier = Arc::new(Call { id: "fake_1".into(), tool, arguments });
        let messages = [
            user("hello"),
            Message::Assistant { text: String::new(), calls: vec![earlier] },
            Message::Tool { call: "fake_1".into(), result: CallResult::ok("nothing") },
        ];
        let result = ask(&*model, &messages).await;
        assert_eq!(result, Ok(reply("", &[("call_2", "read_logs", "{}")])), "{protocol:?}");
    }
}

#[tokio::test]
async fn one_connection_serves_one_question_after_the_other() {
    for protocol in BOTH {
        let server = FakeModel::start().await.unwrap();
        server.otherwise(|_, _| fine());
        let model = model(protocol, &url(&server, protocol), PATIENCE);
        for _ in 0..3 {
            ask(&*model, &[user("hello")]).await.unwrap();
        }
        let [first, second, third] = server.requests().try_into().unwrap();
        assert_eq!((first.peer, first.peer), (second.peer, third.peer), "{protocol:?}");
    }
}

// Trouble that passes.

#[tokio::test]
async fn trouble_on_the_far_side_is_tried_again() {
    for protocol in BOTH {
        for status in [408, 429, 500, 502, 503, 529] {
            let behaviours = [Behaviour::status(status, "not now"), fine()];
            let result = outcome(protocol, PATIENCE, behaviours).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?} {status}");
        }
    }
}

#[tokio::test]
async fn after_the_last_retry_the_last_trouble_is_told() {
    for protocol in BOTH {
        let behaviours = [500, 502, 503].map(|it| Behaviour::status(it, "not now"));
        let result = outcome(protocol, PATIENCE, behaviours).await;
        assert_eq!(result, (Err(unavailable(3, "HTTP 503: not now")), 3), "{protocol:?}");
    }
}

#[tokio::test]
async fn an_error_page_is_trouble_like_any_other() {
    let page = || Behaviour::Raw(Raw::new(502, "text/html", ["<html>\n <h1>Bad Gateway</h1>"]));
    for protocol in BOTH {
        let result = outcome(protocol, PATIENCE, [page(), fine()]).await;
        assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?}");
        let result = outcome(protocol, PATIENCE, [page(), page(), page()]).await;
        let detail = "HTTP 502: <html> <h1>Bad Gateway</h1>";
        assert_eq!(result, (Err(unavailable(3, detail)), 3), "{protocol:?}");
    }
}

#[tokio::test]
async fn whoever_says_when_to_come_back_is_not_asked_earlier() {
    for protocol in BOTH {
        let started = Instant::now();
        let behaviours = [Behaviour::busy("retry-after-ms", "400"), fine()];
        let result = outcome(protocol, PATIENCE, behaviours).await;
        assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?}");
        assert!(started.elapsed() >= Duration::from_millis(400), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn nobody_waits_for_a_retry_that_would_come_too_late() {
    for protocol in BOTH {
        let patience = Patience { whole: Duration::from_secs(20), ..PATIENCE };
        let behaviours = [Behaviour::busy("retry-after", "25"), fine()];
        let result = outcome(protocol, patience, behaviours).await;
        assert_eq!(result, (Err(unavailable(1, "HTTP 429: {}")), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_broken_stream_is_asked_for_again_and_nothing_of_it_is_kept() {
    for protocol in BOTH {
        for end in [End::Cut, End::Clean] {
            let answer = Answer::text("half of this").and_call("read_logs", "{}");
            let behaviours = [Behaviour::Partial { answer, events: 4, end }, fine()];
            let result = outcome(protocol, PATIENCE, behaviours).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?} {end:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_always_ends_too_early_says_so() {
    for protocol in BOTH {
        let partial = Behaviour::Partial { answer: Answer::text("ab"), events: 2, end: End::Clean };
        let result = outcome(protocol, PATIENCE, vec![partial; 3]).await;
        let detail = "the stream ended before the answer did";
        assert_eq!(result, (Err(unavailable(3, detail)), 3), "{protocol:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_whole_does_not_need_its_farewell() {
    for protocol in BOTH {
        let answer = Answer::text("fine");
        let events = answer.events(protocol).len() - 1;
        for end in [End::Clean, End::Stall, End::Cut] {
            let patience = Patience { between: Duration::from_secs(1), ..PATIENCE };
            let partial = Behaviour::Partial { answer: answer.clone(), events, end };
            let result = outcome(protocol, patience, [partial]).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 1), "{protocol:?} {end:?}");
        }
    }
}

#[tokio::test]
async fn an_empty_answer_is_a_broken_one() {
    for protocol in BOTH {
        for kind in ["text/event-stream", "application/json"] {
            let empty = Behaviour::Raw(Raw::new(200, kind, Vec::<Bytes>::new()));
            let result = outcome(protocol, PATIENCE, [empty, fine()]).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?} {kind}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    for protocol in BOTH {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let model = model(protocol, &format!("http://{address}"), PATIENCE);
        match ask(&*model, &[user("hello")]).await {
            Err(ModelError::Unavailable { tries: 3, detail, .. }) => {
                assert!(detail.contains("refused"), "{detail}");
            }
            other => panic!("{protocol:?}: {other:?}"),
        }
    }
}

// Time.

#[tokio::test]
async fn silence_before_the_first_byte_ends_a_try() {
    let first_byte = Duration::from_millis(90);
    let headers_only = Raw { end: End::Stall, ..Raw::new(200, "text/event-stream", [""; 0]) };
    for protocol in BOTH {
        for silence in [Behaviour::Silence, Behaviour::Raw(headers_only.clone())] {
            let patience = Patience { first_byte, retries: 1, ..PATIENCE };
            let (result, _) = outcome(protocol, patience, vec![silence; 2]).await;
            let expected = unavailable(2, "not a byte came within 90ms");
            assert_eq!(result, Err(expected), "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn silence_within_a_stream_ends_a_try() {
    for protocol in BOTH {
        let patience = Patience { between: Duration::from_millis(80), retries: 1, ..PATIENCE };
        let stall = Behaviour::Partial { answer: busy_answer(), events: 3, end: End::Stall };
        let result = outcome(protocol, patience, vec![stall; 2]).await;
        let expected = unavailable(2, "not a byte came within 80ms");
        assert_eq!(result, (Err(expected), 2), "{protocol:?}");
    }
}

#[tokio::test]
async fn all_tries_together_have_an_end() {
    for protocol in BOTH {
        let patience = Patience { whole: Duration::from_millis(300), ..PATIENCE };
        let stall = Behaviour::Partial { answer: busy_answer(), events: 3, end: End::Stall };
        let (result, _) = outcome(protocol, patience, vec![stall; 3]).await;
        let expected = unavailable(1, "no whole answer within 300ms");
        assert_eq!(result, Err(expected), "{protocol:?}");
    }
}

// Trouble that stays.

#[tokio::test]
async fn a_refusal_is_told_and_not_tried_again() {
    for protocol in BOTH {
        for status in [400, 401, 403, 404, 413, 422] {
            let result = outcome(protocol, PATIENCE, [Behaviour::status(status, "no")]).await;
            let detail = format!("HTTP {status}: no");
            assert_eq!(result, (Err(refused(&detail)), 1), "{protocol:?} {status}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for protocol in BOTH {
        let location = ("location", "/elsewhere/chat/completions".to_owned());
        let redirect = Raw { headers: vec![location], ..Raw::new(307, "text/plain", [""]) };
        let result = outcome(protocol, PATIENCE, [Behaviour::Raw(redirect)]).await;
        let detail = "HTTP 307 redirects to `/elsewhere/chat/completions`: if that is right, make \
                      it the `base_url`";
        assert_eq!(result, (Err(refused(detail)), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn the_key_is_not_in_what_is_shown_even_where_it_is_cut() {
    for protocol in BOTH {
        // The cut is after 300 letters, in one of these within the key.
        for padding in (0..300).step_by(16) {
            let said = format!("{}key {KEY} is wrong", "x".repeat(padding));
            let chunk = Behaviour::events([format!("data: {said}\n\n")]);
            for behaviour in [Behaviour::status(401, &said), chunk] {
                let (result, _) = outcome(protocol, PATIENCE, [behaviour]).await;
                let shown = result.unwrap_err().to_string();
                assert!(!shown.contains("sk-"), "{shown}");
            }
        }
        let model = model(protocol, "http://127.0.0.1:1", PATIENCE);
        assert!(!format!("{model:?}").contains("sk-"), "{model:?}");
    }
    assert!(!format!("{:?}", chat_config("")).contains("sk-"));
    assert!(!format!("{:?}", messages_config("")).contains("sk-"));
}

#[tokio::test]
async fn a_long_explanation_is_cut() {
    for protocol in BOTH {
        let page = Raw::new(404, "text/html", [format!("<html>{}", "定".repeat(5000))]);
        let result = outcome(protocol, PATIENCE, [Behaviour::Raw(page)]).await;
        let detail = format!("HTTP 404: <html>{}…", "定".repeat(284));
        assert_eq!(result, (Err(refused(&detail)), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_page_is_no_answer() {
    for protocol in BOTH {
        let page = Behaviour::Raw(Raw::new(200, "text/html", ["<h1>Log in</h1>"]));
        let result = outcome(protocol, PATIENCE, [page]).await;
        assert_malformed(result, "neither a stream nor JSON but `text/html`: <h1>Log in</h1>");
    }
}

#[tokio::test]
async fn a_chunk_that_is_no_json_is_no_answer() {
    for protocol in BOTH {
        let chunk = Behaviour::events(["data: {\"choices\": [\n\n"]);
        assert_malformed(outcome(protocol, PATIENCE, [chunk]).await, "EOF while parsing");
    }
}

#[tokio::test]
async fn a_document_without_an_answer_is_none() {
    for protocol in BOTH {
        for odd in [json!({}), json!({"choices": []}), json!([1]), json!({"content": "x"})] {
            assert_malformed(outcome(protocol, PATIENCE, [document(&odd)]).await, "");
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_no_answer() {
    for protocol in BOTH {
        let chunk = Behaviour::events([&b"data: {\"text\": \"\xff\xfe\"}\n\n"[..]]);
        assert_malformed(outcome(protocol, PATIENCE, [chunk]).await, "the stream is not UTF-8");
    }
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    for protocol in BOTH {
        let piece = Bytes::from(vec![b'x'; 1024 * 1024]);
        let result = outcome(protocol, PATIENCE, [Behaviour::events(vec![piece; 5])]).await;
        assert_malformed(result, "an event or a line of the stream is longer than 4194304 bytes");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let comment = Bytes::from([vec![b':'; 1024 * 1024], vec![b'\n']].concat());
    for (protocol, kind) in BOTH.into_iter().zip(["text/event-stream", "application/json"]) {
        let raw = Raw { end: End::Stall, ..Raw::new(200, kind, vec![comment.clone(); 33]) };
        let result = outcome(protocol, PATIENCE, [Behaviour::Raw(raw)]).await;
        assert_malformed(result, "the answer is longer than 33554432 bytes");
    }
}

#[tokio::test]
async fn an_error_inside_an_answer_is_tried_again_unless_the_request_is_to_blame() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "oh"}});
    let event = |error: &Value| Behaviour::events([format!("event: error\ndata: {error}\n\n")]);
    let (busy, bad) = (error("overloaded_error"), error("invalid_request_error"));
    for protocol in BOTH {
        for busy in [event(&busy), document(&busy)] {
            let result = outcome(protocol, PATIENCE, [busy, fine()]).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?}");
        }
        for bad in [event(&bad), document(&bad)] {
            let result = outcome(protocol, PATIENCE, [bad]).await;
            let expected = Err(refused("oh (invalid_request_error)"));
            assert_eq!(result, (expected, 1), "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_before_any_words_is_told_apart_from_an_empty_one() {
    let chat =
        |reason: &str| json!({"choices": [{"message": {"content": ""}, "finish_reason": reason}]});
    let message = |reason: &str| json!({"content": [], "stop_reason": reason});
    let limit = "the token limit was reached before any words";
    for (protocol, written, detail) in [
        (CHAT, chat("length"), limit),
        (CHAT, chat("content_filter"), "the answer was withheld by a filter"),
        (MESSAGES, message("max_tokens"), limit),
        (MESSAGES, message("refusal"), "the model declined to answer"),
    ] {
        let result = outcome(protocol, PATIENCE, [document(&written)]).await;
        assert_eq!(result, (Err(refused(detail)), 1), "{written}");
    }
    for (protocol, written) in [(CHAT, chat("stop")), (MESSAGES, message("end_turn"))] {
        let result = outcome(protocol, PATIENCE, [document(&written)]).await;
        let (usage, model) = (Usage::default(), "asked-for".to_owned());
        assert_eq!(result, (Ok(Reply { usage, model, ..reply("", &[]) }), 1), "{written}");
    }
}

// The liberties that servers take.

/// The calls that are read from these deltas.
async fn calls_of(deltas: &[Value]) -> Vec<RawCall> {
    let chunk = |delta: &Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let end = "data: [DONE]\n\n".to_owned();
    let pieces: Vec<String> = deltas.iter().map(chunk).chain([end]).collect();
    let (result, _) = outcome(CHAT, PATIENCE, [Behaviour::events(pieces)]).await;
    result.unwrap().calls
}

fn fragment(fields: Value) -> Value {
    json!({"tool_calls": [fields]})
}

#[tokio::test]
async fn an_empty_finish_reason_is_none() {
    let chunk = json!({"choices": [{"delta": {"content": "half"}, "finish_reason": ""}]});
    let half = Behaviour::events([format!("data: {chunk}\n\n")]);
    let result = outcome(CHAT, PATIENCE, [half, fine()]).await;
    assert_eq!(result, (Ok(reply("fine", &[])), 2));
}

#[tokio::test]
async fn fragments_without_an_index_belong_to_the_call_before_them() {
    let calls = calls_of(&[
        fragment(json!({"id": "a", "function": {"name": "one", "arguments": "{\"x\""}})),
        fragment(json!({"function": {"arguments": ":1}"}})),
        fragment(json!({"id": "b", "function": {"name": "two", "arguments": "{"}})),
        fragment(json!({"id": "b", "function": {"arguments": "}"}})),
        fragment(json!({"function": {"name": "three", "arguments": "{}"}})),
    ])
    .await;
    let expected = [("a", "one", "{\"x\":1}"), ("b", "two", "{}"), ("call_1", "three", "{}")];
    assert_eq!(calls, reply("", &expected).calls);
}

#[tokio::test]
async fn every_fragment_may_repeat_the_id_and_the_name() {
    let piece = |text: &str| {
        let function = json!({"name": "one", "arguments": text});
        fragment(json!({"index": 0, "id": "a", "function": function}))
    };
    let calls = calls_of(&[piece("{\"x\""), piece(":1"), piece("}")]).await;
    assert_eq!(calls, reply("", &[("a", "one", "{\"x\":1}")]).calls);
}

#[tokio::test]
async fn whole_calls_in_one_chunk_may_share_an_index() {
    let calls = calls_of(&[json!({"tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}},
        {"index": 0, "id": "b", "function": {"name": "two", "arguments": "{\"x\":"}},
        {"index": 0, "id": "", "function": {"name": null, "arguments": "2}"}},
    ]})])
    .await;
    assert_eq!(calls, reply("", &[("a", "one", "{}"), ("b", "two", "{\"x\":2}")]).calls);
}

#[tokio::test]
async fn calls_come_in_the_order_of_their_indexes() {
    let calls = calls_of(&[
        fragment(json!({"index": 1, "id": "b", "function": {"name": "two"}})),
        fragment(json!({"index": 0, "id": "a", "function": {"name": "one"}})),
    ])
    .await;
    assert_eq!(calls, reply("", &[("a", "one", "{}"), ("b", "two", "{}")]).calls);
}

#[tokio::test]
async fn missing_empty_and_repeated_ids_are_made_up() {
    let calls = calls_of(&[json!({"tool_calls": [
        {"index": 0, "function": {"name": "one", "arguments": "{}"}},
        {"index": 1, "id": "", "function": {"name": "two", "arguments": "{}"}},
        {"index": 2, "id": "x", "function": {"name": "three", "arguments": "{}"}},
        {"index": 3, "id": "x", "function": {"name": "four", "arguments": "{}"}},
    ]})])
    .await;
    let expected = [("call_1", "one"), ("call_2", "two"), ("x", "three"), ("call_3", "four")];
    assert_eq!(calls, reply("", &expected.map(|(id, tool)| (id, tool, "{}"))).calls);
}

#[tokio::test]
async fn arguments_may_be_an_object() {
    let function = json!({"name": "one", "arguments": {"x": [1, "二"]}});
    let calls = calls_of(&[fragment(json!({"index": 0, "id": "a", "function": function}))]).await;
    assert_eq!(calls, reply("", &[("a", "one", "{\"x\":[1,\"二\"]}")]).calls);
}

#[tokio::test]
async fn a_call_that_names_no_tool_is_no_answer() {
    let delta = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a"}]}}]});
    let events = Behaviour::events([format!("data: {delta}\n\ndata: [DONE]\n\n")]);
    assert_malformed(outcome(CHAT, PATIENCE, [events]).await, "a call names no tool");
}

#[tokio::test]
async fn parts_other_choices_and_odd_counts_do_no_harm() {
    let chunks = [
        json!({"choices": [{"delta": {"content": [{"type": "text", "text": "a"}]}}]}),
        json!({"choices": [{"index": 1, "delta": {"content": "other"}}], "usage": null}),
        json!({"choices": [{"index": 0, "delta": {"content": "b", "tool_calls": null}}]}),
        json!({"choices": null, "usage": {"prompt_tokens": 3, "completion_tokens": "many"}}),
        json!({"choices": [{"finish_reason": "stop"}], "model": ""}),
    ];
    let pieces: Vec<String> =
        chunks.iter().map(|it| format!(": keep-alive\r\ndata: {it}\r\n\r\n")).collect();
    let result = outcome(CHAT, PATIENCE, [Behaviour::events(pieces)]).await;
    let usage = Usage { input_tokens: 3, output_tokens: 0 };
    let expected = Reply { usage, model: "asked-for".to_owned(), ..reply("ab", &[]) };
    assert_eq!(result, (Ok(expected), 1));
}

#[tokio::test]
async fn thinking_and_events_of_the_future_are_passed_over_and_cached_tokens_count() {
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1});
    let thinking = json!({"type": "thinking", "thinking": ""});
    let events = [
        json!({"type": "message_start", "message": {"model": "m-2", "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": thinking}),
        json!({"type": "content_block_delta", "index": 0,
               "delta": {"type": "thinking_delta", "thinking": "hm"}}),
        json!({"type": "content_block_start", "index": 1,
               "content_block": {"type": "text", "text": "a"}}),
        json!({"type": "something_new"}),
        json!({"type": "content_block_delta", "index": 1,
               "delta": {"type": "text_delta", "text": "b"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
               "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let pieces: Vec<String> = events.iter().map(|it| format!("data: {it}\n\n")).collect();
    let result = outcome(MESSAGES, PATIENCE, [Behaviour::events(pieces)]).await;
    let usage = Usage { input_tokens: 43, output_tokens: 9 };
    let expected = Reply { usage, model: "m-2".to_owned(), ..reply("ab", &[]) };
    assert_eq!(result, (Ok(expected), 1));
}

// What is asked.

fn conversation() -> Vec<Message> {
    let call = |id: &str, arguments| {
        Arc::new(Call { id: id.into(), tool: "read_logs".to_owned(), arguments })
    };
    vec![
        user("Look."),
        Message::Assistant {
            text: String::new(),
            calls: vec![call("a", json!({"n": 1})), call("b", json!("odd"))],
        },
        Message::Tool { call: "a".into(), result: CallResult::ok("line") },
        Message::Tool { call: "b".into(), result: CallResult::error("BAD_ARGUMENTS", "no") },
        user("And?"),
        Message::Assistant { text: "Nothing.".to_owned(), calls: Vec::new() },
        user("Thanks."),
    ]
}

#[tokio::test]
async fn a_conversation_is_asked_as_chat_completions_want_it() {
    let server = FakeModel::start().await.unwrap();
    server.will(fine());
    let model = model(CHAT, &format!("{}/", server.chat_url()), PATIENCE);
    ask(&*model, &conversation()).await.unwrap();
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.path, "/v1/chat/completions");
    let call = |id: &str, arguments: &str| {
        let function = json!({"name": "read_logs", "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    assert_eq!(
        seen.body,
        json!({
            "model": "asked-for",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Look."},
                {
                    "role": "assistant",
                    "content": null,
                    "tool_calls": [call("a", "{\"n\":1}"), call("b", "\"odd\"")],
                },
                {"role": "tool", "tool_call_id": "a", "content": "line"},
                {"role": "tool", "tool_call_id": "b", "content": "error BAD_ARGUMENTS: no"},
                {"role": "user", "content": "And?"},
                {"role": "assistant", "content": "Nothing."},
                {"role": "user", "content": "Thanks."},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "user": "it_manager",
            "tools": [{
                "type": "function",
                "function": {
                    "name": "read_logs",
                    "description": "Reads logs.",
                    "parameters": {"type": "object"},
                },
            }],
            "max_tokens": 300,
            "temperature": 0.2,
        })
    );
    let names = ["authorization", "x-chancery-run", "x-chancery-agent", "content-type"];
    assert_eq!(
        names.map(|name| seen.headers[name].as_str()),
        ["Bearer sk-test-51d0c0ffee", RUN, "it_manager", "application/json"]
    );
}

#[tokio::test]
async fn a_conversation_is_asked_as_the_messages_api_wants_it() {
    let server = FakeModel::start().await.unwrap();
    server.will(fine());
    let model = model(MESSAGES, &server.messages_url(), PATIENCE);
    ask(&*model, &conversation()).await.unwrap();
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.path, "/v1/messages");
    let call = |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "read_logs", "input": input});
    let result = |id: &str, content: &str, is_error: bool| json!({"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error});
    let text = |text: &str| json!({"type": "text", "text": text});
    let calls = [call("a", json!({"n": 1})), call("b", json!({"arguments": "odd"}))];
    let results =
        [result("a", "line", false), result("b", "error BAD_ARGUMENTS: no", true), text("And?")];
    assert_eq!(
        seen.body,
        json!({
            "model": "asked-for",
            "max_tokens": 300,
            "system": "Be brief.",
            "messages": [
                {"role": "user", "content": [text("Look.")]},
                {"role": "assistant", "content": calls},
                {"role": "user", "content": results},
                {"role": "assistant", "content": [text("Nothing.")]},
                {"role": "user", "content": [text("Thanks.")]},
            ],
            "stream": true,
            "metadata": {"user_id": "it_manager"},
            "tools": [{
                "name": "read_logs",
                "description": "Reads logs.",
                "input_schema": {"type": "object"},
            }],
            "temperature": 0.2,
        })
    );
    let names = ["x-api-key", "anthropic-version", "x-chancery-run", "x-chancery-agent"];
    assert_eq!(
        names.map(|name| seen.headers[name].as_str()),
        [KEY, "2023-06-01", RUN, "it_manager"]
    );
}

#[tokio::test]
async fn the_messages_api_is_never_sent_what_it_refuses() {
    let server = FakeModel::start().await.unwrap();
    server.will(fine());
    let model = model(MESSAGES, &format!("{}/v1/", server.messages_url()), PATIENCE);
    let silent = Message::Assistant { text: " ".to_owned(), calls: Vec::new() };
    let said = Message::Assistant { text: "Hello.".to_owned(), calls: Vec::new() };
    ask(&*model, &[said, user(""), silent, user("So?")]).await.unwrap();
    let [seen] = server.requests().try_into().unwrap();
    assert_eq!(seen.path, "/v1/messages");
    let text = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        seen.body["messages"],
        json!([
            {"role": "user", "content": [text("(nothing)")]},
            {"role": "assistant", "content": [text("Hello.")]},
            {"role": "user", "content": [text("(nothing)"), text("So?")]},
        ])
    );
}

#[tokio::test]
async fn what_is_not_configured_is_not_sent() {
    let server = FakeModel::start().await.unwrap();
    server.otherwise(|_, _| fine());
    let chat = openai::OpenAi::new(openai::Config {
        api_key: None,
        max_output_tokens: None,
        temperature: None,
        ..chat_config(&server.chat_url())
    });
    let messages = anthropic::Anthropic::new(anthropic::Config {
        api_key: None,
        max_output_tokens: None,
        temperature: None,
        ..messages_config(&server.messages_url())
    });
    let models: [Box<dyn Model>; 2] = [Box::new(chat.unwrap()), Box::new(messages.unwrap())];
    let agent = AgentId::from("林");
    for model in models {
        let (run, messages) = (RUN.parse().unwrap(), [user("hello")]);
        let request = Request { run, agent: &agent, system: "", messages: &messages, tools: &[] };
        model.generate(request).await.unwrap();
    }
    let [chat, messages] = server.requests().try_into().unwrap();
    assert_eq!(
        chat.body,
        json!({
            "model": "asked-for",
            "messages": [{"role": "user", "content": "hello"}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "user": "林",
        })
    );
    assert_eq!(
        messages.body,
        json!({
            "model": "asked-for",
            "max_tokens": anthropic::MAX_OUTPUT_TOKENS,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
            "stream": true,
            "metadata": {"user_id": "林"},
        })
    );
    for seen in [chat, messages] {
        assert_eq!(seen.headers.get("authorization"), None);
        assert_eq!(seen.headers.get("x-api-key"), None);
        assert_eq!(seen.headers["x-chancery-agent"], "%E6%9E%97");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_before_anything_is_asked() {
    for base_url in ["api.example.com/v1", "ftp://example.com", "localhost:11434", ""] {
        let error = openai::OpenAi::new(chat_config(base_url)).unwrap_err();
        let (model, url) = ("main".to_owned(), format!("{base_url}/chat/completions"));
        assert_eq!(error, SetupError::Address { model, url });
    }
    let with_key =
        |key: &str| openai::Config { api_key: Some(key.into()), ..chat_config("http://[::1]") };
    let error = openai::OpenAi::new(with_key("two\nlines")).unwrap_err();
    assert_eq!(error, SetupError::Key { model: "main".to_owned() });
    // A line feed after the key is what files end with.
    openai::OpenAi::new(with_key("one-line\n")).unwrap();
}
